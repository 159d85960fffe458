"""Reductions: forms of everyday SQL, each said by other forms of the language. Syntax to syntax.

GROUP BY ROLLUP (a, b)            UNION ALL of one SELECT per grouping set, NULL for keys that are not in it
SELECT DISTINCT ON (k) … ORDER BY k, x      QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY x) = 1
a LEFT SEMI JOIN b ON p           WHERE EXISTS (SELECT 1 FROM b WHERE p); ANTI: NOT EXISTS
… UNION … ORDER BY x LIMIT n      SELECT * FROM (… UNION …) ORDER BY x LIMIT n
WITH t (a, b) AS, FROM (…) t (a, b)         the columns of the query under these names
(a, b) = (1, 2), (a, b) IN ((1, 2), …)      a = 1 AND b = 2; … OR …
PERCENTILE_CONT(p) WITHIN GROUP (ORDER BY x)    QUANTILE(x, p)
CEIL(ts TO DAY), TIMESTAMPADD, TIMESTAMPDIFF    by the start of the unit, and by microseconds
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from itertools import chain, product

from windrow.algebra import StreamWord, aggregates
from windrow.errors import Span
from windrow.language import shape, syntax, tokens
from windrow.language.syntax import rebuilt, walk
from windrow.windows.domain import MICROSECONDS

GroupingSets = list[tuple[syntax.Node, ...]]


def joined(function: str, parts: Iterable[syntax.Node]) -> syntax.Node:
    every = tuple(parts)
    span = syntax.hull(every)
    return syntax.Apply(span, function, every) if len(every) > 1 else every[0]


# ------------------------------------------------------------ rows of values


def equal_rows(span: Span, left: tuple[syntax.Node, ...], right: tuple[syntax.Node, ...]) -> syntax.Node:
    """`(a, b) = (1, 2)`."""
    if len(left) != len(right):
        tokens.refuse(
            span,
            f"{len(left)} values are compared with {len(right)}",
            "set-columns",
            "write as many values on both sides",
        )
    pairs = zip(left, right, strict=True)
    equal = [syntax.Apply(one.span.to(two.span), "=", (one, two)) for one, two in pairs]
    return replace(joined("and", equal), span=span)


# ------------------------------------------------------------ whole queries


def around(
    query: syntax.QueryExpression,
    order_by: syntax.Keys,
    limit: syntax.Node | None,
    word: StreamWord = StreamWord.AUTO,
    distinct: bool = False,
) -> syntax.Select:
    """SELECT * of a query, with what follows it."""
    star = syntax.SelectItem(query.span, syntax.Star(query.span), None)
    source = syntax.FromEntry(query.span, None, query, None, None)
    return syntax.Select(query.span, (star,), (source,), word, distinct, order_by=order_by, limit=limit)


def with_names(query: syntax.QueryExpression, names: tuple[syntax.Name, ...]) -> syntax.QueryExpression:
    """The query with its columns called so."""
    if isinstance(query, syntax.SetOperation):
        return replace(query, left=with_names(query.left, names))
    assert isinstance(query, syntax.Select)
    if any(isinstance(item.expression, syntax.Star) for item in query.items):
        tokens.refuse(
            syntax.hull(names),
            "these names are for columns that the query does not list",
            "not-supported",
            f"list the columns: SELECT … AS {names[0].parts[0]}",
        )
    if len(names) != len(query.items):
        tokens.refuse(
            syntax.hull(names),
            f"{len(names)} names for {len(query.items)} columns",
            "set-columns",
            "give each column a name",
        )
    named = zip(query.items, names, strict=True)
    return replace(query, items=tuple(replace(item, alias=name.parts[0]) for item, name in named))


def matched(
    select: syntax.Select, semi: list[tuple[syntax.FromEntry, tuple[syntax.Node, ...], bool]]
) -> syntax.Select:
    """A SELECT with the SEMI and ANTI joins of its FROM."""
    tests: list[syntax.Node] = []
    for source, on, negated in semi:
        one = syntax.SelectItem(source.span, syntax.Constant(source.span, "1", "NUMBER"), None)
        where = joined("and", on) if on else None
        inner = syntax.Select(
            source.span, (one,), (replace(source, join="", on=()),), StreamWord.AUTO, where=where
        )
        tests.append(syntax.ExistsTest(source.span, inner, negated))
    if not tests:
        return select
    return replace(select, where=joined("and", [*([select.where] if select.where else []), *tests]))


def first_of_each(select: syntax.Select, keys: tuple[syntax.Node, ...]) -> syntax.Select:
    """SELECT DISTINCT ON (keys): of rows with equal keys the first, by the rest of ORDER BY."""
    own = [syntax.meaning(key) for key in keys]
    rest = tuple(key for key in select.order_by if syntax.meaning(key[0]) not in own)
    replaced = select.limit is not None or select.qualify is not None
    if not rest or replaced:
        # what to write, with the keys as they are written and one more column
        parted = ", ".join(key.span.quoted for key in keys)
        more = [item.expression for item in select.items if syntax.meaning(item.expression) not in own]
        by = more[0].span.quoted if more else "…"
        by_number = f"QUALIFY ROW_NUMBER() OVER (PARTITION BY {parted} ORDER BY {by}) = 1"
        added = f"add what is first, ORDER BY {parted}, {by}; or write {by_number}"
        tokens.refuse(
            syntax.hull(keys),
            "DISTINCT ON picks the first of the rows with equal keys, by the rest of ORDER BY",
            "not-supported",
            f"write {by_number} in place of it" if replaced else added,
        )
    span = syntax.hull(keys)
    number = syntax.OverCall(span, syntax.Apply(span, "row_number", ()), keys, rest)
    first = syntax.Apply(span, "=", (number, syntax.Constant(span, "1", "NUMBER")))
    return replace(select, distinct=False, order_by=(), qualify=first)


# ------------------------------------------------------------ grouping sets


def rolled_up(parts: GroupingSets) -> GroupingSets:
    """ROLLUP: all parts, and each beginning of them."""
    return [sum(parts[:end], ()) for end in range(len(parts), -1, -1)]


def cubed(parts: GroupingSets) -> GroupingSets:
    """CUBE: every choice of the parts."""
    if len(parts) > 6:
        raise shape.too_deep(syntax.hull(chain(*parts)))
    choices = product((True, False), repeat=len(parts))
    return [sum((part for part, taken in zip(parts, each, strict=True) if taken), ()) for each in choices]


def combined(lists: list[GroupingSets]) -> GroupingSets:
    """Several of them in one GROUP BY: each set of one with each of the others."""
    return [sum(each, ()) for each in product(*lists)]


def grouped_by_all(items: tuple[syntax.SelectItem, ...]) -> tuple[syntax.Node, ...]:
    """GROUP BY ALL: what is selected and no aggregate."""
    star = next((item for item in items if isinstance(item.expression, syntax.Star)), None)
    if star is not None:
        tokens.refuse(
            star,
            "GROUP BY ALL groups by the outputs, which `*` does not list",
            "not-supported",
            "list the columns",
        )
    return tuple(item.expression for item in items if not _aggregates(item.expression))


def _aggregates(node: syntax.Node) -> bool:
    return any(
        isinstance(part, syntax.Apply) and aggregates.is_aggregate(part.function) for part in walk(node)
    )


def with_grouping_sets(select: syntax.Select, sets: GroupingSets) -> syntax.QueryExpression:
    """One SELECT per grouping set, united."""
    sets = [tuple(_written_out(key, select.items) for key in each) for each in sets]
    if len(sets) > shape.MAX_DEPTH:
        raise shape.too_deep(select.span)
    if select.qualify is not None or any(
        isinstance(part, syntax.OverCall) for item in select.items for part in walk(item.expression)
    ):
        tokens.refuse(
            select,
            "OVER beside grouping sets could be about one of them, or about all",
            "not-supported",
            "group in a nested query, and write OVER around it",
        )
    keys = [key for each in sets for key in each]
    sides = [_side(select, each, keys) for each in sets]
    query = sides[0]
    for side in sides[1:]:
        query = syntax.SetOperation(select.span, "UNION", query, side)
    plain = select.word is StreamWord.AUTO and not select.distinct and select.limit is None
    if plain and not select.order_by:
        return query
    order = tuple((_as_output(key, select.items), descending) for key, descending in select.order_by)
    return around(query, order, select.limit, select.word, select.distinct)


def _written_out(key: syntax.Node, items: tuple[syntax.SelectItem, ...]) -> syntax.Node:
    """A key that is an alias or a position, as what it stands for."""
    if isinstance(key, syntax.Constant) and str(key.value).isdecimal() and 1 <= int(key.value) <= len(items):
        return items[int(key.value) - 1].expression
    if isinstance(key, syntax.Name) and len(key.parts) == 1:
        called = [item for item in items if item.alias and item.alias.lower() == key.parts[0].lower()]
        return called[0].expression if called else key
    return key


def _side(
    select: syntax.Select, own: tuple[syntax.Node, ...], keys: list[syntax.Node]
) -> syntax.QueryExpression:
    missing = [key for key in keys if not any(_same(key, each) for each in own)]

    def seen(node: syntax.Node) -> syntax.Node:
        if isinstance(node, syntax.Apply) and node.function in ("grouping", "grouping_id"):
            return _grouping(node, keys, missing)
        if any(_same(node, key) for key in missing):
            return syntax.Constant(node.span, None, "NULL")
        if isinstance(node, syntax.Apply) and aggregates.is_aggregate(node.function):
            return node
        return rebuilt(node, seen)

    items = tuple(
        replace(item, expression=seen(item.expression), alias=_called(item)) for item in select.items
    )
    having = seen(select.having) if select.having is not None else None
    side = replace(
        select,
        items=items,
        having=having,
        group_by=own,
        word=StreamWord.AUTO,
        distinct=False,
        order_by=(),
        limit=None,
    )
    # without keys a SELECT of constants is about rows: HAVING makes it one about a group
    if not own and having is None and not any(_aggregates(item.expression) for item in items):
        side = replace(side, having=syntax.Constant(select.span, True, "BOOLEAN"))
    return side


def _called(item: syntax.SelectItem) -> str | None:
    """A name for a column that a constant stands for on some sides."""
    match item.expression:
        case syntax.Name(parts=parts):
            return item.alias or parts[-1]
        case syntax.Apply(function="grouping" | "grouping_id" as word, args=args):
            named = ", ".join(".".join(arg.parts) for arg in args if isinstance(arg, syntax.Name))
            return item.alias or f"{word}({named})"
    return item.alias


def _grouping(node: syntax.Apply, keys: list[syntax.Node], missing: list[syntax.Node]) -> syntax.Node:
    """GROUPING(a, b): a bit for each, 1 where it is not grouped by."""
    bits = 0
    for arg in node.args:
        if not any(_same(arg, key) for key in keys):
            tokens.refuse(
                arg,
                f"{node.function.upper()} is about a key of GROUP BY",
                "ungrouped-column",
                "name a column of its grouping sets",
            )
        bits = 2 * bits + any(_same(arg, key) for key in missing)
    return syntax.Constant(node.span, str(bits), "NUMBER")


def _same(one: syntax.Node, two: syntax.Node) -> bool:
    """Equal as written; of two names, one may leave the source out."""
    if isinstance(one, syntax.Name) and isinstance(two, syntax.Name):
        first, second = (tuple(part.lower() for part in name.parts) for name in (one, two))
        shorter = min(len(first), len(second))
        return first[-shorter:] == second[-shorter:]
    return bool(syntax.meaning(one) == syntax.meaning(two))


def _as_output(key: syntax.Node, items: tuple[syntax.SelectItem, ...]) -> syntax.Node:
    """A key of ORDER BY as the name of an output, where it is one."""
    for item in items:
        if _same(key, item.expression) and (name := _called(item)):
            return syntax.Name(key.span, (name,))
    return key


# ------------------------------------------------------------ WITHIN GROUP


def within_group(call: syntax.Apply, order: syntax.Keys) -> syntax.Apply:
    """`PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY x)` and its like."""
    ((value, descending), *others) = order
    if call.function == "percentile_cont" and len(call.args) == 1 and not others:
        fraction = _rest(call.args[0]) if descending else call.args[0]
        return replace(call, function="quantile", args=(value, fraction))
    if call.function == "percentile_disc" and len(call.args) == 1 and not others and not descending:
        return replace(call, args=(value, call.args[0]))
    if call.function == "mode" and not call.args and not others:
        return replace(call, args=(value,))
    if call.function in ("listagg", "string_agg", "array_agg", "collect_list"):
        return replace(call, order=order)
    raise tokens.mistake(
        call,
        f"{call.function.upper()} … WITHIN GROUP is not part of the language",
        "not-supported",
        "there are PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY x), PERCENTILE_DISC and MODE, by one"
        " ascending key",
    )


def _rest(fraction: syntax.Node) -> syntax.Node:
    """One minus a fraction, exactly."""
    try:
        assert isinstance(fraction, syntax.Constant)
        return replace(fraction, value=str(1 - Decimal(str(fraction.value))))
    except (AssertionError, InvalidOperation):
        one = syntax.Constant(fraction.span, "1", "NUMBER")
        return syntax.Apply(fraction.span, "-", (one, fraction))


# ------------------------------------------------------------ times by units

#: an amount of time that is longer than any such unit, and shorter than two
_MORE_THAN = {"WEEK": 7, "MONTH": 32, "QUARTER": 93, "YEAR": 367}


def rounded(span: Span, function: str, args: tuple[syntax.Node, ...]) -> syntax.Node:
    """`FLOOR(ts TO HOUR)` and `CEIL(ts TO HOUR)`."""
    time, unit = args
    start = syntax.Apply(span, "date_trunc", (unit, time))
    if function == "floor_to":
        return start
    assert isinstance(unit, syntax.Constant)
    name = str(unit.value).removesuffix("S")
    more = _MORE_THAN.get(name, 0) * MICROSECONDS["DAYS"] or MICROSECONDS.get(f"{name}S", 0)
    later = syntax.Apply(span, "+", (start, syntax.Constant(span, more, "INTERVAL")))
    whole = syntax.Apply(span, "=", (start, time))
    return syntax.Apply(span, "if", (whole, time, syntax.Apply(span, "date_trunc", (unit, later))))


def moved_by_units(span: Span, function: str, args: tuple[syntax.Node, ...]) -> syntax.Node:
    """`TIMESTAMPADD(MINUTE, 5, ts)` and `TIMESTAMPDIFF(MINUTE, a, b)`: the whole units from a to b."""
    unit, first, second = args
    assert isinstance(unit, syntax.Constant)
    name = str(unit.value).removesuffix("S")
    micros = MICROSECONDS.get(f"{name}S")
    if micros is None:
        months = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}.get(name)
        message = f"a {name} has no fixed length" if months else f"no unit `{name}`"
        hint = "there are MICROSECOND to WEEK" + (
            f"; of dates write add_months(d, {months})" if months and function.endswith("add") else ""
        )
        tokens.refuse(unit, message, "window-unit", hint)
    length = syntax.CastTo(unit.span, syntax.Constant(first.span, str(micros), "NUMBER"), "BIGINT")
    if function.endswith("add"):
        amount = syntax.Apply(first.span, "*", (first, length))
        moved = syntax.Apply(span, "+", (syntax.Apply(second.span, "unix_micros", (second,)), amount))
        return syntax.Apply(span, "timestamp_micros", (moved,))
    ends = [syntax.Apply(node.span, "unix_micros", (node,)) for node in (second, first)]
    return syntax.Apply(span, "div", (syntax.Apply(span, "-", tuple(ends)), length))
