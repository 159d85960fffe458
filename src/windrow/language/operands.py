"""Expressions that are no operators: names, constants, calls, casts.

Functions come as calls by name, because the skeleton hides their names from sqlglot.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sqlglot import exp

from windrow.errors import Span
from windrow.language.converter import Converter
from windrow.language.numbers import number
from windrow.language.places import enclosed, grown, hull
from windrow.language.syntax import (
    Apply,
    CastTo,
    Constant,
    ExistsTest,
    Name,
    Node,
    Over,
    ScalarQuery,
    Star,
    WStream,
)
from windrow.language.tokens import Kind, Token

#: Spark's `ltrim(characters, text)`; the registry has the text first, and so has `btrim`
_CHARACTERS_FIRST = frozenset({"trim", "ltrim", "rtrim"})
_OVER = "write SUM(x) OVER (PARTITION BY k ORDER BY ts ROWS 9 PRECEDING), or ROW_NUMBER() OVER (ORDER BY …)"
_ALL_COLUMNS = ("`*` gives all columns", "list the columns to leave some out")


def _column(self: Converter, node: exp.Expr) -> Node:
    self.only(node, {"this", "table", "db", "catalog"})
    parts = [node.args[part] for part in ("catalog", "db", "table", "this") if node.args.get(part)]
    star = isinstance(parts[-1], exp.Star)
    if len(parts) > 2:
        raise self.refusal(node, "this name has too many parts", "write column or stream.column")
    if star:
        return _qualified_star(self, parts[0], parts[1])
    tokens = [self.token_of(part) for part in parts]
    start = tokens[0].start
    if start in self.lifted.wstreams:
        return _wstream(self, tokens[0])
    if start in self.lifted.atoms:
        return self.lifted.atoms[start]
    span = hull(token.span for token in tokens)
    return self.using.resolve(Name(span, tuple(token.name for token in tokens)))


def _qualified_star(self: Converter, qualifier: exp.Expr, star: exp.Expr) -> Node:
    self.only(star, (), *_ALL_COLUMNS)
    name = self.name_of(qualifier)
    return Star(name.span.to(self.token_of(star).span), name.name)


def _star(self: Converter, node: exp.Expr) -> Node:
    self.only(node, (), *_ALL_COLUMNS)
    return Star(self.token_of(node).span)


def _wstream(self: Converter, word: Token) -> Node:
    inside = self.lifted.wstreams[word.start]
    close = self.tokens[self.tokens.at(inside.span.end)]
    window = self.lifted.windows.pop(close.start)
    return WStream(word.span.to(window.span), self.items(inside), window)


def _literal(self: Converter, node: exp.Expr) -> Node:
    token = self.token_of(node)
    if token.start in self.lifted.atoms:
        return self.lifted.atoms[token.start]
    if token.kind is Kind.STRING:
        return Constant(token.span, token.value, "STRING")
    return number(token)


def _paren(self: Converter, node: exp.Expr) -> Node:
    inner = self.convert(node.this)
    span = enclosed(inner.span, self.tokens)
    if span == inner.span:
        raise self.unclear_order(node)  # a parenthesis that sqlglot made up
    return replace(inner, span=span)


def _call(self: Converter, node: exp.Expr) -> Node:
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
    args = self.all(parts)
    if name in _CHARACTERS_FIRST and len(args) == 2:
        args = args[::-1]
    if name == "count_if" and len(args) == 1 and not distinct:
        return Apply(span, "count", (Star(span),), where=args[0])
    return Apply(span, name, args, distinct=distinct)


def _cast(self: Converter, node: exp.Expr, word: Token, span: Span) -> Node:
    """CAST and TRY_CAST; the type is the second argument in the skeleton."""
    if len(node.expressions) != 2:
        raise self.refusal(node, f"{word.word} takes one value", f"write {word.word}(x AS BIGINT)")
    type_span = self.lifted.types[word.start]
    type_text = self.tokens.text[type_span.start : type_span.end]
    return CastTo(span, self.convert(node.expressions[0]), type_text, safe=word.word == "TRY_CAST")


def _postfix_cast(self: Converter, node: exp.Expr) -> Node:
    operand = self.convert(node.this)
    sign = self.tokens.at(operand.span.end)
    while self.tokens.word(sign) == ")":
        sign += 1
    type_span = self.lifted.types[self.tokens[sign].start]
    return CastTo(operand.span.to(type_span), operand, self.tokens.text[type_span.start : type_span.end])


def _filter(self: Converter, node: exp.Expr) -> Node:
    self.only(node, {"this", "expression"})
    call, where = self.convert(node.this), self.convert(node.args["expression"].this)
    if not isinstance(call, Apply):
        raise self.refusal(node, "FILTER follows an aggregate", "write SUM(x) FILTER (WHERE …)")
    span = grown(call.span.to(where.span), self.tokens, right=[")"])
    if call.where is not None:
        where = Apply(where.span, "and", (call.where, where))
    return replace(call, span=span, where=where)


def _exists(self: Converter, node: exp.Expr) -> Node:
    self.only(node, {"this"}, "EXISTS takes a query", "write EXISTS (SELECT …)")
    query = self.query(node.this)
    span = grown(enclosed(query.span, self.tokens), self.tokens, left=[{"EXISTS"}])
    return ExistsTest(span, query, negated=False)


def _scalar(self: Converter, node: exp.Expr) -> Node:
    self.only(node, {"this"}, "a query that is a value has no alias of its own", "put the alias outside")
    query = self.query(node.this)
    return ScalarQuery(enclosed(query.span, self.tokens), query)


def _over(self: Converter, node: exp.Expr) -> Node:
    self.only(node, {"this", "partition_by", "order", "over"}, "this does not stand in OVER", _OVER)
    call = self.convert(node.this)
    if not isinstance(call, Apply):
        raise self.refusal(node, "OVER follows a call", _OVER)
    order = node.args.get("order")
    keys = tuple(self.ordered(part) for part in order.expressions) if order is not None else ()
    partition = self.all(node.args.get("partition_by") or ())
    open_at = self.tokens.at(call.span.end)
    while self.tokens.word(open_at) != "(":
        open_at += 1
    inside = self.tokens[open_at].start
    span = call.span.to(self.tokens[self.tokens.partner[open_at]].span)
    frame, ignores = self.lifted.frames.get(inside), inside in self.lifted.ignoring
    return Over(span, call, partition, keys, frame, ignores)


OPERANDS: dict[type[exp.Expr], Callable[[Converter, exp.Expr], Node]] = {
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
}
_SUBQUERY = ("a query stands in parentheses", "write (SELECT …)")
REFUSED: dict[type[exp.Expr], tuple[str, str | None]] = {
    exp.Select: _SUBQUERY,
    exp.Union: _SUBQUERY,
    exp.Except: _SUBQUERY,
    exp.Tuple: ("a list of values is not a value", "compare the values one by one, joined by AND"),
    exp.Dot: ("this path is not part of the language", "names have the form column or stream.column"),
    exp.Distinct: ("DISTINCT does not stand here", "write COUNT(DISTINCT x) or SELECT DISTINCT"),
    exp.Order: ("aggregates take no ORDER BY", "use FIRST, LAST or TOP_K"),
    exp.Alias: ("an alias does not stand here", "aliases stand in the select list and in FROM"),
}
