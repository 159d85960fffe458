"""Arrays, maps and structs as tuples, and JSON texts of them."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any

from windrow.algebra.expressions import Call
from windrow.algebra.functions import calendar, patterns
from windrow.algebra.functions.nested import parse_path
from windrow.algebra.functions.values import casts, comparison
from windrow.algebra.functions.values.base import Strict, Value, plain
from windrow.algebra.types import DataType, Kind
from windrow.algebra.values import map_value
from windrow.errors import DataError
from windrow.windows.domain import sort_key


def _get_field(call: Call) -> Callable[..., Value]:
    place = [name for name, _ in call.args[0].type.fields].index(call.args[1].value)  # type: ignore[attr-defined]
    return lambda whole, _: whole[place]


def _found(call: Call, first: int, fails: bool) -> Callable[..., Value]:
    """A lookup by place, from `first` on, or by key."""
    kind = call.args[0].type
    if kind.is_map:
        same = comparison.equality(kind.key)
        return lambda whole, key: next((value for k, value in whole if same(k, key)), None)

    def at(whole: tuple[Value, ...], place: int) -> Value:
        index = place - first if place >= 0 or not first else len(whole) + place
        if 0 <= index < len(whole) and not (first and place == 0):
            return whole[index]
        if not fails:
            return None
        raise DataError(
            f"an array of {len(whole)} elements has none at {place}",
            code="bad-index",
            hint="get(…) and try_element_at(…) give NULL instead",
        )

    return at


def _contains(call: Call) -> Callable[..., Value]:
    same = comparison.equality(call.args[1].type)

    def contains(whole: tuple[Value, ...], value: Value) -> bool | None:
        if any(each is not None and same(each, value) for each in whole):
            return True
        return None if None in whole else False

    return contains


def _split(text: str, pattern: str) -> tuple[str, ...]:
    """As Java splits, empty texts at the end included; a match of nothing at the beginning makes no part."""
    found, begin = [], 0
    for match in patterns.compile_pattern(pattern).finditer(text):
        if match.end() == 0 or (match.start() == match.end() == len(text)):
            continue
        found.append(text[begin : match.start()])
        begin = match.end()
    return (*found, text[begin:])


# JSON.

#: so many levels of arrays and objects a JSON text may have
_DEEPEST = 256


class _Number(str):
    """A number as it was written."""


def _parsed(text: str) -> Any:
    """What a text says; None if it is no JSON, or nested more deeply than anybody writes."""
    try:
        found = json.loads(text, parse_int=_Number, parse_float=_Number, parse_constant=_refused)
    except (ValueError, RecursionError):
        return None
    too_deep = text.count("[") + text.count("{") > _DEEPEST and _is_deeper(found, _DEEPEST)
    return None if too_deep else found


def _is_deeper(value: Any, levels: int) -> bool:
    """Whether there are more levels of arrays and objects in a value."""
    parts = [value]
    for _ in range(levels + 1):
        nested = [part for part in parts if isinstance(part, list | dict)]
        parts = [each for part in nested for each in (part.values() if isinstance(part, dict) else part)]
        if not nested:
            return False
    return True


def _whole(text: str) -> str | None:
    """A text, or NULL if an escape in it is half a character: no column holds that."""
    return None if any("\ud800" <= char <= "\udfff" for char in text) else text


def _refused(word: str) -> Any:
    raise ValueError(word)


def _written(value: Any) -> str:
    """A part of a JSON text as JSON again."""
    match value:
        case _Number():  # a whole number as it is, any other as Java writes a double
            return str(value) if value.lstrip("-").isdigit() else casts.double_text(float(value))
        case dict():
            return "{" + ",".join(f"{_text(name)}:{_written(each)}" for name, each in value.items()) + "}"
        case list():
            return "[" + ",".join(map(_written, value)) + "]"
        case str():
            return _text(value)
    return json.dumps(value)


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def _get_json_object(text: str, path: str) -> str | None:
    found = _parsed(text)
    for step in parse_path(path):
        if isinstance(step, str) and isinstance(found, dict):
            found = found.get(step)
        elif isinstance(step, int) and isinstance(found, list) and step < len(found):
            found = found[step]
        else:
            return None
    return None if found is None else _as_text(found)


def _as_text(found: Any) -> str | None:
    """A part of a JSON text as text: a string by its characters."""
    is_string = isinstance(found, str) and not isinstance(found, _Number)
    return _whole(str(found) if is_string else _written(found))


def _json_array_length(text: str) -> int | None:
    found = _parsed(text)
    return len(found) if isinstance(found, list) else None


def _from_json(call: Call) -> Callable[..., Value]:
    kind = call.type

    def read(text: str, _: str) -> Value:
        if not text.strip():
            return None
        value = _value(_parsed(text), kind)
        if value is None and kind.kind is Kind.STRUCT:
            return (None,) * len(kind.fields)
        return value

    return read


def _value(found: Any, kind: DataType) -> Value:
    """A part of a JSON text as a value of a type; None if it is none."""
    if found is None:
        return None
    if kind.is_map:
        if not isinstance(found, dict) or kind.key.kind is not Kind.STRING:
            return None
        if any(_whole(key) is None for key in found):
            return None
        return map_value(((key, _value(each, kind.value)) for key, each in found.items()), kind)
    if kind.kind is Kind.ARRAY:
        if not isinstance(found, list):
            return None
        values = tuple(_value(each, kind.element) for each in found)
        pairs = zip(found, values, strict=True)
        return None if any(value is None and each is not None for each, value in pairs) else values
    if kind.kind is Kind.STRUCT:
        if not isinstance(found, dict):
            return None
        return tuple(_value(found.get(name), inner) for name, inner in kind.fields)
    return _plain_value(found, kind)


def _plain_value(found: Any, kind: DataType) -> Value:
    if kind.kind is Kind.STRING:
        return _as_text(found)
    if kind.kind is Kind.BOOLEAN:
        return found if isinstance(found, bool) else None
    if isinstance(found, _Number):
        return _number(found, kind)
    if not isinstance(found, str):
        return None
    if kind.is_fractional:
        return {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}.get(found)
    read = {Kind.TIMESTAMP: casts.timestamp, Kind.DATE: casts.date}.get(kind.kind)
    return read(found) if read is not None else None


def _number(found: str, kind: DataType) -> Value:
    if kind.is_fractional:
        return float(found)
    try:
        value = Decimal(found)
    except InvalidOperation:
        return None
    if kind.is_integer:
        low, high = kind.bounds
        return int(value) if found.lstrip("-").isdigit() and low <= value <= high else None
    if kind.kind is Kind.DECIMAL:
        rounded = round(value, kind.scale)
        return rounded if abs(rounded) < 10 ** (kind.precision - kind.scale) else None
    return None


def _writer(kind: DataType) -> Callable[[Value], str]:
    if kind.is_map:
        key, value = _key_writer(kind.key), _nullable(_writer(kind.value))
        return lambda whole: "{" + ",".join(f"{key(k)}:{value(v)}" for k, v in whole) + "}"
    if kind.kind is Kind.ARRAY:
        element = _nullable(_writer(kind.element))
        return lambda whole: "[" + ",".join(map(element, whole)) + "]"
    if kind.kind is Kind.STRUCT:
        parts = [(_text(name), _writer(inner)) for name, inner in kind.fields]

        def write(whole: Value) -> str:
            known = ((n, w, v) for (n, w), v in zip(parts, whole, strict=True) if v is not None)
            return "{" + ",".join(f"{name}:{each(value)}" for name, each, value in known) + "}"

        return write
    return _PLAIN.get(kind.kind, str)


def _key_writer(kind: DataType) -> Callable[[Value], str]:
    write = _writer(kind)
    return lambda value: write(value) if kind.kind is Kind.STRING else f'"{write(value)}"'


def _nullable(write: Callable[[Value], str]) -> Callable[[Value], str]:
    return lambda value: "null" if value is None else write(value)


def _finite(write: Callable[[float], str]) -> Callable[[float], str]:
    return lambda value: write(value) if math.isfinite(value) else f'"{write(value)}"'


_PLAIN: dict[Kind, Callable[[Any], str]] = {
    Kind.BOOLEAN: lambda value: "true" if value else "false",
    Kind.STRING: _text,
    Kind.DOUBLE: _finite(casts.double_text),
    Kind.FLOAT: _finite(casts.float_text),
    Kind.DECIMAL: lambda value: f"{value:f}",
    Kind.DATE: lambda value: f'"{calendar.date_text(value)}"',
    Kind.TIMESTAMP: lambda value: f'"{_iso(value)}"',
}


def _iso(micros: int) -> str:
    day, time = calendar.timestamp_text(micros).split(" ")
    whole, _, fraction = time.partition(".")
    return f"{day}T{whole}.{fraction:0<3}Z"


FUNCTIONS: dict[str, Strict] = {
    "get_field": _get_field,
    "element": lambda call: _found(call, 0, fails=True),
    "get": lambda call: _found(call, 0, fails=False),
    "element_at": lambda call: _found(call, 1, fails=True),
    "try_element_at": lambda call: _found(call, 1, fails=False),
    "size": plain(len),
    "array_contains": _contains,
    "map_keys": plain(lambda whole: tuple(key for key, _ in whole)),
    "map_values": plain(lambda whole: tuple(value for _, value in whole)),
    "sort_array": plain(
        lambda whole, ascending: tuple(
            sorted(whole, key=lambda each: sort_key((each,)), reverse=not ascending)
        )
    ),
    "array_join": plain(lambda whole, between: between.join(text for text in whole if text is not None)),
    "split": plain(_split),
    "get_json_object": plain(_get_json_object),
    "json_array_length": plain(_json_array_length),
    "from_json": _from_json,
    "to_json": lambda call: _writer(call.args[0].type),
}
