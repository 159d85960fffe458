"""What EXPLAIN says of a query that has agreed to lose windows: what is left out, and what holds all the
same.

>>> from windrow.engine.explain import declared
>>> from windrow.language.compile import compile_query
>>> from windrow.physical import plan_query
>>> bids = {"bids": ("price DOUBLE, ts TIMESTAMP", "SLACK 5 SECONDS SHEDDABLE")}
>>> text = "SELECT MAX(price) AS top FROM bids [RANGE 1 MINUTE SLIDE 10 SECONDS]"
>>> plan = plan_query(compile_query(text, declared(bids, {})))
>>> for line in what_is_shed(plan, max_gap=11):
...     print(line)
shed    WinDrop(window 1 MINUTE, slide 10 SECONDS, B 11): each answer given is exact, at most 11 windows in a
        row are missing; a gap of 11 makes 1 MINUTE of rows needless. Shed rows are counted by Spark as it
        aggregates, in no pane. Not used: RDrop, which drops answers at random: each answer given is exact,
        any number of windows may be missing; RowDrop, which drops rows at random: answers may be wrong, any
        number of windows may be missing
"""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING

from windrow.algebra.explain.brackets import quantity
from windrow.shedding.agreement import SheddableQuery, agree
from windrow.shedding.rules import RDROP, ROW_DROP, WINDROP, CannotShed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windrow.physical import PhysicalPlan
    from windrow.shedding.agreement import Agreed

_WIDTH, _LABEL = 110, "shed    "
#: what else could be done, to be compared with
_OTHERS = (
    f"Not used: RDrop, which drops answers at random: {RDROP.text()};"
    f" RowDrop, which drops rows at random: {ROW_DROP.text()}"
)


def what_is_shed(plan: PhysicalPlan, max_gap: int | None) -> list[str]:
    """The line about overload; none for a query without MAX GAP, which loses nothing."""
    if max_gap is None:
        return []
    return wrap(_told(plan, max_gap), _WIDTH, initial_indent=_LABEL, subsequent_indent=" " * len(_LABEL))


def _told(plan: PhysicalPlan, max_gap: int) -> str:
    emit = plan.asked
    try:
        agreed = agree(SheddableQuery("", emit, max_gap))
        drop = agreed.drop
    except CannotShed as refusal:
        return f"no window is left out: {refusal.reason}"
    domain = emit.leaves[0].domain
    window, slide = quantity(drop.window, domain), quantity(drop.slide, domain)
    rows = f"{quantity(drop.early_ticks, domain)} of rows" if drop.early_ticks else "no row"
    inner = [
        f", and {quantity(each.early_ticks, domain)} of the answers of level {level}"
        for level, each in enumerate(agreed.arcs[1:], start=1)
        if each.early_ticks and len(agreed.arcs) == plan.unit.stages
    ]
    return (
        f"WinDrop(window {window}, slide {slide}, B {drop.batch}): {WINDROP.text(drop.batch)};"
        f" a gap of {drop.batch} makes {rows} needless{''.join(inner)}."
        f" {f'{plan.drops} ' if drop.early_ticks and plan.drops else ''}{_OTHERS}"
    )


def what_it_saves(agreed: Agreed | None, seconds: Sequence[float]) -> list[str]:
    """Where a gap saves most of the work on a query's levels, as it was measured; for EXPLAIN ANALYZE."""
    share, place = (0.0, 0) if agreed is None else agreed.saved(seconds)
    if agreed is None or not share:
        return []
    where = "rows" if place == 0 else f"answers of level {place}"
    return [f"gaps of {agreed.max_gap} save most by {where} that nobody needs: {share:.0%} of this work"]
