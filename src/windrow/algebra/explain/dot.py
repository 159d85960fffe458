"""EXPLAIN as a Graphviz picture: rows flow upwards, colours are update patterns.

>>> quoted('say "a" \\\\ b')
'"say \\\\"a\\\\" \\\\\\\\ b"'
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from windrow.algebra.patterns import Pattern

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windrow.algebra.explain.facts import Explanation, Step

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
    lines = [
        f"digraph {quoted(title)} {{",
        f"  graph [rankdir=BT, fontname=Helvetica, labelloc=t, label={quoted(_caption(explanation))}];",
        '  node [shape=box, style="rounded,filled", fontname=Helvetica];',
        "  edge [fontname=Helvetica, fontsize=10];",
        *(f"  {line};" for line in _graph(explanation.plan)),
        "}",
    ]
    return "\n".join(lines)


def _caption(explanation: Explanation) -> str:
    name = f"{explanation.name}\n" if explanation.name else ""
    return f"{name}{explanation.word}: {explanation.meaning}"


def _graph(plan: Step) -> Iterator[str]:
    """A node per step, and an edge from each step to the one that reads it, labelled with its pattern."""
    names = {id(step): f"n{number}" for number, step in enumerate(plan.walk())}
    for step in plan.walk():
        colour = COLOURS[step.pattern]
        yield f'{names[id(step)]} [label={quoted(_label(step))}, fillcolor="{colour}"]'
    for step in plan.walk():
        for part in step.inputs:
            pattern = "" if part.pattern is None else f" [label={part.pattern.name}]"
            yield f"{names[id(part)]} -> {names[id(step)]}{pattern}"


def _label(step: Step) -> str:
    return f"{step.operator}\n{step.state}" if step.state else step.operator


def quoted(text: str) -> str:
    """A string of the DOT language; a newline becomes a centred line break."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
