"""The planner: queries come and go, and their synopses with them.

A query that comes takes what is there, by SS1 to SS4, and gets synopses of its own only for the rest. A query
that goes leaves what others still use. Which kind a synopsis is, and which queries are computed together,
follows from all its users at the time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from windrow.algebra.plan import Emit
from windrow.errors import QueryError
from windrow.kernels.shared.shared_state import terms_of
from windrow.sharing import rules, synopses
from windrow.sharing.predicates import Predicate, Relevant
from windrow.sharing.questions import MOST_INTERVALS, Family, Held, Need, QueryNeeds, Wanted, question_of
from windrow.sharing.rules import QueryShare, SharingPlan, rules_of
from windrow.sharing.synopses import SharedGrid


def share(queries: Mapping[str, Emit]) -> SharingPlan:
    """The sharing plan of queries that all come at once."""
    planner = Planner()
    planner.add(queries)
    return planner.plan()


class Planner:
    """What is shared now."""

    def __init__(self) -> None:
        self._questions: dict[str, QueryNeeds] = {}
        self._reasons: dict[str, str] = {}
        self._recipes: dict[str, dict[Need, Relevant[str]]] = {}
        self._held: dict[str, Held] = {}
        self._families: defaultdict[Family, list[str]] = defaultdict(list)
        #: how many synopses there ever were
        self.made = 0

    def add(self, queries: Mapping[str, Emit]) -> None:
        """Queries come, all at once."""
        came = []
        for name, emit in queries.items():
            try:
                came.append(question_of(name, emit))
            except QueryError as error:
                self._reasons[name] = error.message
        grids = _grids(came)
        for question in sorted(came, key=_terms):
            recipes = self.cover(question)
            if recipes is None:
                self._take(question, grids)
            else:
                self.take_from(question, recipes)

    def take(self, came: Sequence[QueryNeeds]) -> None:
        """Questions come, all at once; none is combined from what others need."""
        grids = _grids(came)
        for question in sorted(came, key=_terms):
            self._take(question, grids)

    def _take(self, question: QueryNeeds, grids: Mapping[tuple[str, Need], SharedGrid]) -> None:
        self._questions[question.name] = question
        self._recipes[question.name] = {
            need: self._served(wanted, grids[question.name, need]) for need, wanted in question.wanted.items()
        }

    def cover(self, question: QueryNeeds) -> dict[Need, Relevant[str]] | None:
        """Where all needs of a question can be taken from, nothing being added; None if that cannot be.

        A query that is combined from synopses of others (SS4) costs no intervals, only more to combine when
        it is answered. Synopses that are too short for it are made longer.
        """
        found: dict[Need, Relevant[str]] = {}
        for need, wanted in question.wanted.items():
            if need.datum.is_complex:
                return None
            relevant = self._same(wanted)
            if relevant is None:
                known = [self._held[name] for name in self._families.get(wanted.family, ())]
                usable = {held.name: held.predicate for held in known if held.is_usable(wanted)}
                relevant = rules.combined(wanted, usable)
            if relevant is None:
                return None
            found[need] = relevant
        return found

    def take_from(self, question: QueryNeeds, recipes: Mapping[Need, Relevant[str]]) -> None:
        """A question comes whose needs are taken from these synopses, which get as long as it takes."""
        for need, relevant in recipes.items():
            for name in relevant.all:
                held = self._held[name]
                longest = max(held.b, held.intervals(question.wanted[need]))
                self._held[name] = replace(held, b=longest)
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
            family = question.wanted[need].family
            for label in relevant.all:
                if label not in self._held:
                    grid, predicate = known[label]
                    if predicate is None and len(relevant.all) > 1:
                        raise KeyError(label)
                    mine = need.predicate if predicate is None else predicate
                    self._held[label] = Held(label, family, grid, mine)
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
        other = Planner()
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
                self._held[name] = replace(held, b=max(length for _, length, _ in uses[name]))

    def plan(self) -> SharingPlan:
        """Who shares what now."""
        uses = self._uses()
        held = {name: _chosen(each, uses[name]) for name, each in self._held.items()}
        together = rules_of(self._questions, self._recipes, held)
        shares = {
            name: QueryShare(self._recipes[name], self._rules(name, together)) for name in self._questions
        }
        shares |= {name: QueryShare(reason=reason) for name, reason in self._reasons.items()}
        users = {name: tuple(dict.fromkeys(query for query, _, _ in uses[name])) for name in held}
        return SharingPlan(held, users, shares, dict(self._questions))

    # ------------------------------------------------------------ state

    def _served(self, wanted: Wanted, grid: SharedGrid) -> Relevant[str]:
        """The synopsis to take it from; a new one if there is none."""
        same = self._same(wanted)
        if same is None:
            self.made += 1
            held = Held(f"p{self.made}", wanted.family, grid, wanted.predicate)
            self._families[wanted.family].append(held.name)
            same = Relevant((held.name,))
        else:
            held = self._held[same.added[0]]
        self._held[held.name] = replace(held, b=max(held.b, held.intervals(wanted)))
        return same

    def _same(self, wanted: Wanted) -> Relevant[str] | None:
        """The synopsis with the longest intervals that has all that is wanted by itself (SS1)."""
        known = (self._held[name] for name in self._families.get(wanted.family, ()))
        same = [held for held in known if rules.holds_windows(held, wanted)]
        return Relevant((max(same, key=lambda held: held.grid.width).name,)) if same else None

    # ------------------------------------------------------------ who uses what

    def _uses(self, of: Collection[str] | None = None) -> defaultdict[str, list[Use]]:
        """Who uses which synopses, or some of them."""
        found: defaultdict[str, list[Use]] = defaultdict(list)
        for query, recipes in self._recipes.items():
            question = self._questions[query]
            for need, relevant in recipes.items():
                for name in relevant.all:
                    if of is None or name in of:
                        held = self._held[name]
                        length = held.intervals(question.wanted[need])
                        found[name].append((query, length, question.slide // held.grid.width))
        return found

    def _rules(
        self, query: str, together: Mapping[tuple[str, str], Iterable[str]]
    ) -> dict[str, tuple[str, ...]]:
        """The rules by which a query uses each of its synopses."""
        averages = self._questions[query].averages
        found: dict[str, set[str]] = {}
        for need, relevant in self._recipes[query].items():
            for name in relevant.all:
                fired = found.setdefault(name, set(together.get((query, name), ())))
                fired.add("SS1" if len(relevant.all) == 1 else "SS4")
                fired |= {"SS2"} if need in averages else set()
        return {name: tuple(sorted(fired, key=_rank)) for name, fired in found.items()}


#: a query that uses a synopsis, how long its windows are and how often it is asked, in intervals
Use = tuple[str, int, int]


def _terms(question: QueryNeeds) -> int:
    """Those of simple conditions are served first: others build on them."""
    return len(question.existence.predicate.terms)


def _grids(questions: Sequence[QueryNeeds]) -> dict[tuple[str, Need], SharedGrid]:
    """The grid each need would best have, with those of the same data and rows."""
    same: defaultdict[tuple[Family, Predicate], list[tuple[QueryNeeds, Need]]] = defaultdict(list)
    for question in questions:
        for need in question.needs:
            same[question.wanted[need].family, need.predicate].append((question, need))
    found: dict[tuple[str, Need], SharedGrid] = {}
    for members in same.values():
        grids = synopses.clustered([question.grid for question, _ in members])
        for (question, need), grid in zip(members, grids, strict=True):
            fits = question.length // grid.width <= MOST_INTERVALS
            found[question.name, need] = grid if fits else question.grid
    return found


def _chosen(held: Held, uses: Sequence[Use]) -> Held:
    """Of the kind that is best for its users."""
    datum = held.family.datum
    periods = {query: period for query, _, period in uses}
    together = synopses.expected_together(list(periods.values()))
    simple = datum.is_subtractable and not datum.is_complex
    return replace(held, kind=synopses.choose(held.b, together, subtractable=simple))


def _cuts(synopses: Iterable[Held]) -> set[tuple[Family, Predicate, SharedGrid]]:
    """How data is cut into intervals."""
    return {(held.family, held.predicate, held.grid) for held in synopses}


def _rank(rule: str) -> tuple[bool, str]:
    return rule.startswith("CS"), rule


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
