"""The calendar agrees with Python's where Python has one, and is its own inverse everywhere."""

from __future__ import annotations

from datetime import date, datetime, timedelta

import pytest
from hypothesis import given, strategies as st

from windrow.algebra.functions.calendar import civil, days, month_length, timestamp_text
from windrow.reference.expressions import evaluate

EPOCH = date(1970, 1, 1)


@given(st.dates())
def test_days_agree_with_python(day):
    assert days(day.year, day.month, day.day) == (day - EPOCH).days
    assert civil((day - EPOCH).days) == (day.year, day.month, day.day)


@given(st.integers(-106_751_992, 106_751_991))
def test_civil_is_the_inverse_of_days(number):
    assert days(*civil(number)) == number


@given(st.integers(-290_000, 290_000))
def test_four_centuries_have_the_same_months(year):
    assert [month_length(year, m) for m in range(1, 13)] == [
        month_length(year + 400, m) for m in range(1, 13)
    ]
    assert sum(month_length(year, m) for m in range(1, 13)) in (365, 366)


@given(st.datetimes())
def test_timestamps_are_written_as_python_writes_them(moment):
    micros = (moment - datetime(1970, 1, 1)) // timedelta(microseconds=1)
    expected = moment.isoformat(sep=" ")
    assert timestamp_text(micros) == (expected.rstrip("0") if moment.microsecond else expected)


@pytest.mark.parametrize(
    ("unit", "moment", "start"),
    [
        ("DAY", "2024-03-31 12:00:00", "2024-03-30 23:00:00"),
        ("DAY", "2024-04-01 12:00:00", "2024-03-31 22:00:00"),
        ("MONTH", "2024-04-15 12:00:00", "2024-03-31 22:00:00"),
        ("WEEK", "2024-10-27 23:30:00", "2024-10-27 23:00:00"),
        ("HOUR", "2024-10-27 00:30:00", "2024-10-27 00:00:00"),
        ("HOUR", "2024-10-27 01:30:00", "2024-10-27 01:00:00"),
    ],
)
def test_units_begin_by_the_clocks_of_a_zone(unit, moment, start, parse):
    text = f"date_trunc('{unit}', TIMESTAMP '{moment}', 'Europe/Berlin') = TIMESTAMP '{start}'"
    assert evaluate(parse(text), {}) is True
