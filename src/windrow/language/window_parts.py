"""The parts of a window bracket, from the tree of the grammar to a `WindowClause`.

Each rule of `windows.lark` has a reader here, which gives the fields of the clause it stands for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lark import Token as Label
from lark import Tree

from windrow.errors import QueryError, Span
from windrow.language.instants import DAY, instant
from windrow.language.numbers import plain_number
from windrow.language.places import placed
from windrow.language.syntax import PointSyntax
from windrow.language.tokens import Kind, Token, Tokens
from windrow.language.window_errors import KINDS
from windrow.windows.bracket import WORDS, WindowClause
from windrow.windows.domain import MAX_INT64, Domain
from windrow.windows.units import Quantity

Fields = dict[str, Any]
Node = Tree[Label]

_POINTS = ("origin", "start", "until")
_POINT_WORDS = {"origin": "ORIGIN", "landmark": "FROM", "until": "UNTIL"}
_TUPLES = {"TUPLE": "ROWS", "TUPLES": "ROWS"}
_HYPHENATED = {"row-num": "row_num", "arrival-ts": "arrival_ts"}


def clause_of(tree: Node, bracket: Tokens) -> WindowClause:
    """The clause that the parts say together."""
    fields: Fields = {}
    times: dict[str, tuple[str, Span]] = {}
    for part in tree.children:
        assert isinstance(part, Tree)
        found = _READERS[part.data](part)
        _refuse_repetition(fields, found, part)
        fields |= found
        times |= {name: found[name] for name in _POINTS if isinstance(found.get(name), tuple)}
    if "kind" not in fields:
        raise QueryError(
            "this does not say which window it is",
            code="window-syntax",
            span=bracket.span,
            hint=f"add {KINDS}",
        )
    return WindowClause(**(fields | _instants(times, fields.get("origin"))))


def points_of(tree: Node) -> tuple[PointSyntax, ...]:
    """How ORIGIN, FROM and UNTIL are written."""
    found = []
    for part in tree.children:
        assert isinstance(part, Tree)
        for point in (child for child in part.children if isinstance(child, Tree)):
            if part.data in _POINT_WORDS and point.data in ("point", "point_number"):
                is_time = point.data == "point" or _quantity(point).unit is not None
                found.append(PointSyntax(_span(point), _POINT_WORDS[part.data], is_time))
    return tuple(found)


def _refuse_repetition(known: Fields, found: Fields, part: Node) -> None:
    twice = next((name for name in found if name in known), None)
    if twice is None:
        return
    if twice == "kind" and known["kind"] != found["kind"]:
        message = f"this window is both {known['kind']} and {found['kind']}"
    else:
        word = known["kind"] if twice == "kind" else WORDS.get(twice, twice.upper())
        message = f"this window has two {word} parts"
    raise QueryError(message, code="window-syntax", span=_span(part), hint="leave one out")


def _instants(times: dict[str, tuple[str, Span]], origin: Any) -> dict[str, int]:
    """Points in time as microseconds; a bare time of day is on ORIGIN's date, 1970-01-01 if there is none."""
    day = 0
    if isinstance(origin, int):
        day = origin // DAY * DAY
    elif origin is not None:
        day = instant(*origin) // DAY * DAY
    return {name: instant(text, span, day) for name, (text, span) in times.items()}


# Readers, one for each rule.


def _sized(kind: str) -> Callable[[Node], Fields]:
    return lambda part: {"kind": kind, "range": _quantity(_child(part, "quantity"))}


def _landmark(part: Node) -> Fields:
    points = [child for child in part.children if isinstance(child, Tree)]
    return {"kind": "LANDMARK", **({"start": _point(points[0])} if points else {})}


def _attribute_field(name: str) -> Callable[[Node], Fields]:
    return lambda part: {name: _attribute(_child(part, "attribute"))}


def _sattr(part: Node) -> Fields:
    ranks = [child for child in part.children if isinstance(child, Tree) and child.data == "rank"]
    if ranks:
        return {"sattr": _attribute(_child(ranks[0], "attribute")), "sattr_rank": True}
    return {"sattr": _attribute(_child(part, "attribute"))}


def _partition_by(part: Node) -> Fields:
    columns = [child for child in part.children if isinstance(child, Tree)]
    return {"partition_by": tuple(_attribute(column) for column in columns)}


_READERS: dict[str, Callable[[Node], Fields]] = {
    "range": _sized("RANGE"),
    "rows": _sized("ROWS"),
    "session": _sized("SESSION"),
    "cumulate": _sized("CUMULATE"),
    "landmark": _landmark,
    "unbounded": lambda part: {"kind": "UNBOUNDED"},
    "now": lambda part: {"kind": "NOW"},
    "lifetime": lambda part: {"kind": "LIFETIME"},
    "slide": lambda part: {"slide": _quantity(_child(part, "quantity"))},
    "origin": lambda part: {"origin": _point(part.children[-1])},
    "until": lambda part: {"until": _point(part.children[-1])},
    "wattr": _attribute_field("wattr"),
    "rattr": _attribute_field("rattr"),
    "sattr": _sattr,
    "partition_by": _partition_by,
    "internal": lambda part: {"internal": True},
    "inclusive": lambda part: {"inclusive": True},
}


# The pieces parts are made of.


def _quantity(part: Node) -> Quantity:
    minus, number, unit = _labels(part, "MINUS"), _labels(part, "NUMBER")[0], _labels(part, "UNIT")
    value, suffix = plain_number(number.value, _label_span(number))
    word = unit[0].value if unit else suffix
    with placed(_label_span(unit[0]) if unit else _label_span(number)):
        return Quantity(-value if minus else value, _TUPLES.get(word.upper(), word) or None)


def _point(part: Any) -> int | tuple[str, Span]:
    """A number, or the text of a point in time, which may still need a date."""
    if part.data == "point_number":
        quantity = _quantity(part)
        if quantity.unit:
            return quantity.ticks(Domain.TIME)
        value = int(quantity.value)
        if value == quantity.value and abs(value) <= MAX_INT64:
            return value
        raise QueryError(f"{quantity} is not a 64-bit integer", code="window-overflow", span=_span(part))
    label = _labels(part, "STRING")[0]
    return Token(Kind.STRING, label.value, 0, "").value, _label_span(label)


def _attribute(part: Node) -> str:
    names = _labels(part, "NAME")
    if len(names) == 1:
        return _name(names[0])
    written = "-".join(_name(label) for label in names)
    if written.lower() in _HYPHENATED:
        return _HYPHENATED[written.lower()]
    raise QueryError(
        f"`{written}` looks like a subtraction",
        code="window-attribute",
        span=_span(part),
        hint=f"quote a name with a hyphen: `{written}` in backticks",
    )


def _name(label: Label) -> str:
    kind = Kind.QUOTED if label.value[0] in '`"' else Kind.WORD
    return Token(kind, label.value, 0, "").name


def _child(part: Node, rule: str) -> Node:
    return next(child for child in part.children if isinstance(child, Tree) and child.data == rule)


def _labels(part: Node, kind: str) -> list[Label]:
    return [child for child in part.children if isinstance(child, Label) and child.type == kind]


def _label_span(label: Label) -> Span:
    return Span(label.start_pos or 0, label.end_pos or 0)


def _span(part: Node) -> Span:
    labels = list(part.scan_values(lambda value: isinstance(value, Label)))
    return _label_span(labels[0]).to(_label_span(labels[-1]))
