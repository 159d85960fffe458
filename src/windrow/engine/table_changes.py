"""When a table changes, if nobody says so.

A change is seen by rows later than it. So it happens at the latest instant of the rows seen so far, in the
streams that some query reads together with the table: those are answered by the table as it was, rows that
come after them by the table as it is then. Where nothing was answered yet, it was there from the beginning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from windrow.engine.tables import BEGINNING
from windrow.errors import DataError
from windrow.windows.domain import INFINITY

if TYPE_CHECKING:
    from collections.abc import Iterable

    from windrow.engine.tables import TableRecord
    from windrow.windows.domain import Instant


def instant_of(record: TableRecord, clocks: Iterable[tuple[Instant, Instant]]) -> int:
    """The instant of a change. `clocks` are of the queries that read the table: how far answers are given,
    and the greatest windowing attribute of the rows they have seen."""
    living = [(clock, seen) for clock, seen in clocks if clock != INFINITY]
    known = [record.changed, *([record.progress] if record.progress != INFINITY else [])]
    latest = max([*known, *(moment for pair in living for moment in pair)])
    return BEGINNING if latest == -INFINITY else int(latest)


def check_clock(table: str, at: int, clock: Instant) -> None:
    """Refuse a change in what is already answered."""
    if at < clock:
        raise DataError(
            f"table `{table}` cannot change at {at}: answers up to {clock} are given",
            code="late-update",
            hint="update tables before their streams move on, or hold the clock with punctuate()",
        )
