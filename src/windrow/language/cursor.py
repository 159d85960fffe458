"""Reading statements token by token: what is there, what must be there, what is left."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NoReturn

from windrow.credentials import refuse_literals
from windrow.errors import QueryError, Span, nearest
from windrow.language.lift_literals import interval_at
from windrow.language.numbers import plain_number
from windrow.language.places import placed
from windrow.language.tokens import Kind, Token, Tokens
from windrow.windows.units import Quantity

_NOTHING: Mapping[str, str] = {}


class Cursor:
    """A place in a statement's tokens."""

    def __init__(self, tokens: Tokens) -> None:
        self.tokens = tokens
        self.index = 0

    @property
    def done(self) -> bool:
        return self.index >= len(self.tokens)

    @property
    def here(self) -> Token:
        return self.tokens[self.index]

    @property
    def word(self) -> str:
        """The keyword or sign that comes next; nothing at the end."""
        return self.tokens.word(self.index)

    def next_is(self, *words: str) -> bool:
        return self.tokens.words(self.index, len(words)) == words

    def take(self, *words: str) -> bool:
        """Step over these words, if they come next."""
        if not self.next_is(*words):
            return False
        self.index += len(words)
        return True

    def expect(self, *words: str) -> None:
        """Step over words that must come next."""
        for word in words:
            if not self.take(word):
                self.fail(f"`{word}`", [word])

    def choose(self, words: Collection[str], what: str, instead: Mapping[str, str] = _NOTHING) -> str:
        """Step over one of these words; `instead` has hints for others."""
        word = self.word
        if word not in words:
            self.fail(what, words, instead.get(word))
        self.index += 1
        return word

    def name(self, what: str) -> str:
        """Step over a name."""
        if self.done or not self.here.is_name:
            self.fail(what)
        self.index += 1
        return self.tokens[self.index - 1].name

    def string(self, what: str) -> str:
        """Step over a string."""
        if self.done or self.here.kind is not Kind.STRING:
            self.fail(f"{what}, in single quotes,", hint="write '…'")
        self.index += 1
        return self.tokens[self.index - 1].value

    def url(self, what: str) -> str:
        """Step over the text of a source or a sink. It is written down, so it holds no secret."""
        text = self.string(what)
        refuse_literals(text, self.tokens[self.index - 1].span)
        return text

    def whole(self, what: str) -> int:
        """Step over a whole number."""
        sign = -1 if self.take("-") else 1
        if self.done or not self.here.text.isdecimal() or len(self.here.text) > 18:
            self.fail(what)
        self.index += 1
        return sign * int(self.tokens[self.index - 1].text)

    def quantity(self, what: str, then: Collection[str] = ()) -> Quantity:
        """Step over a number with its unit, or an INTERVAL; the words `then` are no units but come next."""
        interval = interval_at(self.tokens, self.index)
        if interval is not None:
            self.index = interval[1] + 1
            return Quantity(interval[0], "MICROSECONDS")
        if self.done or self.here.kind is not Kind.NUMBER:
            self.fail(what)
        number = self.here
        value, unit = plain_number(number.text, number.span)
        self.index += 1
        if not unit and self.word not in then and self.tokens.is_kind(self.index, Kind.WORD):
            unit = self.tokens[self.index].text
            self.index += 1
        with placed(self.tokens[self.index - 1].span):
            return Quantity(value, unit or None)

    def parenthesis(self) -> Tokens:
        """Step over a parenthesis; what is inside."""
        if self.word != "(":
            self.fail("`(`")
        close = self.tokens.partner[self.index]
        inside = self.tokens.cut(self.index + 1, close)
        self.index = close + 1
        return inside

    def until(self, words: Collection[str], what: str) -> Tokens:
        """Step to the first of these words that is not inside parentheses or CASE; what is before it."""
        begin, cases = self.index, 0
        while not self.done and (cases or self.word not in words):
            cases += {"CASE": 1, "END": -1}.get(self.word, 0)
            self.index = self.tokens.partner[self.index] + 1 if self.word == "(" else self.index + 1
        if self.index == begin:
            self.fail(what)
        return self.tokens.cut(begin, self.index)

    def span_since(self, begin: int) -> Span:
        """From the token at an index through the last one stepped over."""
        return self.tokens[begin].span.to(self.tokens[max(begin, self.index - 1)].span)

    def finish(self) -> None:
        """Nothing may be left."""
        if not self.done:
            message = f"unexpected `{self.here.text}`"
            raise QueryError(message, code="syntax", span=self.here.span, hint="remove it")

    def fail(self, wanted: str, words: Collection[str] = (), hint: str | None = None) -> NoReturn:
        """Something else should be here; `words` are those it may have been meant to be."""
        after = f"after `{self.tokens[self.index - 1].text}` " if self.index else ""
        message = f"{after}{wanted} should follow"
        if self.done:
            span = self.tokens[self.index - 1].span if self.index else self.tokens.span
            raise QueryError(message, code="syntax", span=span, hint=hint or "complete it")
        close = nearest(self.here.text, words) if words else None
        hint = close if close and close.startswith("did") else hint
        raise QueryError(f"{message}, not `{self.here.text}`", code="syntax", span=self.here.span, hint=hint)
