"""Bundles: standing queries as they travel to worker processes, and the micro-batches for them.

Compiling a plan costs milliseconds, and a worker meets the same plan in every epoch: it is compiled once per
process, found again by its fingerprint.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import pyarrow as pa

from windrow.algebra import catalog, expressions, shipments
from windrow.algebra.aggregates.definition import Definition
from windrow.algebra.aggregates.user import install_version
from windrow.execution.malformed_rows import MALFORMED
from windrow.kernels.intake import Known
from windrow.kernels.panes.program import PaneProgram
from windrow.kernels.relational.emission import WAITING
from windrow.kernels.relational.program import Parts, SubplanView
from windrow.kernels.shared.shared_state import SharedState
from windrow.physical import PhysicalPlan
from windrow.physical.units import SlidingUnit, Unit, unit_of
from windrow.windows import ROW_NUM, Instant, SlideGrid


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
        cls, name: str, plan: PhysicalPlan, fingerprint: str, *, aggregates: tuple[Definition, ...] = ()
    ) -> Bundle:
        """A plan, ready to travel."""
        return cls(name, fingerprint, shipments.packed(plan.emit), plan.by_group, aggregates)

    @property
    def _group(self) -> QueryGroup:
        """Its query group; alone it is one."""
        return self.query_group if self.query_group is not None else QueryGroup(self.name)

    @property
    def files(self) -> str:
        """The name under which its rows are filed."""
        return self._group.name

    @property
    def places(self) -> dict[str, str]:
        """The names under which its states are kept, and the place in its plan that each is about."""
        return {self.name: "", self._group.name: "", **{name: path for path, name in self._group.parts}}

    def kept_as(self, path: str) -> tuple[str, str]:
        """The name under which the state of an operator is kept, and its place there."""
        parts = Parts(dict(self._group.parts))
        around = parts.part_of(path)
        if around is not None:
            return parts.names[around], path.removeprefix(around)
        return self._group.name if path == WAITING else self.name, path

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
    return unit_of(shipments.unpacked(plan), by_group=by_group, carries_ends=carries_ends)


def plain_names(schema: expressions.Schema) -> list[str]:
    """What columns are called on their way to a worker: Spark looks them up by name there, and takes a name
    with a dot in it for a field of a struct."""
    return [f"c{place}" for place in range(len(schema))]


def parted(rows: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.Array | None]:
    """Rows, and what is told of those among them that are none; None if nothing is."""
    place = rows.schema.get_field_index(MALFORMED)
    if place < 0:
        return rows, None
    told, rest = rows.column(place), rows.remove_column(place)
    return (rest, None) if told.null_count == len(told) else (rest.filter(told.is_null()), told.drop_null())


def as_declared(rows: pa.RecordBatch, schema: expressions.Schema) -> pa.Table:
    """Rows that came to a worker, under the names of their stream."""
    table = pa.Table.from_batches([rows])
    came_plain = table.column_names == plain_names(schema)
    return table.rename_columns(list(schema.names)) if came_plain else table


@dataclass(frozen=True)
class Few:
    """Rows that may be so few that they are sooner here than Spark is told of them: `table` gives them, or
    None if only Spark can read them; `frame` gives Spark's frame of them."""

    rows: int
    table: Callable[[], pa.Table | None]
    frame: Callable[[], Any]


@dataclass(frozen=True)
class Arrived:
    """The new rows of a stream, what was known of it before, and the queries that read it."""

    stream: catalog.Stream
    #: a Spark DataFrame, an Arrow table, or `Few` rows that can be either
    frame: Any
    known: Known
    queries: tuple[Bundle, ...]
    order_key: tuple[str, ...] = ()
    #: what is known of all streams: a query over several has one clock
    others: Mapping[str, Known] = field(default_factory=dict)
    #: how many pane states the last batch gave, if that is known
    panes: int | None = None
    #: how far each table is
    held: Mapping[str, Instant] = field(default_factory=dict)
    #: rows that no query needs: intervals [begin, end) of WATTR
    shed: tuple[tuple[int, int], ...] = ()
    #: rows that a query does not need, although another may
    own: Mapping[str, tuple[tuple[int, int], ...]] = field(default_factory=dict)
    #: whether archives are to have the accepted rows
    archived: bool = False
    #: what is kept once for all queries that share it; these are not among `queries`
    shared_states: tuple[SharedState, ...] = ()
    #: whether several groupings may be aggregated at once: as far as is known, they have few groups in common
    together: bool = True
    #: whether the frame hands on malformed rows, and what they are filed under if a sink is to have them
    hands_on: bool = False
    malformed_sink: str | None = None

    @property
    def numbers_rows(self) -> bool:
        """Whether rows must be numbered as they come, all of them by one task and in the source's order: by
        what queries ask for, or since the stream's progress is such a number."""
        return self.stream.wattr == ROW_NUM or any(query.unit.numbers_rows for query in self.queries)
