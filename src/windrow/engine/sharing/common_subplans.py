"""Query groups: queries that are not answered from synopses, and have parts of their plans in common.

They have the same windows over the same streams and have begun together, so they see the same rows by the
same clock. Their rows are filed once, and every part that some have in common runs once. Groups are made when
the first rows come; a query that comes later begins over a join that runs, with all rows that it holds, where
it fits (thesis, Definition 3.1 and 8.2); else it keeps a state of its own.

Slower slides: a join over windows that move every minute has, every hour, the results of the same join over
windows that move every hour. So it serves both, if the slower query looks at it at its own instants only: its
results are *sampled* there, and everything above sees what it would by itself. A query that differs from
another in nothing but when it asks has all results in common with it and reports some of them (CS8). That is
so only where nothing can fail: an overflow in a window that the slower query does not have must not stop it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from windrow.algebra import Emit, Scan, canonical, operators as ops, shipments, types
from windrow.execution.bundle import Bundle, QueryGroup
from windrow.execution.relational import Host
from windrow.kernels.relational import implementations, program, state_transfer
from windrow.optimizer import common_subplans as subplans
from windrow.optimizer.common_subplans import likeness
from windrow.optimizer.trees import can_ever_fail, expressions_of
from windrow.physical.units import GeneralUnit, UnionUnit
from windrow.sharing.rules import grid_of, moving_on, unslid
from windrow.state.names import RESERVED
from windrow.windows import RangeWindow, SlideGrid

if TYPE_CHECKING:
    from windrow.engine.records import QueryRecord
    from windrow.kernels.relational.operator import Operator


_EXACT = frozenset({types.Kind.DECIMAL, types.Kind.INTERVAL})
#: aggregates that may be too large for their type, if it is one of these
_TOTALS = {"sum": _EXACT | {types.Kind.BIGINT}, "approx_sum": _EXACT | {types.Kind.BIGINT}, "avg": _EXACT}


@dataclass(frozen=True)
class CommonSlide:
    """When the windows of a query move, which is when those of another one do."""

    grid: SlideGrid
    #: the instants at which it, or a query that it is like, looks at the results of its common subplan; None:
    #: always
    sampled: SlideGrid | None = None

    def leader(self, own: SlideGrid | None) -> SlideGrid:
        """When the query asks that one at this slide follows, which asks at instants of its `own`."""
        return self.grid if self.sampled in (None, own) else self.sampled


@dataclass(frozen=True)
class _Member:
    """A query as it would be by itself, at a slide that is another one's or its own."""

    alone: Bundle
    plan: Emit
    common_slide: CommonSlide | None
    #: what it sees of its streams, and when
    sight: str
    #: whether it can take its rows from longer windows
    shortens: bool
    #: when it asks
    grid: SlideGrid | None
    #: what it can only have in common with queries that have it too
    bounds: Hashable

    @property
    def id(self) -> str:
        return self.alone.name

    def view(self, subplan: subplans.CommonSubplan | None) -> program.SubplanView:
        """How it sees a common subplan."""
        sampled = None if self.common_slide is None else self.common_slide.sampled
        sooner = () if subplan is None else subplan.sooner(self.plan)
        return program.SubplanView(sooner, () if sampled is None else (sampled,))

    @property
    def movable(self) -> SlideGrid | None:
        """When its windows move, if they move together and the query may be at another's slide: it must look
        neither at their bounds, nor at tables, which change at instants of their own."""
        changes = any(isinstance(node, ops.TableJoin) for node in self.plan.walk())
        return None if changes or self.plan.reads_window_bounds else self.grid

    @property
    def kinds(self) -> list[tuple[bool, Hashable]]:
        """With which queries it can go: those that ask the same, then those over the same join, to sample.
        A LIMIT does not know rows that are still to come, which others see already."""
        found: list[tuple[bool, Hashable]] = []
        if not _may_fail(self.plan):
            found.append((False, (self.bounds, unslid(self.plan))))
        limits = any(isinstance(node, ops.Limit) for node in self.plan.walk())
        if subplans.can_meet_more(self.plan) and not limits:
            often = moving_on(self.plan, SlideGrid(1))
            found.append((True, (self.bounds, likeness(often, shortens=self.shortens))))
        return found


