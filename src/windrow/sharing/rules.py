"""Sharing rules (thesis, chapter 8): SS1 to SS4 say which queries may share state, CS1 to CS8 which of them
may be computed together.

| rule | what is shared, or computed together | if |
|---|---|---|
| SS1 | a synopsis, for windows of all lengths | same data; windows of n·s, 1 ≤ n ≤ b |
| SS2 | totals and counts, for AVG | updated at the same times, both long enough |
| SS3 | a join synopsis | same join and data; (n1·s, n2·s), b − g ≤ n1, n2 ≤ b |
| SS4 | synopses of others | their conditions together are the query's own |
| CS1 | queries on one running or interval synopsis | windows equally long |
| CS2 | queries on one basic interval synopsis | always: shorter windows are answered on the way |
| CS3 | SUM, COUNT and AVG | windows of one length, and SS2 |
| CS4 | queries on one interval or running join synopsis | windows alike |
| CS5 | queries on one basic interval join synopsis | always |
| CS6 | a query combined from synopses, with their own | no synopsis is basic, all windows equally long |
| CS7 | a query combined from basic synopses, with their own | always: answers are saved on the way |
| CS8 | a query that is another one, only less often | its instants are instants of the other |

CS1: other lengths subtract other totals, or combine other intervals, so nothing is saved. CS8: in the thesis
such a query is refreshed more often. Windrow answers every window that a query asks for and no other, so it
takes those at its own instants. Over joins it runs as the other does (`moving_on`) and reports at its own.

>>> from windrow.sharing.synopses import SharedGrid
>>> from windrow.sharing.synopses import Family
>>> median = Family("S", "frequencies of length")
>>> synopsis = Held("p1", median, SharedGrid(60), 14, SynopsisKind.BASIC)
>>> [holds_windows(synopsis, Wanted(median, *each)) for each in (((600,), 120), ((630,), 30))]
[True, False]
>>> frequencies = Held("p1", median, SharedGrid(1), 8, SynopsisKind.INTERVAL)
>>> [rule((frequencies,), (7,), (7,)) for rule in OF_ONE.values()]
[True, False, False, False]
>>> joined = Held("p1", Family(("S", "T"), "count of rows"), SharedGrid(1), 8, SynopsisKind.RUNNING_JOIN, g=2)
>>> [name for name, rule in OF_ONE.items() if rule((joined,), (7, 8), (7, 8))], holds_joins(
...     joined, Wanted(joined.family, (7, 8), 1)
... )
(['CS4'], True)

Groups for the scheduler are queries that may be computed together, by CS1 to CS8.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from windrow.algebra.aggregates import function_of
from windrow.algebra.aggregates.base import Size
from windrow.algebra.explain.operators import quantity
from windrow.algebra.expressions import TRUE, Expression
from windrow.algebra.functions.sql_text import to_sql
from windrow.algebra.operators import Aggregate
from windrow.algebra.plan import Emit, Plan, Scan, Window
from windrow.physical.planner import Shared
from windrow.sharing.predicates import Predicate, Relevant, find_cover, find_difference, find_disjoint_cover
from windrow.sharing.questions import Datum, Need, QueryNeeds
from windrow.sharing.synopses import Held, SynopsisKind, Wanted
from windrow.windows import panes, ranges, spec

# ------------------------------------------------------------ rules


#: lengths of windows, of one query, in intervals of a synopsis
Lengths = tuple[int, ...]
#: whether two users of synopses, with windows of these lengths, are computed together
Together = Callable[[Sequence[Held], Lengths, Lengths], bool]

#: each further synopsis is one more to probe; a synopsis of its own is then the better one
MOST_PROBED = 4


def _of_kinds(*kinds: SynopsisKind, alike: bool) -> Together:
    return lambda held, one, other: held[0].kind in kinds and (one == other or not alike)


#: of two queries on one synopsis
OF_ONE: Mapping[str, Together] = {
    "CS1": _of_kinds(SynopsisKind.RUNNING, SynopsisKind.INTERVAL, alike=True),
    "CS2": _of_kinds(SynopsisKind.BASIC, alike=False),
    "CS4": _of_kinds(SynopsisKind.RUNNING_JOIN, SynopsisKind.INTERVAL_JOIN, alike=True),
    "CS5": _of_kinds(SynopsisKind.BASIC_JOIN, alike=False),
}
#: of a query on one of several synopses, and the query that combines them
OF_SEVERAL: Mapping[str, Together] = {
    "CS6": lambda held, one, other: not any(each.kind.is_basic for each in held) and one == other,
    "CS7": lambda held, one, other: all(each.kind.is_basic for each in held),
}


def holds_windows(held: Held, wanted: Wanted) -> bool:
    """SS1: whether the synopsis has the data, for windows of some length."""
    same = held.family == wanted.family and held.predicate == wanted.predicate
    return same and len(wanted.lengths) == 1 and held.is_aligned(wanted)


def holds_joins(held: Held, wanted: Wanted) -> bool:
    """SS3: whether the synopsis is of the same join and data, on intervals that fit."""
    same = held.family == wanted.family and held.predicate == wanted.predicate
    return same and held.kind.is_join and len(wanted.lengths) == 2 and held.is_aligned(wanted)


def may_divide(totals: Held, counts: Held, wanted: Wanted) -> bool:
    """SS2: whether the average over a window follows from totals and counts.

    The thesis asks for two running synopses; any two kinds will do, as totals of DOUBLE are kept in others.

    >>> from windrow.sharing.synopses import SharedGrid
    >>> from windrow.sharing.synopses import Family
    >>> totals = Held("p1", Family("S", "total of x"), SharedGrid(60), 10, SynopsisKind.RUNNING)
    >>> counts = Held("p2", Family("S", "count of x"), SharedGrid(60), 5, SynopsisKind.RUNNING)
    >>> average = Wanted(Family("S", "average of x"), (300,), 60)
    >>> may_divide(totals, counts, average), may_divide(totals, counts, replace(average, lengths=(600,)))
    (True, False)
    >>> may_divide(totals, replace(counts, grid=SharedGrid(60, phase=30)), average)
    False
    """
    both = totals, counts
    alike = len({(held.family.source, held.family.keys, held.predicate) for held in both}) == 1
    return alike and all(held.is_aligned(wanted) and held.is_long_enough(wanted) for held in both)


def averages_together(totals: Held, counts: Held, average: Wanted, lengths: Lengths) -> bool:
    """CS3: whether an average is computed together with a sum or a count over windows of these lengths: it
    then divides what the others have found already."""
    return may_divide(totals, counts, average) and average.lengths == lengths


def relevant_synopses(wanted: Wanted, held: Sequence[Held], most: int = MOST_PROBED) -> Relevant[str] | None:
    """SS4: the synopses to combine, and those to subtract; None if there are none that will do.

    Where a row counted twice does harm the cover has to be disjoint; where states can be subtracted it may
    hold too much, if there is a disjoint cover of that. Windows of the synopses must be as long as the
    query's. The thesis' six queries:

    >>> from windrow.sharing.synopses import SharedGrid
    >>> from windrow.sharing.synopses import Family
    >>> from windrow.sharing.predicates import predicate_of
    >>> from windrow.algebra.expressions import ColumnRef, Literal
    >>> from windrow.algebra.functions import call
    >>> from windrow.algebra.types import STRING
    >>> def equal(name, value):
    ...     return call("=", [ColumnRef(name, STRING), Literal(value, STRING)])
    >>> tcp, udp, user = equal("protocol", "TCP"), equal("protocol", "UDP"), equal("user", "U")
    >>> either, mixed = call("or", [tcp, udp]), call("or", [tcp, user])
    >>> total, most = Family("S", "total of length"), Family("S", "greatest of length")
    >>> def synopsis(name, family, condition):
    ...     return Held(name, family, SharedGrid(1), 10, SynopsisKind.BASIC, predicate_of(condition))
    >>> q1, q2, q3 = (synopsis(f"Q{n}", total, p) for n, p in enumerate((tcp, udp, either), start=1))
    >>> q4, q5 = synopsis("Q4", most, tcp), synopsis("Q5", most, user)
    >>> sums = Wanted(total, (10,), 1, is_subtractable=True)
    >>> relevant_synopses(replace(sums, predicate=predicate_of(either)), [q1, q2, q4, q5])
    Relevant(added=('Q1', 'Q2'), subtracted=())
    >>> relevant_synopses(replace(sums, predicate=predicate_of(tcp)), [q2, q3])
    Relevant(added=('Q3',), subtracted=('Q2',))
    >>> greatest = Wanted(most, (8,), 1, predicate=predicate_of(mixed), is_sensitive=False)
    >>> relevant_synopses(greatest, [q1, q2, q4, q5])
    Relevant(added=('Q4', 'Q5'), subtracted=())
    >>> relevant_synopses(replace(greatest, is_sensitive=True), [q4, q5]) is None
    True
    >>> relevant_synopses(replace(greatest, lengths=(11,)), [q4, q5]) is None
    True
    """
    if not wanted.adds_up:
        return None
    usable = {
        each.name: each.predicate
        for each in held
        if each.family == wanted.family and each.is_aligned(wanted) and each.is_long_enough(wanted)
    }
    return combined(wanted, usable, most)


def combined(
    wanted: Wanted, usable: Mapping[str, Predicate], most: int = MOST_PROBED
) -> Relevant[str] | None:
    """The same, of synopses of these conditions, whose intervals will do."""
    finders = [find_disjoint_cover if wanted.is_sensitive else find_cover]
    finders += [find_difference] if wanted.is_subtractable else []
    for find in finders:
        found = find(wanted.predicate, usable, most)
        if found is not None:
            return found
    return None


def may_take(query: Emit, other: Emit) -> bool:
    """CS8: whether all answers of a query are answers of the other.

    >>> from windrow.algebra.catalog import Stream
    >>> from windrow.algebra.operators import AggregateCall
    >>> from windrow.algebra.expressions import Field, Schema
    >>> from windrow.algebra.types import BIGINT
    >>> stream = Stream("S", Schema((Field("ts", BIGINT),)), "ts")
    >>> def counted(length, slide):
    ...     rows = Window(Scan(stream, "S"), ranges.RangeWindow(length, slide))
    ...     return Emit(Aggregate(rows, (), (("n", AggregateCall("count", (), BIGINT)),)))
    >>> often = counted(10, 2)
    >>> may_take(counted(10, 4), often), may_take(counted(10, 5), often), may_take(counted(8, 4), often)
    (True, False, False)
    """
    mine, theirs = grid_of(query), grid_of(other)
    if mine is None or theirs is None or unslid(query) != unslid(other):
        return False
    return mine.is_within(theirs)


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
    cuts = {panes.sub_windows_of(leaf.spec) for leaf in query.leaves} if _keeps_lists(query) else set()
    return moving_on(query, spec.SlideGrid(1)), frozenset(cuts)


def _keeps_lists(query: Emit) -> bool:
    """Whether an aggregate of a query keeps lists, one for each part that its windows are cut into."""
    calls = [call for node in query.walk() if isinstance(node, Aggregate) for _, call in node.aggregates]
    return any(function_of(call).size is Size.LISTS for call in calls)


def moving_on(query: Emit, grid: spec.SlideGrid) -> Emit:
    """The same query at other instants."""

    def change(node: Plan) -> Plan:
        if isinstance(node, Window) and isinstance(node.spec, ranges.RangeWindow):
            return replace(node, spec=replace(node.spec, slide=grid.period, origin=grid.origin))
        return node

    return replace(query, input=query.input.rewrite(change))


# ------------------------------------------------------------ groups


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
