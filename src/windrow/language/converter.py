"""What all conversions of sqlglot's nodes share: places, names, refusals, and how deep they are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from typing import TYPE_CHECKING, ClassVar, Self

from sqlglot import exp

from windrow.errors import QueryError, Span
from windrow.language.ctes import Ctes
from windrow.language.depth import too_deep
from windrow.language.places import closed, hull
from windrow.language.syntax import Node, Query, SelectItem
from windrow.language.tokens import Token, Tokens
from windrow.language.using import Using

if TYPE_CHECKING:
    from windrow.language.lift import Lifted

_UNKNOWN = ("this is not part of the language", None)
#: of sqlglot's tree, more than any text within the limits of the language has
_MAX_LEVELS = 500
#: the parts that are operands of an operator
_OPERANDS = ("this", "expression", "low", "high")


class Converter(ABC):
    """Converts the nodes of one statement; `base` is the offset of the skeleton in the text."""

    #: what each kind of expression is converted by: the whole language of expressions
    expressions: ClassVar[Mapping[type[exp.Expr], Callable[[Converter, exp.Expr], Node]]]
    #: what to say about other kinds
    refused: ClassVar[Mapping[type[exp.Expr], tuple[str, str | None]]]
    #: operators that are refused as operands of others, unless in parentheses
    unclear: ClassVar[Mapping[type[exp.Expr], frozenset[type[exp.Expr]]]]

    def __init__(self, lifted: Lifted, base: int) -> None:
        self.lifted = lifted
        self.tokens = lifted.tokens
        self.base = base
        self.using = Using()
        self.ctes = Ctes()
        self._depth = 0

    @abstractmethod
    def query(self, node: exp.Expr) -> Query:
        """A SELECT, or a set operation."""

    @abstractmethod
    def ordered(self, node: exp.Expr) -> tuple[Node, bool]:
        """A key of ORDER BY, and whether it is descending."""

    @abstractmethod
    def items(self, tokens: Tokens) -> tuple[SelectItem, ...]:
        """A select list by itself, as inside a WSTREAM."""

    def convert(self, node: exp.Expr) -> Node:
        """An expression."""
        converter = self.expressions.get(type(node))
        if converter is None:
            raise self.refusal(node, *self.refused.get(type(node), _UNKNOWN))
        with self.deeper():
            self.refuse_unclear(node)
            return converter(self, node)

    def all(self, nodes: Collection[exp.Expr]) -> tuple[Node, ...]:
        return tuple(self.convert(node) for node in nodes)

    def refuse_unclear(self, node: exp.Expr) -> None:
        """Refuse operators beside each other that only parentheses can put in order."""
        unclear = self.unclear.get(type(node), frozenset())
        if any(type(node.args.get(part)) in unclear for part in _OPERANDS):
            raise self.unclear_order(node)

    def unclear_order(self, node: exp.Expr) -> QueryError:
        return self.refusal(node, "it is not clear which of these operators comes first", "write parentheses")

    @contextmanager
    def deeper(self) -> Iterator[None]:
        """One level down; too many levels are refused."""
        self._depth += 1
        try:
            if self._depth > _MAX_LEVELS:
                raise too_deep(self.tokens.span)
            yield
        finally:
            self._depth -= 1

    def only(self, node: exp.Expr, known: Collection[str], *refusal: str | None) -> None:
        """Refuse a node with parts that the caller would ignore; `refusal` is a message and a hint."""
        for part, value in node.args.items():
            if value and part not in known:
                inner = value[0] if isinstance(value, list) else value
                at = inner if isinstance(inner, exp.Expr) else node
                message, hint = refusal or _UNKNOWN
                raise self.refusal(at, message or _UNKNOWN[0], hint)

    def refusal(self, node: exp.Expr, message: str, hint: str | None = None) -> QueryError:
        return QueryError(message, code="not-supported", span=self.place(node), hint=hint)

    def place(self, node: exp.Expr) -> Span:
        """Where a node of sqlglot is: the hull of those below it that know; at worst the whole statement."""
        known = [part.meta for part in node.walk() if "start" in part.meta]
        if not known:
            return self.tokens.span
        return closed(
            hull(Span(meta["start"] + self.base, meta["end"] + self.base + 1) for meta in known), self.tokens
        )

    def token_of(self, node: exp.Expr) -> Token:
        """The token of an identifier, literal or function name."""
        return self.tokens[self.tokens.at(node.meta["start"] + self.base)]

    def name_of(self, node: exp.Expr) -> Token:
        """The token of an identifier that must be a name: an alias, a stream, a column of USING."""
        token = self.token_of(node)
        if not token.is_name or token.start in self.lifted.atoms or token.start in self.lifted.wstreams:
            raise QueryError(
                f"`{token.text}` cannot be a name",
                code="syntax",
                span=token.span,
                hint="an operator or a comma may be missing before it; a quoted name stands in backticks",
            )
        return token

    def fragment(self, base: int) -> Self:
        """The same, for a skeleton that begins elsewhere."""
        other = copy(self)
        other.base = base
        return other
