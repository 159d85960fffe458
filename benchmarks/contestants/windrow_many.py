"""Windrow with many standing queries over one stream, their answers kept in memory."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from benchmarks.contestant import Outcome
from benchmarks.contestants.windrow import declaration
from benchmarks.job import KEYS_OF_A_QUERY

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl
    import pyarrow as pa

    from benchmarks.job import GroupedJob
    from benchmarks.setting import Setting


class WindrowMany:
    """All queries are registered first; timed is the run from its first row to the last answer."""

    name = "windrow"

    def __init__(self, setting: Setting) -> None:
        self._setting = setting

    @property
    def settings(self) -> Mapping[str, str]:
        """What it does by itself."""
        return {
            "master": str(self._setting.spark.sparkContext.master),
            "driver memory": self._setting.memory,
            "stream": "ORDERED",
            "queries": "registered before, the time of which is given",
            "state": "a directory, every commit synchronised to disk",
            "answers": "in memory",
        }

    def run(self, jobs: Sequence[GroupedJob]) -> Outcome:
        """All of them at once; the answers are those of all."""
        import polars as pl

        import windrow as wr

        text = ";\n".join(
            [
                declaration(jobs[0].readings, jobs[0].files_per_batch),
                *(_query(number, job) for number, job in enumerate(jobs)),
            ]
        )
        with wr.connect(self._setting.awake(), state=self._setting.fresh("many-state")) as engine:
            began = time.perf_counter()
            engine.sql(text)
            registered = time.perf_counter()
            engine.run(once=True)
            seconds = time.perf_counter() - registered
            answers = [
                _shifted(engine.queries[f"q{number}"].results(), number) for number in range(len(jobs))
            ]
        return Outcome(seconds, pl.concat(answers).lazy(), {"registering seconds": registered - began})


def _query(number: int, job: GroupedJob) -> str:
    key = job.grouping
    return (
        f"CREATE QUERY q{number} AS SELECT {key} AS k, MAX(v) AS m, SUM(v) AS t, COUNT(*) AS n"
        f" FROM s {job.window} GROUP BY {key}"
    )


def _shifted(table: pa.Table, number: int) -> pl.DataFrame:
    import polars as pl

    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    return frame.select("at", pl.col("k").cast(pl.Int64) + KEYS_OF_A_QUERY * number, "m", "t", "n")
