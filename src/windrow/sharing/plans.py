"""The sharing plan of a workload: its synopses, and for each query which it shares, with whom and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from windrow.algebra.explain.brackets import quantity
from windrow.algebra.expressions import TRUE, Expression
from windrow.algebra.functions.sql_text import to_sql
from windrow.physical.sharing import Shared
from windrow.sharing.data import Datum

if TYPE_CHECKING:
    from windrow.sharing.predicates.covers import Relevant
    from windrow.sharing.questions import Need, Question
    from windrow.sharing.synopsis_facts import Held


@dataclass(frozen=True)
class Group:
    """Queries that may be computed together, if their refreshes coincide."""

    queries: tuple[str, ...]
    rules: tuple[str, ...]


@dataclass(frozen=True)
class Share:
    """What one query takes from which synopses; `reason` is why it shares nothing, if so."""

    query: str
    recipes: Mapping[Need, Relevant[str]] = field(default_factory=dict)
    #: the rules by which it uses each synopsis
    rules: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    reason: str | None = None


@dataclass(frozen=True)
class SharingPlan:
    """Who shares what."""

    synopses: Mapping[str, Held]
    users: Mapping[str, tuple[str, ...]]
    shares: Mapping[str, Share]
    groups: tuple[Group, ...]
    questions: Mapping[str, Question]

    def lines(self, query: str) -> list[str]:
        """What a query shares, a line for each synopsis."""
        share = self.shares[query]
        if share.reason is not None:
            return [f"shares nothing: {share.reason}"]
        return [each.of_synopsis for each in self.synopses_of(query)]

    def synopses_of(self, query: str) -> tuple[Shared, ...]:
        """The synopses of a query, each with how many others use it, and by which rules it does."""
        rules = self.shares[query].rules
        return tuple(Shared(name, len(self.users[name]) - 1, each) for name, each in rules.items())

    def describe(self, synopsis: str) -> str:
        """A synopsis in words: what it keeps of which rows, its intervals, its kind, and how many use it."""
        held, users = self.synopses[synopsis], self.users[synopsis]
        datum, domain = held.family.datum, self.questions[users[0]].emit.leaves[0].domain
        assert isinstance(datum, Datum)
        by = ", ".join(to_sql(key, str) for key in held.family.keys if isinstance(key, Expression))
        where = held.predicate.expression
        kept = datum.text + (f" by {by}" if by else "")
        kept += "" if where == TRUE else f" where {to_sql(where, str)}"
        each = quantity(held.grid.width, domain)
        uses = "1 query" if len(users) == 1 else f"{len(users):,} queries"
        return f"{kept}: {held.b} × {each}, {held.kind.value}, for {uses}"

    def __str__(self) -> str:
        """All synopses, and all queries."""
        lines = [f"{name}  {self.describe(name)}" for name in self.synopses]
        for query in self.shares:
            lines += ["", query, *(f"  {line}" for line in self.lines(query))]
        return "\n".join(lines)
