"""Sharing rules (thesis, chapter 8): SS1 to SS4 say which queries may share state, CS1 to CS8 which of them
may be computed together.

| rule | what is shared, or computed together | if |
|---|---|---|
| SS1 | a synopsis, for windows of all lengths | same data; windows of n·s, 1 ≤ n ≤ b |
| SS2 | totals and counts, for AVG | updated at the same times, both long enough |
| SS4 | synopses of others | their conditions together are the query's own |
| CS1 | queries on one running or interval synopsis | windows equally long |
| CS2 | queries on one basic interval synopsis | always: shorter windows are answered on the way |
| CS3 | SUM, COUNT and AVG | windows of one length, and SS2 |
| CS6 | a query combined from synopses, with their own | no synopsis is basic, all windows equally long |
| CS7 | a query combined from basic synopses, with their own | always: answers are saved on the way |
| CS8 | a query that is another one, only less often | its instants are instants of the other |

SS3, CS4 and CS5 are about joins, of which whole parts of plans run once
(`windrow.engine.sharing.common_subplans`).

CS1: other lengths subtract other totals, or combine other intervals, so nothing is saved. CS8: in the thesis
such a query is refreshed more often. Windrow answers every window that a query asks for and no other, so it
takes those at its own instants. Over joins it runs as the other does (`moving_on`) and reports at its own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from windrow.algebra import TRUE, Aggregate, Emit, Plan, Scan, Window
from windrow.algebra.aggregates import function_of
from windrow.algebra.aggregates.base import Size
from windrow.algebra.explain.operators import quantity
from windrow.algebra.functions.sql_text import to_sql
from windrow.physical.planner import Shared
from windrow.sharing.predicates import Predicate, Relevant, find_cover, find_difference, find_disjoint_cover
from windrow.sharing.questions import Held, Need, QueryNeeds, Wanted
from windrow.sharing.synopses import SynopsisKind
from windrow.windows import panes, ranges, spec

# ------------------------------------------------------------ rules


#: each further synopsis is one more to probe; a synopsis of its own is then the better one
MOST_PROBED = 4


def holds_windows(held: Held, wanted: Wanted) -> bool:
    """SS1: whether the synopsis has the data, for windows of any length."""
    return held.family == wanted.family and held.predicate == wanted.predicate and held.is_usable(wanted)


def combined(wanted: Wanted, usable: Mapping[str, Predicate]) -> Relevant[str] | None:
    """SS4: the synopses of these conditions to combine, and those to subtract; None if none will do.

    Where a row counted twice does harm the cover has to be disjoint; where states can be subtracted it may
    hold too much, if there is a disjoint cover of that.
    """
    datum = wanted.family.datum
    if not datum.adds_up:
        return None
    find = find_disjoint_cover if wanted.is_sensitive else find_cover
    found = find(wanted.predicate, usable, MOST_PROBED)
    if found is None and datum.is_subtractable:
        found = find_difference(wanted.predicate, usable, MOST_PROBED)
    return found


def moves_within(query: Emit, other: Emit) -> bool:
    """Whether the windows of a query move at instants at which those of the other do (CS8).

    >>> from windrow.algebra.catalog import Stream
    >>> from windrow.algebra.expressions import Field, Schema
    >>> from windrow.algebra.types import BIGINT
    >>> stream = Stream("S", Schema((Field("ts", BIGINT),)), "ts")
    >>> def every(slide):
    ...     return Emit(Window(Scan(stream, "S"), ranges.RangeWindow(10, slide)))
    >>> moves_within(every(4), every(2)), moves_within(every(5), every(2))
    (True, False)
    """
    mine, theirs = grid_of(query), grid_of(other)
    return mine is not None and theirs is not None and mine.is_within(theirs)


def grid_of(query: Emit) -> spec.SlideGrid | None:
    """The instants at which all windows of a query move; None if they are not windows of time over streams
    that move together."""
    plain = all(isinstance(origin, Scan) for leaf in query.leaves for origin in leaf.origins)
    grids = {leaf.spec.grid if isinstance(leaf.spec, ranges.RangeWindow) else None for leaf in query.leaves}
    return grids.pop() if plain and len(grids) == 1 else None


def unslid(query: Emit) -> Hashable:
    """What a query asks, but for when: the same for queries that differ in nothing else. Lists of frequent
    items depend on how windows are cut. A query whose windows do not move together is like no other."""
    if grid_of(query) is None:
        return query, object()
    calls = [call for node in query.walk() if isinstance(node, Aggregate) for _, call in node.aggregates]
    keeps_lists = any(function_of(call).size is Size.LISTS for call in calls)
    cuts = {panes.sub_windows_of(leaf.spec) for leaf in query.leaves} if keeps_lists else set()
    return moving_on(query, spec.SlideGrid(1)), frozenset(cuts)


def moving_on(query: Emit, grid: spec.SlideGrid) -> Emit:
    """The same query at other instants."""

    def change(node: Plan) -> Plan:
        if isinstance(node, Window) and isinstance(node.spec, ranges.RangeWindow):
            return replace(node, spec=replace(node.spec, slide=grid.period, origin=grid.origin))
        return node

    return replace(query, input=query.input.rewrite(change))


# ------------------------------------------------------------ plans
#
# The sharing plan of a workload: its synopses, and for each query which it shares, with whom and why.


@dataclass(frozen=True)
class QueryShare:
    """What one query takes from which synopses; `reason` is why it shares nothing, if so."""

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
        by = ", ".join(to_sql(key, str) for key in held.family.keys)
        where = held.predicate.expression
        kept = held.family.datum.text + (f" by {by}" if by else "")
        kept += "" if where == TRUE else f" where {to_sql(where, str)}"
        each = quantity(held.grid.width, self.questions[users[0]].emit.leaves[0].domain)
        uses = "1 query" if len(users) == 1 else f"{len(users):,} queries"
        return f"{kept}: {held.b} × {each}, {held.kind.value}, for {uses}"

    def __str__(self) -> str:
        """All synopses, and all queries."""
        lines = [f"{name}  {self.describe(name)}" for name in self.synopses]
        for query in self.shares:
            lines += ["", query, *(f"  {line}" for line in self.lines(query))]
        return "\n".join(lines)


# ------------------------------------------------------------ who is computed together


Recipes = Mapping[str, Mapping[Need, Relevant[str]]]
#: two queries, the rule by which they go together, and the synopses that it is about
Link = tuple[str, str, str, Sequence[str]]
#: the queries that use a synopsis by itself, with the lengths of their windows in its intervals
Direct = Mapping[str, Mapping[tuple[str, int], None]]


def rules_of(
    questions: Mapping[str, QueryNeeds], recipes: Recipes, held: Mapping[str, Held]
) -> dict[tuple[str, str], set[str]]:
    """The rules by which a query is computed together with others on one of its synopses."""
    direct: defaultdict[str, dict[tuple[str, int], None]] = defaultdict(dict)
    for query, needs in recipes.items():
        for need, relevant in needs.items():
            if len(relevant.all) == 1:
                (name,) = relevant.all
                direct[name][query, held[name].intervals(questions[query].wanted[need])] = None
    found: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for links in (
        _of_one(held, direct),
        _of_several(questions, recipes, held, direct),
        _averages(questions, recipes, held, direct),
        _repeated(questions, recipes),
    ):
        for one, other, rule, names in links:
            for name in names:
                found[one, name].add(rule)
                found[other, name].add(rule)
    return found


def _of_one(held: Mapping[str, Held], direct: Direct) -> Iterator[Link]:
    """CS1, CS2: queries on one synopsis; each with the one before it, not with all, which would be many."""
    for name, users in direct.items():
        is_basic = held[name].kind is SynopsisKind.BASIC
        last: dict[int | None, str] = {}
        for query, length in users:
            alike = None if is_basic else length
            before = last.get(alike, query)
            last[alike] = query
            if before != query:
                yield before, query, "CS2" if is_basic else "CS1", [name]


def _of_several(
    questions: Mapping[str, QueryNeeds], recipes: Recipes, held: Mapping[str, Held], direct: Direct
) -> Iterator[Link]:
    """CS6, CS7: a query that combines synopses, and those on one of them."""
    for query, needs in recipes.items():
        for need, relevant in needs.items():
            kinds = {held[name].kind for name in relevant.all}
            for name in relevant.all if len(relevant.all) > 1 else ():
                mine = held[name].intervals(questions[query].wanted[need])
                for other, length in direct.get(name, ()):
                    if other != query and kinds == {SynopsisKind.BASIC}:
                        yield other, query, "CS7", [name]
                    elif other != query and SynopsisKind.BASIC not in kinds and length == mine:
                        yield other, query, "CS6", [name]


def _averages(
    questions: Mapping[str, QueryNeeds], recipes: Recipes, held: Mapping[str, Held], direct: Direct
) -> Iterator[Link]:
    """CS3: an average goes with the sums and counts whose totals and counts it divides. The thesis asks for
    two running synopses; any two kinds will do, as totals of DOUBLE are kept in others."""
    users: defaultdict[tuple[str, int], dict[str, None]] = defaultdict(dict)
    for name, found in direct.items():
        for query, _ in found:
            users[name, questions[query].length][query] = None
    for query, question in questions.items():
        singles = [
            (need, held[relevant.added[0]])
            for need, relevant in recipes[query].items()
            if need in question.averages and len(relevant.all) == 1
        ]
        for need, totals in singles:
            for other, counts in singles:
                same = need.datum.args == other.datum.args and totals.predicate == counts.predicate
                if same and need.datum != other.datum:
                    others = [user for user in users[totals.name, question.length] if user != query]
                    yield from ((user, query, "CS3", [totals.name]) for user in others[:1])


def _repeated(questions: Mapping[str, QueryNeeds], recipes: Recipes) -> Iterator[Link]:
    """CS8: queries that differ in nothing but their period, the most frequent one first."""
    same: defaultdict[object, list[QueryNeeds]] = defaultdict(list)
    for question in questions.values():
        if question.is_exact:
            same[unslid(question.emit)].append(question)
    for alike in same.values():
        ordered = sorted(alike, key=lambda question: question.slide)
        for place, question in enumerate(ordered):
            for other in ordered[:place]:
                if moves_within(question.emit, other.emit):
                    names = [name for each in recipes[other.name].values() for name in each.all]
                    yield other.name, question.name, "CS8", names
                    break
