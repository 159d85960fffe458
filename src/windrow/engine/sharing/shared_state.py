"""What queries have in common: the synopses they share, in shared states, one for each stream and grouping.

A query that comes asks a planner which synopses it can use; it gets what is there, makes longer what is too
short, and adds what is missing. Since when a synopsis has all rows is remembered: a query that comes late is
answered from there on, not from its own beginning. What is stored names each query's synopses, so that a
restart finds them again, whatever comes first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from windrow.algebra.canonical import digest_of
from windrow.algebra.expressions import Expression
from windrow.engine.records import QueryRecord, StreamRecord
from windrow.errors import QueryError
from windrow.execution.bundle import Bundle
from windrow.execution.shared import Seed
from windrow.kernels.aggregates import measures, partials, value_tables
from windrow.kernels.panes.query import SlidingQuery
from windrow.kernels.shared.shared_state import Entry, PaneGrid, SharedState, WindowRequest
from windrow.kernels.shared.value_counts import ValueCounter
from windrow.physical import identity, planner, units
from windrow.sharing import predicates, rules, synopses
from windrow.sharing.planner import Planner, recipe, relevant_of
from windrow.sharing.questions import Datum, Held, Need, QueryNeeds, question_of
from windrow.windows.domain import INFINITY

#: so many conditions of WHERE are kept in one table; those of others go to the next
MOST_CONDITIONS = 8
TOO_LARGE = "its groups and intervals are too many to be kept as a matrix"


@dataclass(frozen=True)
class KeptSynopsis:
    """A synopsis in its shared state: its intervals, how many are kept, and since when it has all rows."""

    shared_state: str
    grid: synopses.SharedGrid
    length: int
    #: the hash of what an interval of it holds
    identity: str
    #: None: from the beginning
    since: int | None = None
    #: the rows it is of, if queries with other conditions use it too
    where: Any = None

    def to_json(self) -> list[Any]:
        known = [self.shared_state, self.grid.width, self.grid.phase, self.length, self.identity, self.since]
        return known if self.where is None else [*known, self.where]

    @classmethod
    def from_json(cls, stored: list[Any]) -> KeptSynopsis:
        shared_state, width, phase, length, identity, since, *where = stored
        return cls(shared_state, synopses.SharedGrid(width, phase), length, identity, since, *where)

    @property
    def known(self) -> tuple[synopses.SharedGrid, predicates.Predicate | None]:
        """For a planner that does not know it yet."""
        return self.grid, None if self.where is None else predicates.predicate_of(predicates.read(self.where))


@dataclass
class Common:
    """All synopses of an engine."""

    planner: Planner = field(default_factory=Planner)
    kept: dict[str, KeptSynopsis] = field(default_factory=dict)
    #: up to which commit each shared state has taken delta files in
    absorbed: dict[str, int] = field(default_factory=dict)
    #: why a query has a state of its own
    alone: dict[str, str] = field(default_factory=dict)
    #: streams with groupings that have become too large
    left: dict[str, None] = field(default_factory=dict)
    #: changes as queries come and go
    version: int = 0
    _plan: tuple[int, rules.SharingPlan] | None = None
    #: what each query asks, and a number that those have too who ask the same at other instants
    _asking: dict[str, tuple[WindowRequest, int]] = field(default_factory=dict)
    _names: dict[tuple[Hashable, tuple[Expression, ...]], str] = field(default_factory=dict)
    _parts: dict[tuple[Hashable, tuple[Expression, ...]], dict[predicates.Predicate, int]] = field(
        default_factory=dict
    )
    _members: dict[str, dict[str, None]] = field(default_factory=dict)
    _forms: dict[Any, int] = field(default_factory=dict)
    _plans: list[bytes] = field(default_factory=list)
    _kinds: dict[Hashable, int] = field(default_factory=dict)
    #: shared states of queries that may still be declared, by their streams and groupings
    _awaited: dict[str, str] = field(default_factory=dict)
    _shared_states: dict[str, SharedState] = field(default_factory=dict)

    @classmethod
    def of(cls, decisions: Mapping[str, Any]) -> Common:
        """As the last commit has it; queries come back one by one."""
        stored = decisions.get("synopses", {})
        kept = {name: KeptSynopsis.from_json(each) for name, each in stored.get("kept", {}).items()}
        found = cls(
            kept=kept,
            absorbed=dict(stored.get("shared_states", {})),
            left=dict.fromkeys(stored.get("left", ())),
            _awaited={_key_of(each.shared_state): each.shared_state for each in kept.values()},
        )
        found.planner.made = stored.get("made", 0)
        return found

    def decisions(
        self, absorbed: Mapping[str, int], others: Iterable[str], leaving: Iterable[str] = ()
    ) -> dict[str, Any]:
        """For the manifest; `others` are synopses of queries that nobody has declared yet, `leaving` shared
        states that are given up with this commit."""
        names = {*self.planner.held, *others}
        kept = {name: each.to_json() for name, each in self.kept.items() if name in names}
        shared_states = {each[0] for each in kept.values()}
        if not kept and not self.planner.made:
            return {}
        known = {name: commit for name, commit in absorbed.items() if name in shared_states}
        made, left = self.planner.made, [*self.left, *map(_key_of, leaving)]
        return {"synopses": {"made": made, "kept": kept, "shared_states": known, "left": left}}

    def copy(self) -> Common:
        """The same, to change."""
        found = replace(self, **{name: copy(value) for name, value in vars(self).items()})
        found.planner = self.planner.copy()
        found._parts = {key: dict(each) for key, each in self._parts.items()}
        found._members = {name: dict(each) for name, each in self._members.items()}
        return found

    # ------------------------------------------------------------ queries come and go

    def join(self, record: QueryRecord, stream: StreamRecord, commit: int) -> QueryRecord | None:
        """A new query, with the recipes of its synopses and the instant from which its answers are complete;
        None if it has to keep a state of its own. `commit` is the one that will know it."""
        try:
            question = question_of(record.id, record.physical.emit)
        except QueryError as error:
            self.alone[record.id] = error.message
            return None
        question, cover = self._placed(replace(question, is_exact=record.is_exact))
        shared_state = self._shared_state_of(question, commit)
        reason = TOO_LARGE if _key_of(shared_state) in self.left else None
        reason = _why_alone(record.bundle, question) or reason
        if reason is not None:
            self.alone[record.id] = reason
            return None
        if cover is None:
            self.planner.take([question])
        else:
            self.planner.take_from(question, cover)
        shares = self._enter(record.bundle, question, shared_state, stream)
        since = [begin for label in labels_of(shares) if (begin := self.kept[label].since) is not None]
        if stream.shed and stream.greatest is not None:  # what was shed is in no synopsis
            since.append(stream.greatest + 1)
        return replace(record, shares=shares, complete_from=max(since, default=None))

    def _enter(
        self, bundle: Bundle, question: QueryNeeds, shared_state: str, stream: StreamRecord
    ) -> tuple[str, ...]:
        """A query has its synopses in a shared state, as the planner says: their recipes."""
        recipes = [self.planner.recipes(bundle.name)[need] for need in question.needs]
        shares = tuple(map(recipe, recipes))
        for label in labels_of(shares):
            self._keep(label, shared_state, stream)
        for label in labels_of(recipe(each) for each in recipes if len(each.all) > 1):
            where = predicates.written(self.planner.held[label].predicate.expression)
            self.kept[label] = replace(self.kept[label], where=where)
        self._take(bundle, question, shares, shared_state)
        return shares

    def settle(
        self, shared_state: str, bundles: Mapping[str, Bundle], stream: StreamRecord
    ) -> dict[str, tuple[str, ...]]:
        """Queries of a shared state that has no rows yet get what they would if all came at once: their new
        recipes, by their names; none if they have that. What they had stays known to whoever still has it in
        hand."""
        members = self.members(shared_state)
        planner = self.planner.replanned(members)
        if planner is None:
            return {}
        if not all(_can_be_kept(planner.recipes(name).values(), planner.held) for name in members):
            return {}
        self.planner = planner
        questions = [question for name in members if (question := planner.question(name)) is not None]
        for question in questions:
            self._remember(question)
        return {each.name: self._enter(bundles[each.name], each, shared_state, stream) for each in questions}

    def adopt(self, record: QueryRecord) -> None:
        """A query that the last commit knows comes back to its synopses."""
        shares, user = record.shares, record.query.name
        try:
            question = question_of(record.id, record.physical.emit)
            shared_state = self.shared_state_of(shares)
            part = int(_key_of(shared_state).rpartition(" ")[2])
            question = replace(question, source=(question.source, part), is_exact=record.is_exact)
            known = {label: self.kept[label].known for label in labels_of(shares)}
            self.planner.adopt(question, [relevant_of(each) for each in shares], known)
        except (KeyError, ValueError, QueryError) as error:
            why = "it shares intervals that are cut in another way now"
            raise identity.changed(user, why) from error
        for label in labels_of(shares):
            if identity_of(self.planner.held[label]) != self.kept[label].identity:
                why = f"the intervals of {label}, which it shares, hold something else now"
                raise identity.changed(user, why)
        self._remember(question)
        self._names[question.source, question.keys] = shared_state
        self._awaited.pop(_key_of(shared_state), None)
        self._take(record.bundle, question, shares, shared_state)

    def drop(self, query: str) -> None:
        """A query goes, and what nobody else uses with it."""
        self.version += 1
        self.alone.pop(query, None)
        question = self.planner.question(query)
        if question is None:
            return
        is_combined = self._is_combined(question)
        self.planner.drop(query)
        del self._asking[query]
        shared_state = self._names[question.source, question.keys]
        self._members[shared_state].pop(query)
        self._shared_states.pop(shared_state, None)
        others = [self.planner.question(other) for other in self._members[shared_state]]
        alike = [each for each in others if each and each.existence.predicate == question.existence.predicate]
        if not is_combined and all(map(self._is_combined, alike)):
            assert isinstance(question.source, tuple)
            self._parts[question.source[0], question.keys].pop(question.existence.predicate, None)
        for label, held in self.planner.held.items():
            if label in self.kept and self.kept[label].length != held.b:
                self.kept[label] = replace(self.kept[label], length=held.b)

    def _keep(self, label: str, shared_state: str, stream: StreamRecord) -> None:
        held, before = self.planner.held[label], self.kept.get(label)
        if before is None:
            since = None if stream.greatest is None else stream.greatest + 1
            self.kept[label] = KeptSynopsis(shared_state, held.grid, held.b, identity_of(held), since)
        elif held.b > before.length:
            since = before.since
            clock = stream.known.progress_on(stream.stream, stream.stream.wattr)
            if abs(clock) != INFINITY:  # it has forgotten what was before
                begin = before.grid.begin(before.grid.index(int(clock)) - before.length)
                since = begin if since is None else max(since, begin)
            self.kept[label] = replace(before, length=held.b, since=since)

    def _placed(self, question: QueryNeeds) -> tuple[QueryNeeds, dict[Need, predicates.Relevant[str]] | None]:
        """A question in one of the shared states of its stream and grouping, and what it is combined from, if
        all it needs is in that shared state already."""
        stream, predicate = str(question.source), question.existence.predicate
        for part in self._used_parts(stream, question):
            placed = replace(question, source=(stream, part))
            cover = self.planner.cover(placed)
            if cover is not None and _can_be_kept(cover.values(), self.planner.held):
                if len(cover[question.existence].all) == 1:
                    self._parts.setdefault((stream, question.keys), {}).setdefault(predicate, part)
                return placed, cover
        return replace(question, source=(stream, self._part(stream, question))), None

    def _used_parts(self, stream: str, question: QueryNeeds) -> list[int]:
        """The shared states of a stream and a grouping that have queries, that of its condition first."""
        own = self._parts.get((stream, question.keys), {}).get(question.existence.predicate)
        used = [key for key, name in self._names.items() if self._members.get(name)]
        mine = [source for source, keys in used if keys == question.keys]
        parts = [source[1] for source in mine if isinstance(source, tuple) and source[0] == stream]
        return sorted(parts, key=lambda part: (part != own, part))

    def _is_combined(self, question: QueryNeeds) -> bool:
        """Whether its groups are those of queries with other conditions."""
        return len(self.planner.recipes(question.name)[question.existence].all) > 1

    def _part(self, stream: str, question: QueryNeeds) -> int:
        """Which of the shared states of a stream and a grouping a query is in: that of its condition.

        A table has columns for all entries, whether the condition of each holds or not; with all conditions
        in one table, most of it would say nothing.
        """
        parts = self._parts.setdefault((stream, question.keys), {})
        known, sizes = question.existence.predicate, Counter(parts.values())
        if known not in parts:
            parts[known] = next(number for number in count() if sizes[number] < MOST_CONDITIONS)
        return parts[known]

    def _remember(self, question: QueryNeeds) -> None:
        """In which of the shared states of its stream and grouping a condition is, if it has groups there."""
        if not self._is_combined(question):
            assert isinstance(question.source, tuple)
            stream, part = question.source
            self._parts.setdefault((stream, question.keys), {})[question.existence.predicate] = part

    def _shared_state_of(self, question: QueryNeeds, commit: int) -> str:
        key = question.source, question.keys
        if key not in self._names or not self._members.get(self._names[key]):
            digest = digest_of(question.keys)[:12]
            assert isinstance(question.source, tuple)
            stream, part = question.source
            name = f"synopses of {stream} {digest} {part}@{commit}"
            self._names[key] = self._awaited.get(_key_of(name), name)
            self.absorbed.setdefault(self._names[key], commit - 1)
        return self._names[key]

    def _take(self, bundle: Bundle, question: QueryNeeds, shares: tuple[str, ...], shared_state: str) -> None:
        unit = bundle.unit
        assert isinstance(unit, units.SlidingUnit)
        label = dict(zip(question.needs, shares, strict=True))
        level = unit.program.bottom
        partials = level.answers.measures.layouts[measures.GROUPS].partials[1:]
        parts = tuple(tuple(label[need] for need in question.measured[each.label]) for each in partials)
        cells = [name for name in level.answers.measures.layouts if name != measures.GROUPS]
        value_counters = tuple((name, label[question.measured[name][0]]) for name in cells)
        form = self._forms.setdefault(_form(level.query), len(self._plans))
        if form == len(self._plans):
            self._plans.append(bundle.plan)
        slides = question.length, question.slide, question.origin
        asker = WindowRequest(
            bundle.name, form, *slides, label[question.existence], parts, value_counters=value_counters
        )
        self._asking[bundle.name] = (
            asker,
            self._kinds.setdefault(rules.unslid(question.emit), len(self._kinds)),
        )
        self._members.setdefault(shared_state, {})[bundle.name] = None
        self.version += 1
        self._shared_states.pop(shared_state, None)

    # ------------------------------------------------------------ too large to share

    def seeds(self, shared_state: str) -> dict[str, Seed]:
        """What each query of a shared state takes along if it leaves."""
        known = self.shared_state(shared_state)
        kept = {each.label: (each.name, each.width, each.phase) for each in known.value_counters}
        grids = tuple((each.width, each.phase) for each in known.pane_grids)
        entries = [entry for each in known.pane_grids for entry in each.entries]
        columns = {entry.name: [column.name for column in entry.nothing()] for entry in entries}
        found: dict[str, Seed] = {}
        for query in self.members(shared_state):
            asker, question = self.asker(query), self.planner.question(query)
            assert question is not None
            value_counters = {table: kept[label] for table, label in asker.value_counters}
            partials = [label for label in question.measured if label not in value_counters]
            pieces: dict[tuple[bool, int], dict[str, str]] = {}
            _put(pieces, asker.exists, ["rows.0"], columns)
            for label, parts in zip(partials, asker.parts, strict=True):
                names = (f"{label}.{place}" for place in count())
                for part in parts:
                    _put(pieces, part, names, columns)
            taken = tuple((is_added, piece) for (is_added, _), piece in pieces.items())
            found[query] = Seed(shared_state, grids, taken, value_counters)
        return found

    def leave(self, shared_state: str) -> None:
        """Its queries keep states of their own from now on, and so does who comes later."""
        self.left[_key_of(shared_state)] = None
        for query in self.members(shared_state):
            self.drop(query)
            self.alone[query] = TOO_LARGE

    # ------------------------------------------------------------ what there is

    @property
    def plan(self) -> rules.SharingPlan:
        """Who shares what, and by which rules."""
        known, version = self._plan, self.version
        if known is None or known[0] != version:
            known = self._plan = version, self.planner.copy().plan()
        return known[1]

    @property
    def shared_states(self) -> list[str]:
        return [name for name, members in self._members.items() if members]

    def members(self, shared_state: str) -> list[str]:
        return list(self._members.get(shared_state, ()))

    def shared_state_of(self, shares: Iterable[str]) -> str:
        """The shared state that a query's synopses are in."""
        return self.kept[next(iter(labels_of(shares)))].shared_state

    def asker(self, query: str) -> WindowRequest:
        return self._asking[query][0]

    def asking(self, query: str) -> tuple[WindowRequest, int]:
        """What a query asks, and a number that those have too who ask the same at other instants."""
        return self._asking[query]

    def counted_values(self, query: str) -> dict[str, tuple[str, int]]:
        """Where the values of each table of cells of a query are: in which value counter, over how many
        intervals."""
        asker = self.asker(query)
        (shared_state,) = (name for name, members in self._members.items() if query in members)
        value_counters = {each.label: each for each in self.shared_state(shared_state).value_counters}
        found = {table: value_counters[label] for table, label in asker.value_counters}
        return {table: (each.name, asker.range // each.width) for table, each in found.items()}

    @property
    def forms(self) -> tuple[bytes, ...]:
        """The plans that askers' forms are taken from."""
        return tuple(self._plans)

    def shared_state(self, name: str) -> SharedState:
        """A shared state as it is kept now."""
        if name not in self._shared_states:
            question = self.planner.question(self.members(name)[0])
            assert question is not None
            pane_grids: dict[synopses.SharedGrid, tuple[list[Entry], list[int]]] = {}
            value_counters: list[ValueCounter] = []
            asked: dict[str, set[int]] = {}
            for asker in map(self.asker, self.members(name)):
                for _, label in asker.value_counters:
                    asked.setdefault(label, set()).add(asker.range)
            for label, held in self.planner.held.items():
                if self.kept[label].shared_state != name:
                    continue
                datum, length = held.family.datum, self.kept[label].length
                if datum.is_complex:
                    value_counters.append(_value_counter(held, length, asked[label]))
                else:
                    entries, lengths = pane_grids.setdefault(held.grid, ([], []))
                    entries.append(entry_of(label, datum, held.predicate))
                    lengths.append(length)
            (stream,) = question.emit.leaves[0].streams
            found = tuple(
                PaneGrid(grid.width, grid.phase, max(lengths), tuple(entries))
                for grid, (entries, lengths) in pane_grids.items()
            )
            self._shared_states[name] = SharedState(name, stream, question.keys, found, tuple(value_counters))
        return self._shared_states[name]


def identity_of(held: Held) -> str:
    """The hash of what an interval of a synopsis holds: which state, of which rows and groups."""
    datum, family = held.family.datum, held.family
    rows, cut = held.predicate.expression, [held.grid.width, held.grid.phase]
    return digest_of([planner.SHARED, datum.form, rows, family.keys, cut])


def labels_of(recipes: Iterable[str]) -> dict[str, None]:
    """The synopses that some recipes are made of, each once.

    >>> list(labels_of(["p1", "p1+p2", "p4-p2"]))
    ['p1', 'p2', 'p4']
    """
    return dict.fromkeys(label for each in recipes for label in relevant_of(each).all)


def _can_be_kept(recipes: Iterable[predicates.Relevant[str]], held: Mapping[str, Held]) -> bool:
    """Whether conditions that outlive their queries can be written down."""
    labels = {label for each in recipes if len(each.all) > 1 for label in each.all}
    return all(predicates.written(held[label].predicate.expression) is not None for label in labels)


def _put(
    pieces: dict[tuple[bool, int], dict[str, str]],
    entry: str,
    names: Iterable[str],
    columns: Mapping[str, list[str]],
) -> None:
    """What a query takes along of an entry: of one that is combined, a piece for each part."""
    relevant = relevant_of(entry)
    mine = list(zip(columns[relevant.added[0]], names, strict=False))
    for is_added, labels in ((True, relevant.added), (False, relevant.subtracted)):
        for place, label in enumerate(labels):
            piece = pieces.setdefault((is_added, place), {})
            piece |= {name: column for (_, name), column in zip(mine, columns[label], strict=True)}


def entry_of(label: str, datum: Datum, where: predicates.Predicate) -> Entry:
    """The columns of a synopsis in the tables of its shared state."""
    assert isinstance(datum.shape, partials.Partial)
    return Entry(replace(datum.shape, label=label), datum.args, where.expression, datum.order)


def _value_counter(held: Held, length: int, ranges: Iterable[int]) -> ValueCounter:
    datum, grid = held.family.datum, held.grid
    assert isinstance(datum.shape, value_tables.Cells)
    what = held.name, datum.shape, datum.args, held.predicate.expression
    spans = tuple(sorted(each // grid.width for each in ranges))
    return ValueCounter(grid.width, grid.phase, length, (), *what, spans)


def _form(query: SlidingQuery) -> Any:
    """What of a query makes rows of its states."""
    above = tuple(getattr(node, "predicate", None) or node.outputs for node in query.above)  # type: ignore[union-attr]
    columns = tuple((each.name, str(each.type)) for each in query.emit.schema)
    return above, query.aggregate.keys, query.aggregate.aggregates, columns


def _why_alone(bundle: Bundle, question: QueryNeeds) -> str | None:
    unit = bundle.unit
    if not isinstance(unit, units.SlidingUnit) or unit.stages > 1:
        return "it is not one aggregate over one stream"
    if unit.program.by_group:
        return "its groups may become final one by one"
    if any(key.type.fields for key in question.keys):
        return "it groups by arrays or structs"
    for need in question.needs:
        if isinstance(need.datum.shape, value_tables.OrderedRows | partials.UserState):
            return f"the {need.datum.text} is no state of constant size"
    return None


def _key_of(shared_state: str) -> str:
    """The stream and the grouping, without the commit that the shared state began with."""
    return shared_state.rpartition("@")[0]
