"""Operators and CASE, by the names they have in the function registry.

Where sqlglot and Spark would group operators differently (`a | b & c`, `a || b + c`), or where few
readers would know (`a = b = c`), parentheses are asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import reduce

from sqlglot import exp

from windrow.algebra.functions.sql_text import LONG_CHAIN
from windrow.language.converter import Converter
from windrow.language.depth import MAX_DEPTH, too_deep
from windrow.language.numbers import negated
from windrow.language.places import enclosed, grown, hull
from windrow.language.syntax import Apply, Constant, ExistsTest, InTest, Node

_CONDITIONAL = ("and", "or")

_Handler = Callable[[Converter, exp.Expr], Node]


def _binary(sign: str) -> _Handler:
    def convert(self: Converter, node: exp.Expr) -> Node:
        kind, operands = type(node), list[exp.Expr]()
        while type(node) is kind:
            self.only(node, {"this", "expression", "safe", "typed"})
            self.refuse_unclear(node)
            operands.append(node.args["expression"])
            node = node.this
        converted = [self.convert(part) for part in (node, *reversed(operands))]
        if sign in _CONDITIONAL:
            return _condition(sign, converted)
        if len(converted) > MAX_DEPTH:
            raise too_deep(hull(part.span for part in converted))
        return _joined(sign, converted)

    return convert


def _condition(sign: str, operands: list[Node]) -> Node:
    """A chain of AND or OR: as written, or balanced if it is long, whatever parentheses are inside."""
    parts = [part for operand in operands for part in _parts(sign, operand)]
    if len(parts) <= LONG_CHAIN:
        return _joined(sign, operands)
    return replace(_balanced(sign, parts), span=hull(operand.span for operand in operands))


def _parts(sign: str, operand: Node) -> list[Node]:
    """The operands of a chain inside another of the same kind."""
    found, waiting = list[Node](), [operand]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Apply) and node.function == sign:
            waiting += reversed(node.args)
        else:
            found.append(node)
    return found


def _balanced(sign: str, operands: list[Node]) -> Node:
    if len(operands) == 1:
        return operands[0]
    middle = len(operands) // 2
    return _joined(sign, [_balanced(sign, operands[:middle]), _balanced(sign, operands[middle:])])


def _joined(sign: str, operands: list[Node]) -> Node:
    """The operands from left to right."""
    return reduce(lambda left, right: Apply(left.span.to(right.span), sign, (left, right)), operands)


def _neg(self: Converter, node: exp.Expr) -> Node:
    operand = self.convert(node.this)
    span = grown(operand.span, self.tokens, left=["-"])
    return negated(operand, span) or Apply(span, "neg", (operand,))


def _bitwise_not(self: Converter, node: exp.Expr) -> Node:
    operand = self.convert(node.this)
    return Apply(grown(operand.span, self.tokens, left=["~"]), "~", (operand,))


def _not(self: Converter, node: exp.Expr) -> Node:
    self.only(node, {"this"})
    operand = self.convert(node.this)
    if isinstance(node.this, exp.Is) and isinstance(operand, Apply) and operand.function == "is_null":
        return replace(operand, function="is_not_null")
    span = grown(operand.span, self.tokens, left=[{"NOT", "!"}])
    if isinstance(operand, ExistsTest | InTest):
        return replace(operand, span=span, negated=not operand.negated)
    return Apply(span, "not", (operand,))


_TRUTH = frozenset({"NULL", "TRUE", "FALSE", "UNKNOWN"})


def _is(self: Converter, node: exp.Expr) -> Node:
    self.only(node, {"this", "expression"})
    operand, test = self.convert(node.this), node.args["expression"]
    span = grown(operand.span, self.tokens, right=[{"IS"}, _TRUTH | {"NOT"}, _TRUTH])
    if isinstance(test, exp.Null):
        return Apply(span, "is_null", (operand,))
    if isinstance(test, exp.Boolean):
        return Apply(span, "<=>", (operand, Constant(span, bool(test.this), "BOOLEAN")))
    raise self.refusal(test, "IS compares with NULL, TRUE and FALSE only", "write =, or IS NOT DISTINCT FROM")


def _distinct_from(self: Converter, node: exp.Expr) -> Node:
    self.only(node, {"this", "expression"})
    operands = self.convert(node.this), self.convert(node.args["expression"])
    span = hull(operand.span for operand in operands)
    return Apply(span, "not", (Apply(span, "<=>", operands),))


def _like(name: str) -> _Handler:
    return lambda self, node: _matched(self, name, node, ())


def _matched(self: Converter, name: str, node: exp.Expr, escape: tuple[Node, ...]) -> Node:
    self.only(node, {"this", "expression", "negate"})
    operands = (self.convert(node.this), self.convert(node.args["expression"]), *escape)
    span = hull(operand.span for operand in operands)
    matches = Apply(span, name, operands)
    return Apply(span, "not", (matches,)) if node.args.get("negate") else matches


def _escape(self: Converter, node: exp.Expr) -> Node:
    name = {exp.Like: "like", exp.ILike: "ilike"}.get(type(node.this))
    if name is None:
        raise self.refusal(node, "ESCAPE follows LIKE only", "write x LIKE 'a!%' ESCAPE '!'")
    return _matched(self, name, node.this, (self.convert(node.args["expression"]),))


def _between(self: Converter, node: exp.Expr) -> Node:
    self.only(node, {"this", "low", "high"})
    operands = tuple(self.convert(node.args[part]) for part in ("this", "low", "high"))
    return Apply(hull(operand.span for operand in operands), "between", operands)


def _in(self: Converter, node: exp.Expr) -> Node:
    if node.args.get("query") is not None:
        return _in_query(self, node)
    self.only(node, {"this", "expressions"}, "IN takes a list of values", "write x IN (1, 2, 3)")
    operands = (self.convert(node.this), *self.all(node.expressions))
    return Apply(grown(hull(part.span for part in operands), self.tokens, right=[")"]), "in", operands)


def _in_query(self: Converter, node: exp.Expr) -> Node:
    self.only(node, {"this", "query"})
    several = node.this.expressions if isinstance(node.this, exp.Tuple) else [node.this]
    query, args = self.query(node.args["query"]), self.all(several)
    span = hull([enclosed(query.span, self.tokens), *(arg.span for arg in args)])
    return InTest(span, args, query)


def _case(self: Converter, node: exp.Expr) -> Node:
    """Both forms; `CASE x WHEN 1` is `CASE WHEN x = 1`."""
    self.only(node, {"this", "ifs", "default"})
    subject = [self.convert(node.this)] if node.this is not None else []
    args: list[Node] = []
    for branch in node.args["ifs"]:
        self.only(branch, {"this", "true"})
        condition = self.convert(branch.this)
        args.append(Apply(condition.span, "=", (subject[0], condition)) if subject else condition)
        args.append(self.convert(branch.args["true"]))
    if node.args.get("default") is not None:
        args.append(self.convert(node.args["default"]))
    span = hull(part.span for part in (*subject, *args))
    begin = [{"CASE"}] if subject else [{"WHEN"}, {"CASE"}]
    return Apply(grown(span, self.tokens, left=begin, right=[{"END"}]), "case", tuple(args))


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
UNCLEAR: dict[type[exp.Expr], frozenset[type[exp.Expr]]] = {
    **dict.fromkeys(_TESTS | _ARITHMETIC | {exp.Cast, exp.TryCast}, frozenset(_CONDITIONS)),
    **{kind: frozenset((_CONDITIONS | _BITS | {exp.DPipe}) - {kind}) for kind in _BITS},
    exp.DPipe: frozenset(_CONDITIONS | _BITS | {exp.Add, exp.Sub}),
}
