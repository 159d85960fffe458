"""What a query has in common with others that are not answered from synopses, and by which rules."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Set
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from windrow.algebra.operators import Join
from windrow.engine.sharing.common_subplans import general_unit
from windrow.kernels.relational.aggregate.group_by import Grouped
from windrow.kernels.relational.common_subplans import Parts
from windrow.kernels.relational.operator import Stateless
from windrow.kernels.relational.stateless import Projected
from windrow.optimizer.common_subplans import trunk_of
from windrow.physical.sharing import Shared

if TYPE_CHECKING:
    from windrow.algebra.expressions import Expression
    from windrow.engine.records import QueryRecord
    from windrow.execution.bundle import Bundle
    from windrow.kernels.relational.common_subplans import SubplanView
    from windrow.kernels.relational.operator import Operator
    from windrow.windows.grid import SlideGrid


def shared_parts(record: QueryRecord, running: Iterable[QueryRecord]) -> list[Shared]:
    """The parts of a query that running queries have too, and the states of a join that it aggregates with
    them; if there are none, its rows."""
    if record.member is None:
        return []
    others = [each for each in running if each.id != record.id]
    operators = dict(general_unit(record.bundle).program.operators())
    count = {name: sum(name in each.bundle.places for each in others) for name in record.member.names}
    places = dict(record.member.team.parts)
    parts = [
        Shared(_named(path, operators, places.keys()), count[name])
        for path, name in places.items()
        if count[name]
    ]
    filed = count[record.member.team.name]
    told = parts + _states(record, others) + _results(record, others)
    return told or ([Shared("rows", filed)] if filed else [])


def _named(path: str, operators: Mapping[str, Operator], others: Set[str]) -> str:
    """What a part is called: by the first of its operators that keeps anything, if it has one that is in no
    other part."""
    place = path
    while isinstance(operators[place], Stateless) and len(operators[place].inputs) == 1:
        place = f"{place}.0"
        if place in others:
            return operators[path].name
    return operators[place].name


def _results(record: QueryRecord, others: Iterable[QueryRecord]) -> list[Shared]:
    """With whom a query has all its results computed together, each for instants of its own."""
    mine = _asked(record.bundle)
    alike = [each for each in others if each.bundle.team is not None and _asked(each.bundle) == mine]
    apart = [each for each in alike if _grids(each.bundle) != _grids(record.bundle)]
    return [Shared("results", len(apart), ("CS8",))] if apart else []


@lru_cache(maxsize=4096)
def _asked(bundle: Bundle) -> str:
    """What is computed for a query."""
    team = bundle.team
    return repr((team and (team.name, team.view), general_unit(bundle).program.emit))


def _grids(bundle: Bundle) -> tuple[SlideGrid, ...]:
    return () if bundle.team is None else bundle.team.reports


def _states(record: QueryRecord, others: Iterable[QueryRecord]) -> list[Shared]:
    """With whom a query has states of a join computed together: of the same groups (SS3), over windows of the
    same lengths (CS4) and over those that are all shorter or longer by one time (CS5)."""
    mine = _aggregated(record.bundle)
    if mine is None:
        return []
    known = (_aggregated(each.bundle) for each in others if mine.part in each.bundle.places)
    views = [each.view for each in known if each is not None and each.states == mine.states]
    if not views:
        return []
    even = [each for each in views if len(each.sooner) < 2 and each != mine.view]
    rules = ["SS3"]
    rules += ["CS4"] if mine.view in views else []
    # what is looked at now and then is combined anew for each length
    rules += ["CS5"] if len(mine.view.sooner) < 2 and even and not mine.view.instants else []
    return [Shared("states of ⋈", len(views), tuple(rules))]


@dataclass(frozen=True)
class _Aggregated:
    """How a query aggregates a join: the part that has it, the groups, and how it sees the join."""

    part: str
    groups: tuple[Expression, ...]
    view: SubplanView

    @property
    def states(self) -> Hashable:
        """What queries must have in common to have states in common."""
        return self.part, self.groups, self.view.instants


@lru_cache(maxsize=4096)
def _aggregated(bundle: Bundle) -> _Aggregated | None:
    """How a query aggregates a join by its states; None if it does not."""
    team = bundle.team
    if team is None:
        return None
    program = general_unit(bundle).program
    operators, join = dict(program.operators()), program.builder.built.get(id(trunk_of(program.emit)))
    place = next((path for path, each in operators.items() if each is join), "")
    part = Parts(dict(team.parts)).part_of(place)
    if part is None or not isinstance(trunk_of(program.emit), Join):
        return None
    above = place.rpartition(".")[0]
    while isinstance(dropping := operators.get(above), Projected) and dropping.only_drops:
        above = above.rpartition(".")[0]
    reader = operators.get(above)
    if not isinstance(reader, Grouped) or not reader.reads_states:
        return None
    keys = tuple(key for _, key in reader.measures.plan.keys)
    return _Aggregated(dict(team.parts)[part], keys, team.view)
