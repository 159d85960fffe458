"""Time zones: what clocks show and when, where they are changed, and in years that Python does not know."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from windrow.errors import QueryError
from windrow.windows.zones import zone

HOUR = 3_600_000_000
NAMES = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Asia/Kathmandu",
    "Australia/Lord_Howe",
    "+05:30",
    "-03:00",
]
names = st.sampled_from(NAMES)


@given(names, st.integers(-(10**17), 10**17))
def test_a_local_time_stands_for_its_first_instant(name: str, instant: int) -> None:
    place = zone(name)
    local = place.local(instant)
    found = place.instant(local)
    assert found <= instant
    assert place.local(found) == local


@given(names, st.integers(-(10**17), 10**17), st.integers(0, 26 * HOUR))
def test_instants_go_on_as_local_times_do(name: str, local: int, more: int) -> None:
    """So that bounds of windows, which are counted in local time, never go back."""
    place = zone(name)
    assert place.instant(local) <= place.instant(local + more)


def test_a_time_that_never_is_stands_for_the_change() -> None:
    place = zone("Europe/Berlin")
    night = 19_813 * 24 * HOUR  # 2024-03-31
    assert [place.instant(night + minutes * HOUR // 60) - night for minutes in (119, 120, 150, 180)] == [
        59 * HOUR // 60,
        HOUR,
        HOUR,
        HOUR,
    ]
    assert place.shifted(night + 5 * HOUR // 2) - night == 3 * HOUR // 2


@pytest.mark.parametrize("years", [-40_000, -3000, 12_000, 38_000])
def test_years_beyond_the_calendar_of_python(years: int) -> None:
    place, instant = zone("Europe/Berlin"), years * 31_556_952_000_000
    assert place.instant(place.local(instant)) == instant
    assert abs(place.offset(instant)) <= 2 * HOUR


def test_an_unknown_zone_is_refused_with_one_that_is_near() -> None:
    with pytest.raises(QueryError, match="no time zone `Europe/Berlni`") as caught:
        zone("Europe/Berlni")
    assert "Europe/Berlin" in str(caught.value.hint)
    with pytest.raises(QueryError, match="no time zone"):
        zone("+25:00")
