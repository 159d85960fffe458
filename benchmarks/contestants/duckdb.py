"""DuckDB, if it is installed: the bounded case, all rows at once, nothing kept for later.

It is given the best plan there is: partial aggregates of panes as long as the slide, then their windows.
"""

from __future__ import annotations

import time
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from benchmarks.contestant import Outcome
from benchmarks.workload import SECOND

if TYPE_CHECKING:
    from collections.abc import Mapping

    from benchmarks.job import SlidingJob
    from benchmarks.setting import Setting

_QUERY = """
COPY (
  WITH panes AS (
    SELECT epoch_us(ts) // {slide} + 1 AS pane, k, max(v) AS m, sum(v) AS t, count(*) AS n
    FROM read_parquet('{source}') GROUP BY ALL
  ), windows AS (
    SELECT unnest(range(pane, least(pane + {overlap}, {last} + 1))) AS ended, k, m, t, n FROM panes
  )
  SELECT make_timestamp(ended * {slide}) AS "at", k, max(m) AS m, sum(t) AS t, sum(n)::BIGINT AS n
  FROM windows GROUP BY ALL
) TO '{out}' (FORMAT parquet)
"""


class DuckDb:
    """A batch engine: it says how much of the time is the price of streaming."""

    name = "duckdb (batch)"

    def __init__(self, setting: Setting) -> None:
        self._setting = setting

    @staticmethod
    def is_installed() -> bool:
        """Whether it can take part."""
        return find_spec("duckdb") is not None

    @property
    def settings(self) -> Mapping[str, str]:
        """Its defaults: all cores, in memory."""
        return {
            "version": str(import_module("duckdb").__version__),
            "rows": "all at once, panes then windows",
        }

    def run(self, job: SlidingJob) -> Outcome:
        """One statement over all files."""
        import polars as pl

        duckdb = import_module("duckdb")
        out = self._setting.fresh("duckdb-answers.parquet")
        out.unlink(missing_ok=True)
        slide = job.slide_seconds * SECOND
        text = _QUERY.format(
            source=job.readings.folder / "*.parquet",
            out=out,
            slide=slide,
            overlap=job.range_seconds // job.slide_seconds,
            last=job.readings.end // slide,
        )
        began = time.perf_counter()
        with duckdb.connect() as connection:
            connection.execute(text)
        return Outcome(time.perf_counter() - began, pl.scan_parquet(out))
