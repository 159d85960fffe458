"""Window brackets: every form of the language and of the papers."""

from __future__ import annotations

from decimal import Decimal

import pytest
from tests.language.parse_shown import select, shown

from windrow.language.compile import parse_query
from windrow.language.syntax import WindowSyntax
from windrow.windows.clause import Quantity, WindowClause

_SECOND = 1_000_000
_HOUR = 3_600 * _SECOND
_DAY = 24 * _HOUR
_2024 = 1_704_067_200 * _SECOND


def _window(bracket: str) -> WindowSyntax:
    window = select(parse_query(f"SELECT a FROM t [{bracket}]")).sources[0].window
    assert window is not None
    return window


def _range(value: int, unit: str | None = None, **parts: object) -> WindowClause:
    return WindowClause("RANGE", range=Quantity(value, unit), **parts)  # type: ignore[arg-type]


def _seconds(value: int) -> Quantity:
    return Quantity(value, "SECONDS")


def _rows(value: int) -> Quantity:
    return Quantity(value, "ROWS")


_WINDOWS = {
    "NOW": WindowClause("NOW"),
    "unbounded": WindowClause("UNBOUNDED"),
    "RANGE UNBOUNDED": WindowClause("UNBOUNDED"),
    "RANGE 5 SECONDS": _range(5, "SECONDS"),
    "RANGE 10": _range(10),
    "RANGE 5 sec SLIDE 1 s": _range(5, "SECONDS", slide=_seconds(1)),
    "RANGE 5s SLIDE 1s": _range(5, "SECONDS", slide=_seconds(1)),
    "RANGE 2 d": _range(2, "DAYS"),
    "RANGE 10min": _range(10, "MINUTES"),
    "INTERNAL RANGE 1 min": _range(1, "MINUTES", internal=True),
    "RANGE 1 min INTERNAL": _range(1, "MINUTES", internal=True),
    "ROWS 10": WindowClause("ROWS", range=Quantity(10)),
    "ROWS 10 PARTITION BY a, b SLIDE 2 ROWS": WindowClause(
        "ROWS", range=Quantity(10), slide=_rows(2), partition_by=("a", "b")
    ),
    "SLIDE 2 ROWS PARTITION BY `seg-id` ROWS 10": WindowClause(
        "ROWS", range=Quantity(10), slide=_rows(2), partition_by=("seg-id",)
    ),
    "ROWS 10 SLIDE 1 MINUTE": WindowClause("ROWS", range=Quantity(10), slide=Quantity(1, "MINUTES")),
    "SESSION 5 MINUTES PARTITION BY k": WindowClause(
        "SESSION", range=Quantity(5, "MINUTES"), partition_by=("k",)
    ),
    "LANDMARK": WindowClause("LANDMARK"),
    "LANDMARK FROM '2024-01-01 07:00:00' UNTIL '2024-01-02' SLIDE 1 MINUTE": WindowClause(
        "LANDMARK", start=_2024 + 7 * _HOUR, until=_2024 + _DAY, slide=Quantity(1, "MINUTES")
    ),
    "LANDMARK FROM 100 UNTIL 200": WindowClause("LANDMARK", start=100, until=200),
    "LANDMARK FROM TIMESTAMP '2024-01-01T00:00:00Z'": WindowClause("LANDMARK", start=_2024),
    "LANDMARK FROM '2024-01-01 01:00 +01:00'": WindowClause("LANDMARK", start=_2024),
    # A time of day is on the date of ORIGIN, and without one on 1970-01-01.
    "LANDMARK FROM '07:00:00'": WindowClause("LANDMARK", start=7 * _HOUR),
    "LANDMARK FROM '07:00' SLIDE 1 h ORIGIN '2024-01-01 12:00'": WindowClause(
        "LANDMARK", start=_2024 + 7 * _HOUR, slide=Quantity(1, "HOURS"), origin=_2024 + 12 * _HOUR
    ),
    "RANGE 1 DAY SLIDE 1 DAY ORIGIN '12:00:00'": _range(
        1, "DAYS", slide=Quantity(1, "DAYS"), origin=12 * _HOUR
    ),
    "RANGE 5 SLIDE 5 ORIGIN -2": _range(5, slide=Quantity(5), origin=-2),
    "RANGE 5 s SLIDE 5 s ORIGIN 2 s": _range(5, "SECONDS", slide=_seconds(5), origin=2 * _SECOND),
    # The papers.
    "RANGE 300 seconds SLIDE 60 seconds WATTR ts": _range(300, "SECONDS", slide=_seconds(60), wattr="ts"),
    "RANGE 1000 rows SLIDE 10 rows WATTR row-num": _range(1000, "ROWS", slide=_rows(10), wattr="row_num"),
    "RANGE 300 seconds RATTR ts SLIDE 1 row SATTR row-num": _range(
        300, "SECONDS", rattr="ts", slide=_rows(1), sattr="row_num"
    ),
    "RANGE 300 seconds RATTR ts SLIDE 10 rows SATTR rank(ts)": _range(
        300, "SECONDS", rattr="ts", slide=_rows(10), sattr="ts", sattr_rank=True
    ),
    "RANGE 1000 rows SLIDE 10 rows WATTR row-num PATTR seg_id": _range(
        1000, "ROWS", slide=_rows(10), wattr="row_num", partition_by=("seg_id",)
    ),
    'RANGE 1000 rows SLIDE 10 rows WATTR row-num PATTR "seg-id"': _range(
        1000, "ROWS", slide=_rows(10), wattr="row_num", partition_by=("seg-id",)
    ),
    "WATTR timestamp RANGE 4 minutes SLIDE 1 tuple": _range(4, "MINUTES", slide=_rows(1), wattr="timestamp"),
    "RANGE 5 min WATTR arrival-ts": _range(5, "MINUTES", wattr="arrival_ts"),
    "WINDOW 10 min SLIDE 2 min": _range(10, "MINUTES", slide=Quantity(2, "MINUTES")),
    "UNBOUNDED START AT '07:00:00'": WindowClause("LANDMARK", start=7 * _HOUR),
}


