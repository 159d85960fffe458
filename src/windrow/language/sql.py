"""SQL: from tokens to a syntax tree, through sqlglot; the one place that calls it.

Whatever goes wrong inside, only a `QueryError` comes out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from difflib import get_close_matches
from typing import ClassVar

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from windrow.algebra.plan import StreamWord
from windrow.errors import Span, nearest
from windrow.language import literals, reductions, shape, sources, syntax, vocabulary, window_functions
from windrow.language.converter import OPERATORS, Converter, NamedWindow, Using
from windrow.language.lift import Lifted, lift, refuse_before_select
from windrow.language.tokens import Token, TokenKind, Tokens, mistake, refuse

# ------------------------------------------------------------ conversion
#
# A node of sqlglot may have dozens of optional parts. Each is converted by a function that lists the parts
# it understands; any other part is refused, so nothing that was written is ever lost on the way.
# Functions come as calls by name, because the skeleton hides their names from sqlglot.


#: Spark's `ltrim(characters, text)`; the registry has the text first, and so has `btrim`
_CHARACTERS_FIRST = frozenset({"trim", "ltrim", "rtrim"})
_OVER = "write SUM(x) OVER (PARTITION BY k ORDER BY ts ROWS 9 PRECEDING), or ROW_NUMBER() OVER (ORDER BY …)"
#: names that others have for a call of ours: the function, what is added, whether DISTINCT
_ALSO_CALLED = {
    "collect_set": ("array_agg", 1, True),
    "any": ("bool_or", 1, False),
    "std": ("stddev", 1, False),
    "group_concat": ("listagg", 2, False),
    "approx_percentile": ("approx_quantile", 2, False),
    "percentile_approx": ("approx_quantile", 2, False),
}


def _column(self: Converter, node: exp.Expr) -> syntax.Node:
    self.only(node, {"this", "table", "db", "catalog"})
    parts = [node.args[part] for part in ("catalog", "db", "table", "this") if node.args.get(part)]
    star = isinstance(parts[-1], exp.Star)
    if star:
        if len(parts) > 2:
            raise self.refusal(node, "this name has too many parts", "write stream.*")
        name = self.name_of(parts[0])
        span = name.span.to(self.token_of(parts[1]).span)
        return replace(_star(self, parts[1]), span=span, qualifier=name.name)
    tokens = [self.token_of(part) for part in parts]
    start = tokens[0].start
    if start in self.lifted.wstreams:
        return _wstream(self, tokens[0])
    if start in self.lifted.atoms:
        return self.lifted.atoms[start]
    span = syntax.hull(tokens)
    return self.using.resolve(syntax.Name(span, tuple(token.name for token in tokens)))


def _star(self: Converter, node: exp.Expr) -> syntax.Star:
    self.only(node, {"except_", "replace"})
    without = self.all(node.args.get("except_") or ())
    instead = [
        syntax.SelectItem(self.place(part), self.convert(part.this), self.name_of(part.args["alias"]).name)
        for part in node.args.get("replace") or ()
    ]
    names = tuple(part for part in without if isinstance(part, syntax.Name))
    return syntax.Star(self.token_of(node).span, None, names, tuple(instead))


def _wstream(self: Converter, word: Token) -> syntax.Node:
    inside = self.lifted.wstreams[word.start]
    close = self.tokens[self.tokens.at(inside.span.end)]
    window = self.lifted.windows.pop(close.start)
    return syntax.WStream(word.span.to(window.span), self.items(inside), window)


def _literal(self: Converter, node: exp.Expr) -> syntax.Node:
    token = self.token_of(node)
    if token.start in self.lifted.atoms:
        return self.lifted.atoms[token.start]
    if token.kind is TokenKind.STRING:
        return syntax.Constant(token.span, token.value, "STRING")
    return literals.number(token)


def _paren(self: Converter, node: exp.Expr) -> syntax.Node:
    inner = self.convert(node.this)
    span = syntax.enclosed(inner.span, self.tokens)
    if span == inner.span:
        raise self.unclear_order(node)  # a parenthesis that sqlglot made up
    return replace(inner, span=span)


def _call(self: Converter, node: exp.Expr) -> syntax.Node:
    self.only(node, {"this", "expressions"})
    word = self.token_of(node)
    open_at = self.tokens.at(word.end)
    if not word.is_name or self.tokens.word(open_at) != "(":
        raise self.refusal(node, "this is not the name of a function")
    span = word.span.to(self.tokens[self.tokens.partner[open_at]].span)
    parts = node.expressions
    if word.start in self.lifted.types:
        return _cast(self, node, word, span)
    distinct = len(parts) == 1 and isinstance(parts[0], exp.Distinct)
    if distinct:
        self.only(parts[0], {"expressions"})
        parts = parts[0].expressions
    name = self.lifted.functions.get(word.start) or word.name.lower()
    order: syntax.Keys = ()
    if parts and isinstance(parts[-1], exp.Order):
        order = self.ordered(parts[-1])
        parts = [*parts[:-1], parts[-1].this]
    if name == "struct":
        return _struct(self, parts, span)
    if len(parts) == 1 and isinstance(parts[0], exp.Query) and get_close_matches(word.word, ["EXISTS"]):
        hint = "did you mean `EXISTS`?"
        refuse(word, f"no function `{word.name}`", "unknown-function", hint)
    args = self.all(parts)
    if name in ("floor_to", "ceil_to"):
        return reductions.rounded(span, name, args)
    if name in _BY_UNITS and len(args) == 3 and args[0].span.start in self.lifted.atoms:
        return reductions.moved_by_units(span, _BY_UNITS[name], args)
    if name in _CHARACTERS_FIRST and len(args) == 2:
        args = args[::-1]
    if name == "count_if" and len(args) == 1 and not distinct:
        return syntax.Apply(span, "count", (syntax.Star(span),), where=args[0])
    if name in _ALSO_CALLED and len(args) <= _ALSO_CALLED[name][1]:
        name, _, once = _ALSO_CALLED[name]
        distinct = distinct or once
    return syntax.Apply(span, name, args, distinct=distinct, order=order)


_BY_UNITS = {
    **dict.fromkeys(("timestampdiff", "datediff", "date_diff"), "timestampdiff"),
    **dict.fromkeys(("timestampadd", "dateadd"), "timestampadd"),
}


def _struct(self: Converter, parts: list[exp.Expr], span: Span) -> syntax.Node:
    """`STRUCT(x AS a, b)` is `named_struct('a', x, 'b', b)`."""
    args: list[syntax.Node] = []
    for number_of, part in enumerate(parts, 1):
        item = self.item(part)
        named = item.expression.parts[-1] if isinstance(item.expression, syntax.Name) else f"col{number_of}"
        args += [syntax.Constant(item.span, item.alias or named, "STRING"), item.expression]
    return syntax.Apply(span, "named_struct", tuple(args))


def _within_group(self: Converter, node: exp.Expr) -> syntax.Node:
    self.only(node, {"this", "expression"})
    call = self.convert(node.this)
    if not isinstance(call, syntax.Apply):
        raise self.refusal(node, "WITHIN GROUP follows an aggregate")
    order = self.ordered(node.args["expression"])
    span = syntax.grown(call.span.to(order[-1][0].span), self.tokens, right=[_ORDER_WORDS | {")"}] * 2)
    return reductions.within_group(replace(call, span=span), order)


def _cast(self: Converter, node: exp.Expr, word: Token, span: Span) -> syntax.Node:
    """CAST and TRY_CAST; the type is the second argument in the skeleton."""
    if len(node.expressions) != 2:
        raise self.refusal(node, f"{word.word} takes one value", f"write {word.word}(x AS BIGINT)")
    type_span = self.lifted.types[word.start]
    type_text = self.tokens.text[type_span.start : type_span.end]
    return syntax.CastTo(span, self.convert(node.expressions[0]), type_text, safe=word.word != "CAST")


def _postfix_cast(self: Converter, node: exp.Expr) -> syntax.Node:
    operand = self.convert(node.this)
    sign = self.tokens.at(operand.span.end)
    while self.tokens.word(sign) == ")":
        sign += 1
    type_span = self.lifted.types[self.tokens[sign].start]
    return syntax.CastTo(
        operand.span.to(type_span), operand, self.tokens.text[type_span.start : type_span.end]
    )


def _filter(self: Converter, node: exp.Expr) -> syntax.Node:
    self.only(node, {"this", "expression"})
    call, where = self.convert(node.this), self.convert(node.args["expression"].this)
    if not isinstance(call, syntax.Apply):
        raise self.refusal(node, "FILTER follows an aggregate", "write SUM(x) FILTER (WHERE …)")
    span = syntax.grown(call.span.to(where.span), self.tokens, right=[")"])
    if call.where is not None:
        where = syntax.Apply(where.span, "and", (call.where, where))
    return replace(call, span=span, where=where)


def _exists(self: Converter, node: exp.Expr) -> syntax.Node:
    self.only(node, {"this"}, "EXISTS takes a query", "write EXISTS (SELECT …)")
    query = self.query(node.this)
    span = syntax.grown(syntax.enclosed(query.span, self.tokens), self.tokens, left=[{"EXISTS"}])
    return syntax.ExistsTest(span, query, negated=False)


def _scalar(self: Converter, node: exp.Expr) -> syntax.Node:
    self.only(node, {"this"}, "a query that is a value has no alias of its own", "put the alias outside")
    query = self.query(node.this)
    return syntax.ScalarQuery(syntax.enclosed(query.span, self.tokens), query)


def _over(self: Converter, node: exp.Expr) -> syntax.Node:
    self.only(node, {"this", "partition_by", "order", "over", "alias"}, "this does not stand in OVER", _OVER)
    call = self.convert(node.this)
    if not isinstance(call, syntax.Apply):
        raise self.refusal(node, "OVER follows a call", _OVER)
    behind = self.tokens.at(call.span.end)
    while self.tokens.word(behind) != "OVER":
        behind += 1
    behind += 1
    inside = self.tokens[behind].start
    close = self.tokens.partner[behind] if self.tokens.word(behind) == "(" else behind
    span = call.span.to(self.tokens[close].span)
    window = _named_window(self, node)
    partition = self.all(node.args.get("partition_by") or ()) or window.partition
    order = self.ordered(node.args.get("order")) or window.order
    frame = self.lifted.frames.get(inside) or window.frame
    return syntax.OverCall(span, call, partition, order, frame, inside in self.lifted.ignoring)


def _named_window(self: Converter, node: exp.Expr) -> NamedWindow:
    """What the name in an OVER stands for."""
    alias = node.args.get("alias")
    if alias is None:
        return NamedWindow()
    name = self.name_of(alias)
    found = self.named_windows.get(name.name.lower())
    if found is None:
        known = nearest(name.name, list(self.named_windows)) if self.named_windows else None
        hint = known or f"write … FROM … WINDOW {name.text} AS (PARTITION BY … ORDER BY …)"
        refuse(name, f"no window is called `{name.name}`", "bad-over", hint)
    return found


def _bracket(self: Converter, node: exp.Expr) -> syntax.Node:
    """`x[0]` and `x['k']`."""
    whole, (index,) = self.convert(node.this), node.expressions
    place = self.convert(index)
    close = self.tokens.at(place.span.end)
    return syntax.Apply(whole.span.to(self.tokens[close].span), "element", (whole, place))


def _dot(self: Converter, node: exp.Expr) -> syntax.Node:
    """`f(x).a`: a field of a value that is no column."""
    whole, token = self.convert(node.this), self.name_of(node.expression)
    name = syntax.Constant(token.span, token.name, "STRING")
    return syntax.Apply(whole.span.to(token.span), "get_field", (whole, name))


OPERANDS: dict[type[exp.Expr], Callable[[Converter, exp.Expr], syntax.Node]] = {
    exp.Column: _column,
    exp.Star: _star,
    exp.Literal: _literal,
    exp.Paren: _paren,
    exp.Anonymous: _call,
    exp.Cast: _postfix_cast,
    exp.TryCast: _postfix_cast,
    exp.Filter: _filter,
    exp.Exists: _exists,
    exp.Subquery: _scalar,
    exp.Window: _over,
    exp.WithinGroup: _within_group,
    exp.Bracket: _bracket,
    exp.Dot: _dot,
}
_SUBQUERY = ("a query stands in parentheses", "write (SELECT …)")
REFUSED: dict[type[exp.Expr], tuple[str, str | None]] = {
    exp.Select: _SUBQUERY,
    exp.Union: _SUBQUERY,
    exp.Except: _SUBQUERY,
    exp.Tuple: ("a list of values is not a value", "compare the values one by one, joined by AND"),
    exp.Distinct: ("DISTINCT does not stand here", "write COUNT(DISTINCT x) or SELECT DISTINCT"),
    exp.Alias: ("an alias does not stand here", "aliases stand in the select list and in FROM"),
}


_SELECT_PARTS = syntax.words(
    "with_ expressions distinct from_ joins where group having qualify order limit windows"
)
_ORDER_WORDS = syntax.words("ASC DESC NULLS FIRST LAST")
_SET_WORDS = syntax.words("UNION EXCEPT MINUS INTERSECT")


class QueryConverter(sources.SourceConverter):
    """Converts one statement."""

    expressions: ClassVar = OPERANDS | OPERATORS
    refused: ClassVar = REFUSED

    def query(self, node: exp.Expr) -> syntax.QueryExpression:
        with self.deeper():
            if isinstance(node, exp.Subquery):
                return self._nested(node)
            if isinstance(node, exp.SetOperation):
                return self._set_operation(node)
            if isinstance(node, exp.Select):
                return self._select(node)
        hint = "write SELECT, UNION, INTERSECT or EXCEPT"
        raise self.refusal(node, "this is not part of the language", hint)

    def _nested(self, node: exp.Subquery) -> syntax.QueryExpression:
        self.only(node, {"this", "with_", "order", "limit"})
        with self.names_of(node):
            inner = self.query(node.this)
        return self._trailed(node, replace(inner, span=syntax.enclosed(inner.span, self.tokens)))

    def _trailed(self, node: exp.Expr, query: syntax.QueryExpression) -> syntax.QueryExpression:
        """A whole query with the ORDER BY and LIMIT behind it."""
        order, limit = self.ordered(node.args.get("order")), self._limit(node.args.get("limit"))
        return reductions.around(query, order, limit) if order or limit is not None else query

    # WITH.

    @contextmanager
    def names_of(self, node: exp.Expr) -> Iterator[None]:
        """The names a WITH of this node gives, for as long as it is converted."""
        with self.ctes.scope():
            clause = node.args.get("with_")
            for cte in clause.expressions if clause is not None else ():
                self.only(cte, {"this", "alias"})
                alias, copies = cte.args["alias"], self.ctes.copies
                query = self.renamed(self.query(cte.this), alias)
                self.ctes.define(self.name_of(alias.this).name, query, copies)
            yield

    # Set operations.

    def _set_operation(self, node: exp.SetOperation) -> syntax.QueryExpression:
        kind = type(node).__name__.upper()
        if node.args.get("by_name"):
            words = range(self.tokens.at(self.place(node.this).end), len(self.tokens) - 1)
            sign = next((at for at in words if self.tokens.word(at) in _SET_WORDS), len(self.tokens) - 1)
            message = f"{kind} BY NAME is not part of the language"
            refuse(self.tokens[sign], message, "not-supported", "select the columns in the same order")
        self.only(node, {"this", "expression", "with_", "distinct", "order", "limit"})
        sides, left_most = 2, node.this
        while isinstance(left_most, exp.SetOperation):
            sides, left_most = sides + 1, left_most.this
        if sides > shape.MAX_DEPTH:
            raise shape.too_deep(self.tokens.span)
        with self.names_of(node):
            left, right = self.query(node.this), self.query(node.expression)
        distinct = bool(node.args.get("distinct"))
        return self._trailed(node, syntax.SetOperation(left.span.to(right.span), kind, left, right, distinct))

    # SELECT.

    def _select(self, node: exp.Select) -> syntax.QueryExpression:
        self.only(node, _SELECT_PARTS)
        outside = self.using, self.unnests, self.semi, self.named_windows
        self.using, self.unnests, self.semi, self.named_windows = Using(), [], [], {}
        try:
            with self.names_of(node):
                return self._select_parts(node)
        finally:
            self.using, self.unnests, self.semi, self.named_windows = outside

    def _select_parts(self, node: exp.Select) -> syntax.QueryExpression:
        sources, on = self.from_clause(node)
        self._name_windows(node.args.get("windows") or ())
        where = self._condition(node, "where")
        items = tuple(self._unnested(self.item(part)) for part in node.expressions)
        sets = self._grouping_sets(node.args.get("group"), items)
        having, qualify = self._condition(node, "having"), self._condition(node, "qualify")
        order_by, limit = self.ordered(node.args.get("order")), self._limit(node.args.get("limit"))
        group_by = sets[0] if len(sets) == 1 else ()
        self.using.refuse_star(items)
        keys = [key for each in sets for key in each]
        nodes = [*items, *sources, *on, *keys, *(expression for expression, _ in order_by)]
        span = syntax.hull(part for part in [*nodes, where, having, qualify, limit] if part is not None)
        select = self.tokens.before(items[0].span.start)
        while select > 0 and self.tokens.word(select) != "SELECT":
            select -= 1
        span = self._to_the_end(span.to(self.tokens[select].span))
        # the LATERAL VIEWs of nested SELECTs are taken already
        views = sorted(start for start in self.lifted.laterals if span.start <= start < span.end)
        laterals = [self.lifted.laterals.pop(start) for start in views]
        select_parts = syntax.Select(
            span,
            items=items,
            sources=self.with_stray_window(sources, span),
            word=self.lifted.words.get(self.tokens[select].start, StreamWord.AUTO),
            distinct=node.args.get("distinct") is not None,
            unnests=(*laterals, *self.unnests),
            on=on,
            where=where,
            group_by=group_by,
            having=having,
            qualify=qualify,
            order_by=order_by,
            limit=limit,
        )
        first_of: tuple[syntax.Node, ...] = ()
        if (distinct := node.args.get("distinct")) is not None:
            self.only(distinct, {"on"})
            first_of = self._several(distinct.args.get("on"))
        select_parts = reductions.matched(window_functions.with_window_key(select_parts), self.semi)
        if first_of:
            select_parts = reductions.first_of_each(select_parts, first_of)
        return select_parts if len(sets) == 1 else reductions.with_grouping_sets(select_parts, sets)

    def _name_windows(self, nodes: Collection[exp.Expr]) -> None:
        """WINDOW w AS (…): what the names in OVER stand for."""
        for node in nodes:
            self.only(node, {"this", "partition_by", "order"}, "this does not stand in WINDOW", _OVER)
            name = self.name_of(node.this)
            inside = self.tokens[self.tokens.at(name.end) + 1].start
            partition = self.all(node.args.get("partition_by") or ())
            order, frame = self.ordered(node.args.get("order")), self.lifted.frames.get(inside)
            self.named_windows[name.name.lower()] = NamedWindow(partition, order, frame)

    def _unnested(self, item: syntax.SelectItem) -> syntax.SelectItem:
        """explode(x) in a select list is a column of what it unnests."""
        call = item.expression
        if not isinstance(call, syntax.Apply) or call.function.upper() not in ("EXPLODE", "UNNEST"):
            return item
        if len(call.args) != 1:
            hint = f"write {call.function}(x)"
            refuse(call, f"{call.function} takes an array", "wrong-arity", hint)
        name = item.alias or ("col" if call.function.upper() == "EXPLODE" else "unnest")
        self.unnests.append(syntax.Unnesting(call.span, "EXPLODE", call.args[0], None, (name,)))
        return replace(item, expression=syntax.Name(call.span, (name,)))

    def _to_the_end(self, span: Span) -> Span:
        """A SELECT reaches to the end of its parenthesis, or to the next set operation."""
        behind = self.tokens.outside(self.tokens.at(span.end))
        ends = (index for index in behind if self.tokens.word(index) in _SET_WORDS | {")"})
        last = next(ends, len(self.tokens)) - 1
        return Span(span.start, max(span.end, self.tokens[last].end))

    def item(self, node: exp.Expr) -> syntax.SelectItem:
        """An expression of a select list, with its alias."""
        if not isinstance(node, exp.Alias):
            expression = self.convert(node)
            return syntax.SelectItem(expression.span, expression, None)
        self.only(node, {"this", "alias"})
        expression = self.convert(node.this)
        alias = self.name_of(node.args["alias"])
        return syntax.SelectItem(expression.span.to(alias.span), expression, alias.name)

    def _several(self, node: exp.Expr | None) -> tuple[syntax.Node, ...]:
        """The expressions of a parenthesis, or the one that stands alone."""
        if node is None:
            return ()
        if isinstance(node, exp.Tuple):
            return self.all(node.expressions)
        return (self.convert(node.this if isinstance(node, exp.Paren) else node),)

    def _condition(self, node: exp.Select, part: str) -> syntax.Node | None:
        clause = node.args.get(part)
        return self.convert(clause.this) if clause is not None else None

    def _grouping_sets(
        self, node: exp.Expr | None, items: tuple[syntax.SelectItem, ...]
    ) -> reductions.GroupingSets:
        """What is grouped by: one list of keys, unless GROUPING SETS, ROLLUP or CUBE ask for several."""
        if node is None:
            return [()]
        if node.args.get("all"):
            return [reductions.grouped_by_all(items)]
        self.only(node, {"expressions", "rollup", "cube"})
        parts = [self._sets(part) for part in node.expressions]
        for word, make in (("rollup", reductions.rolled_up), ("cube", reductions.cubed)):
            if node.args.get(word):  # WITH ROLLUP
                return make([each for part in parts for each in part])
        return reductions.combined(parts)

    def _sets(self, node: exp.Expr) -> reductions.GroupingSets:
        """The grouping sets of a part of GROUP BY."""
        if isinstance(node, exp.Rollup | exp.Cube):
            parts = [self._several(part) for part in node.expressions]
            return reductions.rolled_up(parts) if isinstance(node, exp.Rollup) else reductions.cubed(parts)
        if isinstance(node, exp.GroupingSets):
            return [each for part in node.expressions for each in self._sets(part)]
        return [self._several(node)]

    def ordered(self, node: exp.Expr | None) -> syntax.Keys:
        """The keys of an ORDER BY, and whether each is descending."""
        if node is None:
            return ()
        self.only(node, {"this", "expressions"})
        return tuple(key for part in node.expressions for key in self._keys(part))

    def _keys(self, node: exp.Expr) -> syntax.Keys:
        """A key; where NULL is to stand on the other side, whether it is NULL comes before it."""
        self.only(node, {"this", "desc", "nulls_first"})
        expression, descending = self.convert(node.this), bool(node.args.get("desc"))
        if bool(node.args.get("nulls_first")) != descending:
            return ((expression, descending),)
        return (syntax.Apply(expression.span, "is_null", (expression,)), descending), (expression, descending)

    def _limit(self, node: exp.Expr | None) -> syntax.Node | None:
        if node is None:
            return None
        self.only(node, {"expression"})
        return self.convert(node.args["expression"])

    def items(self, tokens: Tokens) -> tuple[syntax.SelectItem, ...]:
        """A select list by itself, as inside a WSTREAM: sqlglot is called again."""
        begin = self.tokens.at(tokens[0].start)
        shape.check_shape(tokens, self.lifted.ignored_between(begin, begin + len(tokens)))
        base = tokens[0].start - len(_PREFIX)
        tree = _parsed(_PREFIX + self.lifted.skeleton(begin, begin + len(tokens)), base, tokens)
        if not isinstance(tree, exp.Select):
            raise shape.unexpected(tokens, tokens[0].start)
        part = copy(self)
        part.base = base
        part.only(tree, {"expressions"})
        return tuple(part.item(item) for item in tree.expressions)


# ------------------------------------------------------------ reading


_PREFIX = "SELECT "


def read_query(tokens: Tokens) -> syntax.QueryExpression:
    """A SELECT or set operation, from all of the tokens."""
    shape.check_nesting(tokens)
    if not len(tokens):
        refuse(tokens, "there is no query here", "syntax", "write SELECT …")
    if tokens.word(0) not in ("SELECT", "WITH", "("):
        refuse_before_select(tokens)
        vocabulary.refuse_foreign(tokens)
        raise shape.unexpected(tokens.cut(0, 1), tokens[0].start)
    lifted = lift(tokens, read_expression)
    shape.check_shape(lifted.tokens, lifted.ignored)
    base = lifted.tokens[0].start
    with _only_query_errors(tokens):
        query = QueryConverter(lifted, base).query(_parsed(lifted.skeleton(), base, lifted.tokens))
    _refuse_unused(lifted)
    shape.check_depth(query)
    return replace(query, emits=lifted.emits) if lifted.emits else query  # type: ignore[call-arg]


def read_expression(tokens: Tokens) -> syntax.Node:
    """One expression, from all of the tokens."""
    shape.check_nesting(tokens)
    if not len(tokens):
        refuse(tokens, "there is no expression here", "syntax", "write one")
    lifted = lift(tokens, read_expression)
    with _only_query_errors(tokens):
        items = QueryConverter(lifted, 0).items(lifted.tokens)
    _refuse_unused(lifted)
    if len(items) != 1 or items[0].alias is not None:
        refuse(tokens, "one expression is expected here", "syntax", "remove the rest")
    shape.check_depth(items[0].expression)
    return items[0].expression


@contextmanager
def _only_query_errors(tokens: Tokens) -> Iterator[None]:
    """A tree that sqlglot makes and nobody has seen before must not end in a traceback."""
    try:
        yield
    except (LookupError, AttributeError, TypeError, ValueError) as error:
        raise mistake(
            tokens, "this cannot be read", "syntax", "write it in a simpler way, with parentheses"
        ) from error


def _parsed(skeleton: str, base: int, tokens: Tokens) -> exp.Expr:
    try:
        trees = sqlglot.parse(skeleton.replace("\n", " "), read="spark")
    except SqlglotError as error:
        # the skeleton is one line, and its columns are those of the tokens' ends
        known = getattr(error, "errors", None) or [{}]
        offset = max(0, (known[0].get("col") or len(skeleton)) - 1)
        raise shape.unexpected(tokens, base + offset, str(error)) from None
    if len(trees) != 1 or trees[0] is None:
        refuse(tokens, "one query is expected here", "syntax", "remove the rest")
    return trees[0]


def _refuse_unused(lifted: Lifted) -> None:
    for window in lifted.windows.values():
        functions = lifted.functions_in_from.values()
        around = next(
            (each for each in functions if each.span.start < window.span.start < each.span.end), None
        )
        hint = "a window stands directly after a stream or a nested query in FROM"
        if around is not None:
            hint = f"{around.word} is the window itself: leave {window.span.quoted} out"
        refuse(window, "this window is not on a stream", "window-place", hint)
