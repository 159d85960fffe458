"""The calendar agrees with Python's where Python has one, and is its own inverse everywhere."""

from __future__ import annotations

from datetime import date, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from windrow.algebra.functions.calendar import civil, days, month_length, timestamp_text

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
