"""Rows that no query needs, dropped by Spark before they are sent to workers.

All that such rows tell of a stream is how many they are and the greatest moment among them. Spark observes
both as the rows pass, in the one reading that there is. Late rows, and rows without a moment, are not dropped
here: they are judged as ever, by what was known before the batch. `place_of_drop` says where this is enough.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812

from windrow.execution.arrivals import plain_names
from windrow.execution.needless_rows import shed_sql
from windrow.execution.reports import Ingested
from windrow.kernels.intake import Observed
from windrow.physical.native_sql import MOMENT, moment_sql, promised_sql, quoted
from windrow.spark.place_of_drop import DROPPED
from windrow.windows.progress import Batch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from windrow.execution.arrivals import Arrived


def thinned(batch: Arrived) -> DataFrame:
    """The rows of a batch that somebody needs, and the late ones; what is dropped is observed."""
    columns = [quoted(name) for name in batch.stream.schema.names]
    promised, shed = promised_sql(batch.known.progress.progress), shed_sql(batch.shed, MOMENT)
    dropped = f"CASE WHEN {MOMENT} >= {promised} AND {shed} THEN {MOMENT} END AS {DROPPED}"
    rows = batch.frame.selectExpr(*columns, f"{moment_sql(batch.stream)} AS {MOMENT}")
    seen = rows.selectExpr(*columns, dropped).observe(
        _name(batch), F.expr(f"count({DROPPED})"), F.expr(f"max({DROPPED})")
    )
    sent = [
        f"{name} AS {plain}" for name, plain in zip(columns, plain_names(batch.stream.schema), strict=True)
    ]
    needed: DataFrame = seen.filter(f"{DROPPED} IS NULL").selectExpr(*sent)
    return needed


def told_by_dropped(job: DataFrame, batch: Arrived) -> Ingested:
    """What the dropped rows of a batch tell of its stream, after the job has run. It is asked of the job that
    has run, not of an `Observation`: that waits for news which Spark may lose when it is busy.
    """
    seen = job._jdf.queryExecution().observedMetrics().apply(_name(batch))
    count = int(seen.getLong(0))
    if not count:
        return Ingested(batch.stream.name)
    greatest = Batch([int(seen.getLong(1))], only_mark=[False])
    return Ingested(batch.stream.name, Observed(greatest, accepted=count), shed=count)


def _name(batch: Arrived) -> str:
    return f"windrow: dropped rows of {batch.stream.name}"
