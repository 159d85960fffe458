"""Conditions as disjunctions of terms (thesis, 8.3.3), in a form in which equal ones are equal.

A term says for some expressions which values they may have. Thesis terms compare one attribute with a
constant; here a term may be a conjunction of such comparisons, and what is no comparison (`name LIKE 'a%'`)
is an attribute of its own that has to be TRUE.

>>> from windrow.algebra.functions import call
>>> from windrow.algebra.types import INT, STRING
>>> length, protocol = ColumnRef("length", INT), ColumnRef("protocol", STRING)
>>> short = call("<", [length, Literal(100, INT)])
>>> not_long = call("not", [call(">", [length, Literal(99, INT)])])
>>> predicate_of(short) == predicate_of(not_long)
True
>>> names = [Literal(name, STRING) for name in ("TCP", "UDP")]
>>> either = predicate_of(call("in", [protocol, *names]))
>>> len(either.terms), either.is_disjoint
(2, True)

Which values of one expression a conjunction of comparisons lets through.

A comparison with a constant is true for an interval of values, with some left out, and never for NULL. Whole
numbers and instants have closed intervals only, so that `a > 2` and `a >= 3` are the same.

>>> Allowed.of(">", 2, whole=True) == Allowed.of(">=", 3, whole=True)
True
>>> both = Allowed.of("<", 5, whole=True).meet(Allowed.of(">", 3, whole=True))
>>> both == Allowed.of("=", 4, whole=True), both.meet(Allowed.of("<>", 4, whole=True)).is_empty
(True, True)

Conditions as JSON, for what is kept longer than the query that brought it:

>>> written(short)
['call', '<', [['column', 'length', 'INT'], ['literal', 'int', '100', 'INT']], 'BOOLEAN']
>>> read(written(short)) == short
True
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import combinations
from typing import Any, Generic, TypeVar

from windrow.algebra.expressions import TRUE, Call, Cast, ColumnRef, Expression, Literal, disjunction
from windrow.algebra.types import BOOLEAN, Kind, parse_type
from windrow.errors import QueryError
from windrow.optimizer.simplify_predicates import disjunctive_form

#: a value's place in the order of values: NaN is the greatest
Place = tuple[bool, Any]


@dataclass(frozen=True)
class Allowed:
    """Values between two places, some left out; or NULL only."""

    low: Place | None = None
    high: Place | None = None
    low_is_in: bool = True
    high_is_in: bool = True
    without: frozenset[Place] = frozenset()
    null: bool = False
    impossible: bool = False

    @classmethod
    def of(cls, comparison: str, value: Any, *, whole: bool = False) -> Allowed:
        """What a comparison with a constant lets through; nothing if the constant is NULL."""
        if value is None:
            return NOTHING
        at = _place(value)
        match comparison:
            case "=":
                return cls(at, at)
            case "<>":
                return cls(without=frozenset([at]))
            case "<" | "<=":
                found = cls(high=at, high_is_in=comparison == "<=")
            case _:
                found = cls(low=at, low_is_in=comparison == ">=")
        return found._closed() if whole else found

    @property
    def is_empty(self) -> bool:
        """Whether no value at all is let through."""
        if self.impossible:
            return True
        if self.low is None or self.high is None:
            return False
        if self.low == self.high:
            return not (self.low_is_in and self.high_is_in) or self.low in self.without
        return self.low > self.high

    def meet(self, other: Allowed) -> Allowed:
        """What both let through."""
        if self.null != other.null:
            return NOTHING
        both = self, other
        lows = [(each.low, each.low_is_in) for each in both]
        highs = [(each.high, each.high_is_in) for each in both]
        low, low_is_in = max(lows, key=lambda end: (end[0] is not None, end[0] or (), not end[1]))
        high, high_is_in = min(highs, key=lambda end: (end[0] is None, end[0] or (), end[1]))
        found = Allowed(
            low,
            high,
            low_is_in,
            high_is_in,
            self.without | other.without,
            self.null,
            self.impossible or other.impossible,
        )
        return NOTHING if found.is_empty else found._trimmed()

    def _closed(self) -> Allowed:
        found = self
        if found.low is not None and not found.low_is_in:
            found = replace(found, low=(False, found.low[1] + 1), low_is_in=True)
        if found.high is not None and not found.high_is_in:
            found = replace(found, high=(False, found.high[1] - 1), high_is_in=True)
        return found

    def _trimmed(self) -> Allowed:
        """Without mention of values that are outside anyway."""
        low, high = self.low, self.high
        inside = {at for at in self.without if (low is None or at >= low) and (high is None or at <= high)}
        return replace(self, without=frozenset(inside))


def _place(value: Any) -> Place:
    if isinstance(value, float) and math.isnan(value):
        return True, 0
    return False, value


NOTHING = Allowed(impossible=True)
ONLY_NULL = Allowed(null=True)
NOT_NULL = Allowed()
TRUTH, UNTRUTH = Allowed.of("=", True), Allowed.of("=", False)


#: how constants are read again, by the names of their Python types
_VALUES: dict[str, Callable[[str], Any]] = {
    "NoneType": lambda _: None,
    "bool": lambda text: text == "True",
    "int": int,
    "float": float,
    "str": str,
    "Decimal": Decimal,
}


def written(expression: Expression) -> list[Any] | None:
    """An expression as JSON; None if it cannot be read again from that."""
    try:
        found = _written(expression)
        return found if read(found) == expression else None
    except (KeyError, QueryError):
        return None


def read(stored: Sequence[Any]) -> Expression:
    """What `written` has written."""
    match stored:
        case ["column", name, kind]:
            return ColumnRef(name, parse_type(kind))
        case ["literal", value, text, kind]:
            return Literal(_VALUES[value](text), parse_type(kind))
        case ["call", name, args, kind]:
            return Call(name, tuple(map(read, args)), parse_type(kind))
        case ["cast", arg, kind, safe]:
            return Cast(read(arg), parse_type(kind), safe)
    raise KeyError(stored[0])


def _written(expression: Expression) -> list[Any]:
    kind = str(expression.type)
    match expression:
        case ColumnRef(name):
            return ["column", name, kind]
        case Literal(value):
            return ["literal", type(value).__name__, str(value), kind]
        case Call(name, args):
            return ["call", name, [_written(arg) for arg in args], kind]
        case Cast(arg, _, safe):
            return ["cast", _written(arg), kind, safe]
    raise KeyError(type(expression).__name__)


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


# ------------------------------------------------------------ covers
#
# Covers: which synopses together hold exactly the rows of a query (thesis, 8.3.3).
#
# A set of synopses *covers* a query if their terms together are the query's terms, is a *subcover* if they
# are only some of them, and a *supercover* if there are others besides. A cover is *disjoint* if no row
# satisfies two of the terms.


Name = TypeVar("Name", bound=Hashable)


@dataclass(frozen=True)
class Relevant(Generic[Name]):
    """Synopses to combine, and those to subtract from the result."""

    added: tuple[Name, ...]
    subtracted: tuple[Name, ...] = ()

    @property
    def all(self) -> tuple[Name, ...]:
        return (*self.added, *self.subtracted)


def find_cover(query: Predicate, held: Mapping[Name, Predicate], most: int) -> Relevant[Name] | None:
    """A cover of at most so many synopses, rows in several of which do no harm; those of most terms first."""
    missing, chosen = set(query.terms), list[Name]()
    while missing:
        useful = [name for name, each in held.items() if each.terms <= query.terms and each.terms & missing]
        if not useful or len(chosen) == most:
            return None
        best = max(useful, key=lambda name: len(held[name].terms & missing))
        chosen.append(best)
        missing -= held[best].terms
    return Relevant(tuple(chosen)) if chosen else None


def find_disjoint_cover(query: Predicate, held: Mapping[Name, Predicate], most: int) -> Relevant[Name] | None:
    """A disjoint cover of at most so many synopses."""
    if not query.is_disjoint:
        return None
    found = _exact(query.terms, {n: each.terms for n, each in held.items()}, most)
    return Relevant(found) if found else None


def find_difference(query: Predicate, held: Mapping[Name, Predicate], most: int) -> Relevant[Name] | None:
    """A disjoint supercover, and a disjoint cover of what it has beyond the query, to be subtracted."""
    for name, whole in sorted(held.items(), key=lambda item: len(item[1].terms)):
        if not whole.terms > query.terms or not whole.is_disjoint:
            continue
        others = {n: each.terms for n, each in held.items() if n != name}
        rest = _exact(whole.terms - query.terms, others, most - 1)
        if rest:
            return Relevant((name,), rest)
    return None


def _exact(
    wanted: frozenset[Term], held: Mapping[Name, frozenset[Term]], most: int
) -> tuple[Name, ...] | None:
    """Names that have each of the terms once, and no others; those of most terms first."""
    fitting = [(name, terms) for name, terms in held.items() if terms and terms <= wanted]
    return _chosen(wanted, sorted(fitting, key=lambda item: -len(item[1])), most)


def _chosen(
    wanted: frozenset[Term], fitting: Sequence[tuple[Name, frozenset[Term]]], most: int
) -> tuple[Name, ...] | None:
    if not wanted:
        return ()
    for place, (name, terms) in enumerate(fitting):
        if len(terms) * most < len(wanted):
            return None
        if terms <= wanted:
            rest = _chosen(wanted - terms, fitting[place + 1 :], most - 1)
            if rest is not None:
                return (name, *rest)
    return None
