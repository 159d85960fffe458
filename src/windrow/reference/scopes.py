"""Which rows are in a window at an instant: the scope functions of Patroumpas and Sellis, section 3.

Written from the definitions of the window states, not from validity intervals, so that the two can
be held against each other.
"""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import accumulate
from zoneinfo import ZoneInfo

from windrow.windows import RowsWindow, calendar, cumulate, landmark, lifetime, ranges, slide_by_tuple
from windrow.windows.domain import DAYS, INFINITY, MONTHS, Element, Instant
from windrow.windows.session import SessionWindow
from windrow.windows.spec import SlideGrid, WindowSpec


def members(spec: WindowSpec, rows: Sequence[Element], instant: int) -> list[int]:
    """The positions in `rows` of those that are in the window at `instant`."""
    inside = _state(spec, rows, instant)
    return [place for place in inside if instant >= rows[place].not_before]


def _state(spec: WindowSpec, rows: Sequence[Element], instant: int) -> list[int]:
    match spec:
        case RowsWindow():
            return _last_rows(spec, rows, instant)
        case slide_by_tuple.SlideByTupleWindow():
            return _moved_by_rows(spec, rows, instant)
        case SessionWindow():
            return _open_sessions(spec, rows, instant)
        case lifetime.LifetimeWindow():
            ends = [row.t + (row.lifetime or 0) * spec.scale for row in rows]
            return [place for place, row in enumerate(rows) if row.t <= instant < ends[place]]
    start, end = _bounds(spec, instant)
    return [place for place, row in enumerate(rows) if start <= row.t < end]


def _bounds(spec: WindowSpec, instant: int) -> tuple[Instant, Instant]:
    """Which instants a window holds that goes by these alone: from one up to, not including, another."""
    end = instant + 1 if spec.grid is None else last_slide(spec, instant)
    match spec:
        case ranges.RangeWindow():
            return end - spec.range, end
        case ranges.LaggedWindow():  # what a window without LAG held that long ago; slides are those of now
            return end - spec.lag - spec.range, end - spec.lag
        case calendar.CalendarWindow():
            return calendar_extent(spec, instant)
        case ranges.NowWindow():
            return instant, end
        case ranges.UnboundedWindow():
            return -INFINITY, end
        case landmark.LandmarkWindow():
            start = -INFINITY if spec.start is None else spec.start
            return start, end if spec.until is None else min(end, spec.until + 1)
        case cumulate.CumulateWindow():  # the cycle of the instant right before the last slide
            return spec.origin + (end - 1 - spec.origin) // spec.size * spec.size, end
    raise TypeError(f"no scope is defined for {type(spec).__name__}")


