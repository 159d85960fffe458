"""Queries that read the same streams drop the same slots, so that rows become needless for all of them at
once.

A slot is as long as the lcm of the slides and holds whole windows of every query: (O + k*L, O + (k+1)*L]. For
this the windows of all of them must have the same phase at O. Where that is not so, or where not even one
such slot may be missing, each query has slots of its own: its windows are dropped after the split, and rows
seldom.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from windrow.shedding.agreement import Agreed, SheddableQuery, agree
from windrow.shedding.phases import Cycles
from windrow.shedding.rules import CannotShed, WinDrop, fan_out


@dataclass(frozen=True)
class SheddingGroup:
    """Queries that drop the same slots."""

    members: tuple[Agreed, ...]

    @cached_property
    def drop(self) -> WinDrop:
        """The WinDrop before all of them: fan-out rule."""
        return fan_out(*(member.drop for member in self.members))

    @cached_property
    def cycles(self) -> Cycles:
        """Their common slots; `CannotShed` if there are none."""
        return Cycles(common_origin(self.members), self.drop.slide, self.drop.batch)

    @property
    def name(self) -> str:
        """The names of its queries."""
        return ", ".join(member.name for member in self.members)


@dataclass(frozen=True)
class SheddingGroups:
    """All queries sorted out: the groups that shed, the queries that do not, and why things are apart."""

    groups: tuple[SheddingGroup, ...] = ()
    #: for each query that loses nothing, the reason
    refused: tuple[tuple[str, CannotShed], ...] = ()
    #: for each set of queries that could not be one group, the reason
    apart: tuple[tuple[str, CannotShed], ...] = ()

    @cached_property
    def agreed(self) -> dict[str, Agreed]:
        """The queries that may lose windows, by name."""
        return {member.name: member for group in self.groups for member in group.members}

    def group_of(self, name: str) -> SheddingGroup:
        """The group a query is in."""
        return self._places[name]

    @cached_property
    def _places(self) -> dict[str, SheddingGroup]:
        return {member.name: group for group in self.groups for member in group.members}


def share(queries: Iterable[SheddableQuery]) -> SheddingGroups:
    """The groups of these queries: those connected through sheddable streams are one, where they can be."""
    agreed, refused = _agreed(queries)
    groups: list[SheddingGroup] = []
    apart: list[tuple[str, CannotShed]] = []
    for members in _connected(agreed):
        group = SheddingGroup(members)
        try:
            check(group)
            groups.append(group)
        except CannotShed as reason:
            apart.append((group.name, reason))
            groups += [SheddingGroup((member,)) for member in members]
    return SheddingGroups(tuple(groups), tuple(refused), tuple(apart))


def check(group: SheddingGroup) -> None:
    """Raise `CannotShed` unless the queries of a group have common slots, one of which may be missing."""
    common_origin(group.members)
    if group.drop.batch < 1:
        raise CannotShed(
            "small-max-gap", "a common slot holds more windows than MAX GAP allows to be missing"
        )


def common_origin(members: Sequence[Agreed]) -> int:
    """An instant at which a window of each query ends."""
    for candidate in members:
        origin = candidate.grid.origin
        if all((member.grid.origin - origin) % member.grid.period == 0 for member in members):
            return origin
    raise CannotShed("different-origins", "the windows of these queries have different ORIGINs")


def _agreed(queries: Iterable[SheddableQuery]) -> tuple[list[Agreed], list[tuple[str, CannotShed]]]:
    agreed: list[Agreed] = []
    refused: list[tuple[str, CannotShed]] = []
    for query in queries:
        try:
            agreed.append(agree(query))
        except CannotShed as reason:
            refused.append((query.name, reason))
    return agreed, refused


def _connected(queries: Sequence[Agreed]) -> list[tuple[Agreed, ...]]:
    """Sets of queries that have to do with each other through streams whose rows may be dropped."""
    found: list[list[Agreed]] = []
    for query in queries:
        related = [s for s in found if any(query.sheddable & other.sheddable for other in s)]
        found = [s for s in found if s not in related]
        found.append([*(other for s in related for other in s), query])
    order = {query.name: place for place, query in enumerate(queries)}
    return [tuple(sorted(each, key=lambda query: order[query.name])) for each in found]
