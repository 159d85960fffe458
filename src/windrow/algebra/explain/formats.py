"""EXPLAIN as text: the plan as a tree, then what a reader wants to know about its answers.

EXPLAIN as JSON: the same facts under stable names. New keys may come; none is renamed or dropped
without a new version.

EXPLAIN as a Graphviz picture: rows flow upwards, colours are update patterns.

>>> quoted('say "a" \\\\ b')
'"say \\\\"a\\\\" \\\\\\\\ b"'
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from windrow.windows.patterns import Pattern

if TYPE_CHECKING:
    from windrow.algebra.explain.facts import Alternative, ExplainStep, Explanation, WindowFact


_WIDTH = 12
_MOST_PLANS = 8


def as_text(explanation: Explanation) -> str:
    """The whole explanation; lines have no trailing blanks, and there is no newline at the end."""
    heading = [f"query {explanation.name}", ""] if explanation.name else []
    tree = list(_tree(explanation.plan, "", ""))
    return "\n".join(line.rstrip() for line in [*heading, *tree, "", *_sections(explanation)])


def _tree(step: ExplainStep, first: str, rest: str) -> Iterator[str]:
    """The lines of a step; `first` stands before its own line, `rest` before all that follow."""
    details = list(_details(step))
    yield first + step.operator + (f" · {step.pattern}" if not details and step.pattern is not None else "")
    margin = rest + ("│    " if step.inputs else "     ")
    yield from (margin + line for line in details)
    for part in step.inputs:
        last = part is step.inputs[-1]
        yield from _tree(part, rest + ("└─ " if last else "├─ "), rest + ("   " if last else "│  "))


def _details(step: ExplainStep) -> Iterator[str]:
    """Expiry, state and method; operators that only pass rows on have nothing to say but their pattern."""
    if step.passes_on:
        return
    if step.pattern is not None:
        yield f"expiry  {step.pattern}: {step.expiry}"
    rows = "" if step.state_rows is None or not step.state else f", {_about(step.state_rows)}"
    yield f"state   {step.state or 'none'}{rows}"
    yield f"method  {step.method}" + (f": {step.reason}" if step.reason else "")


def _sections(explanation: Explanation) -> Iterator[str]:
    yield _entry("answers", f"{explanation.word}: {explanation.meaning}")
    if explanation.word_because:
        yield _entry("", f"(no stream word is written; {explanation.word_because})")
    yield _entry("columns", ", ".join(f"{name} {kind}" for name, kind in explanation.columns))
    yield from _list("errors", [f"{call}: {bound}" for call, bound in explanation.errors])
    yield _entry("final", explanation.final)
    yield from _list("clock", [f"{name}: {policy}" for name, policy in explanation.clock])
    yield from _list("windows", [line for window in explanation.windows for line in _window(window)])
    if explanation.fired is not None:
        yield _entry("rules", ", ".join(explanation.fired) or "none fired")
    yield from _list("considered", list(_considered(explanation.considered)))
    yield from _list("runs", list(explanation.runs))
    yield from _list("observed", list(explanation.observed))
    sink = [explanation.sink, "  " + explanation.guarantee] if explanation.sink else [explanation.guarantee]
    yield from _list("sink", sink)
    yield from _list(
        "warnings", [f"{each.code}: {each.message}; {each.hint}" for each in explanation.warnings]
    )


def _window(fact: WindowFact) -> Iterator[str]:
    yield fact.window
    yield f"  {fact.window_class.name}, {fact.window_class.value}"
    if fact.panes_per_extent is not None:
        plural = "pane" if fact.panes_per_extent == 1 else "panes"
        yield f"  {fact.panes_per_extent} {plural} of {fact.pane} per extent"


def _considered(plans: Sequence[Alternative]) -> Iterator[str]:
    """The cheapest plans first, the chosen one with a star; costs are rows touched per unit of time."""
    cheapest = sorted(plans, key=lambda plan: (plan.cost, not plan.chosen))
    for plan in cheapest[:_MOST_PLANS]:
        yield f"{'*' if plan.chosen else ' '} cost {_count(plan.cost):<10} {plan.name}"
    if len(cheapest) > _MOST_PLANS:
        yield f"  and {len(cheapest) - _MOST_PLANS} more"


def _list(title: str, lines: list[str]) -> Iterator[str]:
    for number, line in enumerate(lines):
        yield _entry("" if number else title, line)


def _entry(title: str, text: str) -> str:
    return f"{title:<{_WIDTH}}{text}"


def _about(rows: float) -> str:
    return f"about {_count(round(rows))} rows" if rows >= 1.5 else "about 1 row"


def _count(number: float) -> str:
    """A number for people: three digits are enough for an estimate.

    >>> _count(0.25), _count(36000.0), _count(1234567.0)
    ('0.25', '36 000', '1 230 000')
    """
    if number < 100:
        return f"{number:.3g}"
    return f"{round(float(f'{number:.3g}')):,}".replace(",", " ")


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
        "warnings": [
            {"code": each.code, "message": each.message, "hint": each.hint} for each in explanation.warnings
        ],
    }


def _step(step: ExplainStep) -> dict[str, Any]:
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


#: from the calmest to the most demanding; black text is readable on all of them
COLOURS: dict[Pattern | None, str] = {
    Pattern.MON: "#d9ead3",
    Pattern.WKS: "#cfe2f3",
    Pattern.WK: "#fff2cc",
    Pattern.STR: "#f4cccc",
    None: "#eeeeee",
}


def as_dot(explanation: Explanation) -> str:
    """The explanation as one digraph."""
    title = explanation.name or "query"
    caption = (
        f"{explanation.name}\n" if explanation.name else ""
    ) + f"{explanation.word}: {explanation.meaning}"
    lines = [
        f"digraph {quoted(title)} {{",
        f"  graph [rankdir=BT, fontname=Helvetica, labelloc=t, label={quoted(caption)}];",
        '  node [shape=box, style="rounded,filled", fontname=Helvetica];',
        "  edge [fontname=Helvetica, fontsize=10];",
        *(f"  {line};" for line in _graph(explanation.plan)),
        "}",
    ]
    return "\n".join(lines)


def _graph(plan: ExplainStep) -> Iterator[str]:
    """A node per step, and an edge from each step to the one that reads it, labelled with its pattern."""
    names = {id(step): f"n{number}" for number, step in enumerate(plan.walk())}
    for step in plan.walk():
        label = f"{step.operator}\n{step.state}" if step.state else step.operator
        yield f'{names[id(step)]} [label={quoted(label)}, fillcolor="{COLOURS[step.pattern]}"]'
    for step in plan.walk():
        for part in step.inputs:
            pattern = "" if part.pattern is None else f" [label={part.pattern.name}]"
            yield f"{names[id(part)]} -> {names[id(step)]}{pattern}"


def quoted(text: str) -> str:
    """A string of the DOT language; a newline becomes a centred line break."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
