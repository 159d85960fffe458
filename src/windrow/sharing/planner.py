"""The planner: queries come and go, and their synopses with them.

A query that comes takes what is there, by SS1 to SS4, and gets synopses of its own only for the rest. A query
that goes leaves what others still use. Which kind a synopsis is, and which queries are computed together,
follows from all its users at the time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from windrow.algebra.expressions import ColumnRef, Expression, conjunction, conjuncts, substituted
from windrow.algebra.operators import Aggregate, Filter, Join, Project
from windrow.algebra.plan import Emit, Plan, Scan, StreamWord, Window
from windrow.errors import QueryError
from windrow.kernels.aggregates.measures import GROUPS, Measures
from windrow.kernels.columnar.expressions import can_fail
from windrow.kernels.shared.shared_state import terms_of
from windrow.sharing import questions, rules, synopses
from windrow.sharing.predicates import Predicate, Relevant, predicate_of
from windrow.sharing.questions import MOST_INTERVALS, Datum, Need, QueryNeeds
from windrow.sharing.rules import QueryShare, SharingPlan, groups_of
from windrow.sharing.synopses import Family, Held, SharedGrid, SynopsisKind, Wanted
from windrow.windows.ranges import RangeWindow

# ------------------------------------------------------------ joins
#
# What an aggregate over a join of two windows asks: the same, with a length for each window.


if TYPE_CHECKING:
    Names = Mapping[str, Expression]


def join_question_of(name: str, emit: Emit) -> QueryNeeds:
    """What a query over a join of two streams asks; a QueryError says why it shares nothing."""
    if emit.meaning is not StreamWord.RSTREAM or emit.is_internal:
        raise _alone("it does not answer per window of time")
    aggregate = _above(emit.input)
    conditions, names, join = _down(aggregate.input, ())
    if not isinstance(join, Join) or len(join.inputs) != 2:
        raise _alone("only joins of two windows are shared")
    sides = [_side(part, place) for place, part in enumerate(join.inputs)]
    columns = {**sides[0][1], **sides[1][1]}
    read = tuple(substituted(each, columns) for each in (*conditions, join.predicate))
    found = tuple(part for each in (*read, *sides[0][0], *sides[1][0]) for part in conjuncts(each))
    if any(map(can_fail, found)):
        raise _alone("an expression may fail for some row, which must not stop other queries")
    matching = frozenset(part for part in found if len(_sides(part)) == 2)
    where = tuple(part for part in found if part not in matching)
    names = {column: substituted(expression, columns) for column, expression in names.items()} or columns
    windows = [side[2] for side in sides]
    _check_windows(windows)
    source = (*(leaf.streams[0].name for leaf in emit.leaves), matching)
    lengths = tuple(window.range for window in windows)
    slide = windows[0].slide
    assert slide is not None
    measured = dict(_needs(aggregate, names, where))
    keys = tuple(substituted(key, names) for _, key in aggregate.keys)
    existence = Need(questions.ROW_COUNT, predicate_of(conjunction(where)), is_sensitive=False)
    return QueryNeeds(name, emit, source, keys, lengths, slide, windows[0].origin, existence, measured)


def _needs(
    aggregate: Aggregate, names: Names, where: tuple[Expression, ...]
) -> Iterator[tuple[str, tuple[Need, ...]]]:
    measures = Measures(aggregate)
    for each in measures.measures:
        if each.aggregate.ordered or not each.aggregate.commutative:
            raise _alone("an aggregate depends on the order of rows")
        sensitive = not each.aggregate.duplicate_insensitive
        if not questions.can_be_shared(each.partial or measures.cells_in(each.table)[0]):
            raise _alone(f"the state of {each.aggregate.name} depends on the windows it is of")
        if each.partial is not None:
            args, chosen = measures.argument_of(each.partial)
            data = list(questions.parts_of(each.partial, tuple(substituted(arg, names) for arg in args)))
        else:
            cells, args, chosen = measures.cells_in(each.table)
            data = [Datum(cells, tuple(substituted(arg, names) for arg in args))]
        predicate = predicate_of(conjunction((*where, *conjuncts(substituted(chosen, names)))))
        label = each.partial.label if each.partial is not None and each.table == GROUPS else each.table
        yield label, tuple(Need(datum, predicate, sensitive) for datum in data)


def _above(plan: Plan) -> Aggregate:
    while isinstance(plan, Filter | Project):
        plan = plan.input
    if not isinstance(plan, Aggregate):
        raise _alone("it has no aggregate, whose states could be shared")
    return plan


def _down(plan: Plan, conditions: tuple[Expression, ...]) -> tuple[tuple[Expression, ...], Names, Plan]:
    """The conditions of stateless operators, what their columns are below them, and the plan below."""
    names: dict[str, Expression] = {}
    while isinstance(plan, Filter | Project):
        if isinstance(plan, Filter):
            conditions = (*conditions, plan.predicate)
        else:
            below = dict(plan.outputs)
            conditions = tuple(substituted(each, below) for each in conditions)
            names = {name: substituted(each, below) for name, each in names.items()} if names else below
        plan = plan.input
    return conditions, names, plan


def _side(plan: Plan, place: int) -> tuple[tuple[Expression, ...], Names, RangeWindow]:
    """One input of the join: its conditions and columns over the stream, and its window."""
    above, outer, window = _down(plan, ())
    if not isinstance(window, Window) or not isinstance(window.spec, RangeWindow):
        raise _alone("only joins of windows [RANGE … SLIDE …] are shared")
    below, inner, scan = _down(window.input, ())
    if not isinstance(scan, Scan) or scan.pseudo or window.spec.wattr not in (None, scan.stream.wattr):
        raise _alone("only windows over streams, by their own time, are shared")
    own: dict[str, Expression] = {
        f"{scan.alias}.{field.name}": ColumnRef(f"{place}.{field.name}", field.type)
        for field in scan.stream.schema
    }
    at_window = {name: substituted(each, own) for name, each in inner.items()} if inner else own
    names = {name: substituted(each, at_window) for name, each in outer.items()} if outer else at_window
    conditions = (
        *(substituted(each, own) for each in below),
        *(substituted(each, at_window) for each in above),
    )
    return conditions, names, window.spec


def _check_windows(windows: list[RangeWindow]) -> None:
    one, other = windows
    if one.slide is None or one.slide != other.slide or (one.origin - other.origin) % one.slide:
        raise _alone("its windows do not slide together")


def _sides(part: Expression) -> set[str]:
    return {name.partition(".")[0] for name in part.columns}


def _alone(reason: str) -> QueryError:
    return QueryError(reason, code="not-shared")


# ------------------------------------------------------------ planner


def share(queries: Mapping[str, Emit], most_probed: int = rules.MOST_PROBED) -> SharingPlan:
    """The sharing plan of queries that all come at once."""
    planner = Planner(most_probed)
    planner.add(queries)
    return planner.plan()


@dataclass(frozen=True)
class Use:
    """A query's use of a synopsis: how long its windows are and how often it is asked, in intervals."""

    query: str
    lengths: tuple[int, ...]
    period: int


