"""sqlglot's tree of a skeleton to our syntax tree of the query: the part about SELECTs and sets of them.

A node of sqlglot may have dozens of optional parts. Each is converted by a function that lists the parts
it understands; any other part is refused, so nothing that was written is ever lost on the way.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import ClassVar

from sqlglot import exp

from windrow.algebra.plan import StreamWord
from windrow.errors import QueryError, Span
from windrow.language.depth import MAX_DEPTH, too_deep
from windrow.language.operands import OPERANDS, REFUSED
from windrow.language.operators import OPERATORS, UNCLEAR
from windrow.language.places import enclosed, grown, hull, words
from windrow.language.sources import SourceConverter
from windrow.language.syntax import Node, Query, Select, SelectItem, SetOperation
from windrow.language.using import Using
from windrow.language.window_keys import with_window_key

_SELECT_PARTS = frozenset(
    {
        "with_",
        "expressions",
        "distinct",
        "from_",
        "joins",
        "where",
        "group",
        "having",
        "qualify",
        "order",
        "limit",
    }
)
_ORDER_WORDS = words("ASC DESC NULLS FIRST LAST")
_AFTER_SET = (
    "UNION, EXCEPT and INTERSECT take no ORDER BY and LIMIT",
    "write SELECT * FROM (… UNION ALL …) ORDER BY … LIMIT n; of one side, put it into parentheses",
)
_AFTER_PARENTHESES = (
    "a query in parentheses takes no ORDER BY and LIMIT",
    "write it inside the parentheses, or SELECT * FROM (…) ORDER BY … LIMIT n",
)
_SET_WORDS = words("UNION EXCEPT MINUS INTERSECT")


class QueryConverter(SourceConverter):
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
        hint = "write SELECT, UNION, INTERSECT or EXCEPT"
        raise self.refusal(node, "this is not part of the language", hint)

    def _nested(self, node: exp.Subquery) -> Query:
        trailing = any(node.args.get(part) for part in ("order", "limit"))
        self.only(node, {"this", "with_"}, *(_AFTER_PARENTHESES if trailing else ()))
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
        if node.args.get("by_name"):
            raise self._refused_set_operation(
                node, f"{kind} BY NAME is not part of the language", "select the columns in the same order"
            )
        self.only(node, {"this", "expression", "with_", "distinct"}, *_AFTER_SET)
        if _sides(node) > MAX_DEPTH:
            raise too_deep(self.tokens.span)
        with self.names_of(node):
            left, right = self.query(node.this), self.query(node.expression)
        distinct = bool(node.args.get("distinct"))
        return SetOperation(left.span.to(right.span), kind, left, right, distinct)

    def _refused_set_operation(self, node: exp.SetOperation, message: str, hint: str) -> QueryError:
        at = self.tokens.at(self.place(node.this).end)
        while at < len(self.tokens) - 1 and self.tokens.word(at) not in _SET_WORDS:
            at += 1
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
        sources, on = self.from_clause(node)
        where = self._condition(node, "where")
        group_by = self._group_by(node.args.get("group"))
        having, qualify = self._condition(node, "having"), self._condition(node, "qualify")
        items = tuple(self.item(part) for part in node.expressions)
        order_by, limit = self._order_by(node.args.get("order")), self._limit(node.args.get("limit"))
        self.using.refuse_star(items)
        nodes = [*items, *sources, *on, *group_by, *(expression for expression, _ in order_by)]
        span = hull(part.span for part in [*nodes, where, having, qualify, limit] if part is not None)
        select = self.tokens.before(items[0].span.start)
        while select > 0 and self.tokens.word(select) != "SELECT":
            select -= 1
        span = self._to_the_end(span.to(self.tokens[select].span))
        select_parts = Select(
            span,
            items=items,
            sources=self.with_stray_window(sources, span),
            word=self.lifted.words.get(self.tokens[select].start, StreamWord.AUTO),
            distinct=self._distinct(node),
            on=on,
            where=where,
            group_by=group_by,
            having=having,
            qualify=qualify,
            order_by=order_by,
            limit=limit,
        )
        return with_window_key(select_parts)

    def _to_the_end(self, span: Span) -> Span:
        """A SELECT reaches to the end of its parenthesis, or to the next set operation."""
        index = self.tokens.at(span.end)
        while index < len(self.tokens) and self.tokens.word(index) not in _SET_WORDS | {")"}:
            index = self.tokens.partner[index] + 1 if self.tokens.word(index) == "(" else index + 1
        return Span(span.start, max(span.end, self.tokens[index - 1].end))

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
        return tuple(self.ordered(part) for part in node.expressions)

    def ordered(self, node: exp.Expr) -> tuple[Node, bool]:
        """A key of ORDER BY, and whether it is descending."""
        self.only(node, {"this", "desc", "nulls_first"})
        expression, descending = self.convert(node.this), bool(node.args.get("desc"))
        if bool(node.args.get("nulls_first")) == descending:
            span = grown(expression.span, self.tokens, right=[_ORDER_WORDS] * 3)
            hint = "NULL comes first, and last with DESC; order by x IS NULL before x to change that"
            raise QueryError("the place of NULL cannot be chosen", code="not-supported", span=span, hint=hint)
        return expression, descending

    def _limit(self, node: exp.Expr | None) -> Node | None:
        if node is None:
            return None
        self.only(node, {"expression"})
        return self.convert(node.args["expression"])


def _sides(node: exp.Expr) -> int:
    """How many queries are joined to one another from left to right."""
    count = 1
    while isinstance(node, exp.SetOperation):
        count, node = count + 1, node.this
    return count
