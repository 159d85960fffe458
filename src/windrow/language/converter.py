"""What all conversions of sqlglot's nodes share: places, names, refusals, and how deep they are.

WITH: each use of a name is replaced by its query. Windows stand where the name is used.

JOIN … USING (k): a condition on the two sources, and `k` without a qualifier then means the left one.

Operators and CASE, by the names they have in the function registry.

Where sqlglot and Spark would group operators differently (`a | b & c`, `a || b + c`), or where few
readers would know (`a = b = c`), parentheses are asked for.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import chain
from typing import ClassVar

from sqlglot import exp

from windrow.algebra.functions.sql_text import LONG_CHAIN
from windrow.errors import QueryError, Span
from windrow.language import lift, literals, reductions, shape, syntax
from windrow.language.tokens import Token, Tokens, mistake, refuse


@dataclass
class Using:
    """The columns that USING has merged in one SELECT, and the source each is read from."""

    owners: dict[str, str] = field(default_factory=dict)

    def condition(self, column: str, span: Span, sources: list[syntax.FromEntry]) -> syntax.Node:
        """The condition that USING stands for; the last of the sources is the one that is joined."""
        right = _called(sources[-1], span)
        left = self.owners.get(column.lower())
        if left is None:
            if len(sources) != 2:
                refuse(
                    span,
                    f"USING does not say whose `{column}` it is",
                    "bad-using",
                    f"write ON a.{column} = {right}.{column}",
                )
            left = self.owners[column.lower()] = _called(sources[0], span)
        return syntax.Apply(
            span, "=", (syntax.Name(span, (left, column)), syntax.Name(span, (right, column)))
        )

    def resolve(self, name: syntax.Name) -> syntax.Name:
        """The name, qualified if USING has merged it."""
        owner = self.owners.get(name.parts[0].lower()) if len(name.parts) == 1 else None
        return syntax.Name(name.span, (owner, *name.parts)) if owner else name

    def refuse_star(self, items: tuple[syntax.SelectItem, ...]) -> None:
        """`*` would give the merged columns twice."""
        for item in items:
            if self.owners and isinstance(item.expression, syntax.Star) and item.expression.qualifier is None:
                refuse(
                    item,
                    "`*` after USING would give the joined columns twice",
                    "bad-using",
                    "name the columns, or write ON",
                )


def _called(source: syntax.FromEntry, span: Span) -> str:
    name = source.alias or source.name
    if name is None:
        refuse(span, "USING needs names on both sides", "bad-using", "give the nested query an alias")
    return name


#: names used inside names multiply
MAX_COPIES = 200


@dataclass
class Ctes:
    """The names WITH has given so far, with how many queries each stands for."""

    queries: dict[str, tuple[syntax.QueryExpression, int]] = field(default_factory=dict)
    copies: int = 0

    def use(self, name: str, span: Span) -> syntax.QueryExpression | None:
        """The query a name in FROM stands for, if WITH has given it."""
        query, size = self.queries.get(name.lower(), (None, 0))
        self.copies += size
        if self.copies > MAX_COPIES:
            refuse(
                span,
                f"WITH makes more than {MAX_COPIES} copies of queries here",
                "too-deep",
                "register the shared part with CREATE QUERY",
            )
        return query

    def define(self, name: str, query: syntax.QueryExpression, copies_before: int) -> None:
        """From here on the name stands for the query."""
        self.queries[name.lower()] = query, 1 + self.copies - copies_before

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Names given inside are forgotten after it."""
        queries = dict(self.queries)
        try:
            yield
        finally:
            self.queries = queries


@dataclass(frozen=True)
class NamedWindow:
    """What `WINDOW w AS (…)` says."""

    partition: tuple[syntax.Node, ...] = ()
    order: syntax.Keys = ()
    frame: syntax.FrameSyntax | None = None


_UNKNOWN = ("this is not part of the language", None)
#: of sqlglot's tree, more than any text within the limits of the language has
_MAX_LEVELS = 500
#: the parts that are operands of an operator
_OPERANDS = ("this", "expression", "low", "high")


