"""FROM and its joins: streams, nested queries and names of WITH, each with the window that follows it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from sqlglot import exp

from windrow.algebra.plan import StreamWord
from windrow.errors import QueryError, Span
from windrow.language import converter, lift, reductions, syntax, tokens, window_functions

_JOIN_WORDS = syntax.words("LEFT RIGHT FULL OUTER SEMI ANTI INNER")


class SourceConverter(converter.Converter):
    """Converts what stands in FROM."""

    def from_clause(self, node: exp.Select) -> tuple[tuple[syntax.FromEntry, ...], tuple[syntax.Node, ...]]:
        begin = node.args.get("from_")
        if begin is None:
            return (), ()
        self.only(begin, {"this"})
        sources, on = [self._source(begin.this)], list[syntax.Node]()
        conditions: list[tuple[syntax.Node, ...]] = [()]
        for join in [*(begin.this.args.get("joins") or ()), *node.args.get("joins", ())]:
            side = self._side(join)
            self.only(join, {"this", "kind", "on", "using", "side"})
            if self._is_unnesting(join.this):
                self.unnests.append(self._unnesting(join, side))
                continue
            if join.args.get("kind") in ("SEMI", "ANTI"):
                self._semi_join(join)
                continue
            sources.append(replace(self._source(join.this), join=side))
            own = [self.convert(join.args["on"])] if join.args.get("on") is not None else []
            own += self._using(join, sources)
            conditions.append(tuple(own))
            on += own
            for inner in join.this.args.get("joins") or ():
                hint = "write each ON directly after its JOIN"
                raise self.refusal(inner, "this join is nested in another", hint)
        if self.semi and any(source.join for source in sources):
            span = self.semi[0][0].span
            hint = "write WHERE EXISTS (SELECT …), or NOT EXISTS, with its condition inside"
            tokens.refuse(span, "SEMI and ANTI joins beside outer ones", "not-supported", hint)
        if any(source.join for source in sources):
            placed = zip(sources, conditions, strict=True)
            return tuple(replace(source, on=own) for source, own in placed), ()
        return tuple(sources), tuple(on)

    def _using(self, join: exp.Expr, sources: list[syntax.FromEntry]) -> list[syntax.Node]:
        columns = [self.name_of(column) for column in join.args.get("using") or ()]
        if columns and sources[-1].join in ("RIGHT", "FULL"):
            name, right = columns[0].name, sources[-1].alias or sources[-1].name
            hint = f"write ON … = {right}.{name}, and select {right}.{name} or coalesce(…, {right}.{name})"
            message = f"USING does not say which `{name}` is meant where one side has none"
            tokens.refuse(columns[0], message, "bad-using", hint)
        return [self.using.condition(column.name, column.span, sources) for column in columns]

    def _side(self, join: exp.Expr) -> str:
        """LEFT, RIGHT or FULL; nothing for a join without padding."""
        side, kind = join.args.get("side") or "", join.args.get("kind") or ""
        if kind in ("SEMI", "ANTI") and side in ("RIGHT", "FULL"):
            raise self._join_refusal(
                join, f"a {side} {kind} JOIN is not part of the language", "swap the sides"
            )
        if kind == "OUTER" and not side:
            raise self._join_refusal(
                join, "an OUTER JOIN of which side?", "write LEFT, RIGHT or FULL before it"
            )
        return str(side)

    def _semi_join(self, join: exp.Expr) -> None:
        """`LEFT SEMI JOIN b ON …`: a condition on the rows before it."""
        condition = join.args.get("on")
        if condition is None:
            raise self._join_refusal(join, "SEMI and ANTI joins take ON", "write ON a.k = b.k")
        source = self._source(join.this)
        self.semi.append((source, (self.convert(condition),), join.args["kind"] == "ANTI"))

    def renamed(self, query: syntax.QueryExpression, alias: exp.Expr) -> syntax.QueryExpression:
        """A query whose columns are named behind its alias."""
        self.only(alias, {"this", "columns"})
        names = [self.name_of(column) for column in alias.args.get("columns") or ()]
        named = tuple(syntax.Name(name.span, (name.name,)) for name in names)
        return reductions.with_names(query, named) if named else query

    def _join_refusal(self, join: exp.Expr, message: str, hint: str) -> QueryError:
        """A refusal that points at the words of the join."""
        index = self.tokens.before(self.place(join.this).start)
        while index > 0 and self.tokens.word(index) == "(":
            index -= 1
        span = syntax.grown(self.tokens[index].span, self.tokens, left=[_JOIN_WORDS] * 3)
        return tokens.mistake(span, message, "not-supported", hint)

    def _is_unnesting(self, node: exp.Expr) -> bool:
        if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Anonymous):
            return False
        return self.token_of(node.this).word in lift.UNNESTING

    def _unnesting(self, join: exp.Expr, side: str) -> syntax.Unnesting:
        """`CROSS JOIN UNNEST(x) AS t(a)`, or with LEFT JOIN … ON TRUE."""
        node = join.this
        self.only(node, {"this", "alias", "joins"})
        token, (array, *others) = self.token_of(node.this), self.all(node.this.expressions) or (None,)
        condition = join.args.get("on")
        is_true = condition is None or isinstance(condition, exp.Boolean | exp.Literal | exp.Column)
        if array is None or others or side in ("RIGHT", "FULL") or not is_true:
            hint = f"write CROSS JOIN {token.word}(x) AS t(a), or LEFT JOIN {token.word}(x) AS t(a) ON TRUE"
            raise self.refusal(node.this, f"{token.word} is joined to the row that its array is of", hint)
        alias = node.args.get("alias")
        columns = [self.name_of(column).name for column in alias.columns] if alias is not None else []
        name = self.name_of(alias.this).name if alias is not None and alias.this is not None else None
        span = self.place(node)
        counted = self.tokens[self.tokens.at(token.end)].start in self.lifted.ordinalities
        return syntax.Unnesting(span, token.word, array, name, tuple(columns), side == "LEFT", counted)

    def _source(self, node: exp.Expr) -> syntax.FromEntry:
        if isinstance(node, exp.Subquery):
            return self._nested_source(node)
        if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
            raise self.refusal(node, "this is not a stream", "FROM takes names and nested queries")
        self.only(node, {"this", "alias", "joins"}, "names of streams have one part", "leave out the rest")
        name = self.name_of(node.this)
        if name.start in self.lifted.functions_in_from:
            return self._function_source(self.lifted.functions_in_from[name.start], node)
        alias, alias_span = self._alias(node)
        span = name.span.to(alias_span or name.span)
        window = self._window(name.start, node)
        query = self.ctes.use(name.name, name.span)
        if query is not None:
            alias = alias or name.name
        entry = syntax.FromEntry(span, None if query else name.name, query, alias, window)
        return self._finished(replace(entry, as_of=self.lifted.as_of.get(name.start)))

    def _function_source(self, function: window_functions.TableFunction, node: exp.Table) -> syntax.FromEntry:
        """A window function over a stream; over a name of WITH, the window goes to the stream inside."""
        alias, alias_span = self._alias(node)
        close = self.tokens[self.tokens.before(function.span.end)]
        bracket = self._window(close.start, node)
        if bracket is not None:
            hint = f"leave the bracket out: {function.word} is a window itself"
            tokens.refuse(bracket, "two windows on one stream", "window-place", hint)
        window = syntax.WindowSyntax(function.span, function.clause)
        span = function.span.to(alias_span or function.span)
        query = self.ctes.use(function.name, function.span)
        if query is None:
            return syntax.FromEntry(span, function.name, None, alias, window, function.word)
        inner = _windowed_inside(query, window, function)
        return syntax.FromEntry(span, None, inner, alias or function.name, None, function.word)

    def _nested_source(self, node: exp.Subquery) -> syntax.FromEntry:
        self.only(node, {"this", "alias", "joins"})
        if isinstance(node.this, exp.Table):
            hint = "remove them, or write (SELECT …)"
            raise self.refusal(node, "parentheses in FROM are for nested queries", hint)
        query = self.query(node.this)
        query = replace(query, span=syntax.enclosed(query.span, self.tokens))
        close = self.tokens[self.tokens.before(query.span.end)]
        alias, alias_span = self._alias(node, {"this", "columns"})
        if node.args.get("alias") is not None:
            query = self.renamed(query, node.args["alias"])
        window = self._window(close.start, node)
        return self._finished(
            syntax.FromEntry(query.span.to(alias_span or query.span), None, query, alias, window)
        )

    def _finished(self, source: syntax.FromEntry) -> syntax.FromEntry:
        return replace(source, span=source.span.to(source.window.span)) if source.window else source

    def _alias(
        self, node: exp.Expr, parts: Collection[str] = frozenset({"this"})
    ) -> tuple[str | None, Span | None]:
        alias = node.args.get("alias")
        if alias is None:
            return None, None
        self.only(
            alias,
            parts,
            "columns of a stream are not renamed in FROM",
            "write (SELECT a AS b, … FROM …), or select them AS another name",
        )
        token = self.name_of(alias.this)
        return token.name, token.span

    def _window(self, after: int, node: exp.Expr) -> syntax.WindowSyntax | None:
        """The window directly after a name (or parenthesis), or after its alias."""
        window = self.lifted.windows.pop(after, None)
        alias = node.args.get("alias")
        if alias is None:
            return window
        behind = self.lifted.windows.pop(self.token_of(alias.this).start, None)
        if window is not None and behind is not None:
            hint = "leave one out"
            tokens.refuse(behind, "two windows on one stream", "window-place", hint)
        return window or behind

    def with_stray_window(
        self, sources: tuple[syntax.FromEntry, ...], span: Span
    ) -> tuple[syntax.FromEntry, ...]:
        """`FROM bids GROUP BY item [RANGE …]`: a window at the end of GROUP BY is that of the only source."""
        for start in [start for start in self.lifted.windows if span.start <= start < span.end]:
            before = self.tokens.outwards(self.tokens.at(start) + 1)
            own = (at for at in before if self.tokens[at].start > span.start)
            clauses = ("BY", "FROM", "WHERE", "HAVING", "LIMIT", "(")
            clause = next((at for at in own if self.tokens.word(at) in clauses), 0)
            grouped = self.tokens.words(clause - 1, 2) == ("GROUP", "BY")
            if grouped and len(sources) == 1 and sources[0].window is None:
                sources = (replace(sources[0], window=self.lifted.windows.pop(start)),)
        return sources


def _windowed_inside(
    query: syntax.QueryExpression, window: syntax.WindowSyntax, function: window_functions.TableFunction
) -> syntax.QueryExpression:
    """σ and π of one stream under a window are the window under σ and π."""
    simple = (
        isinstance(query, syntax.Select)
        and len(query.sources) == 1
        and query.sources[0].name is not None
        and query.sources[0].window is None
        and not (query.group_by or query.having or query.distinct or query.limit)
        and query.word is StreamWord.AUTO
    )
    if not simple:
        tokens.refuse(
            function,
            f"{function.word} windows a stream, and `{function.name}` is more than conditions on one",
            "window-function",
            f"put {function.word} into the query `{function.name}`, around the stream it reads",
        )
    assert isinstance(query, syntax.Select)
    wattr = next((name for item in query.items if (name := _origin(item, function.column))), None)
    if wattr is None:
        tokens.refuse(
            function,
            f"`{function.column}` is no plain column of `{function.name}`",
            "window-function",
            "select the windowing attribute of the stream, perhaps under another name",
        )
    keys = tuple(
        next((name for item in query.items if (name := _origin(item, key))), key)
        for key in window.clause.partition_by
    )
    clause = replace(window.clause, wattr=wattr, partition_by=keys)
    return replace(query, sources=(replace(query.sources[0], window=replace(window, clause=clause)),))


def _origin(item: syntax.SelectItem, column: str) -> str | None:
    """The column of the stream that an output is, if it is called so."""
    if isinstance(item.expression, syntax.Star):
        return column
    if not isinstance(item.expression, syntax.Name):
        return None
    called = item.alias or item.expression.parts[-1]
    return item.expression.parts[-1] if called.lower() == column.lower() else None
