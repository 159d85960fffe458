"""FROM and its joins: streams, nested queries and names of WITH, each with the window that follows it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from windrow.errors import QueryError, Span
from windrow.language.converter import Converter
from windrow.language.places import enclosed, grown, words
from windrow.language.syntax import Node, Source

if TYPE_CHECKING:
    from windrow.language.syntax import WindowSyntax

_JOIN_WORDS = words("LEFT RIGHT FULL OUTER SEMI ANTI INNER")


class SourceConverter(Converter):
    """Converts what stands in FROM."""

    def from_clause(self, node: exp.Select) -> tuple[tuple[Source, ...], tuple[Node, ...]]:
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
        span = grown(self.tokens[index].span, self.tokens, left=[_JOIN_WORDS] * 3)
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

    def with_stray_window(self, sources: tuple[Source, ...], span: Span) -> tuple[Source, ...]:
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
