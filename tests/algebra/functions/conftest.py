"""A reader for scalar SQL, so that tests can be written as SQL; it knows operators and calls, not names."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from windrow.algebra.expressions import ColumnRef, Expression, Literal
from windrow.algebra.functions import call, explicit_cast
from windrow.algebra.functions.values import casts as text_reading
from windrow.algebra.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    INTERVAL,
    NULL,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TINYINT,
    DataType,
    decimal,
    parse_type,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Parse = Callable[..., Expression]

_TOKEN = re.compile(
    r"\s*(?:(?P<text>[xX]?'(?:[^'\\]|\\.)*')|(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?:BD|[LSYDF])?)"
    r"|(?P<word>[A-Za-z_]\w*)|(?P<sign><=>|<>|!=|<=|>=|==|\|\||<<|>>|[-+*/%=<>(),~&|^.\[\]]))",
    re.DOTALL,
)
_LEVELS = (("|",), ("^",), ("&",), ("<<", ">>"), ("+", "-", "||"), ("*", "/", "%", "DIV"))
_COMPARISONS = ("=", "==", "<>", "!=", "<", "<=", ">", ">=", "<=>")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "%": "\\%", "_": "\\_"}
_SUFFIXES = {"L": BIGINT, "S": SMALLINT, "Y": TINYINT}


class _Reader:
    def __init__(self, text: str, columns: Mapping[str, DataType]) -> None:
        self.tokens = [(match.lastgroup, match[match.lastgroup or 0]) for match in _TOKEN.finditer(text)]
        assert "".join(word for _, word in self.tokens) == re.sub(r"\s", "", text) or "'" in text, text
        self.columns, self.at = columns, 0

    def peek(self) -> str:
        return self.tokens[self.at][1].upper() if self.at < len(self.tokens) else ""

    def accept(self, *words: str) -> str | None:
        if self.peek() in words and self.tokens[self.at][0] != "text":
            self.at += 1
            return self.tokens[self.at - 1][1].upper()
        return None

    def expect(self, word: str) -> None:
        assert self.accept(word), f"{word} expected, not {self.peek()}"

    def expression(self) -> Expression:
        return self.chain("OR", lambda: self.chain("AND", self.negation))

    def chain(self, word: str, inner: Callable[[], Expression]) -> Expression:
        result = inner()
        while self.accept(word):
            result = call(word, (result, inner()))
        return result

    def negation(self) -> Expression:
        return call("not", (self.negation(),)) if self.accept("NOT") else self.predicate()

    def predicate(self) -> Expression:
        left = self.level(0)
        while True:
            if sign := self.accept(*_COMPARISONS):
                left = call(sign, (left, self.level(0)))
            elif self.accept("IS"):
                name = "is_not_null" if self.accept("NOT") else "is_null"
                self.expect("NULL")
                left = call(name, (left,))
            elif self.peek() in ("NOT", "IN", "BETWEEN", "LIKE", "ILIKE", "RLIKE"):
                negated = self.accept("NOT")
                left = self.test(left)
                left = call("not", (left,)) if negated else left
            else:
                return left

    def test(self, left: Expression) -> Expression:
        if self.accept("IN"):
            self.expect("(")
            return call("in", (left, *self.arguments()))
        if self.accept("BETWEEN"):
            low = self.level(0)
            self.expect("AND")
            return call("between", (left, low, self.level(0)))
        word = self.accept("LIKE", "ILIKE", "RLIKE")
        assert word
        args = [left, self.level(0)]
        if self.accept("ESCAPE"):
            args.append(self.level(0))
        return call(word, args)

    def level(self, depth: int) -> Expression:
        if depth == len(_LEVELS):
            return self.unary()
        left = self.level(depth + 1)
        while sign := self.accept(*_LEVELS[depth]):
            left = call(sign, (left, self.level(depth + 1)))
        return left

    def unary(self) -> Expression:
        if self.accept("-"):
            if self.tokens[self.at][0] == "number":
                self.at += 1
                return _number("-" + self.tokens[self.at - 1][1])
            return call("neg", (self.unary(),))
        return call("~", (self.unary(),)) if self.accept("~") else self.part()

    def part(self) -> Expression:
        """A value, perhaps with fields and elements behind it."""
        value = self.primary()
        while sign := self.accept("[", "."):
            if sign == "[":
                value = call("element", (value, self.expression()))
                self.expect("]")
            else:
                self.at += 1
                value = call("get_field", (value, Literal(self.tokens[self.at - 1][1], STRING)))
        return value

    def primary(self) -> Expression:
        kind, text = self.tokens[self.at]
        self.at += 1
        if kind == "number":
            return _number(text)
        if kind == "text":
            return _text(text)
        if text == "(":
            inner = self.expression()
            self.expect(")")
            return inner
        if self.accept("("):
            return self.function(text)
        return self.word(text)

    def word(self, text: str) -> Expression:
        match text.upper():
            case "TRUE" | "FALSE":
                return Literal(text.upper() == "TRUE", BOOLEAN)
            case "NULL":
                return Literal(None, NULL)
            case "CASE":
                return self.case()
            case "DATE":
                return Literal(text_reading.date(self.constant()), DATE)
            case "TIMESTAMP":
                return Literal(text_reading.timestamp(self.constant()), TIMESTAMP)
            case "INTERVAL":
                value = text_reading.interval(self.constant())
                for part in ("DAY", "TO", "SECOND"):
                    self.expect(part)
                return Literal(value, INTERVAL)
        return ColumnRef(text, self.columns[text])

    def constant(self) -> str:
        literal = self.primary()
        assert isinstance(literal, Literal)
        return str(literal.value)

    def case(self) -> Expression:
        args = []
        while self.accept("WHEN"):
            args.append(self.expression())
            self.expect("THEN")
            args.append(self.expression())
        if self.accept("ELSE"):
            args.append(self.expression())
        self.expect("END")
        return call("case", args)

    def function(self, name: str) -> Expression:
        if name.upper() in ("CAST", "TRY_CAST"):
            arg = self.expression()
            self.expect("AS")
            return explicit_cast(arg, self.type(), safe=name.upper() == "TRY_CAST")
        if name.upper() == "EXTRACT":
            field = self.tokens[self.at][1]
            self.at += 1
            self.expect("FROM")
            return call("extract", (Literal(field, STRING), *self.arguments()))
        args = self.arguments()
        if name.upper() in ("TRIM", "LTRIM", "RTRIM"):
            args.reverse()  # Spark's own order: what to trim, then the text
        return call(name, args)

    def type(self) -> DataType:
        words = ""
        depth = 0
        while depth or self.peek() != ")":
            word = self.tokens[self.at][1]
            depth += {"(": 1, ")": -1}.get(word, 0)
            words += word
            self.at += 1
        self.expect(")")
        return INTERVAL if words.upper().startswith("INTERVAL") else parse_type(words)

    def arguments(self) -> list[Expression]:
        if self.accept(")"):
            return []
        args = [self.expression()]
        while self.accept(","):
            args.append(self.expression())
        if self.accept("FROM"):
            args.append(self.expression())
        self.expect(")")
        return args


def _number(text: str) -> Literal:
    body = text.rstrip("LSYDFB")
    suffix = text[len(body) :]
    if suffix in _SUFFIXES:
        return Literal(int(body), _SUFFIXES[suffix])
    if suffix == "D" or (not suffix and "e" in body.lower()):
        return Literal(float(body), DOUBLE)
    if suffix == "" and "." not in body:
        return Literal(int(body), INT if abs(int(body)) < 1 << 31 or body == "-2147483648" else BIGINT)
    value = Decimal(body)
    scale = max(0, -int(value.as_tuple().exponent))
    return Literal(value, decimal(max(len(value.as_tuple().digits), scale), scale))


def _text(token: str) -> Literal:
    if token[0] in "xX":
        return Literal(bytes.fromhex(token[2:-1]), BINARY)
    raw = re.sub(r"\\u([0-9a-fA-F]{4})", lambda match: chr(int(match[1], 16)), token[1:-1])
    return Literal(
        re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[1]), raw, flags=re.DOTALL), STRING
    )


@pytest.fixture(scope="session")
def parse() -> Parse:
    """Scalar SQL to a typed tree; `columns` gives the types of the names in it."""

    def read(text: str, columns: Mapping[str, DataType] | None = None) -> Expression:
        reader = _Reader(text, columns or {})
        result = reader.expression()
        assert reader.at == len(reader.tokens), f"not read to its end: {text}"
        return result

    return read
