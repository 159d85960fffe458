"""Ways out: the whole form to write in place of a query that stands where it has no meaning.

    price > 10 OR item IN (SELECT item FROM asks [NOW])

means a join with the different values of the query, `LEFT JOIN (SELECT DISTINCT item FROM asks [NOW]) AS
q (x) ON q.x = item`, and a condition on `q.x`. Hints quote the text itself: all names are the user's own.
"""

from __future__ import annotations

from windrow.errors import Span
from windrow.language import syntax


def in_expression(test: syntax.InTest) -> str:
    """What to write for `x [NOT] IN (SELECT …)` under OR, or in an expression."""
    query = test.query
    if not isinstance(query, syntax.Select) or len(test.args) != 1 or _reads_around(query):
        return _UNITED
    selected = query.span.quoted
    if not query.distinct and not query.group_by:
        selected = f"SELECT DISTINCT {Span(query.items[0].span.start, query.span.end).quoted}"
    return _joined(selected, test.args[0], test.negated)


_UNITED = "write one query for each side of OR, and UNION between them"


def _joined(selected: str, other: syntax.Node, negated: bool) -> str:
    what = "IS NULL" if negated else "IS NOT NULL"
    join = f"LEFT JOIN ({selected}) AS q (x) ON q.x = {other.span.quoted}"
    return f"join it: {join}, and write q.x {what} in its place"


def exists_in_expression(test: syntax.ExistsTest) -> str:
    """What to write for `[NOT] EXISTS (SELECT …)` under OR, or in an expression."""
    query = test.query
    found = _one_equality(query) if isinstance(query, syntax.Select) else None
    if found is None:
        return _UNITED
    source, own, outer = found
    return _joined(f"SELECT DISTINCT {own.span.quoted} FROM {source.span.quoted}", outer, test.negated)


def value_elsewhere(scalar: syntax.ScalarQuery) -> str:
    """What to write for `(SELECT …)` as a value outside WHERE."""
    query = scalar.query
    item = query.items[0].expression if isinstance(query, syntax.Select) else None
    found = _one_equality(query) if isinstance(query, syntax.Select) else None
    if item is not None and found is not None:
        source, own, outer = found
        return (
            f"join it: LEFT JOIN (SELECT {own.span.quoted}, {item.span.quoted} FROM {source.span.quoted}"
            f" GROUP BY {own.span.quoted}) AS q (k, x) ON q.k = {outer.span.quoted}, and read q.x"
        )
    return f"join it: LEFT JOIN ({query.span.quoted}) AS q (x) ON TRUE, and read q.x"


def one_row(query: syntax.QueryExpression) -> str:
    """What to write for a query with many rows that a value is compared with."""
    if (
        not isinstance(query, syntax.Select)
        or query.group_by
        or not isinstance(query.items[0].expression, syntax.Name)
    ):
        return f"take one of them in a query around it, or compare with all: IN ({query.span.quoted})"
    item = query.items[0].expression.span
    rest = Span(query.items[0].span.end, query.span.end)
    return (
        f"take one value, (SELECT MAX({item.quoted}) {rest.quoted}), or all of them, IN ({query.span.quoted})"
    )


def slid(source: syntax.FromEntry) -> str | None:
    """A stream with a window that slides by its own length; None where one slides already."""
    clause = source.window.clause if source.window is not None else None
    if source.name is None or (clause is not None and clause.slide is not None):
        return None
    size = clause.range if clause is not None and clause.kind == "RANGE" else "1 MINUTE"
    alias = f" {source.alias}" if source.alias else ""
    return f"{source.name} [RANGE {size} SLIDE {size}]{alias}"


def _one_equality(
    query: syntax.Select,
) -> tuple[syntax.FromEntry, syntax.Name, syntax.Name] | None:
    """The source, its column and the column around it, where WHERE is one equality between the two."""
    test = query.where
    if (
        len(query.sources) != 1
        or query.group_by
        or not isinstance(test, syntax.Apply)
        or test.function != "="
    ):
        return None
    own = _called(query)
    for inner, outer in (test.args, test.args[::-1]):
        if not isinstance(inner, syntax.Name) or not isinstance(outer, syntax.Name):
            return None
        qualified = len(inner.parts) > 1 and len(outer.parts) > 1
        if qualified and outer.parts[0].lower() not in own and inner.parts[0].lower() in own:
            return query.sources[0], inner, outer
    return None


def _reads_around(query: syntax.Select) -> bool:
    """Whether a condition names a source that is not the query's own."""
    own = _called(query)
    nodes = syntax.walk(query.where, into_queries=True) if query.where is not None else ()
    names = (node.parts for node in nodes if isinstance(node, syntax.Name))
    return any(len(parts) > 1 and parts[0].lower() not in own for parts in names)


def _called(query: syntax.Select) -> set[str]:
    return {(source.alias or source.name or "").lower() for source in query.sources}
