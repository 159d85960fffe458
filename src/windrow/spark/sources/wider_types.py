"""Which types hold every value of another, unchanged: what a source may give where a column is declared."""

from __future__ import annotations

from windrow.algebra.types import DataType, Kind, as_decimal

_INTEGERS = (Kind.TINYINT, Kind.SMALLINT, Kind.INT, Kind.BIGINT)
#: the integers a floating-point type holds exactly
_EXACT_IN = {Kind.FLOAT: _INTEGERS[:2], Kind.DOUBLE: _INTEGERS[:3]}
_AS_TEXT = {*_INTEGERS, Kind.BOOLEAN, Kind.DECIMAL, Kind.DATE, Kind.STRING}


def holds(wide: DataType, narrow: DataType) -> bool:
    """Whether every value of `narrow` is a value of `wide`, with nothing lost.

    >>> from windrow.algebra.types import BIGINT, DOUBLE, INT
    >>> holds(BIGINT, INT), holds(DOUBLE, BIGINT)
    (True, False)
    """
    if wide == narrow or narrow.kind is Kind.NULL:
        return True
    if narrow.kind in (Kind.ARRAY, Kind.STRUCT):
        return _holds_nested(wide, narrow)
    if wide.kind is Kind.DECIMAL:
        return _decimal_holds(wide, narrow)
    if wide.kind in _EXACT_IN:
        is_float = narrow.kind is Kind.FLOAT and wide.kind is Kind.DOUBLE
        return is_float or narrow.kind in _EXACT_IN[wide.kind]
    if wide.kind is Kind.STRING:
        return narrow.kind in _AS_TEXT
    if wide.kind is Kind.TIMESTAMP:
        return narrow.kind is Kind.DATE
    return wide.is_integer and narrow.is_integer and wide.bounds[1] >= narrow.bounds[1]


def _decimal_holds(wide: DataType, narrow: DataType) -> bool:
    if not (narrow.is_integer or narrow.kind is Kind.DECIMAL):
        return False
    narrow = as_decimal(narrow)
    return wide.scale >= narrow.scale and wide.precision - wide.scale >= narrow.precision - narrow.scale


def _holds_nested(wide: DataType, narrow: DataType) -> bool:
    if wide.kind is not narrow.kind or len(wide.fields) != len(narrow.fields):
        return False
    pairs = zip(wide.fields, narrow.fields, strict=True)
    if wide.kind is Kind.ARRAY:  # a MAP may also be given as the array of its entries
        return (wide.is_map or not narrow.is_map) and holds(wide.element, narrow.element)
    return all(ours == theirs and holds(outer, inner) for (ours, outer), (theirs, inner) in pairs)
