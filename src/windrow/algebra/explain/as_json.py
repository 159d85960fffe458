"""EXPLAIN as JSON: the same facts under stable names. New keys may come; none is renamed or dropped
without a new version."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from windrow.algebra.explain.facts import Explanation, Step

#: raised when the meaning of a key changes
VERSION = 2


def as_json(explanation: Explanation) -> str:
    """The explanation as an indented JSON object."""
    return json.dumps(as_dict(explanation), indent=2, ensure_ascii=False)


def as_dict(explanation: Explanation) -> dict[str, Any]:
    """The explanation as plain lists and dicts."""
    return {
        "version": VERSION,
        "query": explanation.name,
        "plan": _step(explanation.plan),
        "columns": [{"name": name, "type": kind} for name, kind in explanation.columns],
        "errors": [{"aggregate": call, "bound": bound} for call, bound in explanation.errors],
        "answers": {
            "word": explanation.word,
            "written": explanation.word_because is None,
            "because": explanation.word_because,
            "meaning": explanation.meaning,
        },
        "final": explanation.final,
        "clock": [{"input": name, "by": policy} for name, policy in explanation.clock],
        "windows": [
            {
                "window": fact.window,
                "class": fact.window_class.name,
                "panes_per_extent": fact.panes_per_extent,
                "pane": fact.pane,
            }
            for fact in explanation.windows
        ],
        "rules": None if explanation.fired is None else list(explanation.fired),
        "considered": [
            {"plan": each.name, "cost": each.cost, "chosen": each.chosen} for each in explanation.considered
        ],
        "runs": list(explanation.runs),
        "observed": list(explanation.observed),
        "sink": {"to": explanation.sink, "guarantee": explanation.guarantee},
    }


def _step(step: Step) -> dict[str, Any]:
    return {
        "operator": step.operator,
        "pattern": None if step.pattern is None else step.pattern.name,
        "expiry": step.expiry or None,
        "implementation": step.kind,
        "place": step.place,
        "method": step.method,
        "reason": step.reason or None,
        "state": step.state or None,
        "state_rows": step.state_rows,
        "inputs": [_step(part) for part in step.inputs],
    }
