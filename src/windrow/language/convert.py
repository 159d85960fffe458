"""sqlglot's tree of a skeleton to our syntax tree of the query: the part about SELECTs and FROM.

A node of sqlglot may have dozens of optional parts. Each is converted by a function that lists the parts
it understands; any other part is refused, so nothing that was written is ever lost on the way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from sqlglot import exp

from windrow.algebra.plan import StreamWord
from windrow.errors import QueryError, Span
from windrow.language.converter import Converter
from windrow.language.operands import OPERANDS, REFUSED
from windrow.language.operators import OPERATORS, UNCLEAR
from windrow.language.places import enclosed, grown, hull, words
from windrow.language.syntax import Node, Query, Select, SelectItem, SetOperation, Source
from windrow.language.using import Using

if TYPE_CHECKING:
    from windrow.language.syntax import WindowSyntax

_SELECT_PARTS = frozenset(
    {"with_", "expressions", "distinct", "from_", "joins", "where", "group", "having", "order", "limit"}
)


_JOIN_WORDS = words("LEFT RIGHT FULL OUTER SEMI ANTI INNER")
_WITHOUT_ALL = {
    "UNION": "write UNION ALL; for rows without duplicates SELECT DISTINCT … FROM (… UNION ALL …)",
    "EXCEPT": "write EXCEPT ALL, or NOT EXISTS (SELECT …)",
}
_AFTER_ALL = ("UNION ALL and EXCEPT ALL take no clauses", "put them into a query around: SELECT … FROM (…)")
_SET_WORDS = words("UNION EXCEPT MINUS INTERSECT")


class QueryConverter(Converter):
    """Converts one statement."""

    expressions: ClassVar = OPERANDS | OPERATORS
    refused: ClassVar = REFUSED
    unclear: ClassVar = UNCLEAR

    def query(self, node: exp.Expr) -> Query:
        """A SELECT, or a set operation."""
        with self.deeper():
            if isinstance(node, exp.Subquery):
                return self._nested(node)
            if isinstance(node, exp.SetOperation):
                return self._set_operation(node)
            if isinstance(node, exp.Select):
                return self._select(node)
        hint = "write SELECT, UNION ALL or EXCEPT ALL"
        raise self.refusal(node, "this is not part of the language", hint)

    def _nested(self, node: exp.Subquery) -> Query:
        self.only(node, {"this", "with_"})
        with self.names_of(node):
            inner = self.query(node.this)
        return replace(inner, span=enclosed(inner.span, self.tokens))

    # WITH.

    @contextmanager
    def names_of(self, node: exp.Expr) -> Iterator[None]:
        """The names a WITH of this node gives, for as long as it is converted."""
        with self.ctes.scope():
            clause = node.args.get("with_")
            for cte in clause.expressions if clause is not None else ():
                self._define(cte)
            yield

    def _define(self, cte: exp.Expr) -> None:
        self.only(cte, {"this", "alias"})
        alias = cte.args["alias"]
        self.only(alias, {"this"}, "WITH does not rename columns", "rename them in the SELECT")
        copies = self.ctes.copies
        query = self.query(cte.this)
        self.ctes.define(self.name_of(alias.this).name, query, copies)

    # Set operations.

    def _set_operation(self, node: exp.SetOperation) -> Query:
        kind = type(node).__name__.upper()
        if node.args.get("distinct") or node.args.get("by_name") or kind not in _WITHOUT_ALL:
            raise self._refused_set_operation(node, kind)
        self.only(node, {"this", "expression", "with_", "distinct"}, *_AFTER_ALL)
        with self.names_of(node):
            left, right = self.query(node.this), self.query(node.expression)
        return SetOperation(left.span.to(right.span), kind, left, right)

    def _refused_set_operation(self, node: exp.SetOperation, kind: str) -> QueryError:
        at = self.tokens.at(self.place(node.this).end)
        while at < len(self.tokens) - 1 and self.tokens.word(at) not in _SET_WORDS:
            at += 1
        hint = _WITHOUT_ALL.get(kind, "write EXISTS (SELECT …) that compares the columns")
        message = f"{kind}{' without ALL' if kind in _WITHOUT_ALL else ''} is not part of the language"
        return QueryError(message, code="not-supported", span=self.tokens[at].span, hint=hint)

    # SELECT.

    def _select(self, node: exp.Select) -> Select:
        self.only(node, _SELECT_PARTS)
        outer, self.using = self.using, Using()
        try:
            with self.names_of(node):
                return self._select_parts(node)
        finally:
            self.using = outer

    def _select_parts(self, node: exp.Select) -> Select:
        sources, on = self._from(node)
        where = self._condition(node, "where")
        group_by = self._group_by(node.args.get("group"))
        having = self._condition(node, "having")
        items = tuple(self.item(part) for part in node.expressions)
        order_by, limit = self._order_by(node.args.get("order")), self._limit(node.args.get("limit"))
        self.using.refuse_star(items)
        nodes = [*items, *sources, *on, *group_by, *(expression for expression, _ in order_by)]
        span = hull(part.span for part in [*nodes, where, having, limit] if part is not None)
        select = self.tokens.before(items[0].span.start)
        while select > 0 and self.tokens.word(select) != "SELECT":
            select -= 1
        span = span.to(self.tokens[select].span)
        return Select(
            span,
            items=items,
            sources=self._stray_window(sources, span),
            word=self.lifted.words.get(self.tokens[select].start, StreamWord.AUTO),
            distinct=self._distinct(node),
            on=on,
            where=where,
            group_by=group_by,
            having=having,
            order_by=order_by,
            limit=limit,
        )

    def item(self, node: exp.Expr) -> SelectItem:
        """An expression of a select list, with its alias."""
        if not isinstance(node, exp.Alias):
            expression = self.convert(node)
            return SelectItem(expression.span, expression, None)
        self.only(node, {"this", "alias"})
        expression = self.convert(node.this)
        alias = self.name_of(node.args["alias"])
        return SelectItem(expression.span.to(alias.span), expression, alias.name)

    def _distinct(self, node: exp.Select) -> bool:
        distinct = node.args.get("distinct")
        if distinct is None:
            return False
        self.only(distinct, ())
        return True

    def _condition(self, node: exp.Select, part: str) -> Node | None:
        clause = node.args.get(part)
        return self.convert(clause.this) if clause is not None else None

    def _group_by(self, node: exp.Expr | None) -> tuple[Node, ...]:
        if node is None:
            return ()
        if node.args.get("all"):
            raise self.refusal(node, "GROUP BY ALL is not part of the language", "list the columns")
        self.only(node, {"expressions"})
        parts = node.expressions
        if len(parts) == 1 and isinstance(parts[0], exp.Tuple):
            parts = parts[0].expressions
        return tuple(self.convert(part) for part in parts)

    def _order_by(self, node: exp.Expr | None) -> tuple[tuple[Node, bool], ...]:
        if node is None:
            return ()
        self.only(node, {"expressions"})
        return tuple(self._ordered(part) for part in node.expressions)

    def _ordered(self, node: exp.Expr) -> tuple[Node, bool]:
        self.only(node, {"this", "desc", "nulls_first"})
        expression, descending = self.convert(node.this), bool(node.args.get("desc"))
        if bool(node.args.get("nulls_first")) == descending:
            span = grown(expression.span, self.tokens, right=("ASC", "DESC", "NULLS", "FIRST", "LAST"))
            hint = "NULL comes first, and last with DESC; order by x IS NULL before x to change that"
            raise QueryError("the place of NULL cannot be chosen", code="not-supported", span=span, hint=hint)
        return expression, descending

    def _limit(self, node: exp.Expr | None) -> Node | None:
        if node is None:
            return None
        self.only(node, {"expression"})
        return self.convert(node.args["expression"])

    # FROM.

    def _from(self, node: exp.Select) -> tuple[tuple[Source, ...], tuple[Node, ...]]:
        begin = node.args.get("from_")
        if begin is None:
            return (), ()
        self.only(begin, {"this"})
        sources, on = [self._source(begin.this)], []
        for join in [*self._joins_of(begin.this), *node.args.get("joins", ())]:
            self._refuse_outer(join)
            self.only(join, {"this", "kind", "on", "using"})
            sources.append(self._source(join.this))
            on += [self.convert(join.args["on"])] if join.args.get("on") is not None else []
            on += self._using(join, sources)
            for inner in self._joins_of(join.this):
                hint = "write each ON directly after its JOIN"
                raise self.refusal(inner, "this join is nested in another", hint)
        return tuple(sources), tuple(on)

    def _joins_of(self, node: exp.Expr) -> Iterable[exp.Expr]:
        return node.args.get("joins") or ()

    def _using(self, join: exp.Expr, sources: list[Source]) -> list[Node]:
        columns = [self.name_of(column) for column in join.args.get("using") or ()]
        return [self.using.condition(column.name, column.span, sources) for column in columns]

    def _refuse_outer(self, join: exp.Expr) -> None:
        side, kind = join.args.get("side") or "", join.args.get("kind") or ""
        if kind in ("SEMI", "ANTI"):
            hint = f"write WHERE {'NOT ' if kind == 'ANTI' else ''}EXISTS (SELECT …)"
            raise self._join_refusal(join, f"{kind} JOIN is not part of the language", hint)
        if side or kind == "OUTER":
            name = f"{side} OUTER JOIN".strip()
            hint = "use JOIN, and UNION ALL with NOT EXISTS (SELECT …) for the rows without a partner"
            raise self._join_refusal(join, f"a {name} of windows is not defined here", hint)

    def _join_refusal(self, join: exp.Expr, message: str, hint: str) -> QueryError:
        """A refusal that points at the words of the join."""
        index = self.tokens.before(self.place(join.this).start)
        while index > 0 and self.tokens.word(index) == "(":
            index -= 1
        span = grown(self.tokens[index].span, self.tokens, left=_JOIN_WORDS)
        return QueryError(message, code="not-supported", span=span, hint=hint)

    def _source(self, node: exp.Expr) -> Source:
        if isinstance(node, exp.Subquery):
            return self._nested_source(node)
        if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
            raise self.refusal(node, "this is not a stream", "FROM takes names and nested queries")
        self.only(node, {"this", "alias", "joins"}, "names of streams have one part", "leave out the rest")
        name = self.name_of(node.this)
        alias, alias_span = self._alias(node)
        span = name.span.to(alias_span or name.span)
        window = self._window(name.start, node)
        query = self.ctes.use(name.name, name.span)
        if query is not None:
            alias = alias or name.name
        return self._finished(Source(span, None if query else name.name, query, alias, window))

    def _nested_source(self, node: exp.Subquery) -> Source:
        self.only(node, {"this", "alias", "joins"})
        if isinstance(node.this, exp.Table):
            hint = "remove them, or write (SELECT …)"
            raise self.refusal(node, "parentheses in FROM are for nested queries", hint)
        query = self.query(node.this)
        query = replace(query, span=enclosed(query.span, self.tokens))
        close = self.tokens[self.tokens.before(query.span.end)]
        alias, alias_span = self._alias(node)
        window = self._window(close.start, node)
        return self._finished(Source(query.span.to(alias_span or query.span), None, query, alias, window))

    def _finished(self, source: Source) -> Source:
        return replace(source, span=source.span.to(source.window.span)) if source.window else source

    def _alias(self, node: exp.Expr) -> tuple[str | None, Span | None]:
        alias = node.args.get("alias")
        if alias is None:
            return None, None
        self.only(alias, {"this"}, "columns are not renamed in FROM", "rename them in a nested SELECT")
        token = self.name_of(alias.this)
        return token.name, token.span

    def _window(self, after: int, node: exp.Expr) -> WindowSyntax | None:
        """The window directly after a name (or parenthesis), or after its alias."""
        window = self.lifted.windows.pop(after, None)
        alias = node.args.get("alias")
        if alias is None:
            return window
        behind = self.lifted.windows.pop(self.token_of(alias.this).start, None)
        if window is not None and behind is not None:
            hint = "leave one out"
            raise QueryError("two windows on one stream", code="window-place", span=behind.span, hint=hint)
        return window or behind

    def _stray_window(self, sources: tuple[Source, ...], span: Span) -> tuple[Source, ...]:
        """`FROM bids GROUP BY item [RANGE …]`: a window at the end of GROUP BY is that of the only source."""
        for start in [start for start in self.lifted.windows if span.start <= start < span.end]:
            if len(sources) == 1 and sources[0].window is None and self._in_group_by(start, span):
                sources = (replace(sources[0], window=self.lifted.windows.pop(start)),)
        return sources

    def _in_group_by(self, start: int, span: Span) -> bool:
        index = self.tokens.at(start)
        while index > 0 and self.tokens[index].start > span.start:
            word = self.tokens.word(index)
            if word in ("BY", "FROM", "WHERE", "HAVING", "LIMIT", "("):
                return word == "BY" and self.tokens.word(index - 1) == "GROUP"
            index = self.tokens.partner[index] - 1 if word == ")" else index - 1
        return False