@lru_cache(maxsize=1 << 14)
def calendar_extent(spec: calendar.CalendarWindow, instant: int) -> tuple[int, int]:
    """The extent that is current at an instant, by what clocks on the wall show: of the last of the days on
    which one ends, and of the first of these if clocks jump over some of them."""
    clock = ZoneInfo(spec.zone)
    origin = _EPOCH + timedelta(microseconds=spec.origin)
    here = (
        (_EPOCH + timedelta(microseconds=instant)).replace(tzinfo=UTC).astimezone(clock).replace(tzinfo=None)
    )
    number, unit = spec.step
    months = unit == MONTHS
    around = (here.year - origin.year) * 12 + here.month - origin.month if months else (here - origin).days
    shown = [_later(origin, (number * k, unit)) for k in range(around // number - 3, around // number + 4)]
    end = max(_shows(clock, each) for each in shown if _shows(clock, each) <= instant)
    local = next(each for each in shown if _shows(clock, each) == end)
    back, of = spec.length
    if of in (MONTHS, DAYS):
        return _shows(clock, _later(local, (-back, of))), end
    return end - back, end


def _later(local: datetime, by: tuple[int, str]) -> datetime:
    number, unit = by
    if unit == DAYS:
        return local + timedelta(days=number)
    year, month = divmod(local.year * 12 + local.month - 1 + number, 12)
    return local.replace(year=year, month=month + 1, day=min(local.day, monthrange(year, month + 1)[1]))


def _shows(clock: ZoneInfo, local: datetime) -> int:
    """The first instant at which clocks show a time, or have jumped over it."""
    early = local.replace(tzinfo=clock, fold=0).astimezone(UTC)
    if early.astimezone(clock).replace(tzinfo=None) != local:
        low, high = early - timedelta(days=2), early
        while high - low > _TICK:
            middle = low + (high - low) / 2
            jumped = middle.astimezone(clock).replace(tzinfo=None) >= local
            low, high = (low, middle) if jumped else (middle, high)
        early = high
    return (early.replace(tzinfo=None) - _EPOCH) // _TICK


_EPOCH, _TICK = datetime(1970, 1, 1), timedelta(microseconds=1)


def _last_rows(spec: RowsWindow, rows: Sequence[Element], instant: int) -> list[int]:
    """The last n of the rows seen so far, or seen at the last slide, of each partition."""
    seen = instant if spec.grid is None else last_slide(spec, instant) - 1
    found: list[int] = []
    for part in _partitions(rows, range(len(rows))):
        order = counting_order(spec, rows, part)
        moments = accumulate((rows[place].t for place in order), max)
        count = sum(1 for moment in moments if moment <= seen)
        end = count - count % (spec.slide_rows or 1)
        found += order[max(0, end - spec.rows) : end]
    return sorted(found)


def counting_order(spec: RowsWindow, rows: Sequence[Element], places: Iterable[int]) -> list[int]:
    """Places in the order in which their rows are counted."""
    if spec.arrival_order:
        return sorted(places, key=lambda place: rows[place].row_num)
    return sorted(places, key=lambda place: (rows[place].t, rows[place].order))


def _moved_by_rows(
    spec: slide_by_tuple.SlideByTupleWindow, rows: Sequence[Element], instant: int
) -> list[int]:
    """The rows of (w - RANGE, w], where w is the last value that moved the window."""
    found: list[int] = []
    for part in _counted_parts(spec, rows):
        passed = [w for w in _moves(spec, rows, part) if w <= instant]
        if passed:
            last = max(passed)
            found += [
                place
                for place in part
                if rows[place].t <= last and (spec.range is None or last - spec.range < rows[place].t)
            ]
    return sorted(found)


def moving_values(spec: slide_by_tuple.SlideByTupleWindow, rows: Sequence[Element]) -> list[int]:
    """The attribute values of every n-th row of a partition, by arrival or by rank."""
    return sorted({w for part in _counted_parts(spec, rows) for w in _moves(spec, rows, part)})


def _counted_parts(spec: slide_by_tuple.SlideByTupleWindow, rows: Sequence[Element]) -> list[list[int]]:
    """The rows from FROM to UNTIL, by partition."""
    first = -INFINITY if spec.start is None else spec.start
    last = INFINITY if spec.until is None else spec.until
    places = [place for place, row in enumerate(rows) if first <= row.t <= last]
    return _partitions(rows, places) if spec.partition_by else [places]


def _moves(
    spec: slide_by_tuple.SlideByTupleWindow, rows: Sequence[Element], places: Sequence[int]
) -> set[int]:
    if spec.by_rank:
        order = sorted(places, key=lambda place: (rows[place].t, rows[place].order))
    else:
        order = sorted(places, key=lambda place: rows[place].row_num)
    ranks = {place: rank for rank, place in enumerate(order, start=1)}
    if not spec.by_rank and not spec.partition_by:
        ranks = {place: rows[place].row_num for place in places}
    return {rows[place].t for place, rank in ranks.items() if rank % spec.every == 0}


def _open_sessions(spec: SessionWindow, rows: Sequence[Element], instant: int) -> list[int]:
    """The rows seen so far of the sessions that have not ended."""
    found: list[int] = []
    for part in _partitions(rows, range(len(rows))):
        for session in _sessions(spec, rows, part):
            end = max(rows[place].t for place in session) + spec.reach
            found += [place for place in session if rows[place].t <= instant < end]
    return sorted(found)


def _sessions(spec: SessionWindow, rows: Sequence[Element], places: Iterable[int]) -> list[list[int]]:
    sessions: list[list[int]] = []
    for place in sorted(places, key=lambda place: rows[place].t):
        if sessions and rows[place].t - rows[sessions[-1][-1]].t < spec.reach:
            sessions[-1].append(place)
        else:
            sessions.append([place])
    return sessions


def _partitions(rows: Sequence[Element], places: Iterable[int]) -> list[list[int]]:
    parts: dict[tuple[object, ...], list[int]] = {}
    for place in places:
        parts.setdefault(rows[place].key, []).append(place)
    return list(parts.values())


def last_slide(spec: WindowSpec, instant: int) -> int:
    """The last slide instant at or before `instant`."""
    if isinstance(spec, calendar.CalendarWindow):
        return calendar_extent(spec, instant)[1]
    assert isinstance(spec.grid, SlideGrid)
    return spec.grid.origin + (instant - spec.grid.origin) // spec.grid.period * spec.grid.period
