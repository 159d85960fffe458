"""Python values of columns, in the one form all executors compare, and changes of an answer.

The values are those of `windrow.algebra.types`. Executors deliver changes, tests compare them.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

from windrow.algebra.expressions import Schema
from windrow.algebra.types import BIGINT, INTEGER_BITS, MAX_PRECISION, DataType, Kind
from windrow.errors import DataError
from windrow.windows.domain import Domain, Instant, sort_key

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_DAY = 86_400_000_000


def canonical_rows(schema: Schema, rows: Any, where: str) -> list[tuple[Any, ...]]:
    """Rows a user wrote, as their schema has them."""
    if isinstance(rows, str | bytes) or not isinstance(rows, Iterable):
        raise DataError(f"{where}: a batch is a list of rows, not {rows!r}", code="bad-value")
    return [canonical_row(schema, row, where) for row in rows]


def canonical_row(schema: Schema, row: Any, where: str) -> tuple[Any, ...]:
    """A row a user wrote, as its schema has it; an error names the column."""
    if isinstance(row, str | bytes) or not isinstance(row, Sequence):
        raise DataError(f"{where}: a row is a tuple of values, not {row!r}", code="bad-value")
    if len(row) != len(schema):
        raise DataError(
            f"{where}: a row has {len(row)} values, but there are {len(schema)} columns",
            hint="the columns are " + ", ".join(schema.names),
        )
    return tuple(
        canonical(value, field.type, f"{where}.{field.name}")
        for value, field in zip(row, schema, strict=True)
    )


def canonical(value: Any, kind: DataType, where: str) -> Any:
    """A value a user wrote, as its type has it.

    >>> from windrow.algebra.types import DATE, DOUBLE, TIMESTAMP, decimal
    >>> canonical(datetime(1970, 1, 1, 0, 0, 2), TIMESTAMP, "s.ts"), canonical(3, DOUBLE, "s.x")
    (2000000, 3.0)
    >>> canonical(1.5, decimal(9, 2), "x")
    Traceback (most recent call last):
    windrow.errors.DataError: x is DECIMAL(9,2), but the value is 1.5 (a float is not exact: Decimal("1.5"))
    >>> canonical("2026", DATE, "x")
    Traceback (most recent call last):
    windrow.errors.DataError: x is DATE, but the value is '2026' (give a date: date.fromisoformat('2026'))
    """
    if value is None:
        return None
    convert = _CONVERTERS.get(kind.kind)
    result = convert(value, kind) if convert else value
    if result is None:
        hint = None
        if kind.kind is Kind.DECIMAL and isinstance(value, float):
            hint = f'a float is not exact: Decimal("{value}")'
        elif kind.kind in (Kind.TIMESTAMP, Kind.DATE) and isinstance(value, str):
            made = "datetime" if kind.kind is Kind.TIMESTAMP else "date"
            hint = f"give a {made}: {made}.fromisoformat({value!r})"
        raise DataError(f"{where} is {kind}, but the value is {value!r}", code="bad-value", hint=hint)
    return result


def instant(moment: Any, domain: Domain | None = None) -> int:
    """A point of time or a number a user wrote, as an instant (of a domain, if it may have a RESOLUTION)."""
    if domain is not None and domain.resolution is not None:
        return _tick(moment, domain)
    if isinstance(moment, date) and not isinstance(moment, datetime):
        moment = datetime(moment.year, moment.month, moment.day, tzinfo=UTC)
    found = _timestamp(moment, BIGINT)
    if found is None:
        raise DataError(
            f"{moment!r} is not an instant", code="bad-value", hint="give a datetime, a date or an integer"
        )
    return found


def _tick(moment: Any, domain: Domain) -> int:
    is_number = isinstance(moment, int | float | Decimal) and not isinstance(moment, bool)
    found = domain.tick(float(moment) if domain.scale is None else moment) if is_number else None
    if found is None:
        raise DataError(
            f"{moment!r} is not an instant of an attribute with the RESOLUTION {domain.at(1)}",
            code="bad-value",
            hint="give a multiple of it",
        )
    return found


def micros(moment: datetime) -> int:
    """Microseconds since the epoch; a datetime without a zone is UTC."""
    zoned = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (zoned - _EPOCH) // _MICROSECOND


def _only(kind: type) -> Callable[[Any, DataType], Any]:
    return lambda value, _: value if isinstance(value, kind) else None


def _integer(value: Any, kind: DataType) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    least, greatest = kind.bounds
    return value if least <= value <= greatest else None


def _float(value: Any, kind: DataType) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    if kind.kind is Kind.FLOAT and math.isfinite(number):
        number = struct.unpack("f", struct.pack("f", number))[0]
    return math.nan if number != number else number


def _decimal(value: Any, kind: DataType) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return None
    number = Decimal(value)
    if not number.is_finite() or number.adjusted() > MAX_PRECISION:
        return None
    rounded = number.quantize(
        Decimal(1).scaleb(-kind.scale), ROUND_HALF_UP, Context(prec=2 * MAX_PRECISION + 2)
    )
    return rounded if rounded == 0 or rounded.adjusted() < kind.precision - kind.scale else None


def _timestamp(value: Any, _: DataType) -> int | None:
    return micros(value) if isinstance(value, datetime) else _integer(value, BIGINT)


def _date(value: Any, _: DataType) -> int | None:
    if isinstance(value, date) and not isinstance(value, datetime):
        return micros(datetime(value.year, value.month, value.day))
    whole = _integer(value, BIGINT)
    return whole if whole is not None and whole % _DAY == 0 else None


def _array(value: Any, kind: DataType) -> tuple[Any, ...] | None:
    """A list, or of a MAP also a dict; entries go by their keys."""
    entries = value.items() if kind.is_map and isinstance(value, dict) else value
    if isinstance(entries, str | bytes) or not isinstance(entries, Iterable):
        return None
    found = tuple(canonical(each, kind.element, "an element") for each in entries)
    return map_value(found, kind) if kind.is_map else found


def _struct(value: Any, kind: DataType) -> tuple[Any, ...] | None:
    if isinstance(value, dict):
        value = [value.get(name) for name, _ in kind.fields]
    if isinstance(value, str | bytes) or not isinstance(value, Sequence) or len(value) != len(kind.fields):
        return None
    pairs = zip(value, kind.fields, strict=True)
    return tuple(canonical(each, inner, f"field `{name}`") for each, (name, inner) in pairs)


def map_value(entries: Iterable[Any], kind: DataType) -> tuple[tuple[Any, Any], ...]:
    """Entries as a MAP: in the order of their keys; of equal keys the last."""
    found = {sort_key((key,)): (key, value) for key, value in entries}
    return tuple(found[key] for key in sorted(found))


_CONVERTERS: dict[Kind, Callable[[Any, DataType], Any]] = {
    Kind.BOOLEAN: _only(bool),
    **dict.fromkeys(INTEGER_BITS, _integer),
    Kind.FLOAT: _float,
    Kind.DOUBLE: _float,
    Kind.DECIMAL: _decimal,
    Kind.STRING: _only(str),
    Kind.BINARY: _only(bytes),
    Kind.TIMESTAMP: _timestamp,
    Kind.DATE: _date,
    Kind.ARRAY: _array,
    Kind.STRUCT: _struct,
}


@dataclass(frozen=True)
class Change:
    """A row that joins (`+`) or leaves (`-`) the answer, and the instant this is about."""

    op: str
    row: tuple[Any, ...]
    at: int

    @property
    def place(self) -> tuple[Any, ...]:
        """The order of delivery: (at, op, row), NULL first, NaN last.

        >>> later, null = Change("+", (1,), 5), Change("+", (None,), 5)
        >>> sorted([later, null], key=lambda change: change.place)
        [Change(op='+', row=(None,), at=5), Change(op='+', row=(1,), at=5)]
        """
        return (self.at, self.op, sort_key(self.row))


def not_final(at: int, clock: Instant) -> DataError:
    """An answer was asked for before it is final."""
    return DataError(
        f"the answer at {at} is not final yet: the clock is at {clock}",
        code="not-final",
        hint="push, punctuate() or finish() first",
    )
