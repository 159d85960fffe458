"""Covers: which synopses together hold exactly the rows of a query (thesis, 8.3.3).

A set of synopses *covers* a query if their terms together are the query's terms, is a *subcover* if they are
only some of them, and a *supercover* if there are others besides. A cover is *disjoint* if no row satisfies
two of the terms.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from windrow.sharing.predicates.terms import Predicate, Term

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
