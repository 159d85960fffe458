"""Where needless rows are dropped: by Spark, or not before a worker has seen them.

Workers must see all rows where more follows from them than how many there are and how far they reach: where
each source has a progress of its own, where late rows count, where rows are numbered, kept or archived.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from windrow.algebra.catalog import Late
from windrow.physical.native_sql import MOMENT, follows_greatest

if TYPE_CHECKING:
    from windrow.algebra.catalog import Stream
    from windrow.execution.arrivals import Arrived
    from windrow.physical.units import Unit

#: the moment of a row that is dropped, NULL for all others
DROPPED = "__dropped"


def why_in_workers(stream: Stream, units: Iterable[Unit]) -> str | None:
    """Why workers must see the rows of a stream that these read, needless ones too; None if Spark may drop
    them.
    """
    if not follows_greatest(stream) or stream.late is Late.KEEP:
        return f"progress and late rows of `{stream.name}` are judged row by row"
    if stream.keep is not None:
        return f"rows of `{stream.name}` are kept"
    if any(unit.numbers_rows for unit in units):
        return f"rows of `{stream.name}` are numbered as they come"
    taken = {name.lower() for name in stream.schema.names} & {MOMENT, DROPPED}
    return f"`{stream.name}` has a column `{min(taken)}`" if taken else None


def drops_early(batch: Arrived) -> bool:
    """Whether Spark may drop the needless rows of a batch; not if there are none."""
    if not batch.shed or batch.archived or batch.known.per is not None:
        return False
    return why_in_workers(batch.stream, (query.unit for query in batch.queries)) is None