class Converter(ABC):
    """Converts the nodes of one statement; `base` is the offset of the skeleton in the text."""

    #: what each kind of expression is converted by: the whole language of expressions
    expressions: ClassVar[Mapping[type[exp.Expr], Callable[[Converter, exp.Expr], syntax.Node]]]
    #: what to say about other kinds
    refused: ClassVar[Mapping[type[exp.Expr], tuple[str, str | None]]]

    def __init__(self, lifted: lift.Lifted, base: int) -> None:
        self.lifted = lifted
        self.tokens = lifted.tokens
        self.base = base
        self.using = Using()
        #: what the SELECT at hand unnests, its SEMI and ANTI joins, and its named windows
        self.unnests: list[syntax.Unnesting] = []
        self.semi: list[tuple[syntax.FromEntry, tuple[syntax.Node, ...], bool]] = []
        self.named_windows: dict[str, NamedWindow] = {}
        self.ctes = Ctes()
        self._depth = 0

    @abstractmethod
    def query(self, node: exp.Expr) -> syntax.QueryExpression: ...

    @abstractmethod
    def ordered(self, node: exp.Expr | None) -> syntax.Keys: ...

    @abstractmethod
    def item(self, node: exp.Expr) -> syntax.SelectItem: ...

    @abstractmethod
    def items(self, tokens: Tokens) -> tuple[syntax.SelectItem, ...]: ...

    def convert(self, node: exp.Expr) -> syntax.Node:
        converter = self.expressions.get(type(node))
        if converter is None:
            raise self.refusal(node, *self.refused.get(type(node), _UNKNOWN))
        with self.deeper():
            self.refuse_unclear(node)
            return converter(self, node)

    def all(self, nodes: Collection[exp.Expr]) -> tuple[syntax.Node, ...]:
        return tuple(self.convert(node) for node in nodes)

    def refuse_unclear(self, node: exp.Expr) -> None:
        """Refuse operators beside each other that only parentheses can put in order."""
        unclear = _UNCLEAR.get(type(node), frozenset())
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
                raise shape.too_deep(self.tokens.span)
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
        return mistake(self.place(node), message, "not-supported", hint)

    def place(self, node: exp.Expr) -> Span:
        """Where a node of sqlglot is: the hull of those below it that know; at worst the whole statement."""
        known = [part.meta for part in node.walk() if "start" in part.meta]
        if not known:
            return self.tokens.span
        return syntax.closed(
            syntax.hull(Span(meta["start"] + self.base, meta["end"] + self.base + 1) for meta in known),
            self.tokens,
        )

    def token_of(self, node: exp.Expr) -> Token:
        """The token of an identifier, literal or function name."""
        return self.tokens[self.tokens.at(node.meta["start"] + self.base)]

    def name_of(self, node: exp.Expr) -> Token:
        """The token of an identifier that must be a name: an alias, a stream, a column of USING."""
        token = self.token_of(node)
        if not token.is_name or token.start in self.lifted.atoms or token.start in self.lifted.wstreams:
            refuse(
                token,
                f"`{token.text}` cannot be a name",
                "syntax",
                "an operator or a comma may be missing before it; a quoted name stands in backticks",
            )
        return token


_CONDITIONAL = ("and", "or")

_Handler = Callable[[Converter, exp.Expr], syntax.Node]


def _binary(sign: str) -> _Handler:
    def convert(self: Converter, node: exp.Expr) -> syntax.Node:
        kind, operands = type(node), list[exp.Expr]()
        while type(node) is kind:
            self.only(node, {"this", "expression", "safe", "typed"})
            self.refuse_unclear(node)
            operands.append(node.args["expression"])
            node = node.this
        converted = [self.convert(part) for part in (node, *reversed(operands))]
        if sign in _CONDITIONAL:
            return _condition(sign, converted)
        if len(converted) > shape.MAX_DEPTH:
            raise shape.too_deep(syntax.hull(converted))
        return _joined(sign, converted)

    return convert


def _condition(sign: str, operands: list[syntax.Node]) -> syntax.Node:
    """A chain of AND or OR: as written, or balanced if it is long, whatever parentheses are inside."""
    parts = [part for operand in operands for part in _parts(sign, operand)]
    if len(parts) <= LONG_CHAIN:
        return _joined(sign, operands)
    return replace(_balanced(sign, parts), span=syntax.hull(operands))


def _parts(sign: str, operand: syntax.Node) -> list[syntax.Node]:
    """The operands of a chain inside another of the same kind."""
    found, waiting = list[syntax.Node](), [operand]
    while waiting:
        node = waiting.pop()
        if isinstance(node, syntax.Apply) and node.function == sign:
            waiting += reversed(node.args)
        else:
            found.append(node)
    return found


def _balanced(sign: str, operands: list[syntax.Node]) -> syntax.Node:
    if len(operands) == 1:
        return operands[0]
    middle = len(operands) // 2
    return _joined(sign, [_balanced(sign, operands[:middle]), _balanced(sign, operands[middle:])])


