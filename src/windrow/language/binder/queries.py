"""Queries: which kind of query this is, and the `Emit` at its root.

WSTREAM(items)[window]: a window over the query's own output (thesis, section 3.4).

The items are selected as usual; per extent if the plan is periodic, else as ISTREAM, so that the output
only grows. That stream is windowed, and is all the outer query reads: either as it is, or aggregated.

    SELECT SUM(WSTREAM(SUM(a))[ROWS 10]) FROM s [RANGE 6 SECONDS SLIDE 6 SECONDS]
    =  SELECT SUM(x) FROM (SELECT SUM(a) AS x FROM s [RANGE 6 SECONDS SLIDE 6 SECONDS]) [ROWS 10]

UNION, EXCEPT and INTERSECT: columns meet by position, as their common type, under the first side's names.

Where a stream is wanted, sides of UNION ALL with a word each, or over windows that all have a SLIDE, are
streams of their own (`Relation.streams`); everywhere else a word is about the whole answer.
Without ALL, each side counts each row once. INTERSECT is a semi-join of distinct rows; INTERSECT ALL keeps
min(k1, k2) copies, which is what is left of k1 without those that EXCEPT ALL leaves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from windrow.algebra import Emit, Plan, StreamWord, Subquery, Window, aggregates, checks, types
from windrow.algebra.expressions import ColumnRef, Expression, cast, conjunction
from windrow.algebra.operators import Distinct, Except, Exists, Filter, Limit, Project, Union
from windrow.language import syntax
from windrow.language.binder import constants, expressions, from_where, select_list, ways_out
from windrow.language.binder.aggregates import Groups, Overs, is_grouped
from windrow.language.binder.context import Context, Relation, bounds_over
from windrow.language.binder.scope import Scope
from windrow.language.binder.sources import NESTED, entries_of, equal_or_null, moves, renamed, window
from windrow.language.catalog import Catalog
from windrow.language.syntax import meaning, rebuilt, walk
from windrow.language.tokens import at, refuse

# ------------------------------------------------------------ select
#
# One SELECT, from its rows up: γ and HAVING, the select list, DISTINCT, ORDER BY … LIMIT.
#
#     Limit                ORDER BY … LIMIT, under RSTREAM
#       Distinct           SELECT DISTINCT
#         Project          the select list
#           Filter         HAVING
#             Aggregate    GROUP BY, or aggregates without it
#               …          FROM … WHERE (`from_where`)
#
# Any of them but the projection may be missing. ORDER BY … LIMIT has a meaning where whole answers are given,
# under RSTREAM, said or implied by a SLIDE. A key that is not an output is carried along under a hidden name
# and dropped above the limit.


#: what hidden outputs are called, before their number
HIDDEN = "order by "

Outputs = tuple[tuple[str, "Expression"], ...]
Keys = tuple[tuple["Expression", bool], ...]


def bind_order(
    select: syntax.Select, outputs: select_list.SelectList, values: expressions.ExpressionBinder
) -> Keys:
    """The written keys, over the same rows as the select list; descending or not."""
    if select.order_by and select.limit is None:
        keys = (key.span.quoted + (" DESC" if descending else "") for key, descending in select.order_by)
        refuse(
            select.order_by[0][0],
            "ORDER BY without LIMIT changes nothing: delivered rows are always in order of (at, op, row)",
            "order-without-limit",
            f"write ORDER BY {', '.join(keys)} LIMIT 10 for the first rows of each answer, or leave it out",
        )
    values.clause = "ORDER BY"
    return tuple((values.bind(outputs.dereferenced(key)), descending) for key, descending in select.order_by)


def hidden(outputs: Outputs, keys: Keys) -> Outputs:
    """Outputs for the keys that are none, under names that no output has."""
    shown = [expression for _, expression in outputs]
    missing = dict.fromkeys(key for key, _ in keys if key not in shown)
    return tuple((f"{HIDDEN}{number}", key) for number, key in enumerate(missing, 1))


def limited(limit: syntax.Node, plan: Plan, shown: Outputs, extra: Outputs, keys: Keys) -> Plan:
    """The limit above the projection of all outputs; the hidden ones are dropped again."""
    names = {expression: name for name, expression in reversed(shown + extra)}
    order: Keys = tuple((ColumnRef(names[key], key.type), descending) for key, descending in keys)
    if not order:
        order = tuple((plan.schema.column(name), False) for name in plan.schema.names)
    count = constants.whole_number(limit)
    if count is None:
        refuse(limit, "LIMIT takes a whole number", "bad-limit", "for example LIMIT 10")
    with at(limit):
        top = Limit(plan, order, count)
    return Project(top, tuple((name, top.schema.column(name)) for name, _ in shown)) if extra else top


def whole_answers(select: syntax.Select, plan: Plan, around: StreamWord) -> None:
    """Refuse LIMIT where changes are given; `around` is RSTREAM if the whole query says so."""
    word = around if select.word is StreamWord.AUTO else select.word
    with at(select):
        meaning = Emit(plan, word).meaning
    if meaning is StreamWord.RSTREAM:
        return
    items = syntax.hull(select.items).quoted
    distinct = "DISTINCT " if select.distinct else ""
    window = next(filter(None, map(ways_out.slid, select.sources)), None)
    more = f", or give the windows a SLIDE, as in FROM {window}" if window else ""
    refuse(
        select.limit or select,
        "LIMIT picks the first rows of a whole answer, but this query gives changes of its answer",
        "limit-of-changes",
        f"write SELECT RSTREAM({distinct}{items}){more}",
    )


def bind_select(select: syntax.Select, context: Context) -> Relation:
    """The relation a SELECT means; what makes it a stream is decided above."""
    context = context.under(select.word)
    rows = from_where.bind_rows(select, context)
    outputs = select_list.expand(select.items, rows.scope)
    plan, named, keys = _selected(select, rows, outputs)
    extra = hidden(named, keys)
    if extra and select.distinct:
        refuse(
            select.order_by[0][0],
            "ORDER BY must name outputs: a DISTINCT row stands for many rows, which may differ in the rest",
            "order-of-distinct",
            "select it too, or leave DISTINCT out",
        )
    with at(select):
        plan = Project(plan, named + extra)
        plan = Distinct(plan) if select.distinct else plan
    if select.limit is not None:
        whole_answers(select, plan, context.word)
        plan = limited(select.limit, plan, named, extra, keys)
    return Relation(plan, select.word)


def _selected(
    select: syntax.Select, rows: from_where.BoundRows, outputs: select_list.SelectList
) -> tuple[Plan, Outputs, Keys]:
    """What is below the projection, its outputs, and the keys of ORDER BY: about rows, or about groups."""
    groups = Groups(select, rows.plan, rows.scope, outputs) if is_grouped(select) else None
    values = groups or expressions.ExpressionBinder(rows.scope, "the select list", bounds_over(rows.plan))
    values.overs = overs = Overs(None if groups else rows.plan, rows.scope)
    bound = [values.bind(item.node) for item in outputs.items]
    named = tuple(zip(outputs.names, bound, strict=True))
    qualify = _qualify(select, outputs, values)
    having = groups.having(select) if groups else None
    keys = bind_order(select, outputs, values)
    with at(select):
        return _numbered(select, groups.plan(having) if groups else rows.plan, overs, qualify), named, keys


def _qualify(
    select: syntax.Select, outputs: select_list.SelectList, values: expressions.ExpressionBinder
) -> Expression | None:
    if select.qualify is None:
        return None
    values.clause = "QUALIFY"
    found = values.condition(outputs.without_aliases(select.qualify, columns_win=values.scope))
    if not values.overs or not values.overs.nodes:
        refuse(
            select.qualify,
            "QUALIFY is about values of OVER, and this query asks for none",
            "bad-qualify",
            "write WHERE, or HAVING for groups; or QUALIFY ROW_NUMBER() OVER (…) <= n",
        )
    return found


def _numbered(select: syntax.Select, plan: Plan, overs: Overs, qualify: Expression | None) -> Plan:
    """The rows or groups with what is asked with OVER."""
    if overs.ranks and select.word.restores:
        refuse(
            overs.nodes[0],
            f"{select.word.value} is about results that came and went, which had many numbers",
            "restore",
            "use ISTREAM or RSTREAM",
        )
    if overs.frames and select.word not in (StreamWord.AUTO, StreamWord.ISTREAM):
        refuse(
            overs.nodes[0],
            f"each row has one answer, which stays: {select.word.value} has nothing to tell of them",
            "bad-over",
            f"leave {select.word.value} out",
        )
    plan = overs.over(plan)
    return Filter(plan, qualify) if qualify is not None else plan


# ------------------------------------------------------------ queries


ALIAS = "wstream"


def wstreams(select: syntax.Select) -> list[syntax.WStream]:
    return [
        node for item in select.items for node in walk(item.expression) if isinstance(node, syntax.WStream)
    ]


def bind_wstream(select: syntax.Select, found: list[syntax.WStream], context: Context) -> Relation:
    wstream = found[0]
    _refuse_what_has_no_place(select, found)
    inner = replace(select, items=wstream.items, word=StreamWord.AUTO)
    plan = bind_select(inner, replace(context, word=StreamWord.AUTO)).plan
    with at(inner):
        extents = Emit(plan).reports_extents
        stream = Emit(plan) if extents else Emit(_internal(plan), StreamWord.ISTREAM)
        output_stream = Subquery(stream, ALIAS)
    output = window(output_stream, wstream.window, Scope(()))
    scope = Scope(entries_of(output, ALIAS, ALIAS))
    return Relation(_about_stream(select, output, scope), select.word)


def _internal(plan: Plan) -> Plan:
    """The plan with INTERNAL windows: what WSTREAM windows is append-only."""
    if isinstance(plan, Window):
        never = plan.spec.never_internal
        return plan if never else replace(plan, spec=replace(plan.spec, internal=True))
    return plan.with_children(tuple(_internal(child) for child in plan.children))


def _about_stream(select: syntax.Select, output: Plan, scope: Scope) -> Plan:
    """The outer select list: all columns, or aggregates of the one there is."""
    if isinstance(select.items[0].expression, syntax.WStream):
        return Project(output, tuple((entry.name, entry.column) for entry in scope.entries))
    outer = tuple(replace(item, expression=_replaced(item.expression, scope)) for item in select.items)
    written = replace(select, items=outer, group_by=(), having=None, where=None)
    listed = select_list.expand(outer, scope)
    groups = Groups(written, output, scope, listed)
    bound = [groups.bind(item.node) for item in listed.items]
    with at(select):
        return Project(groups.plan(None), tuple(zip(listed.names, bound, strict=True)))


def _replaced(node: syntax.Node, scope: Scope) -> syntax.Node:
    """The expression with the one column of the output stream in place of WSTREAM."""
    if not isinstance(node, syntax.WStream):
        return rebuilt(node, lambda part: _replaced(part, scope))
    if len(scope.entries) != 1:
        message = f"an aggregate takes one value, but this WSTREAM has {len(scope.entries)}"
        refuse(node, message, "wstream", "select one item")
    return syntax.Name(node.span, (ALIAS, scope.entries[0].name))


def _refuse_what_has_no_place(select: syntax.Select, found: list[syntax.WStream]) -> None:
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
    if any(meaning(other) != meaning(first) for other in found[1:]):
        hint = "write the same WSTREAM in all places"
        refuse(found[1], "a query has one output stream to window", "wstream", hint)
    if select.order_by or select.limit is not None or select.distinct:
        word = "DISTINCT" if select.distinct else "ORDER BY … LIMIT"
        hint = "write the query as a nested one, with a window behind it, and the rest around it"
        refuse(first, f"{word} beside WSTREAM could be about either stream", "wstream", hint)


def _refuse_bare(item: syntax.SelectItem, alone: bool) -> None:
    """WSTREAM is all there is, without an alias, or it is inside an aggregate."""
    if isinstance(item.expression, syntax.WStream) and alone:
        if item.alias is not None:
            hint = "put the alias into its parentheses"
            refuse(item, f"WSTREAM is a stream, not a column that `{item.alias}` could name", "wstream", hint)
        return
    for node in _outside_aggregates(item.expression):
        if isinstance(node, syntax.WStream):
            message = "WSTREAM is the whole select list, or inside an aggregate"
            hint = "put the other items into its parentheses, or into a query around it"
            refuse(node, message, "wstream", hint)


def _outside_aggregates(node: syntax.Node) -> Iterator[syntax.Node]:
    yield node
    if isinstance(node, syntax.Apply) and not aggregates.is_aggregate(node.function):
        for arg in node.args:
            yield from _outside_aggregates(arg)


def bind_set(operation: syntax.SetOperation, context: Context) -> Relation:
    """A set operation; a chain of UNION ALL is one union."""
    flat = operation.kind == "UNION" and not operation.distinct
    written = _union_parts(operation) if flat else [operation.left, operation.right]
    apart = flat and all(
        isinstance(side, syntax.Select) and side.word is not StreamWord.AUTO for side in written
    )
    parts = [
        context.bind(side, replace(context, moves=moves(side, context.catalog)) if apart else context)
        for side in written
    ]
    _check_words(operation, written, parts)
    with at(operation):
        plans = _aligned(_name(operation), written, [part.plan for part in parts])
        if not flat:
            return Relation(_combined(operation, plans), parts[0].word)
        names = plans[0].schema.names
        sides = [Relation(_named(plan, names), part.word) for plan, part in zip(plans, parts, strict=True)]
        return Relation(Union(tuple(plans)), parts[0].word, tuple(sides))


def _check_words(
    operation: syntax.SetOperation, written: list[syntax.QueryExpression], parts: list[Relation]
) -> None:
    """Each side of UNION ALL has a stream word, or none has; of the others, both have the same."""
    adds_up = operation.kind == "UNION" and not operation.distinct
    for query, part in zip(written, parts, strict=True):
        said = (parts[0].words | part.words) - {StreamWord.AUTO}
        some = StreamWord.AUTO in parts[0].words | part.words and bool(said)
        if adds_up and some:
            first, other = (relation.word.value or "no stream word" for relation in (parts[0], part))
            refuse(
                query,
                f"the sides say {first} and {other}: either each side is a stream, or the whole is",
                "set-words",
                "write a stream word on every side, or on none",
            )
        if not adds_up and (some or len(said) > 1):
            words = ", ".join(sorted(word.value for word in said)) + (" and no stream word" if some else "")
            refuse(
                query,
                f"the sides say {words}, but a stream word is about the whole answer of {_name(operation)}",
                "set-words",
                "write the same word on all sides, or none",
            )


def _name(operation: syntax.SetOperation) -> str:
    return operation.kind + ("" if operation.distinct else " ALL")


def _combined(operation: syntax.SetOperation, plans: list[Plan]) -> Plan:
    match operation.kind, operation.distinct:
        case "UNION", True:
            return Distinct(_own_names(renamed(Union(tuple(plans)), NESTED)))
        case "EXCEPT", False:
            return Except(*plans)
        case "EXCEPT", True:
            return Except(*(_distinct(plan) for plan in plans))
        case "INTERSECT", False:
            return Except(plans[0], Except(*plans))
        case _:
            return _intersected(*plans)


def _distinct(plan: Plan) -> Plan:
    return plan if isinstance(plan, Distinct) else Distinct(plan)


def _own_names(nested: Plan) -> Project:
    """The columns of a nested query under their own names again."""
    schema = nested.schema
    return Project(nested, tuple((name.split(".", 1)[1], schema.column(name)) for name in schema.names))


def _intersected(left: Plan, right: Plan) -> Plan:
    """Each row of the left side once, while the right side has it."""
    for side in (left, right):
        checks.no_internal_windows(side, "INTERSECT")
    kept, other = renamed(_distinct(left), NESTED), renamed(right, f"{NESTED}_2")
    ones = map(kept.schema.column, kept.schema.names)
    twos = map(other.schema.column, other.schema.names)
    pairs = zip(ones, twos, strict=True)
    same = tuple(part for one, two in pairs for part in equal_or_null(one, two))
    return _own_names(Exists(kept, other, conjunction(same)))


def _union_parts(query: syntax.QueryExpression) -> list[syntax.QueryExpression]:
    if isinstance(query, syntax.SetOperation) and query.kind == "UNION" and not query.distinct:
        return _union_parts(query.left) + _union_parts(query.right)
    return [query]


def _aligned(kind: str, written: list[syntax.QueryExpression], plans: list[Plan]) -> list[Plan]:
    """The sides with casts where their types differ."""
    targets = list(plans[0].schema.types)
    for query, plan in zip(written[1:], plans[1:], strict=True):
        if len(plan.schema) != len(targets):
            message = f"{kind} of {len(targets)} columns above and {len(plan.schema)} columns here"
            refuse(query, message, "set-columns", "select the same number of columns on all sides")
        for place, (left, right) in enumerate(zip(targets, plan.schema.types, strict=True)):
            found = types.common_type(left, right)
            if found is None:
                message = f"column {place + 1} of {kind} is {left} above and {right} here"
                refuse(query, message, "set-types", "CAST one of them")
            targets[place] = found
    return [_as_types(plan, targets) for plan in plans]


def _as_types(plan: Plan, targets: list[types.DataType]) -> Plan:
    if list(plan.schema.types) == targets:
        return plan
    below, outputs = _taken_apart(plan)
    pairs = zip(outputs, targets, strict=True)
    return Project(below, tuple((name, cast(value, kind)) for (name, value), kind in pairs))


def _named(plan: Plan, names: Sequence[str]) -> Plan:
    """A side whose columns are called as those of the first."""
    if tuple(plan.schema.names) == tuple(names):
        return plan
    below, outputs = _taken_apart(plan)
    return Project(below, tuple((name, value) for name, (_, value) in zip(names, outputs, strict=True)))


def _taken_apart(plan: Plan) -> tuple[Plan, Outputs]:
    """What is below a projection, and its outputs; above DISTINCT or LIMIT, as if that were nested."""
    if isinstance(plan, Project) and not isinstance(plan.input, Limit):
        return plan.input, plan.outputs
    nested = renamed(plan, NESTED)
    return nested, tuple((name, nested.schema.column(f"{NESTED}.{name}")) for name in plan.schema.names)


def bind_query(query: syntax.QueryExpression, catalog: Catalog) -> Emit:
    relation = _bind_relation(query, Context(catalog, _bind_relation, moves=moves(query, catalog)))
    with at(query):
        stream = relation.stream
    if isinstance(query, syntax.Select | syntax.SetOperation) and query.emits is not None:
        _check_emitted(query, query.emits, stream)
    return stream


def _check_emitted(
    query: syntax.Select | syntax.SetOperation, written: syntax.EmitClause, stream: Emit
) -> None:
    """What a query gives is decided by its windows; what EMIT says has to be that."""
    whole = stream.meaning is StreamWord.RSTREAM
    sources = query.sources if isinstance(query, syntax.Select) else ()
    if written.final and not whole:
        slid = next(filter(None, map(ways_out.slid, sources)), "s [RANGE 1 MINUTE SLIDE 1 MINUTE]")
        refuse(
            written,
            "this query gives changes as they come: no window of it is told when it is over",
            "emit",
            f"leave EMIT out, or give the windows a SLIDE, as in FROM {slid}",
        )
    if not written.final and whole:
        ranges = ((s.name, s.window.clause) for s in sources if s.name and s.window)
        sizes = (f"{name} [RANGE {clause.range}]" for name, clause in ranges if clause.kind == "RANGE")
        unslid = next((f", as in FROM {size}" for size in sizes), "")
        refuse(
            written,
            "each window is told once, when it is over, and not again with every row",
            "emit",
            "leave EMIT CHANGES out, or write EMIT FINAL; a window without SLIDE gives changes" + unslid,
        )


def bind_relation(query: syntax.QueryExpression, catalog: Catalog) -> Emit:
    """The plan of a query that is asked for its whole answer at one instant."""
    relation = _bind_relation(query, Context(catalog, _bind_relation, moves=moves(query, catalog)))
    with at(query):
        return Emit(relation.plan, StreamWord.RSTREAM)


def _bind_relation(query: syntax.QueryExpression, context: Context) -> Relation:
    if isinstance(query, syntax.SetOperation):
        return bind_set(query, context)
    assert isinstance(query, syntax.Select)
    found = wstreams(query)
    return bind_wstream(query, found, context) if found else bind_select(query, context)