class Planner:
    """What is shared now. A datum is combined from at most `most_probed` synopses; 1 turns SS4 off."""

    def __init__(self, most_probed: int = rules.MOST_PROBED) -> None:
        self.most_probed = most_probed
        self._questions: dict[str, QueryNeeds] = {}
        self._reasons: dict[str, str] = {}
        self._recipes: dict[str, dict[Need, Relevant[str]]] = {}
        self._held: dict[str, Held] = {}
        self._families: defaultdict[Family, list[str]] = defaultdict(list)
        #: how many synopses there ever were
        self.made = 0

    def add(self, queries: Mapping[str, Emit]) -> None:
        """Queries come, all at once. Those of simple conditions are served first: others build on them."""
        came = []
        for name, emit in queries.items():
            try:
                came.append(_asked(name, emit))
            except QueryError as error:
                self._reasons[name] = error.message
        self.take(came)

    def take(self, came: Sequence[QueryNeeds]) -> None:
        """Questions come, all at once."""
        grids = _grids(came)
        for question in sorted(came, key=lambda each: len(each.existence.predicate.terms)):
            self._questions[question.name] = question
            self._recipes[question.name] = {
                need: self._served(question.wanted(need), grids[question.name, need])
                for need in question.needs
            }

    def cover(self, question: QueryNeeds) -> dict[Need, Relevant[str]] | None:
        """Where all needs of a question can be taken from, nothing being added; None if that cannot be."""
        return cover_of(
            question, lambda family: [self._held[name] for name in self._families.get(family, ())]
        )

    def take_from(self, question: QueryNeeds, recipes: Mapping[Need, Relevant[str]]) -> None:
        """A question comes whose needs are taken from these synopses, which get as long as it takes."""
        for need, relevant in recipes.items():
            for name in relevant.all:
                held = self._held[name]
                lengths = held.intervals(question.wanted(need))
                self._held[name] = _sized(held, [(held.b, held.b - held.g), lengths])
        self._questions[question.name], self._recipes[question.name] = question, dict(recipes)

    def adopt(
        self,
        question: QueryNeeds,
        had: Sequence[Relevant[str]],
        known: Mapping[str, tuple[SharedGrid, Predicate | None]],
    ) -> None:
        """A question comes back, with what it had for each of its needs; `known` are the intervals of the
        synopses and, of those that queries with other conditions use, the rows."""
        recipes = dict(zip(question.needs, had, strict=True))
        for need, relevant in recipes.items():
            family = question.wanted(need).family
            for label in relevant.all:
                if label not in self._held:
                    grid, predicate = known[label]
                    if predicate is None and len(relevant.all) > 1:
                        raise KeyError(label)
                    mine = need.predicate if predicate is None else predicate
                    self._held[label] = Held(label, family, grid, 1, SynopsisKind.BASIC, mine)
                    self._families[family].append(label)
                    self.made = max(self.made, int(label.removeprefix("p")))
        self.take_from(question, recipes)

    def replanned(self, queries: Collection[str]) -> Planner | None:
        """Another planner, to which these queries came all at once. Nobody else may use what they use. None
        if they would get the same, or one of them could no longer be combined from what others have."""
        other, recipes = self.copy(), {name: self._recipes[name].values() for name in queries}
        had = {label for mine in recipes.values() for each in mine for label in each.all}
        probed = [name for name, mine in recipes.items() if any(len(each.all) > 1 for each in mine)]
        for name in queries:
            del other._questions[name], other._recipes[name]
        for label in had:
            other._families[other._held.pop(label).family].remove(label)
        other.take([self._questions[name] for name in queries if name not in probed])
        for name in probed:
            cover = other.cover(self._questions[name])
            if cover is None:
                return None
            other.take_from(self._questions[name], cover)
        new = [held for label, held in other._held.items() if label not in self._held]
        return None if _cuts(new) == _cuts(self._held[label] for label in had) else other

    def copy(self) -> Planner:
        """The same, to change."""
        other = Planner(self.most_probed)
        other.made = self.made
        other._questions, other._reasons = dict(self._questions), dict(self._reasons)
        other._recipes, other._held = dict(self._recipes), dict(self._held)
        other._families.update({family: list(names) for family, names in self._families.items()})
        return other

    @property
    def held(self) -> Mapping[str, Held]:
        """The synopses there are, of no particular kind."""
        return self._held

    def question(self, query: str) -> QueryNeeds | None:
        """What a query asks; None if it shares nothing."""
        return self._questions.get(query)

    def recipes(self, query: str) -> Mapping[Need, Relevant[str]]:
        """Where each need of a query is taken from."""
        return self._recipes[query]

    def drop(self, query: str) -> None:
        """A query goes."""
        self._reasons.pop(query, None)
        if self._questions.pop(query, None) is None:
            return
        mine = {name for relevant in self._recipes.pop(query).values() for name in relevant.all}
        uses = self._uses(mine)
        for name in mine:
            held = self._held[name]
            if not uses[name]:
                del self._held[name]
                self._families[held.family].remove(name)
            else:
                self._held[name] = _sized(held, [use.lengths for use in uses[name]])

    def plan(self) -> SharingPlan:
        """Who shares what now."""
        uses = self._uses()
        held = {name: _chosen(each, uses[name]) for name, each in self._held.items()}
        groups, fired = groups_of(self._questions, self._recipes, held)
        shares = {
            name: QueryShare(name, self._recipes[name], self._rules(name, held, fired))
            for name in self._questions
        }
        shares |= {name: QueryShare(name, reason=reason) for name, reason in self._reasons.items()}
        users = {name: tuple(dict.fromkeys(use.query for use in uses[name])) for name in held}
        return SharingPlan(held, users, shares, groups, dict(self._questions))

    # ------------------------------------------------------------ state

    def _served(self, wanted: Wanted, grid: SharedGrid) -> Relevant[str]:
        """The synopses to take it from; a new one if there are none."""
        known = [self._held[name] for name in self._families[wanted.family]]
        holds = rules.holds_windows if len(wanted.lengths) == 1 else rules.holds_joins
        same = [held for held in known if holds(held, wanted) and _is_bearable(held, wanted)]
        if same:
            best = max(same, key=lambda held: held.grid.width)
            self._held[best.name] = _sized(best, [(best.b, best.b - best.g), best.intervals(wanted)])
            return Relevant((best.name,))
        found = rules.relevant_synopses(wanted, known, self.most_probed) if self.most_probed > 1 else None
        return found or Relevant((self._new(wanted, grid),))

    def _new(self, wanted: Wanted, grid: SharedGrid) -> str:
        self.made += 1
        name = f"p{self.made}"
        kind = SynopsisKind.BASIC if len(wanted.lengths) == 1 else SynopsisKind.BASIC_JOIN
        held = Held(name, wanted.family, grid, 1, kind, wanted.predicate)
        self._held[name] = _sized(held, [held.intervals(wanted)])
        self._families[wanted.family].append(name)
        return name

    # ------------------------------------------------------------ who uses what

    def _uses(self, of: Collection[str] | None = None) -> defaultdict[str, list[Use]]:
        """Who uses which synopses, or some of them."""
        found: defaultdict[str, list[Use]] = defaultdict(list)
        for query, recipes in self._recipes.items():
            question = self._questions[query]
            for need, relevant in recipes.items():
                for name in relevant.all:
                    if of is not None and name not in of:
                        continue
                    held = self._held[name]
                    lengths = held.intervals(question.wanted(need))
                    period = question.slide // held.grid.width
                    found[name].append(Use(query, lengths, period))
        return found

    def _rules(
        self, query: str, held: Mapping[str, Held], computed: Mapping[tuple[str, str], Sequence[str]]
    ) -> dict[str, tuple[str, ...]]:
        """The rules by which a query uses each of its synopses."""
        question = self._questions[query]
        found: dict[str, list[str]] = {}
        for need, relevant in self._recipes[query].items():
            for name in relevant.all:
                fired = found.setdefault(name, [])
                single = "SS3" if held[name].kind.is_join else "SS1"
                fired.append(single if len(relevant.all) == 1 else "SS4")
                fired += ["SS2"] if need in question.averages else []
        return {
            name: tuple(sorted({*fired, *computed.get((query, name), ())}, key=_rank))
            for name, fired in found.items()
        }


