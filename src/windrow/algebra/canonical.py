"""Canonical text of plans and of all they are made of: what a state directory knows them by.

The text is JSON with sorted keys. Every kind of node, expression, window and policy has a durable name with a
number, which is raised when its meaning changes; names never come from classes or modules, so these can be
renamed. A field that has its default is left out, so that a field that comes later changes no text that was
written before. Streams and tables are there by name: their declarations are kept beside.

>>> from windrow.algebra.expressions import Field, Schema
>>> from windrow.algebra.types import BIGINT
>>> stream = Stream("s", Schema((Field("k", BIGINT), Field("ts", BIGINT))), "ts")
>>> plan = Emit(Window(Scan(stream, "s"), ranges.NowWindow()))
>>> text = canonical_text(plan)
>>> print(text)
{"input":{"input":{"alias":"s","is":"scan.1","stream":"s"},"is":"window.1","spec":{"is":"now.1"}},"is":"emit.1"}
>>> plan_of(text, {"s": stream}, {}) == plan
True
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import MISSING, fields
from decimal import Decimal
from enum import Enum
from hashlib import blake2b
from typing import Any

from windrow.algebra import expressions, operators as ops, types
from windrow.algebra.aggregates.user import versioned
from windrow.algebra.catalog import ProgressRule, Stream, Table
from windrow.algebra.plan import Emit, Plan, Scan, StreamUnion, StreamWord, Subquery, TableScan, Window
from windrow.errors import StateError
from windrow.windows import calendar, cumulate, landmark, lifetime, ranges, rows, session, slide_by_tuple
from windrow.windows.progress import NoPolicy, Ordered, OrderedPer, Punctuated, Slack, SlackRows

#: of the whole text; raised when it is to be read in another way
FORMAT = 1
_IS = "is"

NAMES: dict[type, str] = {
    Scan: "scan.1",
    Subquery: "nested.1",
    Window: "window.1",
    TableScan: "table.1",
    Emit: "emit.1",
    ops.Filter: "filter.1",
    ops.Project: "project.1",
    ops.Union: "union.1",
    StreamUnion: "union-of-streams.1",
    ops.Distinct: "distinct.1",
    ops.Aggregate: "group.1",
    ops.AggregateCall: "aggregate.1",
    ops.Join: "join.1",
    ops.TableJoin: "table-join.1",
    ops.Except: "except.1",
    ops.Exists: "exists.1",
    ops.Limit: "limit.1",
    ops.Rank: "rank.1",
    ops.Over: "over.1",
    ops.Unnest: "unnest.1",
    ops.FramedCall: "framed.1",
    ops.OverFrame: "frame.1",
    expressions.Literal: "literal.1",
    expressions.ColumnRef: "column.1",
    expressions.Call: "call.1",
    expressions.Cast: "cast.1",
    expressions.WindowBound: "bound.1",
    ranges.RangeWindow: "range.1",
    ranges.LaggedWindow: "lagged.1",
    ranges.NowWindow: "now.1",
    ranges.UnboundedWindow: "unbounded.1",
    rows.RowsWindow: "rows.1",
    session.SessionWindow: "session.1",
    cumulate.CumulateWindow: "cumulate.1",
    calendar.CalendarWindow: "calendar.1",
    slide_by_tuple.SlideByTupleWindow: "by-tuple.1",
    landmark.LandmarkWindow: "landmark.1",
    lifetime.LifetimeWindow: "lifetime.1",
    ProgressRule: "progress.1",
    NoPolicy: "no-policy.1",
    Slack: "slack.1",
    Ordered: "ordered.1",
    SlackRows: "slack-rows.1",
    OrderedPer: "ordered-per.1",
    Punctuated: "punctuated.1",
}
_CLASSES = {name: kind for kind, name in NAMES.items()}


def canonical_text(thing: Any) -> str:
    """The text of a plan, an expression, a window or a policy; equal things have equal texts."""
    return json.dumps(canonical_form(thing), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def digest_of(thing: Any) -> str:
    """The hash of a thing's text."""
    return blake2b(canonical_text(thing).encode(), digest_size=16).hexdigest()


def thing_of(text: str) -> Any:
    """What a text is of that reads no stream and no table: a policy, a rule of progress."""
    return _Reading({}, {}).of(json.loads(text))


