"""Which queries may be computed together, by CS1 to CS8: groups for the scheduler."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from windrow.algebra.explain.brackets import quantity
from windrow.algebra.expressions import TRUE, Expression
from windrow.algebra.functions.sql_text import to_sql
from windrow.physical.sharing import Shared
from windrow.sharing.data import Datum
from windrow.sharing.rules import OF_ONE, OF_SEVERAL, averages_together, may_take, unslid

if TYPE_CHECKING:
    from windrow.sharing.predicates import Relevant
    from windrow.sharing.questions import Need, QueryNeeds
    from windrow.sharing.synopses import Held

# ------------------------------------------------------------ plans
#
# The sharing plan of a workload: its synopses, and for each query which it shares, with whom and why.


@dataclass(frozen=True)
class Group:
    """Queries that may be computed together, if their refreshes coincide."""

    queries: tuple[str, ...]
    rules: tuple[str, ...]


@dataclass(frozen=True)
class QueryShare:
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
    shares: Mapping[str, QueryShare]
    groups: tuple[Group, ...]
    questions: Mapping[str, QueryNeeds]

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


# ------------------------------------------------------------ groups


Recipes = Mapping[str, Mapping["Need", "Relevant[str]"]]
#: two queries, the rule by which they go together, and the synopsis that it is about; None: all of it
Link = tuple[str, str, str, str | None]

#: the queries that use a synopsis by itself, with the lengths of their windows in its intervals
Direct = Mapping[str, Sequence[tuple[str, tuple[int, ...]]]]


def groups_of(
    questions: Mapping[str, QueryNeeds], recipes: Recipes, held: Mapping[str, Held]
) -> tuple[tuple[Group, ...], dict[tuple[str, str], tuple[str, ...]]]:
    """The groups, and the rules that concern a query and a synopsis of it."""
    links = list(_links(questions, recipes, held))
    concern: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for one, other, rule, synopsis in links:
        names = [synopsis] if synopsis else [n for each in recipes[one].values() for n in each.all]
        for name in names:
            concern[one, name].add(rule)
            concern[other, name].add(rule)
    groups = tuple(_group(part, links) for part in _parts(list(questions), links))
    return groups, {key: tuple(sorted(rules)) for key, rules in concern.items()}


def _links(questions: Mapping[str, QueryNeeds], recipes: Recipes, held: Mapping[str, Held]) -> Iterator[Link]:
    """Links enough to join every group; not all pairs, which would be many."""
    direct: defaultdict[str, list[tuple[str, tuple[int, ...]]]] = defaultdict(list)
    for query, needs in recipes.items():
        for need, relevant in needs.items():
            if len(relevant.all) == 1:
                lengths = held[relevant.added[0]].intervals(questions[query].wanted(need))
                direct[relevant.added[0]].append((query, lengths))
    for name, users in direct.items():
        yield from _of_one(held[name], list(dict.fromkeys(users)))
    for query, needs in recipes.items():
        for need, relevant in needs.items():
            if len(relevant.all) > 1:
                yield from _of_several(questions[query], need, relevant, held, direct)
    yield from _averages(questions, recipes, held, direct)
    yield from _repeated(questions)


def _of_one(held: Held, users: Sequence[tuple[str, tuple[int, ...]]]) -> Iterator[Link]:
    last: dict[object, tuple[str, tuple[int, ...]]] = {}
    for query, lengths in users:
        before = last.get(None if held.kind.is_basic else lengths)
        last[None if held.kind.is_basic else lengths] = query, lengths
        if before is None or before[0] == query:
            continue
        for name, rule in OF_ONE.items():
            if rule((held,), before[1], lengths):
                yield before[0], query, name, held.name


def _of_several(
    question: QueryNeeds,
    need: Need,
    relevant: Relevant[str],
    held: Mapping[str, Held],
    direct: Direct,
) -> Iterator[Link]:
    parts = [held[name] for name in relevant.all]
    for each in parts:
        mine = each.intervals(question.wanted(need))
        for query, lengths in direct.get(each.name, ()):
            for name, rule in OF_SEVERAL.items():
                if query != question.name and rule(parts, lengths, mine):
                    yield query, question.name, name, each.name


def _averages(
    questions: Mapping[str, QueryNeeds], recipes: Recipes, held: Mapping[str, Held], direct: Direct
) -> Iterator[Link]:
    """An average goes with the sums and counts whose totals and counts it divides."""
    users: defaultdict[tuple[str, tuple[int, ...]], list[str]] = defaultdict(list)
    for name, found in direct.items():
        for query, _ in found:
            users[name, questions[query].lengths].append(query)
    for query, question in questions.items():
        singles = [
            (need, held[recipes[query][need].added[0]])
            for need in recipes[query]
            if need in question.averages and len(recipes[query][need].all) == 1
        ]
        for need, totals in singles:
            for other, counts in singles:
                same = need.datum.args == other.datum.args and need.datum != other.datum
                if not same or not averages_together(totals, counts, question.wanted(need), question.lengths):
                    continue
                for user in dict.fromkeys(users[totals.name, question.lengths]):
                    if user != query:
                        yield user, query, "CS3", totals.name
                        break


def _repeated(questions: Mapping[str, QueryNeeds]) -> Iterator[Link]:
    """Queries that differ in nothing but their period, the most frequent one first."""
    same: defaultdict[object, list[QueryNeeds]] = defaultdict(list)
    for question in questions.values():
        if len(question.lengths) == 1 and question.is_exact:
            same[unslid(question.emit)].append(question)
    for alike in same.values():
        ordered = sorted(alike, key=lambda question: question.slide)
        for place, question in enumerate(ordered):
            for other in ordered[:place]:
                if may_take(question.emit, other.emit):
                    yield other.name, question.name, "CS8", None
                    break


def _parts(names: Sequence[str], links: Sequence[Link]) -> list[list[str]]:
    """Names that are linked, directly or by others."""
    root = {name: name for name in names}

    def find(name: str) -> str:
        while root[name] != name:
            root[name] = root[root[name]]
            name = root[name]
        return name

    for one, other, _, _ in links:
        root[find(other)] = find(one)
    parts: defaultdict[str, list[str]] = defaultdict(list)
    for name in names:
        parts[find(name)].append(name)
    return list(parts.values())


def _group(names: Sequence[str], links: Sequence[Link]) -> Group:
    mine = set(names)
    return Group(tuple(names), tuple(sorted({rule for one, _, rule, _ in links if one in mine})))
