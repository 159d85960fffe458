"""EXPLAIN as text: the plan as a tree, then what a reader wants to know about its answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from windrow.algebra.explain.facts import Alternative, Explanation, Step, WindowFact

_WIDTH = 12
_MOST_PLANS = 8


def as_text(explanation: Explanation) -> str:
    """The whole explanation; lines have no trailing blanks, and there is no newline at the end."""
    heading = [f"query {explanation.name}", ""] if explanation.name else []
    tree = list(_tree(explanation.plan, "", ""))
    return "\n".join(line.rstrip() for line in [*heading, *tree, "", *_sections(explanation)])


def _tree(step: Step, first: str, rest: str) -> Iterator[str]:
    """The lines of a step; `first` stands before its own line, `rest` before all that follow."""
    details = list(_details(step))
    yield first + step.operator + (f" · {step.pattern}" if not details and step.pattern is not None else "")
    margin = rest + ("│    " if step.inputs else "     ")
    yield from (margin + line for line in details)
    for part in step.inputs:
        last = part is step.inputs[-1]
        yield from _tree(part, rest + ("└─ " if last else "├─ "), rest + ("   " if last else "│  "))


def _details(step: Step) -> Iterator[str]:
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