def _joined(sign: str, operands: list[syntax.Node]) -> syntax.Node:
    """The operands from left to right."""
    return reduce(lambda left, right: syntax.Apply(left.span.to(right.span), sign, (left, right)), operands)


def _neg(self: Converter, node: exp.Expr) -> syntax.Node:
    operand = self.convert(node.this)
    span = syntax.grown(operand.span, self.tokens, left=["-"])
    return literals.negated(operand, span) or syntax.Apply(span, "neg", (operand,))


def _bitwise_not(self: Converter, node: exp.Expr) -> syntax.Node:
    operand = self.convert(node.this)
    return syntax.Apply(syntax.grown(operand.span, self.tokens, left=["~"]), "~", (operand,))


def _not(self: Converter, node: exp.Expr) -> syntax.Node:
    self.only(node, {"this"})
    operand = self.convert(node.this)
    if isinstance(node.this, exp.Is) and isinstance(operand, syntax.Apply) and operand.function == "is_null":
        return replace(operand, function="is_not_null")
    span = syntax.grown(operand.span, self.tokens, left=[{"NOT", "!"}])
    if isinstance(operand, syntax.ExistsTest | syntax.InTest):
        return replace(operand, span=span, negated=not operand.negated)
    return syntax.Apply(span, "not", (operand,))


_TRUTH = frozenset({"NULL", "TRUE", "FALSE", "UNKNOWN"})


def _is(self: Converter, node: exp.Expr) -> syntax.Node:
    self.only(node, {"this", "expression"})
    operand, test = self.convert(node.this), node.args["expression"]
    span = syntax.grown(operand.span, self.tokens, right=[{"IS"}, _TRUTH | {"NOT"}, _TRUTH])
    if isinstance(test, exp.Null):
        return syntax.Apply(span, "is_null", (operand,))
    if isinstance(test, exp.Boolean):
        return syntax.Apply(span, "<=>", (operand, syntax.Constant(span, bool(test.this), "BOOLEAN")))
    raise self.refusal(test, "IS compares with NULL, TRUE and FALSE only", "write =, or IS NOT DISTINCT FROM")


def _distinct_from(self: Converter, node: exp.Expr) -> syntax.Node:
    self.only(node, {"this", "expression"})
    operands = self.convert(node.this), self.convert(node.args["expression"])
    span = syntax.hull(operands)
    return syntax.Apply(span, "not", (syntax.Apply(span, "<=>", operands),))


def _like(name: str) -> _Handler:
    return lambda self, node: _matched(self, name, node, ())


def _matched(self: Converter, name: str, node: exp.Expr, escape: tuple[syntax.Node, ...]) -> syntax.Node:
    self.only(node, {"this", "expression", "negate"})
    operands = (self.convert(node.this), self.convert(node.args["expression"]), *escape)
    span = syntax.hull(operands)
    matches = syntax.Apply(span, name, operands)
    return syntax.Apply(span, "not", (matches,)) if node.args.get("negate") else matches


def _escape(self: Converter, node: exp.Expr) -> syntax.Node:
    name = {exp.Like: "like", exp.ILike: "ilike"}.get(type(node.this))
    if name is None:
        raise self.refusal(node, "ESCAPE follows LIKE only", "write x LIKE 'a!%' ESCAPE '!'")
    return _matched(self, name, node.this, (self.convert(node.args["expression"]),))


def _between(self: Converter, node: exp.Expr) -> syntax.Node:
    self.only(node, {"this", "low", "high"})
    value, low, high = (self.convert(node.args[part]) for part in ("this", "low", "high"))
    span = syntax.hull((value, low, high))
    straight = syntax.Apply(span, "between", (value, low, high))
    written = range(self.tokens.at(value.span.end), self.tokens.at(low.span.start))
    if not any(self.tokens[at].start in self.lifted.symmetric for at in written):
        return straight
    return syntax.Apply(span, "or", (straight, syntax.Apply(span, "between", (value, high, low))))


def _in(self: Converter, node: exp.Expr) -> syntax.Node:
    if node.args.get("query") is not None:
        return _in_query(self, node)
    self.only(node, {"this", "expressions"}, "IN takes a list of values", "write x IN (1, 2, 3)")
    if isinstance(node.this, exp.Tuple) and all(isinstance(row, exp.Tuple) for row in node.expressions):
        return _in_rows(self, node)
    operands = (self.convert(node.this), *self.all(node.expressions))
    return syntax.Apply(syntax.grown(syntax.hull(operands), self.tokens, right=[")"]), "in", operands)