def _asked(name: str, emit: Emit) -> QueryNeeds:
    return questions.question_of(name, emit) if len(emit.leaves) == 1 else join_question_of(name, emit)


def _grids(questions: Sequence[QueryNeeds]) -> dict[tuple[str, Need], SharedGrid]:
    """The grid each need would best have, with those of the same data and rows."""
    same: defaultdict[tuple[Family, Predicate], list[tuple[QueryNeeds, Need]]] = defaultdict(list)
    for question in questions:
        for need in question.needs:
            same[question.wanted(need).family, need.predicate].append((question, need))
    found: dict[tuple[str, Need], SharedGrid] = {}
    for members in same.values():
        grids = synopses.clustered([question.grid for question, _ in members])
        for (question, need), grid in zip(members, grids, strict=True):
            fits = max(question.lengths) // grid.width <= MOST_INTERVALS
            found[question.name, need] = grid if fits else question.grid
    return found


def _sized(held: Held, lengths: Sequence[tuple[int, ...]]) -> Held:
    """With b and g for windows of these lengths."""
    b = max(max(each) for each in lengths)
    uneven = [min(each) for each in lengths if len(set(each)) > 1] if held.kind.is_join else []
    return replace(held, b=b, g=b - min(uneven, default=b))


def _chosen(held: Held, uses: Sequence[Use]) -> Held:
    """Of the kind that is best for its users."""
    datum = held.family.datum
    assert isinstance(datum, Datum)
    simple = datum.is_subtractable and not datum.is_complex
    periods = {use.query: use.period for use in uses}
    kind = synopses.choose(held.b, synopses.expected_together(list(periods.values())), subtractable=simple)
    return replace(held, kind=kind.of_join if held.kind.is_join else kind)


