"""Brackets as written, the windows they mean, and the ones that mean nothing."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from windrow.errors import QueryError
from windrow.windows.calendar import CalendarWindow
from windrow.windows.clause import PARTS, WindowClause, resolve
from windrow.windows.cumulate import CumulateWindow
from windrow.windows.domain import ARRIVAL_TS, ROW_NUM, Domain, Quantity
from windrow.windows.landmark import LandmarkWindow
from windrow.windows.lifetime import LifetimeWindow
from windrow.windows.panes import Panes
from windrow.windows.ranges import LaggedWindow, NowWindow, RangeWindow, UnboundedWindow
from windrow.windows.rows import RowsWindow
from windrow.windows.session import SessionWindow
from windrow.windows.slide_by_tuple import SlideByTupleWindow
from windrow.windows.spec import WindowSpec

SECOND = 1_000_000
TRAFFIC = {
    "ts": Domain.TIME,
    "seen": Domain.TIME,
    "speed": Domain.NUMBER,
    ROW_NUM: Domain.NUMBER,
    ARRIVAL_TS: Domain.TIME,
}


def q(text: str) -> Quantity:
    number, _, unit = text.partition(" ")
    return Quantity(Decimal(number) if "." in number else int(number), unit or None)


def window(kind: str, range: str = "", slide: str = "", *, own: str = "ts", **parts: Any) -> WindowSpec:
    """`window("RANGE", "300 s", "60 s", wattr="ts")` on the traffic stream."""
    sizes = {"range": q(range) if range else None, "slide": q(slide) if slide else None}
    return resolve(WindowClause(kind, **sizes, **parts), TRAFFIC, own)


MEANINGS = [
    # WID's five queries
    (window("RANGE", "300 s", "60 s", wattr="ts"), RangeWindow(300 * SECOND, 60 * SECOND)),
    (window("RANGE", "1000 rows", "10 rows", wattr=ROW_NUM), RowsWindow(1000, 10, arrival_order=True)),
    (window("RANGE", "300 s", "1 row", rattr="ts", sattr=ROW_NUM), SlideByTupleWindow(300 * SECOND, 1)),
    (
        window("RANGE", "1000 rows", "10 rows", wattr=ROW_NUM, partition_by=("seg_id",)),
        window("ROWS", "1000", "10 rows", wattr=ROW_NUM, partition_by=("seg_id",)),
    ),
    (
        window("RANGE", "300 s", "5 rows", rattr="ts", sattr="ts", sattr_rank=True),
        SlideByTupleWindow(300 * SECOND, 5, by_rank=True),
    ),
    # RANGE
    (window("RANGE", "6.4 s"), RangeWindow(6_400_000)),
    (window("RANGE", "5 s", "2 s", lag=q("0 s")), LaggedWindow(5 * SECOND, 0, 2 * SECOND)),
    (window("RANGE", "5", lag=q("3"), own="speed"), LaggedWindow(5, 3)),
    (window("RANGE", "5", "10", own="speed"), RangeWindow(5, 10)),
    (window("RANGE", "5", wattr="speed"), RangeWindow(5, wattr="speed")),
    (window("RANGE", "5", wattr="SPEED"), RangeWindow(5, wattr="speed")),
    (window("RANGE", "5 s", "5 s", origin=7), RangeWindow(5 * SECOND, 5 * SECOND, 7)),
    (window("RANGE", "5 s", wattr=ARRIVAL_TS), RangeWindow(5 * SECOND, wattr=ARRIVAL_TS)),
    (window("RANGE", "5 s", internal=True), RangeWindow(5 * SECOND, internal=True)),
    (window("UNBOUNDED", internal=True), UnboundedWindow(internal=True)),
    (window("RANGE", "100", "10", wattr=ROW_NUM), RowsWindow(100, 10, arrival_order=True)),
    (
        window("RANGE", "100 rows", "10 rows", rattr=ROW_NUM, sattr=ROW_NUM),
        RowsWindow(100, 10, arrival_order=True),
    ),
    (
        window("RANGE", "5", "2 rows", rattr="speed", sattr=ROW_NUM),
        SlideByTupleWindow(5, 2, "speed", wattr="speed"),
    ),
    (window("RANGE", "5 s", "2 rows", sattr=ROW_NUM), SlideByTupleWindow(5 * SECOND, 2)),
    # ROWS
    (window("ROWS", "10"), RowsWindow(10)),
    (window("ROWS", "10 rows", "5 rows"), RowsWindow(10, 5)),
    (window("ROWS", "10", "5 s", origin=3), RowsWindow(10, slide_time=5 * SECOND, origin=3)),
    (window("ROWS", "10", "5", own="speed"), RowsWindow(10, slide_time=5)),
    (window("ROWS", "10", "5", wattr=ROW_NUM), RowsWindow(10, 5, arrival_order=True)),
    (
        window("ROWS", "10", "5 s", wattr=ROW_NUM),
        RowsWindow(10, slide_time=5 * SECOND, arrival_order=True),
    ),
    (window("ROWS", "10", wattr="seen"), RowsWindow(10, wattr="seen")),
    # the others
    (window("LANDMARK", start=5, until=5), LandmarkWindow(5, 5)),
    (window("LANDMARK", slide="1 min", origin=2), LandmarkWindow(slide=60 * SECOND, origin=2)),
    (window("UNBOUNDED"), UnboundedWindow()),
    (window("NOW", wattr="seen"), NowWindow(wattr="seen")),
    (window("LIFETIME", lifetime="ttl", lifetime_scale=SECOND), LifetimeWindow("ttl", SECOND)),
    (window("SESSION", "30 min", partition_by=("k",)), SessionWindow(1800 * SECOND, ("k",))),
    (window("SESSION", "30 min", inclusive=True), SessionWindow(1800 * SECOND, inclusive=True)),
    # by rows
    (window("RANGE", "5 s", "1 row"), SlideByTupleWindow(5 * SECOND, 1, by_rank=True)),
    (
        window("RANGE", "5 s", "2 rows", sattr=ROW_NUM, partition_by=("k",)),
        SlideByTupleWindow(5 * SECOND, 2, partition_by=("k",)),
    ),
    (window("RANGE", "5 s", "2 s", partition_by=("k",)), RangeWindow(5 * SECOND, 2 * SECOND)),
    (
        window("LANDMARK", slide="5 rows", start=3),
        SlideByTupleWindow(None, 5, by_rank=True, start=3),
    ),
    # by the calendar
    (window("RANGE", "1 month", "1 day"), CalendarWindow((1, "MONTHS"), (1, "DAYS"), "UTC")),
    (
        window("RANGE", "1 week", "1 year", zone="Europe/Berlin"),
        CalendarWindow((7, "DAYS"), (12, "MONTHS"), "Europe/Berlin"),
    ),
    (
        window("RANGE", "6 hours", "1 day", zone="Asia/Tokyo", origin=5),
        CalendarWindow((21_600 * SECOND, "MICROSECONDS"), (1, "DAYS"), "Asia/Tokyo", 5),
    ),
    (window("RANGE", "1 day", "1 day"), RangeWindow(86_400 * SECOND, 86_400 * SECOND)),
    (window("CUMULATE", "1 min", slide="20 s", origin=7), CumulateWindow(60 * SECOND, 20 * SECOND, 7)),
]


@pytest.mark.parametrize(("written", "meant"), MEANINGS)
def test_what_a_bracket_means(written: WindowSpec, meant: WindowSpec) -> None:
    assert written == meant


REFUSALS: list[tuple[dict[str, Any], str, str]] = [
    # sizes
    ({"kind": "RANGE", "range": "0 s"}, "window-size", "RANGE must be positive, not 0"),
    ({"kind": "RANGE", "range": "-1 s"}, "window-size", "RANGE must be positive, not -1000000"),
    ({"kind": "RANGE", "range": "1 s", "slide": "0 s"}, "window-size", "SLIDE must be positive"),
    ({"kind": "ROWS", "range": "0"}, "window-size", "ROWS must be positive"),
    ({"kind": "ROWS", "range": "1", "slide": "0 rows"}, "window-size", "SLIDE must be positive"),
    ({"kind": "RANGE", "range": "1 min", "lag": q("-1 s")}, "window-size", "LAG must not be negative"),
    ({"kind": "RANGE", "range": "9 rows", "lag": q("1"), "wattr": ROW_NUM}, "window-part", "goes by rows"),
    ({"kind": "ROWS", "range": "9", "lag": q("1 s")}, "window-part", "takes no LAG"),
    ({"kind": "LANDMARK", "lag": q("1 s")}, "window-part", "takes no LAG"),
    # by the calendar
    ({"kind": "RANGE", "range": "1 month"}, "window-slide", "could leave it and come back"),
    ({"kind": "RANGE", "range": "1 month", "slide": "1 hour"}, "window-slide", "cannot slide by 1 HOUR"),
    ({"kind": "RANGE", "range": "1 day", "slide": "1 hour", "zone": "UTC"}, "window-slide", "cannot slide"),
    ({"kind": "RANGE", "range": "2 hours", "slide": "1 hour", "zone": "UTC"}, "window-slide", "on a ZONE"),
    ({"kind": "RANGE", "range": "1 month", "slide": "1 day", "zone": "Mars"}, "bad-zone", "no time zone"),
    ({"kind": "RANGE", "range": "1.5 months", "slide": "1 day"}, "window-size", "whole number of MONTHS"),
    (
        {"kind": "RANGE", "range": "1 month", "slide": "1 month", "origin": 30 * 86_400 * SECOND},
        "window-origin",
        "on day 1 to 28",
    ),
    ({"kind": "RANGE", "range": "1 month", "slide": "1 day", "lag": q("1 day")}, "window-part", "calendar"),
    ({"kind": "RANGE", "range": "1 month", "slide": "1 day", "own": "speed"}, "window-unit", "is a number"),
    ({"kind": "SESSION", "range": "1 month"}, "window-unit", "has no fixed length"),
    ({"kind": "LANDMARK", "slide": "1 month"}, "window-unit", "has no fixed length"),
    ({"kind": "CUMULATE", "range": "1 min"}, "window-slide", "does not say in which steps"),
    ({"kind": "CUMULATE", "range": "1 min", "slide": "25 s"}, "window-size", "grows in whole steps"),
    ({"kind": "RANGE", "range": "1 min", "inclusive": True}, "window-part", "takes no INCLUSIVE"),
    ({"kind": "SESSION", "range": "0 s"}, "window-size", "the gap of SESSION must be positive"),
    (
        {"kind": "RANGE", "range": "1 s", "slide": "0 rows", "sattr": ROW_NUM},
        "window-size",
        "SLIDE must be positive",
    ),
    ({"kind": "RANGE"}, "window-size", "RANGE needs a size"),
    ({"kind": "RANGE", "range": "9999999999 weeks"}, "window-overflow", "9999999999 WEEKS is more than"),
    ({"kind": "RANGE", "range": "0.0000001 s"}, "window-size", "not a whole number of microseconds"),
    # units
    ({"kind": "ROWS", "range": "5 s"}, "window-unit", "5 SECONDS is not a number of rows"),
    ({"kind": "RANGE", "range": "5 s", "wattr": "speed"}, "window-unit", "does not measure `speed`"),
    ({"kind": "RANGE", "range": "5"}, "window-unit", "5 does not measure a time attribute"),
    ({"kind": "RANGE", "range": "5 s", "slide": "1"}, "window-unit", "1 does not measure a time attribute"),
    ({"kind": "RANGE", "range": "5 rows"}, "window-unit", r"counts rows, but .* `ts` \(write \[ROWS 5\]"),
    (
        {"kind": "RANGE", "range": "5 rows", "slide": "1 row", "rattr": "ts", "sattr": ROW_NUM},
        "window-unit",
        "RANGE 5 ROWS counts rows, but the window is over `ts`",
    ),
    ({"kind": "RANGE", "range": "5 s", "wattr": ROW_NUM}, "window-unit", "5 SECONDS is not a number of rows"),
    ({"kind": "ROWS", "range": "5", "slide": "2"}, "window-unit", "2 does not measure a time attribute"),
    # slides by rows
    (
        {"kind": "RANGE", "range": "5 s", "slide": "1 row", "sattr": "speed"},
        "window-slide",
        "a window over `ts` cannot slide by the rows of `speed`",
    ),
    (
        {"kind": "RANGE", "range": "5 s", "slide": "1 row", "sattr": "speed", "sattr_rank": True},
        "window-slide",
        r"cannot slide by the rows of `rank\(speed\)`",
    ),
    (
        {
            "kind": "RANGE",
            "range": "9 rows",
            "slide": "1 row",
            "rattr": ROW_NUM,
            "sattr": "ts",
            "sattr_rank": True,
        },
        "window-slide",
        r"a window over `row_num` cannot slide by the rows of `rank\(ts\)`",
    ),
    (
        {"kind": "RANGE", "range": "5 s", "slide": "1 s", "sattr": ROW_NUM},
        "window-slide",
        "SATTR says which rows a SLIDE counts",
    ),
    (
        {"kind": "RANGE", "range": "5 s", "slide": "1 row", "sattr": ROW_NUM, "origin": 4},
        "window-origin",
        "this SLIDE counts rows",
    ),
    ({"kind": "LANDMARK", "slide": "5 rows", "origin": 4}, "window-origin", "this SLIDE counts rows"),
    ({"kind": "LANDMARK", "slide": "5 rows", "start": 4, "until": 3}, "window-bounds", "after it ends"),
    # attributes
    ({"kind": "NOW", "wattr": "sped"}, "window-attribute", r"no attribute `sped` .*did you mean `speed`"),
    (
        {"kind": "RANGE", "range": "5 s", "rattr": "ts"},
        "window-attribute",
        "RATTR is for windows that slide by rows",
    ),
    (
        {"kind": "RANGE", "range": "5 s", "slide": "1 row", "rattr": "ts", "wattr": "seen", "sattr": ROW_NUM},
        "window-attribute",
        "the window is over `ts` and over `seen`",
    ),
    # parts that do not belong
    ({"kind": "LIFETIME", "lifetime": "x", "slide": "1 s"}, "window-part", "LIFETIME window takes no SLIDE"),
    ({"kind": "UNBOUNDED", "slide": "1 s"}, "window-part", r"UNBOUNDED .* no SLIDE \(write \[LANDMARK"),
    ({"kind": "NOW", "range": "1 s"}, "window-part", r"takes no RANGE \(NOW takes no further parts"),
    ({"kind": "SESSION", "range": "1 s", "slide": "1 s"}, "window-part", "SESSION window takes no SLIDE"),
    ({"kind": "ROWS", "range": "1", "sattr": ROW_NUM}, "window-part", "ROWS window takes no SATTR"),
    ({"kind": "LANDMARK", "partition_by": ("k",)}, "window-part", r"LANDMARK takes SLIDE, ORIGIN, FROM"),
    ({"kind": "RANGES"}, "window-part", "did you mean `RANGE`"),
    # origin
    ({"kind": "RANGE", "range": "1 s", "origin": 5}, "window-origin", "there is no SLIDE"),
    ({"kind": "LANDMARK", "origin": 5}, "window-origin", "there is no SLIDE"),
    (
        {"kind": "ROWS", "range": "4", "slide": "2 rows", "origin": 5},
        "window-origin",
        "this SLIDE counts rows",
    ),
    # bounds and INTERNAL
    ({"kind": "LANDMARK", "start": 6, "until": 5}, "window-bounds", "begins at 6, after it ends at 5"),
    ({"kind": "SESSION", "range": "1 s", "internal": True}, "window-internal", "a session ends by itself"),
]


@pytest.mark.parametrize(("parts", "code", "message"), REFUSALS)
def test_brackets_that_mean_nothing(parts: dict[str, Any], code: str, message: str) -> None:
    with pytest.raises(QueryError, match=message) as caught:
        window(**parts)
    assert caught.value.code == code
    assert caught.value.hint


def test_every_kind_can_be_resolved() -> None:
    assert {type(meant) for _, meant in MEANINGS} == set(_leaves(WindowSpec))
    assert set(PARTS) == {"RANGE", "ROWS", "LANDMARK", "UNBOUNDED", "NOW", "LIFETIME", "SESSION", "CUMULATE"}


def _leaves(kind: type) -> list[type]:
    below = kind.__subclasses__()
    return [leaf for sub in below for leaf in _leaves(sub)] if below else [kind]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RangeWindow(0), "RANGE must be positive"),
        (lambda: RangeWindow(2**60 + 1), "is out of reach"),
        (lambda: RowsWindow(3, slide_rows=1, slide_time=1), "slides in rows or in time, not both"),
        (lambda: LifetimeWindow("x", 0), "the unit of LIFETIME must be positive"),
        (lambda: SlideByTupleWindow(3, rattr="a", wattr="b"), "over `a` and over `b`"),
        (lambda: LandmarkWindow(5, 4), "after it ends"),
        (lambda: SessionWindow(3, internal=True), "INTERNAL means nothing here"),
        (lambda: Panes(0, 1), "RANGE must be positive"),
        (lambda: RangeWindow(5).first_after(3), "has no slide instants"),
        (lambda: UnboundedWindow().bounds(3), "has no slide instants"),
    ],
)
def test_windows_made_in_python_are_checked_too(make: Any, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        make()


def test_facts_about_windows() -> None:
    facts = {
        "periodic": [RangeWindow(5, 1), LandmarkWindow(slide=1), RowsWindow(5, 1), SlideByTupleWindow(5)],
        "bounded": [RangeWindow(5, 1), LandmarkWindow(1, slide=1), RowsWindow(5, 1), SessionWindow(5)],
        "neither": [RangeWindow(5), NowWindow(), UnboundedWindow(), RowsWindow(5), LifetimeWindow("x")],
    }
    assert all(spec.is_periodic and spec.slide for spec in facts["periodic"])
    assert all(spec.has_bounds for spec in facts["bounded"])
    assert not any(spec.is_periodic or spec.has_bounds or spec.slide for spec in facts["neither"])
    assert not any(spec.is_logical for spec in (RowsWindow(5), SessionWindow(5), SlideByTupleWindow(5)))
    assert RowsWindow(5, 1).reports_positions
    assert not RowsWindow(5, slide_time=1).reports_positions
    assert SlideByTupleWindow(5, 2).counts_arrivals
    assert not SlideByTupleWindow(5, 2, by_rank=True).counts_arrivals
    assert RangeWindow(5, 1, 3).period != RangeWindow(5, 1, 4).period
    assert RangeWindow(5, 1).period != RowsWindow(5, 1).period
    assert [w.is_refreshable for w in (RangeWindow(5, 1), RangeWindow(5), RowsWindow(5, 1))] == [
        True,
        False,
        False,
    ]
