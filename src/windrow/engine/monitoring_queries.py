"""Monitoring queries as they are scheduled: with those of their ledger, or each by itself.

One that shares nothing is held back until it is refreshed: its new rows wait, and its clock stands. Then it
moves on in one step, as if one large batch had come, and tells of the newest window only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import gcd
from typing import TYPE_CHECKING

from windrow.engine.refresh_scheduler import Group
from windrow.errors import QueryError
from windrow.physical.units import SlidingUnit
from windrow.sharing.schedule.tasks import Query, by_period
from windrow.windows.domain import INFINITY

if TYPE_CHECKING:
    from windrow.engine.records import QueryRecord
    from windrow.kernels.clock import PaneClock
    from windrow.kernels.panes.cuts import Cut
    from windrow.kernels.panes.program import PaneProgram
    from windrow.kernels.shared.request import Asker
    from windrow.kernels.shared.shared_state import Ledger


@dataclass(frozen=True)
class Without:
    """Leaves out all windows but one, or all; and those that something else leaves out."""

    end: int | None
    other: Callable[[int], bool] | None = None

    def __call__(self, end: int) -> bool:
        return end != self.end or (self.other is not None and self.other(end))


def both(
    one: Callable[[int], bool] | None, other: Callable[[int], bool] | None
) -> Callable[[int], bool] | None:
    """What leaves out what either does."""
    return replace(one, other=other) if isinstance(one, Without) else other


def group_of(ledger: Ledger, records: Sequence[tuple[QueryRecord, Asker]], clock: PaneClock) -> Group | None:
    """The monitoring queries of a ledger; None if there are none."""
    monitoring = [(record, asker) for record, asker in records if record.query.every is not None]
    if not monitoring:
        return None
    update = gcd(*(sheet.width for sheet in ledger.sheets))
    exact = [(record, asker) for record, asker in records if record.query.every is None]
    certain = {record.id: _query(record, asker.cut, update) for record, asker in exact}
    return Group(
        ledger.name,
        update,
        clock,
        {record.id: _query(record, asker.cut, update) for record, asker in monitoring},
        {record.id for record, asker in monitoring if asker.is_due(clock)},
        {record.id: (asker.slide, asker.origin % asker.slide) for record, asker in monitoring},
        tuple(by_period({ledger.name: list(certain.values())})),
        tuple(certain[record.id] for record, asker in exact if asker.is_due(clock)),
    )


def group_by_itself(record: QueryRecord, clock: PaneClock, held: PaneClock) -> Group:
    """A monitoring query that shares nothing; `held` is its clock since it was last refreshed."""
    cut = _program(record).query.cut
    update = cut.slide if cut.range is None else gcd(cut.range, cut.slide)
    ready = {record.id} if held.is_due(cut) else set()
    return Group(record.id, update, clock, {record.id: _query(record, cut, update)}, ready)


def newest(record: QueryRecord, now: float, greatest: int | None) -> int | None:
    """Where the newest window ends that is over; after the end of the stream, the last one of any rows."""
    levels = _program(record).levels
    if now != INFINITY:
        cut = levels[-1].query.cut
        due = cut.due(now)
        return None if abs(due) == INFINITY else cut.origin + (int(due) + 1) * cut.slide
    at = greatest
    for level in levels:
        at = None if at is None else _last_end(level.query.cut, at)
    return at


def check_every(record: QueryRecord) -> None:
    """EVERY is about windows that end, one after the other, for all groups at once."""
    if record.query.every is None or record.shares:
        return
    unit = record.bundle.unit
    if not isinstance(unit, SlidingUnit):
        reason = "it is no aggregate over windows of one stream, whose answers are about one window each"
    elif unit.program.by_group:
        reason = "its groups become final one by one, each at its own time"
    elif unit.program.query.attribute != unit.program.stream.wattr:
        reason = "its windows are not over the stream's own time"
    else:
        return
    raise QueryError(
        f"query `{record.query.name}` cannot be refreshed EVERY so often: {reason}",
        code="bad-every",
        hint="leave EVERY out: the query is then answered whenever there is something new",
    )


def _program(record: QueryRecord) -> PaneProgram:
    unit = record.bundle.unit
    assert isinstance(unit, SlidingUnit)
    return unit.program


def _query(record: QueryRecord, cut: Cut, update: int) -> Query:
    asked = record.query
    most = None if asked.at_most is None else max(1, asked.at_most // update)
    period = max(1, max(cut.slide, asked.every or 0) // update)
    return Query(record.id, max(1, (cut.range or cut.slide) // update), period, asked.priority, most)


def _last_end(cut: Cut, at: int) -> int:
    """The end of the last window that an instant is in; of those that have no beginning, the first."""
    if cut.range is None:
        return cut.origin + ((at - cut.origin) // cut.slide + 1) * cut.slide
    return cut.origin + (at + cut.range - cut.origin) // cut.slide * cut.slide