def _in_rows(self: Converter, node: exp.Expr) -> syntax.Node:
    """`(a, b) IN ((1, 2), (3, 4))`."""
    left = self.all(node.this.expressions)
    rows = [self.all(row.expressions) for row in node.expressions]
    span = syntax.hull([*left, *chain(*rows)])
    return _condition("or", [reductions.equal_rows(span, left, row) for row in rows])


def _equal(self: Converter, node: exp.Expr) -> syntax.Node:
    """`=`, also of rows: `(a, b) = (1, 2)`."""
    if not isinstance(node.this, exp.Tuple) or not isinstance(node.expression, exp.Tuple):
        return _binary("=")(self, node)
    sides = [self.all(side.expressions) for side in (node.this, node.expression)]
    return reductions.equal_rows(syntax.hull(chain(*sides)), *sides)


def _in_zone(self: Converter, node: exp.Expr) -> syntax.Node:
    """`ts AT TIME ZONE 'Europe/Berlin'`."""
    self.only(node, {"this", "zone"})
    time, zone = self.convert(node.this), self.convert(node.args["zone"])
    return syntax.Apply(time.span.to(zone.span), "from_utc_timestamp", (time, zone))


def _in_query(self: Converter, node: exp.Expr) -> syntax.Node:
    self.only(node, {"this", "query"})
    several = node.this.expressions if isinstance(node.this, exp.Tuple) else [node.this]
    query, args = self.query(node.args["query"]), self.all(several)
    span = syntax.hull([syntax.enclosed(query.span, self.tokens), *args])
    return syntax.InTest(span, args, query)


def _case(self: Converter, node: exp.Expr) -> syntax.Node:
    """Both forms; `CASE x WHEN 1` is `CASE WHEN x = 1`."""
    self.only(node, {"this", "ifs", "default"})
    subject = [self.convert(node.this)] if node.this is not None else []
    args: list[syntax.Node] = []
    for branch in node.args["ifs"]:
        self.only(branch, {"this", "true"})
        condition = self.convert(branch.this)
        args.append(syntax.Apply(condition.span, "=", (subject[0], condition)) if subject else condition)
        args.append(self.convert(branch.args["true"]))
    if node.args.get("default") is not None:
        args.append(self.convert(node.args["default"]))
    span = syntax.hull([*subject, *args])
    begin = [{"CASE"}] if subject else [{"WHEN"}, {"CASE"}]
    return syntax.Apply(syntax.grown(span, self.tokens, left=begin, right=[{"END"}]), "case", tuple(args))


_SIGNS: dict[type[exp.Expr], str] = {
    exp.And: "and",
    exp.Or: "or",
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.IntDiv: "div",
    exp.DPipe: "||",
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
    exp.BitwiseAnd: "&",
    exp.BitwiseOr: "|",
    exp.BitwiseXor: "^",
    exp.BitwiseLeftShift: "<<",
    exp.BitwiseRightShift: ">>",
}
OPERATORS: dict[type[exp.Expr], _Handler] = {
    **{kind: _binary(sign) for kind, sign in _SIGNS.items()},
    exp.EQ: _equal,
    exp.AtTimeZone: _in_zone,
    exp.Neg: _neg,
    exp.BitwiseNot: _bitwise_not,
    exp.Not: _not,
    exp.Is: _is,
    exp.NullSafeNEQ: _distinct_from,
    exp.Like: _like("like"),
    exp.ILike: _like("ilike"),
    exp.RegexpLike: _like("rlike"),
    exp.Escape: _escape,
    exp.Between: _between,
    exp.In: _in,
    exp.Case: _case,
}

_COMPARISONS = {exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ}
_TESTS = _COMPARISONS | {exp.Is, exp.Between, exp.In, exp.Like, exp.ILike, exp.RegexpLike}
_ARITHMETIC = {exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.IntDiv, exp.Neg, exp.BitwiseNot}
_BITS = {exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.BitwiseLeftShift, exp.BitwiseRightShift}
_CONDITIONS = _TESTS | {exp.Not, exp.Escape}
#: operators that are refused as operands of others, unless in parentheses
_UNCLEAR: dict[type[exp.Expr], frozenset[type[exp.Expr]]] = {
    **dict.fromkeys(_TESTS | _ARITHMETIC | {exp.Cast, exp.TryCast}, frozenset(_CONDITIONS)),
    **{kind: frozenset((_CONDITIONS | _BITS | {exp.DPipe}) - {kind}) for kind in _BITS},
    exp.DPipe: frozenset(_CONDITIONS | _BITS | {exp.Add, exp.Sub}),
}
