"""Arrays, maps and structs: access to their parts, and how they are made. JSON: text that holds such values.

`x.a` is a field, `x[0]` an element by its place from 0 on, `x['k']` the value of a key, as in Spark.

Paths into JSON, as `$.store.books[0]['first title']`.

>>> parse_path("$.a[0]['b c']")
('a', 0, 'b c')
>>> parse_path("$.a[*]")
Traceback (most recent call last):
windrow.errors.QueryError: no path `$.a[*]` (a path is $ and then .name, ['name'] or [0])
"""

from __future__ import annotations

import re
from functools import cache, partial

from windrow.algebra.expressions import Call, Expression, Literal, cast, fits, mismatch, unify
from windrow.algebra.functions.patterns import compile_pattern
from windrow.algebra.functions.registry import SHORT, TEXT, accept, call, constant, family
from windrow.algebra.types import BOOLEAN, INT, STRING, DataType, Kind, array, parse_type, struct
from windrow.errors import QueryError, nearest

_STEP = re.compile(r"\.([^.\['\]*]+)|\[(\d{1,9})\]|\['([^'?]+)'\]")


@cache
def parse_path(path: str) -> tuple[str | int, ...]:
    """The steps of a path: names and places."""
    steps: list[str | int] = []
    at = 1
    while path[:1] == "$" and (match := _STEP.match(path, at)):
        steps.append(match[1] or match[3] or int(match[2]))
        at = match.end()
    if path[:1] != "$" or at != len(path):
        raise QueryError(
            f"no path `{path}`", code="bad-path", hint="a path is $ and then .name, ['name'] or [0]"
        )
    return tuple(steps)


# ------------------------------------------------------------ nested


def _get_field(name: str, args: tuple[Expression, ...]) -> Expression:
    whole, part = args
    wanted = str(constant(name, part, "the field"))
    kind = whole.type
    if kind.kind is not Kind.STRUCT:
        raise QueryError(
            f"a {kind} has no field `{wanted}`", code="unknown-field", hint="only a STRUCT has fields"
        )
    found = [field for field, _ in kind.fields if field == wanted] or [
        field for field, _ in kind.fields if field.lower() == wanted.lower()
    ]
    if not found:
        names = [field for field, _ in kind.fields]
        raise QueryError(f"no field `{wanted}`", code="unknown-field", hint=nearest(wanted, names))
    return Call(name, (whole, Literal(found[0], STRING)), dict(kind.fields)[found[0]])


def _array_or_map(name: str, args: tuple[Expression, ...]) -> DataType:
    if args[0].type.kind is not Kind.ARRAY:
        mismatch(name, args, "an ARRAY or a MAP, and what to look up")
    return args[0].type


def _element(name: str, args: tuple[Expression, ...]) -> Expression:
    kind = _array_or_map(name, args)
    if not kind.is_map:
        return Call(name, (args[0], *accept(name, args[1:], (SHORT,))), kind.element)
    if not fits(args[1], kind.key):
        mismatch(name, args, f"a {kind} and a {kind.key}")
    return Call(name, (args[0], cast(args[1], kind.key)), kind.value)


def _get(name: str, args: tuple[Expression, ...]) -> Expression:
    kind = _array_or_map(name, args)
    if kind.is_map:
        mismatch(name, args, "an ARRAY and a place")
    return _element(name, args)


def _contains(name: str, args: tuple[Expression, ...]) -> Expression:
    kind = _array_or_map(name, args)
    if kind.is_map or not fits(args[1], kind.element):
        mismatch(name, args, "an ARRAY and a value of its type")
    return Call(name, (args[0], cast(args[1], kind.element)), BOOLEAN)


def _size(name: str, args: tuple[Expression, ...]) -> Expression:
    _array_or_map(name, args)
    return Call(name, args, INT)


def _entries(part: str, name: str, args: tuple[Expression, ...]) -> Expression:
    kind = _array_or_map(name, args)
    if not kind.is_map:
        mismatch(name, args, "a MAP")
    return Call(name, args, array(kind.key if part == "key" else kind.value))


def _made_array(name: str, args: tuple[Expression, ...]) -> Expression:
    values = unify(name, args)
    return Call(name, values, array(values[0].type))


def _named_struct(name: str, args: tuple[Expression, ...]) -> Expression:
    if len(args) % 2:
        mismatch(name, args, "names and values in turn")
    names = [str(constant(name, arg, "the name of a field")) for arg in args[::2]]
    kinds = dict(zip(names, (arg.type for arg in args[1::2]), strict=True))
    if len(kinds) < len(names):
        raise QueryError("two fields have one name", code="duplicate-column", hint="rename one")
    parts = zip(names, args[1::2], strict=True)
    return Call(
        name, tuple(part for n, value in parts for part in (Literal(n, STRING), value)), struct(**kinds)
    )


def _sort_array(name: str, args: tuple[Expression, ...]) -> Expression:
    kind = _array_or_map(name, args)
    ascending = args[1] if len(args) > 1 else Literal(True, BOOLEAN)
    constant(name, ascending, "whether it is ascending")
    if kind.is_map or kind.element.fields or ascending.type != BOOLEAN:
        mismatch(name, args, "an ARRAY of plain values, and TRUE or FALSE")
    return Call(name, (args[0], ascending), kind)


