"""The rows that nobody needs: every window that depends on them, in every query, is dropped.

Between two kept windows of a query, the one before a gap and the one after it, lie the rows that the query
does not need. What a stream may lose is what none of its queries needs:

    kept window before      ----------)E
    dropped windows            ----------)
                                   ----------)
    kept window after                         ----------)E'
    needless rows                     [-------)

That is a handful of intervals of WATTR, [begin, end), whatever the number of rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from windrow.shedding.agreement import Agreed
from windrow.windows.domain import FOREVER

if TYPE_CHECKING:
    from windrow.shedding.phases import Phases

#: so many intervals of rows are told to a scan; rows after them are kept
MOST_INTERVALS = 32


@dataclass(frozen=True, slots=True, order=True)
class Interval:
    """The rows with begin <= WATTR < end."""

    begin: int
    end: int

    def __contains__(self, instant: int) -> bool:
        return self.begin <= instant < self.end


def needless(query: Agreed, stream: str, phases: Phases, begin: int, end: int) -> Iterator[Interval]:
    """The rows in [begin, end) of a stream that a query does not need, although its windows cover them."""
    width = max(way.width for way in query.reach)
    for run in phases.runs(begin, min(end + width + query.grid.period, FOREVER)):
        low, high = _between(query, stream, phases, run.after, run.until)
        if max(low, begin) < min(high, end):
            yield Interval(max(low, begin), min(high, end))


def _between(query: Agreed, stream: str, phases: Phases, after: int, until: int) -> tuple[int, int]:
    """The rows between the last window kept before a run, and the first one kept after it."""
    before, following = query.grid.end(query.grid.last_ending(after)), query.grid.first_after(until)
    low, high = query.end(stream, before), query.first(stream, following)
    assert low is not None
    assert high is not None
    return low, high


def droppable(
    stream: str,
    readers: Iterable[str],
    agreed: Mapping[str, Agreed],
    phases: Mapping[str, Phases],
    begin: int,
    end: int,
) -> list[Interval]:
    """The rows in [begin, end) of a stream that no reader needs; none if a reader has not agreed to lose any.

    A stream nobody reads keeps its rows: nobody has agreed.
    """
    kept: list[Interval] | None = None
    for name in readers:
        query = agreed.get(name)
        if query is None or stream not in query.sheddable or name not in phases:
            return []
        own = needless(query, stream, phases[name], begin, end)
        kept = list(islice(own, MOST_INTERVALS)) if kept is None else overlap(kept, own)
        if not kept:
            return []
    return (kept or [])[:MOST_INTERVALS]


def overlap(left: Sequence[Interval], right: Iterable[Interval]) -> list[Interval]:
    """What is in both of two lists of intervals, each in order and without overlaps.

    >>> overlap([Interval(0, 5), Interval(8, 12)], [Interval(3, 9), Interval(11, 20)])
    [Interval(begin=3, end=5), Interval(begin=8, end=9), Interval(begin=11, end=12)]
    """
    found: list[Interval] = []
    place = 0
    for other in right:
        while place < len(left) and left[place].end <= other.begin:
            place += 1
        at = place
        while at < len(left) and left[at].begin < other.end:
            found.append(Interval(max(left[at].begin, other.begin), min(left[at].end, other.end)))
            at += 1
        if place == len(left):
            break
    return found
