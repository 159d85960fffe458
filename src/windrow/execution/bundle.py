"""A standing query as it travels to worker processes.

Compiling a plan costs milliseconds, and a worker meets the same plan in every epoch: it is compiled once per
process, found again by its fingerprint.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from windrow.algebra.aggregates.user import install_version
from windrow.algebra.shipments import packed, unpacked
from windrow.kernels.relational.emission import WAITING
from windrow.kernels.relational.program import Parts, SubplanView
from windrow.physical.units import SlidingUnit, Unit, unit_of

if TYPE_CHECKING:
    from windrow.algebra.aggregates.definition import Definition
    from windrow.kernels.panes.program import PaneProgram
    from windrow.physical import PhysicalPlan
    from windrow.windows.spec import SlideGrid


@dataclass(frozen=True)
class QueryGroup:
    """Queries that see the same rows by the same clock: rows are filed once, under the query group's name,
    and parts of plans that some of them have in common run once."""

    name: str
    #: the names of the parts that a query has in common with others, by their places in its plan
    parts: tuple[tuple[str, str], ...] = ()
    #: by how many ticks its windows are shorter than those of the lowest part: by none, all alike, or each
    sooner: tuple[int, ...] = ()
    #: when it reports, if its windows move more often, as another query asks for
    reports: tuple[SlideGrid, ...] = ()
    #: the instants at which it sees the rows of the lowest part, if not always
    instants: tuple[SlideGrid, ...] = ()

    @property
    def view(self) -> SubplanView:
        """How it sees the lowest part."""
        return SubplanView(self.sooner, self.instants)


@dataclass(frozen=True)
class Bundle:
    """A query by name: its packed plan, and the definitions of the user's aggregates in it."""

    name: str
    fingerprint: str
    plan: bytes
    by_group: bool | None = None
    aggregates: tuple[Definition, ...] = ()
    #: whether its results come with their ends, which an archive wants to know
    carries_ends: bool = False
    #: what it has in common with other queries, if anything
    query_group: QueryGroup | None = None

    @classmethod
    def of(
        cls,
        name: str,
        plan: PhysicalPlan,
        fingerprint: str,
        *,
        aggregates: tuple[Definition, ...] = (),
    ) -> Bundle:
        """A plan, ready to travel."""
        return cls(name, fingerprint, packed(plan.emit), plan.by_group, aggregates)

    @property
    def files(self) -> str:
        """The name under which its rows are filed."""
        return self.query_group.name if self.query_group is not None else self.name

    @property
    def places(self) -> dict[str, str]:
        """The names under which its states are kept, and the place in its plan that each is about."""
        if self.query_group is None:
            return {self.name: ""}
        return {
            self.name: "",
            self.query_group.name: "",
            **{name: path for path, name in self.query_group.parts},
        }

    def kept_as(self, path: str) -> tuple[str, str]:
        """The name under which the state of an operator is kept, and its place there."""
        parts = Parts({} if self.query_group is None else dict(self.query_group.parts))
        around = parts.part_of(path)
        if around is not None:
            return parts.names[around], path.removeprefix(around)
        return (self.name if self.query_group is None or path != WAITING else self.query_group.name), path

    @property
    def unit(self) -> Unit:
        """The query, compiled in this process."""
        for definition in self.aggregates:
            install_version(definition)
        return _compiled(self.plan, self.by_group, self.carries_ends)

    @property
    def program(self) -> PaneProgram | None:
        """The panes of the query, if it is answered from panes."""
        unit = self.unit
        return unit.program if isinstance(unit, SlidingUnit) else None


@lru_cache(maxsize=4096)
def _compiled(plan: bytes, by_group: bool | None, carries_ends: bool) -> Unit:
    return unit_of(unpacked(plan), by_group=by_group, carries_ends=carries_ends)
