"""Takes out of a SELECT what plain SQL does not have, and leaves a skeleton of the same length.

Window brackets, stream words, literals and types are read here. What remains for sqlglot has only
keywords, operators and placeholders: every name becomes underscores, every string an empty-looking one,
every number ones. So sqlglot decides about the shape of the SQL and nothing else; names cannot be
mistaken for its keywords, nor functions be renamed by it, and each offset in its tree is an offset in
the text.

>>> from windrow.language.scanner import scan
>>> query = "SELECT RSTREAM(max(price)) FROM bids [ROWS 10] AS b WHERE item = 'pen'"
>>> print(query + "\\n" + lift(scan(query), lambda tokens: None).skeleton())
SELECT RSTREAM(max(price)) FROM bids [ROWS 10] AS b WHERE item = 'pen'
SELECT         ___(_____)  FROM ____           AS _ WHERE ____ = '___'
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from windrow.errors import QueryError, Span
from windrow.language import lift_frames, lift_literals, lift_words
from windrow.language.table_functions import TableFunction, lift_table_functions
from windrow.language.tokens import Kind, Token, Tokens
from windrow.language.vocabulary import ends_operand, is_keyword
from windrow.language.windows import ReadExpression, parse_window

if TYPE_CHECKING:
    from windrow.algebra.plan import StreamWord
    from windrow.language.syntax import FrameSyntax, Node, WindowSyntax


@dataclass
class Lifted:
    """A SELECT without its brackets, and what was lifted out of it. Keys are offsets of the text."""

    tokens: Tokens
    #: windows, by the token they follow
    windows: dict[int, WindowSyntax]
    #: stream words, by their SELECT
    words: dict[int, StreamWord] = field(default_factory=dict)
    #: the select list inside each WSTREAM
    wstreams: dict[int, Tokens] = field(default_factory=dict)
    #: literals of more than one token
    atoms: dict[int, Node] = field(default_factory=dict)
    #: types, by the CAST or `::` they belong to
    types: dict[int, Span] = field(default_factory=dict)
    #: how many casts `::` follow each other up to a token
    casts: dict[int, int] = field(default_factory=dict)
    #: what functions are called whose arguments have words between them
    functions: dict[int, str] = field(default_factory=dict)
    #: frames of OVER, by its parenthesis, and which OVERs follow IGNORE NULLS
    frames: dict[int, FrameSyntax] = field(default_factory=dict)
    ignoring: set[int] = field(default_factory=set)
    #: window functions of FROM
    functions_in_from: dict[int, TableFunction] = field(default_factory=dict)
    #: what stands in the skeleton for the token at an index; "" is blank
    swapped: dict[int, str] = field(default_factory=dict)
    #: one placeholder for all tokens from an index through another
    covered: dict[int, int] = field(default_factory=dict)

    def blank(self, *indexes: int) -> None:
        self.swapped.update(dict.fromkeys(indexes, ""))

    def cover(self, first: int, last: int) -> Span:
        """One placeholder from a token through another; where that is."""
        self.covered[first] = last
        return self.tokens[first].span.to(self.tokens[last].span)

    @property
    def ignored(self) -> set[int]:
        """The tokens that are read already: they are no keywords any more."""
        return self.ignored_between(0, len(self.tokens))

    def ignored_between(self, begin: int, end: int) -> set[int]:
        """The same for a stretch of them, counted from its beginning."""
        covers = [(first, last) for first, last in self.covered.items() if begin <= first and last < end]
        found = {index for first, last in covers for index in range(first, last)}
        return {index - begin for index in found | self.swapped.keys() if begin <= index < end}

    def skeleton(self, begin: int = 0, end: int | None = None) -> str:
        """The SQL that is left of the tokens from an index up to another; it begins where the first does."""
        end = len(self.tokens) if end is None else end
        if begin >= end:
            return ""
        base = self.tokens[begin].start
        characters = [" "] * (self.tokens[end - 1].end - base)
        index = begin
        while index < end:
            last = self.covered.get(index, index)
            start, text = self.tokens[index].start - base, self._placeholder(index, last)
            characters[start : start + len(text)] = text
            index = last + 1
        return "".join(characters)

    def _placeholder(self, index: int, last: int) -> str:
        token = self.tokens[index]
        if index in self.covered:
            width = self.tokens[last].end - token.start
            return "'" + "_" * (width - 2) + "'" if token.start in self.atoms and width > 1 else "_" * width
        if index in self.swapped:
            return self.swapped[index].ljust(len(token.text))
        if token.kind is Kind.WORD and is_keyword(self.tokens, index):
            return token.word if len(token.word) == len(token.text) else "_" * len(token.text)
        return _PLACEHOLDERS[token.kind](token)


_PLACEHOLDERS: dict[Kind, Callable[[Token], str]] = {
    Kind.WORD: lambda token: "_" * len(token.text),
    Kind.QUOTED: lambda token: "_" * len(token.text),
    Kind.STRING: lambda token: "'" + "_" * (len(token.text) - 2) + "'",
    Kind.NUMBER: lambda token: "1" * len(token.text),
    Kind.SIGN: lambda token: token.text,
}


def lift(tokens: Tokens, expression: ReadExpression) -> Lifted:
    """Take windows, stream words, literals and types out of a SELECT or an expression."""
    lifted = _without_brackets(tokens, expression)
    lift_table_functions(lifted)
    lift_words.lift_stream_words(lifted)
    lift_frames.lift_frames(lifted)
    lift_literals.lift_literals(lifted)
    return lifted


def _without_brackets(tokens: Tokens, expression: ReadExpression) -> Lifted:
    kept: list[Token] = []
    windows: dict[int, WindowSyntax] = {}
    index = 0
    while index < len(tokens):
        if tokens.word(index) != "[":
            kept += [tokens[index]] if not _is_unary_plus(tokens, index) else []
            index += 1
            continue
        close = tokens.partner[index]
        bracket = tokens.cut(index, close + 1)
        _refuse_misplaced(kept, windows, bracket)
        windows[kept[-1].start] = parse_window(bracket, expression)
        index = close + 1
    return Lifted(Tokens(tokens.text, tuple(kept)), windows)


def _is_unary_plus(tokens: Tokens, index: int) -> bool:
    return tokens.word(index) == "+" and not ends_operand(tokens, index - 1) and index + 1 < len(tokens)


def _refuse_misplaced(kept: list[Token], windows: dict[int, WindowSyntax], bracket: Tokens) -> None:
    if kept and kept[-1].start in windows:
        raise QueryError(
            "two windows on one stream",
            code="window-place",
            span=bracket.span,
            hint="put the stream into FROM twice, or a window on a nested query",
        )
    if not kept or not (kept[-1].is_name or kept[-1].word == ")"):
        raise QueryError(
            "this window follows nothing that it could be on",
            code="window-place",
            span=bracket.span,
            hint="a window stands directly after a stream or a nested query in FROM",
        )