def plan_of(text: str, streams: Mapping[str, Stream], tables: Mapping[str, Table]) -> Emit:
    """The plan that a text is of, over streams and tables that are declared."""
    found = _Reading(streams, tables).of(json.loads(text))
    if not isinstance(found, Emit):
        raise StateError("a stored plan is not a query", code="damaged")
    return found


def canonical_form(thing: Any) -> Any:
    """The text as plain JSON values."""
    match thing:
        case None | bool() | int() | str():
            return thing
        case float():
            return {_IS: "float", "value": thing.hex()}
        case Decimal():
            return {_IS: "decimal", "value": str(thing)}
        case bytes():
            return {_IS: "bytes", "value": thing.hex()}
        case tuple() | list():
            return [canonical_form(each) for each in thing]
        case types.DataType():
            return _type(thing)
        case StreamWord():
            return {_IS: "word", "value": thing.value}
        case Stream() | Table():
            return thing.name
    return _node(thing)


def own_form(node: Plan) -> Any:
    """The form of one node, with the columns of what is below in place of it."""
    found = _node(node)
    for item in fields(node):
        value = getattr(node, item.name)
        below = value if isinstance(value, tuple) else (value,)
        if below and all(isinstance(each, Plan) for each in below):
            found[item.name] = [[[c.name, _type(c.type)] for c in each.schema] for each in below]
    return found


def _type(kind: types.DataType) -> Any:
    found: dict[str, Any] = {_IS: "type.1", "kind": kind.kind.value}
    if kind.precision or kind.scale:
        found["digits"] = [kind.precision, kind.scale]
    if kind.fields:
        found["fields"] = [[name, _type(each)] for name, each in kind.fields]
    return found


def _node(thing: Any) -> dict[str, Any]:
    name = NAMES.get(type(thing))
    if name is None:
        raise TypeError(f"{type(thing).__name__} has no durable name; give it one in {__name__}")
    found: dict[str, Any] = {_IS: name}
    for item in fields(thing):
        value = getattr(thing, item.name)
        default = item.default_factory() if item.default_factory is not MISSING else item.default
        if default is MISSING or value != default:
            found[item.name] = value.value if isinstance(value, Enum) else canonical_form(value)
    if isinstance(thing, Emit) and "word" in found:
        found["word"] = thing.word.value
    return found


class _Reading:
    """The way back."""

    def __init__(self, streams: Mapping[str, Stream], tables: Mapping[str, Table]) -> None:
        self.streams, self.tables = streams, tables

    def of(self, form: Any) -> Any:
        """What a form is of."""
        if isinstance(form, list):
            return tuple(map(self.of, form))
        if not isinstance(form, dict):
            return form
        match form[_IS]:
            case "float":
                return float.fromhex(form["value"])
            case "decimal":
                return Decimal(form["value"])
            case "bytes":
                return bytes.fromhex(form["value"])
            case "type.1":
                inner = tuple((name, self.of(each)) for name, each in form.get("fields", ()))
                precision, scale = form.get("digits", (0, 0))
                return types.DataType(types.Kind(form["kind"]), precision, scale, inner)
        return self._node(form)

    def _node(self, form: Mapping[str, Any]) -> Any:
        kind = _CLASSES.get(form[_IS])
        if kind is None:
            raise StateError(
                f"a stored plan has `{form[_IS]}`, which this version of Windrow does not know",
                code="plan-changed",
                hint="go on with the version that wrote it, or drop the query and create it again",
            )
        values = {name: self.of(value) for name, value in form.items() if name != _IS}
        if kind is Scan:
            values["stream"] = self._declared(self.streams, values["stream"], "stream")
        elif kind is TableScan:
            values["table"] = self._declared(self.tables, values["table"], "table")
        elif kind is Emit and "word" in values:
            values["word"] = StreamWord(values["word"])
        elif kind is ops.AggregateCall:
            # a process that has no definitions of its own knows it by its version
            values["function"] = versioned(values["function"])
        return kind(**values)

    def _declared(self, known: Mapping[str, Any], name: str, what: str) -> Any:
        if name not in known:
            raise StateError(
                f"a stored plan reads {what} `{name}`, which is not declared",
                code="plan-changed",
                hint=f"declare {what} `{name}` before the query, as it was",
            )
        return known[name]
