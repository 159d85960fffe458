"""What a query has in common with others that are not answered from synopses, and by which rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING

from windrow.algebra.operators import Join
from windrow.engine.teams import general_unit
from windrow.kernels.general.grouping import Grouped
from windrow.kernels.general.operator import Stateless
from windrow.kernels.general.parts import Parts
from windrow.kernels.general.stateless import Projected
from windrow.rules.trunks import trunk_of

if TYPE_CHECKING:
    from windrow.algebra.expressions import Expression
    from windrow.engine.records import QueryRecord
    from windrow.kernels.general.operator import Operator


@dataclass(frozen=True)
class InCommon:
    """Something that a query has in common with so many others, and the rules that allow it."""

    what: str
    others: int
    rules: tuple[str, ...] = ()

    def __str__(self) -> str:
        """In a few words.

        >>> str(InCommon("⋈", 2)), str(InCommon("states of ⋈", 1, ("SS3", "CS4")))
        ('⋈ with 2', 'states of ⋈ with 1 by SS3, CS4')
        """
        return f"{self.what} with {self.others:,}" + (f" by {', '.join(self.rules)}" if self.rules else "")


def shared_parts(record: QueryRecord, running: Iterable[QueryRecord]) -> list[InCommon]:
    """The parts of a query that running queries have too, and the states of a join that it aggregates with
    them; if there are none, its rows."""
    if record.member is None:
        return []
    others = [each for each in running if each.id != record.id]
    operators = dict(general_unit(record.bundle).program.operators())
    count = {name: sum(name in each.bundle.places for each in others) for name in record.member.names}
    places = dict(record.member.team.parts)
    parts = [
        InCommon(_named(path, operators, places.keys()), count[name])
        for path, name in places.items()
        if count[name]
    ]
    filed = count[record.member.team.name]
    told = parts + _states(record, others) + _results(record, others)
    return told or ([InCommon("rows", filed)] if filed else [])


def _named(path: str, operators: Mapping[str, Operator], others: Set[str]) -> str:
    """What a part is called: by the first of its operators that keeps anything, if it has one that is in no
    other part."""
    place = path
    while isinstance(operators[place], Stateless) and len(operators[place].inputs) == 1:
        place = f"{place}.0"
        if place in others:
            return operators[path].name
    return operators[place].name


def _results(record: QueryRecord, others: Iterable[QueryRecord]) -> list[InCommon]:
    """With whom a query has all its results computed together, each for instants of its own."""
    mine, own = general_unit(record.bundle).program.emit, record.bundle.team
    alike = [
        each
        for each in others
        if (team := each.bundle.team) is not None
        and own is not None
        and (team.name, team.sooner) == (own.name, own.sooner)
        and team.reports != own.reports
        and general_unit(each.bundle).program.emit == mine
    ]
    return [InCommon("results", len(alike), ("CS8",))] if alike else []


def _states(record: QueryRecord, others: Iterable[QueryRecord]) -> list[InCommon]:
    """With whom a query has states of a join computed together: of the same groups (SS3), over windows of the
    same lengths (CS4) and over those that are all shorter or longer by one time (CS5)."""
    mine = _aggregated(record)
    alike = [each for each in map(_aggregated, others) if each is not None]
    alike = [each for each in alike if mine is not None and each[:2] == mine[:2]]
    if mine is None or not alike:
        return []
    lengths = {sooner for *_, sooner in alike}
    rules = ["SS3"]
    rules += ["CS4"] if mine[2] in lengths else []
    rules += ["CS5"] if len(mine[2]) < 2 and any(len(each) < 2 for each in lengths - {mine[2]}) else []
    return [InCommon("states of ⋈", len(alike), tuple(rules))]


def _aggregated(record: QueryRecord) -> tuple[str, tuple[Expression, ...], tuple[int, ...]] | None:
    """The part with the join that a query aggregates by its states, the groups of these, and by how much its
    windows are shorter; None if it does not."""
    if record.member is None:
        return None
    program, team = general_unit(record.bundle).program, record.member.team
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
    return dict(team.parts)[part], tuple(key for _, key in reader.measures.plan.keys), team.sooner