def _array_join(name: str, args: tuple[Expression, ...]) -> Expression:
    kind = _array_or_map(name, args)
    if kind.is_map or kind.element != STRING:
        mismatch(name, args, "an ARRAY<STRING> and a separator")
    return Call(name, (args[0], *accept(name, args[1:], (TEXT,))), STRING)


def _split(name: str, args: tuple[Expression, ...]) -> Expression:
    text, pattern = accept(name, args, (TEXT,))
    compile_pattern(str(constant(name, pattern, "the pattern")))
    return Call(name, (text, pattern), array(STRING))


def _split_index(name: str, args: tuple[Expression, ...]) -> Expression:
    """Flink's: the parts between texts, not between matches of a pattern."""
    text, delimiter = accept(name, args[:2], (TEXT,))
    between = str(constant(name, delimiter, "the delimiter"))
    if not between:
        mismatch(name, args, "a delimiter that is not empty")
    pattern = "".join(char if char.isalnum() or not char.isascii() else f"\\{char}" for char in between)
    return call("get", (call("split", (text, Literal(pattern, STRING))), args[2]))


def _get_json_object(name: str, args: tuple[Expression, ...]) -> Expression:
    text, path = accept(name, args, (TEXT,))
    parse_path(str(constant(name, path, "the path")))
    return Call(name, (text, path), STRING)


def _from_json(name: str, args: tuple[Expression, ...]) -> Expression:
    (text,) = accept(name, args[:1], (TEXT,))
    written = str(constant(name, args[1], "the type"))
    try:
        kind = parse_type(written)
    except QueryError:
        kind = parse_type(f"STRUCT<{written}>")
    if not kind.fields:
        raise QueryError(
            f"from_json gives a STRUCT, an ARRAY or a MAP, not a {kind}",
            code="bad-type",
            hint="write its fields, as in from_json(text, 'a INT, b STRING')",
        )
    return Call(name, (text, Literal(str(kind), STRING)), kind)


def _to_json(name: str, args: tuple[Expression, ...]) -> Expression:
    if not args[0].type.fields:
        mismatch(name, args, "a STRUCT, an ARRAY or a MAP")
    return Call(name, args, STRING)


FUNCTIONS = family(
    r"""
get_field (x, y)
    a field of a struct | named_struct('a', 7).a -> 7
element (x, y); fails; try get
    the element at a place from 0 on, or the value of a key, NULL if there is none | array(5, 7)[1] -> 7
get (x, y)
    the element at a place from 0 on, NULL if there is none | get(array(5), 3) -> NULL
element_at (x, y); fails; try try_element_at
    the element at a place from 1 on, from the end if negative, or the value of a key | element_at(array(5,
    7), -1) -> 7
try_element_at (x, y)
    the same, NULL if there is none | try_element_at(array(5, 7), 3) -> NULL
size, cardinality, array_size (x)
    how many elements | size(array(5, 7)) -> 2
array_contains (x, y)
    whether a value is an element; NULL if that is not known | array_contains(array(5, 7), 7) -> TRUE
map_keys (x)
    the keys of a map, in order | map_keys(from_json('{"a": 1, "b": 2}', 'MAP<STRING, INT>'))[0] -> 'a'
map_values (x)
    the values of a map, in the order of its keys | map_values(from_json('{"a": 1, "b": 2}', 'MAP<STRING,
    INT>'))[1] -> 2
array (x, …); sees NULL
    an array of values | array(1, 2)[1] -> 2
named_struct (x, y, …); sees NULL
    a struct of names and values | named_struct('a', 1, 'b', 'x').b -> 'x'
sort_array (x, [y])
    the elements in their order, NULL first; with FALSE the other way round | sort_array(array(5, 9, 7),
    FALSE)[0] -> 9
array_join (x, y)
    the texts of an array with a separator between them; NULL is left out | array_join(array('a', NULL, 'b'),
    ', ') -> 'a, b'
split (x, y)
    the parts of a text between matches | split('a,b', ',')[1] -> 'b'
split_index (x, y, z)
    the part of a text at a place from 0 on, between delimiters; NULL if there is none | split_index('a/b',
    '/', 1) -> 'b'
get_json_object (x, y)
    a part of a JSON text, NULL if there is none | get_json_object('{"a": [1, "x"]}', '$.a[1]') -> 'x'
json_array_length (text) INT
    how many elements a JSON array has; NULL if it is none | json_array_length('[1, [2, 3]]') -> 2
from_json (x, y)
    a JSON text as a value of a type; what does not fit is NULL | from_json('{"a": 1}', 'a INT').a -> 1
to_json (x)
    a struct, array or map as JSON; fields that are NULL are left out | to_json(named_struct('a', 1, 'b',
    array('x'))) -> '{"a":1,"b":["x"]}'
""",
    {
        "get_field": _get_field,
        "element": _element,
        "get": _get,
        "element_at": _element,
        "try_element_at": _element,
        "size": _size,
        "array_contains": _contains,
        "map_keys": partial(_entries, "key"),
        "map_values": partial(_entries, "value"),
        "array": _made_array,
        "named_struct": _named_struct,
        "sort_array": _sort_array,
        "array_join": _array_join,
        "split": _split,
        "split_index": _split_index,
        "get_json_object": _get_json_object,
        "from_json": _from_json,
        "to_json": _to_json,
    },
    native=False,
)
