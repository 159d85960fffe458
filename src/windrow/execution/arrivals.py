"""A micro-batch on its way into the ingest job."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from windrow.execution.malformed_rows import MALFORMED
from windrow.windows.domain import ROW_NUM, Instant

if TYPE_CHECKING:
    from windrow.algebra.catalog import Stream
    from windrow.algebra.expressions import Schema
    from windrow.execution.bundle import Bundle
    from windrow.kernels.intake import Known
    from windrow.kernels.shared.shared_state import SharedState


def plain_names(schema: Schema) -> list[str]:
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


def as_declared(rows: pa.RecordBatch, schema: Schema) -> pa.Table:
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

    stream: Stream
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