def common_slides(
    beginning: Sequence[_Member], never: Collection[tuple[str, SlideGrid]] = ()
) -> dict[str, CommonSlide]:
    """The queries that go at another one's slide, by their ids; `never` are those that must not."""
    found: dict[str, CommonSlide] = {}
    # who leads, and at which slide: of queries that are alike, and of those over one join
    leaders: dict[tuple[bool, Hashable], dict[tuple[SlideGrid, Hashable], CommonSlide]] = {}
    moving = [(each, grid) for each in beginning if (grid := each.movable) is not None]
    for each, grid in sorted(moving, key=lambda one: one[1].period):
        kinds = each.kinds
        # its windows would then begin and end when those of the leader do
        possible = [
            CommonSlide(led.grid, grid) if kind[0] else led
            for kind in kinds
            for (other, cut), led in leaders.get(kind, {}).items()
            if other != grid and grid.is_within(other) and _cut(each, led.grid) == cut
        ]
        slide = next((one for one in possible if (each.id, one.grid) not in never), None)
        if slide is not None:
            found[each.id] = slide
        mine = found.get(each.id, CommonSlide(grid))
        for is_join, kind in kinds:
            # a query leads over its join if its windows move as it asks, and those like it if it samples, too
            if mine == CommonSlide(grid) or (not is_join and mine.sampled == grid):
                at = leaders.setdefault((is_join, kind), {})
                at.setdefault((grid, _cut(each, mine.grid)), mine)
    return found


def _cut(each: _Member, grid: SlideGrid) -> Hashable:
    """Where the windows of a join begin, seen from their ends."""
    return tuple(length % grid.period for length in subplans.ranges_of(subplans.subplan_of(each.plan)) or ())


def _may_fail(plan: Emit) -> bool:
    """Whether some window, or a row in it, can make a query fail."""
    nodes = list(plan.walk())
    calls = [call for node in nodes if isinstance(node, ops.Aggregate) for _, call in node.aggregates]
    totals = [(_TOTALS.get(call.function.lower(), frozenset()), call) for call in calls]
    too_large = any(argument.type.kind in kinds for kinds, call in totals for argument in call.args)
    return too_large or any(can_ever_fail(each) for node in nodes for each in expressions_of(node))