@pytest.mark.parametrize(("bracket", "clause"), _WINDOWS.items())
def test_a_window_is_read_with_range_slide_and_attribute(bracket: str, clause: WindowClause) -> None:
    assert _window(bracket).clause == clause


@pytest.mark.parametrize(
    ("bracket", "value", "scale"),
    [
        ("LIFETIME ttl SECONDS", "ttl", _SECOND),
        ("LIFETIME 5 MINUTES", "5", 60 * _SECOND),
        ("LIFETIME 2.5 SECONDS", "2500000", 1),
        ("LIFETIME ttl", "ttl", 1),
        ("LIFETIME a + b", "(+ a b)", 1),
        ("LIFETIME a + min", "(+ a min)", 1),
        ("LIFETIME (a + b) min", "(+ a b)", 60 * _SECOND),
        ("LIFETIME t.min", "t.min", 1),
        ("LIFETIME CASE WHEN a THEN 1 ELSE 2 END SECONDS", "(case a 1 2)", _SECOND),
        ("LIFETIME INTERVAL 5 SECONDS", "5000000", 1),
        ("LIFETIME INTERVAL 5 MINUTES 3 SECONDS", "303000000", 1),
        ("LIFETIME INTERVAL '1 00:00:01' DAY TO SECOND", "86401000000", 1),
        ("LIFETIME 2 * INTERVAL -'1' HOUR", "(* 2 -3600000000)", 1),
        ("LIFETIME interval SECONDS", "interval", _SECOND),
        ("LIFETIME CASE WHEN a THEN 1 ELSE 2 END", "(case a 1 2)", 1),
        ("LIFETIME ttl * qty", "(* ttl qty)", 1),
        ("LIFETIME ttl * qty SECONDS", "(* ttl qty)", _SECOND),
        ("LIFETIME a div b", "(div a b)", 1),
        ("LIFETIME 5s", "5", _SECOND),
        ("LIFETIME 1.5d", "129600000000", 1),
        ("LIFETIME greatest(a, b) SECONDS WATTR ts INTERNAL", "(greatest a b)", _SECOND),
    ],
)
def test_a_lifetime_is_read_with_its_unit(bracket: str, value: str, scale: int) -> None:
    window = _window(bracket)
    assert window.lifetime is not None
    assert (shown(window.lifetime), window.clause.lifetime_scale) == (value, scale)
    assert (window.clause.wattr == "ts") is window.clause.internal is ("INTERNAL" in bracket)


def test_sizes_are_exact() -> None:
    assert _window("RANGE 6.4 SECONDS").clause.range == Quantity(Decimal("6.4"), "SECONDS")


def test_a_window_knows_its_place() -> None:
    text = "SELECT a FROM t  [ NOW ] AS b"
    source = select(parse_query(text)).sources[0]
    assert source.window is not None
    assert text[source.window.span.start : source.window.span.end] == "[ NOW ]"
    assert text[source.span.start : source.span.end] == "t  [ NOW ] AS b"
