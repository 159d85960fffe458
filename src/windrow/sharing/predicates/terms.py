"""Conditions as disjunctions of terms (thesis, 8.3.3), in a form in which equal ones are equal.

A term says for some expressions which values they may have. Thesis terms compare one attribute with a
constant; here a term may be a conjunction of such comparisons, and what is no comparison (`name LIKE 'a%'`)
is an attribute of its own that has to be TRUE.

>>> from windrow.algebra.expressions import Column
>>> from windrow.algebra.functions import call
>>> from windrow.algebra.types import INT, STRING
>>> length, protocol = Column("length", INT), Column("protocol", STRING)
>>> short = call("<", [length, Literal(100, INT)])
>>> not_long = call("not", [call(">", [length, Literal(99, INT)])])
>>> predicate_of(short) == predicate_of(not_long)
True
>>> names = [Literal(name, STRING) for name in ("TCP", "UDP")]
>>> either = predicate_of(call("in", [protocol, *names]))
>>> len(either.terms), either.is_disjoint
(2, True)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING

from windrow.algebra.expressions import TRUE, Call, Expression, Literal, disjunction
from windrow.algebra.predicates import disjunctive_form
from windrow.algebra.types import BOOLEAN, Kind
from windrow.sharing.predicates.allowed_values import NOT_NULL, ONLY_NULL, TRUTH, UNTRUTH, Allowed

if TYPE_CHECKING:
    from collections.abc import Iterable

_COMPARISONS = frozenset({"=", "<>", "<", "<=", ">", ">=", "<=>"})


@dataclass(frozen=True)
class Term:
    """What must hold of each of some expressions, all at once; of none, it holds for every row."""

    parts: frozenset[tuple[Expression, Allowed]]

    def is_disjoint_from(self, other: Term) -> bool:
        """Whether certainly no row satisfies both."""
        theirs = dict(other.parts)
        return any(part in theirs and allowed.meet(theirs[part]).is_empty for part, allowed in self.parts)

    def implies(self, other: Term) -> bool:
        """Whether certainly every row that satisfies this satisfies the other."""
        mine = dict(self.parts)
        return all(part in mine and mine[part].meet(allowed) == mine[part] for part, allowed in other.parts)


@dataclass(frozen=True)
class Predicate:
    """A row satisfies it if it satisfies any of the terms. Equal terms make equal predicates."""

    terms: frozenset[Term]
    expression: Expression = field(default=TRUE, compare=False)

    @property
    def is_disjoint(self) -> bool:
        """Whether no row satisfies two terms."""
        return all(one.is_disjoint_from(other) for one, other in combinations(self.terms, 2))


def predicate_of(condition: Expression) -> Predicate:
    """The terms of a condition; a condition of too many terms is one term."""
    clauses = disjunctive_form(_without_lists(condition))
    if clauses is None:
        return Predicate(frozenset([Term(frozenset([(condition, TRUTH)]))]), condition)
    terms = {term for clause in clauses if (term := _term(clause)) is not None}
    needed = [one for one in terms if not any(one != other and one.implies(other) for other in terms)]
    return Predicate(frozenset(needed), condition)


def _term(clause: Iterable[Expression]) -> Term | None:
    """The clause as a term; None if nothing satisfies it."""
    found: dict[Expression, Allowed] = {}
    for part in clause:
        if part == TRUE:
            continue
        subject, allowed = _constraint(part)
        found[subject] = found[subject].meet(allowed) if subject in found else allowed
    if any(allowed.is_empty for allowed in found.values()):
        return None
    return Term(frozenset(found.items()))


def _constraint(part: Expression) -> tuple[Expression, Allowed]:
    match part:
        case Call(name, (subject, Literal() as constant)) if name in _COMPARISONS and _is_plain(subject):
            if subject.type == constant.type and (name != "<=>" or constant.value is not None):
                whole = subject.type.is_integer or subject.type.is_time
                return subject, Allowed.of("=" if name == "<=>" else name, constant.value, whole=whole)
        case Call("is_null", (subject,)):
            return subject, ONLY_NULL
        case Call("is_not_null", (subject,)):
            return subject, NOT_NULL
        case Call("not", (subject,)):
            return subject, UNTRUTH
    return part, TRUTH


def _is_plain(subject: Expression) -> bool:
    """Whether Python orders the values as Windrow does."""
    kind = subject.type
    plain = kind.is_integer or kind.is_fractional or kind.is_time
    return plain or kind.kind in (Kind.STRING, Kind.BOOLEAN, Kind.DECIMAL)


def _without_lists(condition: Expression) -> Expression:
    """IN with constants is one comparison OR the other."""

    def change(node: Expression) -> Expression:
        match node:
            case Call("in", (subject, *values)) if all(isinstance(value, Literal) for value in values):
                return disjunction(tuple(Call("=", (subject, value), BOOLEAN) for value in values))
        return node

    return condition.rewrite(change)