@dataclass(frozen=True)
class Membership:
    """A query's place in a query group, as a manifest remembers it."""

    query_group: QueryGroup
    #: the form of its common subplan; None: as the query has it by itself
    subplan: subplans.CommonSubplan | None = None
    #: when its windows move, if that is when those of another query do; None: as the query says
    common_slide: CommonSlide | None = None

    def to_json(self) -> dict[str, Any]:
        subplan = None if self.subplan is None else [self.subplan.columns, self.subplan.ranges]
        return {
            "query_group": self.query_group.name,
            "parts": dict(self.query_group.parts),
            "subplan": subplan,
            **({"sooner": [*self.query_group.sooner]} if self.query_group.sooner else {}),
            **({} if self.common_slide is None else {"common_slide": asdict(self.common_slide)}),
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Membership:
        parts, sooner = tuple(stored["parts"].items()), tuple(stored.get("sooner", ()))
        slide, subplan = stored.get("common_slide"), None
        if stored["subplan"] is not None:
            columns, ranges = stored["subplan"]
            lengths = None if ranges is None else tuple(ranges)
            subplan = subplans.CommonSubplan(tuple(map(tuple, columns)), lengths)
        if slide is not None:
            grid, sampled = SlideGrid(**slide["grid"]), slide["sampled"]
            slide = CommonSlide(grid, None if sampled is None else SlideGrid(**sampled))
        return cls(QueryGroup(stored["query_group"], parts, sooner), subplan, slide)

    @property
    def names(self) -> tuple[str, ...]:
        """The names under which state is kept for the whole query group."""
        return self.query_group.name, *(name for _, name in self.query_group.parts)

    @property
    def by_itself(self) -> Membership:
        """The same rows, and everything else by itself."""
        return Membership(QueryGroup(self.query_group.name), None, self.common_slide)


def as_member(bundle: Bundle, plan: Emit, member: Membership | None) -> Bundle:
    """A query's bundle as it runs in a query group; by itself, if it is in none."""
    if member is None:
        return replace(bundle, plan=shipments.packed(plan), query_group=None)
    query_group, grid = member.query_group, grid_of(plan)
    if member.common_slide is not None and grid is not None:
        plan = moving_on(plan, member.common_slide.grid)
        sampled = () if member.common_slide.sampled is None else (member.common_slide.sampled,)
        query_group = replace(query_group, reports=(grid,), instants=sampled)
    plan = plan if member.subplan is None else member.subplan.under(plan)
    return replace(bundle, plan=shipments.packed(plan), query_group=query_group)


def in_group(records: Iterable[QueryRecord], commit: int) -> dict[str, Membership]:
    """Of queries that begin now, those that see the same as others, by their ids, with what they share."""
    beginning = [(record, plan) for record in records if (plan := _may_join(record)) is not None]
    own, never = [_member(record, plan, None) for record, plan in beginning], set[tuple[str, SlideGrid]]()
    while True:
        at_others = common_slides(own, never)
        members = [_member(record, plan, at_others.get(record.id)) for record, plan in beginning]
        found = _in_group(members, commit)
        lost = {(query, at_others[query].grid) for query, member in found.items() if member is None}
        if not lost:
            return {query: member for query, member in found.items() if member is not None}
        never |= lost


def _in_group(members: Iterable[_Member], commit: int) -> dict[str, Membership | None]:
    """The places of queries in their query groups; None of one that is at a slide of others for nothing."""
    found: dict[str, Membership | None] = {}
    for name, same in _by(members, lambda each: f"{each.sight}@{commit}").items():
        common_subplans = _by(same, lambda each: likeness(each.plan, shortens=each.shortens))
        for alike in common_subplans.values() if len(same) > 1 else ():
            for near in subplans.clustered([member.plan for member in alike]):
                found |= _query_group(name, [alike[place] for place in near])
        if len(same) == 1 and same[0].common_slide is not None:
            found[same[0].id] = None
    return found


def _by(members: Iterable[_Member], what: Callable[[_Member], str]) -> dict[str, list[_Member]]:
    """Members with those that are alike in something."""
    found: dict[str, list[_Member]] = {}
    for member in members:
        found.setdefault(what(member), []).append(member)
    return found


def admission(late: QueryRecord, host: QueryRecord) -> tuple[Membership, Membership, Host] | None:
    """How a query that comes later has the join of one that runs: the places of both from then on, and the
    host as it was. None if it cannot.

    What the host has stays as it is: the join has to carry all columns that the other one reads, over windows
    that are as long at least, and to hold the rows of its windows.
    """
    plan, running = _may_join(late), _may_join(host)
    if plan is None or running is None or late.tables or host.tables or late.streams != host.streams:
        return None
    unit = general_unit(host.bundle)
    emit, place = unit.program.emit, _place_of_subplan(unit)
    if place is None or not subplans.can_meet_more(plan):
        return None
    if state_transfer.why_not_joined(unit.program, place) is not None:
        return None
    known = host.member or Membership(QueryGroup(f"{RESERVED}rows of {host.id}"))
    names = dict(known.query_group.parts)
    around = program.Parts(names).part_of(place)
    shortens = _shortens(general_unit(as_member(late.bundle, plan, None)))
    alike = {likeness(each, shortens=shortens) for each in (plan, emit)}
    if around not in (None, place) or len(alike) > 1:
        return None
    subplan = subplans.CommonSubplan.of(emit)
    if not subplan.serves(plan):
        return None
    name = names.setdefault(place, f"{RESERVED}part {place} of {host.id}")
    mine = Membership(QueryGroup(known.query_group.name), subplan)
    joined = general_unit(as_member(late.bundle, plan, mine))
    there = _place_of_subplan(joined)
    if there is None or _sight_of(joined) != _sight_of(unit) or _subplan(joined) != _subplan(unit):
        return None
    group = known.query_group
    mine = replace(mine, query_group=QueryGroup(group.name, ((there, name),), subplan.sooner(plan)))
    theirs = replace(known, query_group=replace(group, parts=tuple(names.items())))
    return mine, theirs, Host(host.bundle, place)


def _place_of_subplan(unit: GeneralUnit) -> str | None:
    operator = unit.program.builder.built.get(id(subplans.subplan_of(unit.program.emit)))
    return next((path for path, each in unit.program.operators() if each is operator), None)


def _subplan(unit: GeneralUnit) -> str:
    """What tells the common subplan of a query from others."""
    return [*_chain(unit, program.SubplanView()).values()][-1]


def _member(record: QueryRecord, plan: Emit, common_slide: CommonSlide | None) -> _Member:
    grid = grid_of(plan)
    plan = plan if common_slide is None else moving_on(plan, common_slide.grid)
    alone = as_member(record.bundle, plan, None)
    unit = general_unit(alone)
    sight = _digest(f"{_sight_of(unit)} {record.complete_from}")
    shortens = _shortens(unit) and record.complete_from is None
    bounds = record.complete_from, record.bundle.carries_ends, repr(unit.placement)
    return _Member(alone, plan, common_slide, sight, shortens, grid, bounds)


def _query_group(name: str, members: list[_Member]) -> dict[str, Membership | None]:
    """The places of members with the same common subplan in their query group, with the parts that at least
    two have."""
    if len(members) == 1:
        (only,) = members
        alone = Membership(QueryGroup(f"{RESERVED}rows of {name}")) if only.common_slide is None else None
        return {only.id: alone}
    subplan = subplans.common_subplan([member.plan for member in members])
    chains: dict[str, dict[str, str]] = {}
    for member in members:
        bundle = as_member(member.alone, member.plan, Membership(QueryGroup(name), subplan))
        chains[member.id] = _chain(general_unit(bundle), member.view(subplan))
    built = _by(members, lambda each: [*chains[each.id].values()][-1])
    if len(built) > 1:  # what is above makes a difference to how a common subplan is built
        apart = [_query_group(name, alike) for alike in built.values()]
        return {query: place for group in apart for query, place in group.items()}
    users: dict[str, list[_Member]] = {}
    for member in members:
        for part in chains[member.id].values():
            users.setdefault(part, []).append(member)
    own = {member.id: member for member in members}
    return {query: _place(name, each, chains[query], users, subplan) for query, each in own.items()}


def _place(
    name: str,
    member: _Member,
    chain: Mapping[str, str],
    users: Mapping[str, list[_Member]],
    subplan: subplans.CommonSubplan | None,
) -> Membership | None:
    """Where a member is in its query group; None if it is at the slide of another one and has not in common
    with it what it should: the common subplan, if it samples that itself, else everything."""
    top, *_, lowest = [*chain.values()] * 2
    if member.common_slide is not None:
        leader = member.common_slide.leader(member.grid)
        samples = member.common_slide.sampled == member.grid
        together = [other for other in users[lowest if samples else top] if other.grid == leader]
        if not any(other.common_slide in (None, member.common_slide) for other in together):
            return None
    # from the top; a part that says no more than a larger one is left out
    parts: dict[str, str] = {}
    above: list[_Member] = []
    for path, part in chain.items():
        if len(users[part]) > 1 and users[part] != above:
            parts[path], above = f"{RESERVED}part {part} of {name}", users[part]
    sooner = member.view(subplan).sooner
    query_group = QueryGroup(f"{RESERVED}rows of {name}", tuple(parts.items()), sooner)
    return Membership(query_group, subplan, member.common_slide)


def general_unit(bundle: Bundle) -> GeneralUnit:
    """A query that is not answered from synopses, compiled."""
    unit = bundle.unit
    assert isinstance(unit, GeneralUnit)
    return unit


def _chain(unit: GeneralUnit, view: program.SubplanView) -> dict[str, str]:
    """The operators that all rows come through, by their places, from the top: what tells each from others.

    A part is known by its plan, by how its operators were built for the query they are in, and above the
    common subplan by how the common subplan is seen there.
    """
    builder, places = unit.program.builder, {id(each): path for path, each in unit.program.operators()}
    emit, found = unit.program.emit, dict[str, str]()
    for node in subplans.chain_of(emit):
        place = places.get(id(builder.built.get(id(node))))
        if place is not None:
            told = [id(each) in builder.telling for each in node.walk()]
            seen = program.SubplanView() if node is subplans.subplan_of(emit) else view
            seen_as = [seen.sooner, [[grid.period, grid.origin] for grid in seen.instants]]
            built = _built(builder.built[id(node)])
            found[place] = _digest(canonical.canonical_text([node, told, built, seen_as]))
    return found


def _built(operator: Operator) -> list[Any]:
    kind = implementations.kind_of(operator), list(operator.columns)
    return [kind, *map(_built, operator.inputs)]


def _may_join(record: QueryRecord) -> Emit | None:
    """The plan of a query that may be in a query group.

    Queries that may leave out windows, or are refreshed at their own times, see other rows than others.
    """
    unit = record.bundle.unit
    if not isinstance(unit, GeneralUnit) or isinstance(unit, UnionUnit) or record.bundle.aggregates:
        return None
    if not record.is_exact:
        return None
    emit = unit.program.emit
    if emit.is_internal or emit.word.restores or unit.program.root.needs_last_end:
        return None
    return record.physical.emit


def _sight_of(unit: GeneralUnit) -> str:
    """What a query sees of its streams, and when: queries with the same sight see the same."""
    program, timing = unit.program, unit.timing
    windows = []
    for window in timing.windows:
        # how long a window is changes neither what it sees nor when
        moves = replace(window.spec, range=1) if isinstance(window.spec, RangeWindow) else window.spec
        scans = [each if isinstance(each, Scan) else None for each in window.origins]
        windows.append((moves, [each and (each.stream.name, window.attribute_of(each)) for each in scans]))
    routed = sorted((name, *columns) for name, columns in unit.placement.items())
    tables = sorted((name, column or "") for name, column in unit.table_places.items())
    seen = windows, routed, tables, sorted(unit.streams), sorted(unit.tables)
    builder, ends = program.builder, program.options.ends
    how = builder.lag, builder.reported, program.emit.is_periodic, program.why_not_lazy, ends and ends.value
    sources = sorted((name, *columns) for name, columns in builder.sources.items())
    return canonical.canonical_text([*seen, *how, sources])


def _shortens(unit: GeneralUnit) -> bool:
    """Whether a query can take its rows from a join over longer windows, which must say when they end."""
    emit = unit.program.emit
    return subplans.can_shorten(emit) and id(subplans.subplan_of(emit)) not in unit.program.builder.telling


def _digest(text: str) -> str:
    return blake2b(text.encode(), digest_size=8).hexdigest()
