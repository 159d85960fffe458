"""Windows by the calendar: what they hold by the clocks on the wall, on every executor."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given, settings, strategies as st

from windrow.algebra.values import Change
from windrow.reference.scopes import calendar_extent, members
from windrow.testing import Harness
from windrow.windows.calendar import CalendarWindow
from windrow.windows.domain import Element

EPOCH = datetime(1970, 1, 1)
HOUR = 3_600_000_000
#: clocks are changed nearby, by an hour, by half an hour, by a whole day, or never
CHANGES = {
    "Europe/Berlin": ["2024-03-31", "2024-10-27", "2024-02-29"],
    "America/New_York": ["2024-03-10", "2024-11-03"],
    "Australia/Lord_Howe": ["2024-04-07", "2024-10-06"],
    "Pacific/Apia": ["2011-12-30", "2012-04-01"],
    "UTC": ["2023-02-28", "1970-01-01"],
}


def instant(text: str) -> int:
    return (datetime.fromisoformat(text) - EPOCH) // timedelta(microseconds=1)


@st.composite
def calendars(draw: st.DrawFn) -> tuple[CalendarWindow, list[int]]:
    """A window, and instants around changes of its clocks."""
    zone = draw(st.sampled_from(sorted(CHANGES)))
    length = draw(
        st.sampled_from([(1, "MONTHS"), (2, "MONTHS"), (1, "DAYS"), (3, "DAYS"), (5 * HOUR, "MICROSECONDS")])
    )
    step = draw(st.sampled_from([(1, "MONTHS"), (1, "DAYS"), (2, "DAYS"), (7, "DAYS"), (12, "MONTHS")]))
    origin = draw(st.sampled_from([0, 0, 2 * HOUR + HOUR // 2, 21 * HOUR, 40 * 24 * HOUR]))
    around = instant(draw(st.sampled_from(CHANGES[zone])))
    steps = st.integers(-150, 150).map(lambda n: around + n * HOUR // 2)
    near = st.integers(-20, 20).map(lambda n: around + n * 24 * HOUR - 1)
    return CalendarWindow(length, step, zone, origin), draw(st.lists(steps | near, min_size=1, max_size=6))


@given(calendars())
@settings(max_examples=300)
def test_intervals_are_the_extents_by_clocks_on_the_wall(drawn: tuple[CalendarWindow, list[int]]) -> None:
    window, instants = drawn
    rows = [Element(t) for t in instants]
    for w in window.windows(rows):
        inside = window.extent(w, rows)
        assert inside == [row for row in rows if w in window.wids(row)]
    for t in instants:
        vs, ve = window.span(Element(t))
        for at in {vs - 1, vs, int(ve) - 1, int(ve), *instants}:
            inside = [
                place for place, row in enumerate(rows) if (found := window.interval(row)) and at in found
            ]
            assert members(window, rows, at) == inside
            start, end = calendar_extent(window, at)
            assert (
                window.bounds(end)
                == (start, end)
                == window.bounds(window.grid.end(window.grid.last_ending(at)))
            )


def test_a_day_is_as_long_as_clocks_say() -> None:
    berlin = CalendarWindow((1, "DAYS"), (1, "DAYS"), "Europe/Berlin")
    lengths = []
    for day in ("2024-03-30", "2024-03-31", "2024-10-27"):
        start, end = berlin.bounds(berlin.grid.first_after(instant(f"{day} 12:00")))
        lengths.append((end - int(start)) // HOUR)
    assert lengths == [24, 23, 25]


def test_a_day_that_was_left_out_has_no_window_of_its_own() -> None:
    apia = CalendarWindow((1, "DAYS"), (1, "DAYS"), "Pacific/Apia")
    ends = apia.grid.instants(instant("2011-12-28 12:00"), instant("2012-01-01 12:00"))
    assert [(b - a) // HOUR for a, b in pairwise(ends)] == [24, 24, 24]
    assert [apia.bounds(end)[0] for end in ends[1:]] == ends[:-1]


STREAMS = {"s": ("k BIGINT, v BIGINT, ts TIMESTAMP", "WATTR ts SLACK 2 DAYS")}
BRACKETS = [
    "RANGE 1 MONTH SLIDE 1 DAY ZONE 'Europe/Berlin'",
    "RANGE 1 DAY SLIDE 1 DAY ORIGIN '02:30' ZONE 'Europe/Berlin'",
    "RANGE 1 DAY SLIDE 1 DAY ZONE 'Pacific/Apia'",
    "RANGE 1 YEAR SLIDE 1 MONTH",
    "RANGE 6 HOURS SLIDE 1 WEEK ZONE 'America/New_York'",
]
QUERIES = [
    "SELECT k, COUNT(*) AS n, SUM(v) AS s, window_start, window_end FROM s [{0}] GROUP BY k",
    "SELECT DISTINCT v FROM s [{0}]",
    "SELECT ISTREAM(a.k, b.v) FROM s [{0}] AS a, s [RANGE 2 DAYS SLIDE 1 DAY] AS b WHERE a.k = b.v",
    "SELECT k, v FROM s [{0}], (SELECT MAX(v) AS m FROM s [{0}]) AS most WHERE v = m",
]


@pytest.mark.parametrize("executor", ["kernels", "engine"])
@settings(max_examples=200)
@given(data=st.data())
def test_every_executor_says_the_same(executor: str, data: st.DataObject) -> None:
    query = data.draw(st.sampled_from(QUERIES)).format(data.draw(st.sampled_from(BRACKETS)))
    around = instant(data.draw(st.sampled_from(["2024-03-31", "2011-12-30", "2024-02-29"])))
    moments = st.integers(-150, 150).map(lambda n: around + n * HOUR // 2)
    values = st.sampled_from([None, 1, 2])
    rows = data.draw(st.lists(st.tuples(values, values, moments), max_size=8))
    cut = data.draw(st.integers(1, 3))

    def told(kind: str) -> list[Change]:
        harness = Harness(query, STREAMS, executor=kind)
        found = []
        for start in range(0, len(rows), cut):
            harness.push("s", rows[start : start + cut])
            found += harness.take()
        harness.finish()
        return found + harness.take()

    assert Counter(told(executor)) == Counter(told("reference"))
