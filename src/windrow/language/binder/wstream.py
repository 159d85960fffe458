"""WSTREAM(items)[window]: a window over the query's own output (thesis, section 3.4).

The items are selected as usual; per extent if the plan is periodic, else as ISTREAM, so that the output
only grows. That stream is windowed, and is all the outer query reads: either as it is, or aggregated.

    SELECT SUM(WSTREAM(SUM(a))[ROWS 10]) FROM s [RANGE 6 SECONDS SLIDE 6 SECONDS]
    =  SELECT SUM(x) FROM (SELECT SUM(a) AS x FROM s [RANGE 6 SECONDS SLIDE 6 SECONDS]) [ROWS 10]
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from windrow.algebra import aggregates
from windrow.algebra.operators import Project
from windrow.algebra.plan import Emit, StreamWord, Subquery, Window
from windrow.language.binder.aggregates import Groups
from windrow.language.binder.context import Context, Relation
from windrow.language.binder.places import at, rebuilt, refuse, walk
from windrow.language.binder.scope import Scope
from windrow.language.binder.select import bind_select
from windrow.language.binder.select_list import expand
from windrow.language.binder.sources import entries_of
from windrow.language.binder.windows import window
from windrow.language.syntax import Apply, Name, Node, Select, SelectItem, WStream

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windrow.algebra.plan import Plan

ALIAS = "wstream"


def wstreams(select: Select) -> list[WStream]:
    """The WSTREAMs of a select list."""
    return [node for item in select.items for node in walk(item.expression) if isinstance(node, WStream)]


def bind_wstream(select: Select, found: list[WStream], context: Context) -> Relation:
    """A SELECT with WSTREAM in it."""
    wstream = found[0]
    _refuse_what_has_no_place(select, found)
    inner = replace(select, items=wstream.items, word=StreamWord.AUTO)
    output = window(_output_stream(inner, context), wstream.window, Scope(()))
    scope = Scope(entries_of(output, ALIAS, ALIAS))
    plan = _selected(select, output, scope)
    return Relation(plan, select.word)


def _output_stream(inner: Select, context: Context) -> Subquery:
    plan = bind_select(inner, replace(context, word=StreamWord.AUTO)).plan
    with at(inner):
        if Emit(plan).reports_extents:
            return Subquery(Emit(plan), ALIAS)
        return Subquery(Emit(_internal(plan), StreamWord.ISTREAM), ALIAS)


def _internal(plan: Plan) -> Plan:
    """The plan with INTERNAL windows: what WSTREAM windows is append-only."""
    if isinstance(plan, Window):
        never = plan.spec.never_internal
        return plan if never else replace(plan, spec=replace(plan.spec, internal=True))
    return plan.with_children(tuple(_internal(child) for child in plan.children))


def _selected(select: Select, output: Plan, scope: Scope) -> Plan:
    """The outer select list: all columns, or aggregates of the one there is."""
    if isinstance(select.items[0].expression, WStream):
        return Project(output, tuple((entry.name, entry.column) for entry in scope.entries))
    outer = tuple(replace(item, expression=_replaced(item.expression, scope)) for item in select.items)
    written = replace(select, items=outer, group_by=(), having=None, where=None)
    listed = expand(outer, scope)
    groups = Groups(written, output, scope, listed)
    bound = [groups.bind(item.node) for item in listed.items]
    with at(select):
        return Project(groups.plan(None), tuple(zip(listed.names, bound, strict=True)))


def _replaced(node: Node, scope: Scope) -> Node:
    """The expression with the one column of the output stream in place of WSTREAM."""
    if not isinstance(node, WStream):
        return rebuilt(node, lambda part: _replaced(part, scope))
    if len(scope.entries) != 1:
        message = f"an aggregate takes one value, but this WSTREAM has {len(scope.entries)}"
        refuse(node, message, "wstream", "select one item")
    return Name(node.span, (ALIAS, scope.entries[0].name))


def _refuse_what_has_no_place(select: Select, found: list[WStream]) -> None:
    first = found[0]
    if select.word.restores:
        refuse(
            first,
            "WSTREAM with restore is not defined: a refresh may bring more results than the window holds,"
            " and nothing says which of them to keep",
            "wstream",
            f"drop {select.word.value}",
        )
    for item in select.items:
        _refuse_bare(item, alone=len(select.items) == 1)
    if any(_text(other) != _text(first) for other in found[1:]):
        hint = "write the same WSTREAM in all places"
        refuse(found[1], "a query has one output stream to window", "wstream", hint)
    if select.order_by or select.limit is not None or select.distinct:
        word = "DISTINCT" if select.distinct else "ORDER BY … LIMIT"
        hint = "write the query as a nested one, with a window behind it, and the rest around it"
        refuse(first, f"{word} beside WSTREAM could be about either stream", "wstream", hint)


def _refuse_bare(item: SelectItem, alone: bool) -> None:
    """WSTREAM is all there is, without an alias, or it is inside an aggregate."""
    if isinstance(item.expression, WStream) and alone:
        if item.alias is not None:
            hint = "put the alias into its parentheses"
            refuse(item, f"WSTREAM is a stream, not a column that `{item.alias}` could name", "wstream", hint)
        return
    bare = next((node for node in _outside_aggregates(item.expression) if isinstance(node, WStream)), None)
    if bare is not None:
        refuse(
            bare,
            "WSTREAM is the whole select list, or inside an aggregate",
            "wstream",
            "put the other items into its parentheses, or into a query around it",
        )


def _outside_aggregates(node: Node) -> Iterator[Node]:
    yield node
    if isinstance(node, Apply) and not aggregates.is_aggregate(node.function):
        for arg in node.args:
            yield from _outside_aggregates(arg)


def _text(node: Any) -> Any:
    """A piece of syntax without its places, to compare."""
    if isinstance(node, Node):
        return type(node), [_text(getattr(node, part.name)) for part in fields(node) if part.name != "span"]
    return [_text(each) for each in node] if isinstance(node, tuple) else node
