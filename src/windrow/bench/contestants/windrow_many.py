"""Windrow with many standing queries over one stream, their answers kept in memory."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from windrow.bench.contestant import Outcome
from windrow.bench.contestants.windrow import AGGREGATES, declaration

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from windrow.bench.job import SlidingJob
    from windrow.bench.setting import Setting


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
            "state": "a directory, every commit synchronised to disk",
            "answers": "in memory",
        }

    def run(self, jobs: Sequence[SlidingJob]) -> Outcome:
        """All of them at once; the answers are those of the first."""
        import polars as pl

        import windrow as wr

        queries = (
            f"CREATE QUERY q{number} AS SELECT {AGGREGATES} FROM s {job.window} GROUP BY k"
            for number, job in enumerate(jobs)
        )
        text = ";\n".join([declaration(jobs[0].readings, jobs[0].files_per_batch), *queries])
        with wr.connect(self._setting.spark, state=self._setting.fresh("many-state")) as engine:
            began = time.perf_counter()
            engine.sql(text)
            registered = time.perf_counter()
            engine.run(once=True)
            seconds = time.perf_counter() - registered
            answers = pl.from_arrow(engine.queries["q0"].results())
            rows = sum(query.progress.rows for query in engine.queries.values())
        assert isinstance(answers, pl.DataFrame)
        figures = {"registering seconds": registered - began, "answers of all": float(rows)}
        return Outcome(seconds, answers.lazy(), figures)