def _cuts(synopses: Iterable[Held]) -> set[tuple[Family, Predicate, SharedGrid]]:
    """How data is cut into intervals."""
    return {(held.family, held.predicate, held.grid) for held in synopses}


def _rank(rule: str) -> tuple[bool, str]:
    return rule.startswith("CS"), rule


# ------------------------------------------------------------ derived queries
#
# Queries that need nothing of their own: all they ask is combined from synopses that others brought (SS4).
#
# A query of that kind costs no intervals, only more to combine when it is answered. Synopses that are too
# short for it are made longer, as for anybody who shares them. What is combined is named by a recipe:


def cover_of(
    question: QueryNeeds, known: Callable[[Family], Iterable[Held]], most: int = rules.MOST_PROBED
) -> dict[Need, Relevant[str]] | None:
    """Where all needs of a question can be taken from; None if anything would have to be added."""
    found: dict[Need, Relevant[str]] = {}
    for need in question.needs:
        wanted = question.wanted(need)
        relevant = None if need.datum.is_complex else _relevant(wanted, known(wanted.family), most)
        if relevant is None:
            return None
        found[need] = relevant
    return found


def recipe(relevant: Relevant[str]) -> str:
    """What is combined, as one name.

    >>> recipe(Relevant(("p1", "p4"), ("p7",)))
    'p1+p4-p7'
    >>> relevant_of("p1+p4-p7")
    Relevant(added=('p1', 'p4'), subtracted=('p7',))
    """
    return "+".join(relevant.added) + "".join(f"-{name}" for name in relevant.subtracted)


def relevant_of(text: str) -> Relevant[str]:
    """What `recipe` wrote."""
    terms = terms_of(text)
    return Relevant(
        tuple(name for name, added in terms if added), tuple(name for name, added in terms if not added)
    )


def _relevant(wanted: Wanted, known: Iterable[Held], most: int) -> Relevant[str] | None:
    usable = [held for held in known if held.is_aligned(wanted) and _is_bearable(held, wanted)]
    same = [held for held in usable if rules.holds_windows(held, wanted)]
    if same:
        return Relevant((max(same, key=lambda held: held.grid.width).name,))
    return rules.combined(wanted, {held.name: held.predicate for held in usable}, most)


def _is_bearable(held: Held, wanted: Wanted) -> bool:
    return max(held.intervals(wanted)) <= MOST_INTERVALS
