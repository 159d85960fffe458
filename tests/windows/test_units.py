"""Quantities with units."""

from __future__ import annotations

from decimal import Decimal

import pytest

from windrow.errors import QueryError
from windrow.windows.domain import MAX_INT64, Domain, Quantity


@pytest.mark.parametrize(
    ("spellings", "ticks"),
    [
        (("MICROSECOND", "microseconds", "us"), 1),
        (("MILLISECOND", "milliseconds", "ms"), 1_000),
        (("SECOND", "seconds", "sec", "s"), 1_000_000),
        (("MINUTE", "minutes", "min", "m"), 60_000_000),
        (("HOUR", "hours", "h"), 3_600_000_000),
        (("DAY", "days", "d"), 86_400_000_000),
        (("WEEK", "weeks", "w"), 604_800_000_000),
    ],
)
def test_every_spelling_of_a_unit(spellings: tuple[str, ...], ticks: int) -> None:
    quantities = {Quantity(1, spelling) for spelling in spellings}
    assert [q.ticks(Domain.TIME) for q in quantities] == [ticks]


def test_fractions_that_are_whole_ticks() -> None:
    assert Quantity(Decimal("6.4"), "SECONDS").ticks(Domain.TIME) == 6_400_000
    assert Quantity(Decimal("1.50"), "MS").ticks(Domain.TIME) == 1_500
    assert Quantity(Decimal("1E+2")).ticks(Domain.NUMBER) == 100


@pytest.mark.parametrize(
    ("quantity", "domain", "code", "message"),
    [
        (Quantity(5), Domain.TIME, "window-unit", r"5 does not measure a time attribute .*`5 SECONDS`"),
        (Quantity(5, "ROWS"), Domain.TIME, "window-unit", "5 ROWS does not measure a time attribute"),
        (Quantity(5, "s"), Domain.NUMBER, "window-unit", "5 SECONDS does not measure a numeric attribute"),
        (Quantity(5, "ROWS"), Domain.NUMBER, "window-unit", "5 ROWS does not measure a numeric attribute"),
        (Quantity(Decimal("0.5"), "us"), Domain.TIME, "window-size", "not a whole number of microseconds"),
        (Quantity(Decimal("0.5")), Domain.NUMBER, "window-size", "0.5 is not a whole number of ticks"),
        (
            Quantity(2**60, "DAYS"),
            Domain.TIME,
            "window-overflow",
            "more than a 64-bit integer of microseconds",
        ),
        (Quantity(2**63), Domain.NUMBER, "window-overflow", "more than a 64-bit integer"),
    ],
)
def test_quantities_that_do_not_fit(quantity: Quantity, domain: Domain, code: str, message: str) -> None:
    with pytest.raises(QueryError, match=message) as caught:
        quantity.ticks(domain)
    assert caught.value.code == code
    assert caught.value.hint


def test_the_greatest_quantity_fits() -> None:
    assert Quantity(MAX_INT64, "us").ticks(Domain.TIME) == MAX_INT64


def test_rows_are_counted_not_measured() -> None:
    assert Quantity(10, "ROW").count() == Quantity(10).count() == 10
    with pytest.raises(QueryError, match="10 MINUTES is not a number of rows"):
        Quantity(10, "min").count()
    with pytest.raises(QueryError, match=r"2\.5 ROWS is not a whole number of rows"):
        Quantity(Decimal("2.5"), "ROWS").count()


def test_unknown_units_are_corrected() -> None:
    with pytest.raises(QueryError, match=r"no unit `secnds` \(did you mean `SECONDS`\?\)"):
        Quantity(5, "secnds")


@pytest.mark.parametrize("value", [6.4, Decimal("NaN"), Decimal("Infinity")])
def test_inexact_numbers_are_refused(value: float | Decimal) -> None:
    with pytest.raises(QueryError, match="is not an exact number"):
        Quantity(value, "SECONDS")  # type: ignore[arg-type]
