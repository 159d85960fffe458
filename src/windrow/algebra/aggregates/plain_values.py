"""Plain values as bytes, exactly: what the states of user-defined aggregates are kept as.

A closed set of types, each by its tag; nothing that is read can name code, so that whoever can write a state
directory can change numbers and not run programs. What comes back is equal and of the same types: a tuple is
a tuple, -0.0 is -0.0, an int has all its digits. Values of other types are refused, subclasses too, since
they would come back as something else.

    value    = tag, content
    content  = 8 bytes (an int that fits, a float) | number, bytes | number, values
    number   = 4 bytes, or 4 of 0xff and 8 bytes

Equal sets have equal bytes; a dict keeps its order. A list that is in two places comes back as two lists.

>>> decoded(encoded((1, -0.0, {"seen": {b"a"}, "big": 2**70})))
(1, -0.0, {'seen': {b'a'}, 'big': 1180591620717411303424})
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np

#: the types that are kept, as users know them
KEPT = (
    "None, bool, int, float, complex, str, bytes, Decimal, date, time, datetime and timedelta, numbers and "
    "arrays of numpy, and lists, tuples, dicts and sets of these"
)
#: values within values, at most: more is a value that holds itself
_DEPTH = 100
_SMALL, _LARGE = struct.Struct("<I"), struct.Struct("<Q")
_INT, _FLOAT, _COMPLEX = struct.Struct("<q"), struct.Struct("<d"), struct.Struct("<dd")
_DTYPE = re.compile(r"[<>|]?[biufc][0-9]{1,2}")


class NotPlainError(TypeError):
    """A value of a type that is not kept, or bytes that are none of a value."""


def encoded(value: Any) -> bytes:
    """A value as bytes."""
    return _written(value, _DEPTH)


def decoded(data: bytes) -> Any:
    """The value whose bytes these are."""
    try:
        value, end = _read(data, 0, _DEPTH)
    except (struct.error, IndexError, KeyError, ValueError, OverflowError, InvalidOperation) as error:
        raise NotPlainError(f"these bytes are no state: {error}") from error
    if end != len(data):
        raise NotPlainError(f"these bytes are no state: {len(data) - end} are left over")
    return value


def _written(value: Any, depth: int) -> bytes:
    kind = type(value)
    if depth == 0:
        raise NotPlainError(f"it is more than {_DEPTH} values deep, or holds itself")
    if kind is float:
        return b"f" + _FLOAT.pack(value)
    if kind is int:
        return _int(value)
    if kind in _SINGLE:
        return _SINGLE[kind](value)
    if kind in _CONTAINERS:
        tag, items = _CONTAINERS[kind]
        return tag + _number(len(value)) + b"".join([_written(each, depth - 1) for each in items(value)])
    if kind in _SETS:
        return (
            _SETS[kind] + _number(len(value)) + b"".join(sorted(_written(each, depth - 1) for each in value))
        )
    if kind in _AS_BYTES:
        tag, content = _AS_BYTES[kind]
        return _with_length(tag, content(value))
    if kind in _AS_PARTS:
        tag, parts = _AS_PARTS[kind]
        return tag + _written(parts(value), depth - 1)
    is_array = kind is np.ndarray
    is_number = isinstance(value, np.generic) and kind is value.dtype.type
    if (is_array or is_number) and _DTYPE.fullmatch(value.dtype.str):
        # in the order of rows, whatever the order was in memory
        numbers = value.dtype.str, tuple(value.shape), value.tobytes()
        return (b"a" if is_array else b"g") + _written(numbers, depth - 1)
    raise NotPlainError(f"it holds a value of type {kind.__name__}")


def _number(number: int) -> bytes:
    return _SMALL.pack(number) if number < 0xFFFFFFFF else _SMALL.pack(0xFFFFFFFF) + _LARGE.pack(number)


def _with_length(tag: bytes, data: bytes) -> bytes:
    return tag + _number(len(data)) + data


def _int(value: int) -> bytes:
    if -(1 << 63) <= value < 1 << 63:
        return b"i" + _INT.pack(value)
    return _with_length(b"I", value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True))


def _zone(zone: tzinfo | None) -> int | None:
    """The offset of a zone in microseconds."""
    if zone is None:
        return None
    if type(zone) is not timezone or zone != timezone(zone.utcoffset(None)):
        raise NotPlainError(f"it holds a time in a zone of type {type(zone).__name__}; keep times in UTC")
    if zone.tzname(None) != timezone(zone.utcoffset(None)).tzname(None):
        raise NotPlainError(f"it holds a time in a zone called {zone.tzname(None)}; keep times in UTC")
    return _micros(zone.utcoffset(None))


def _micros(span: timedelta) -> int:
    return span // timedelta(microseconds=1)


def _pairs(value: dict[Any, Any]) -> Iterable[Any]:
    return (part for pair in value.items() for part in pair)


def _clock(value: datetime | time) -> tuple[Any, ...]:
    return value.hour, value.minute, value.second, value.microsecond, value.fold, _zone(value.tzinfo)


_CONTAINERS: dict[type, tuple[bytes, Callable[[Any], Iterable[Any]]]] = {
    tuple: (b"(", iter),
    list: (b"[", iter),
    dict: (b"{", _pairs),
}
_SETS: dict[type, bytes] = {set: b"<", frozenset: b"="}
_SINGLE: dict[type, Callable[[Any], bytes]] = {
    type(None): lambda value: b"N",
    bool: lambda value: b"T" if value else b"F",
    complex: lambda value: b"c" + _COMPLEX.pack(value.real, value.imag),
}
_AS_BYTES: dict[type, tuple[bytes, Callable[[Any], bytes]]] = {
    str: (b"s", lambda value: value.encode("utf-8", "surrogatepass")),
    bytes: (b"b", bytes),
    bytearray: (b"B", bytes),
    Decimal: (b"d", lambda value: str(value).encode()),
}
_AS_PARTS: dict[type, tuple[bytes, Callable[[Any], Any]]] = {
    date: (b"D", date.toordinal),
    time: (b"h", _clock),
    datetime: (b"t", lambda value: (value.toordinal(), *_clock(value))),
    timedelta: (b"p", _micros),
}

# ------------------------------------------------------------ reading


def _read(data: bytes, at: int, depth: int) -> tuple[Any, int]:
    tag = data[at]
    at += 1
    if depth == 0:
        raise ValueError("too deep")
    if tag == _F:
        return _FLOAT.unpack_from(data, at)[0], at + 8
    if tag == _I:
        return _INT.unpack_from(data, at)[0], at + 8
    if tag in _READ_SINGLE:
        return _READ_SINGLE[tag], at
    if tag == _C:
        return complex(*_COMPLEX.unpack_from(data, at)), at + 16
    if tag in _READ_PARTS:
        parts, at = _read(data, at, depth - 1)
        return _checked(_READ_PARTS[tag], parts), at
    number, at = _read_number(data, at)
    if number > len(data) - at:  # every value has a byte at least
        raise ValueError("cut off")
    if tag in _READ_BYTES:
        return _READ_BYTES[tag](data[at : at + number]), at + number
    make, each = _READ_ITEMS[tag]
    items = []
    for _ in range(number * each):
        item, at = _read(data, at, depth - 1)
        items.append(item)
    return _checked(make, items), at


def _checked(make: Callable[[Any], Any], parts: Any) -> Any:
    """Parts put together; those that do not fit are no state."""
    try:
        return make(parts)
    except (TypeError, AttributeError) as error:
        raise ValueError(str(error)) from error


def _read_number(data: bytes, at: int) -> tuple[int, int]:
    (number,) = _SMALL.unpack_from(data, at)
    if number < 0xFFFFFFFF:
        return number, at + 4
    return _LARGE.unpack_from(data, at + 4)[0], at + 12


def _array(parts: tuple[str, tuple[int, ...], bytes]) -> Any:
    kind, shape, data = parts
    if not _DTYPE.fullmatch(kind):
        raise ValueError(f"no type of numbers: {kind!r}")
    return np.frombuffer(data, np.dtype(kind)).reshape(shape).copy()


def _offset(micros: int | None) -> tzinfo | None:
    if micros is None:
        return None
    return timezone(timedelta(microseconds=micros)) if micros else UTC


def _time(parts: tuple[Any, ...]) -> time:
    hour, minute, second, micros, fold, zone = parts
    return time(hour, minute, second, micros, _offset(zone), fold=fold)


_F, _I, _C = b"fic"
_READ_SINGLE = dict(zip(b"NTF", (None, True, False), strict=True))
_READ_BYTES: dict[int, Callable[[bytes], Any]] = {
    ord("s"): lambda data: data.decode("utf-8", "surrogatepass"),
    ord("I"): lambda data: int.from_bytes(data, "little", signed=True),
    ord("b"): bytes,
    ord("B"): bytearray,
    ord("d"): lambda data: Decimal(data.decode("ascii")),
}
_READ_ITEMS: dict[int, tuple[Callable[[list[Any]], Any], int]] = {
    ord("("): (tuple, 1),
    ord("["): (list, 1),
    ord("{"): (lambda items: dict(zip(items[::2], items[1::2], strict=True)), 2),
    ord("<"): (set, 1),
    ord("="): (frozenset, 1),
}
_READ_PARTS: dict[int, Callable[[Any], Any]] = {
    ord("D"): date.fromordinal,
    ord("h"): _time,
    ord("t"): lambda parts: datetime.combine(date.fromordinal(parts[0]), _time(parts[1:])),
    ord("p"): lambda micros: timedelta(microseconds=micros),
    ord("a"): _array,
    ord("g"): lambda parts: _array(parts)[()],
}
