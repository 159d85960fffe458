"""Windrow with operators over continuous windows: rows, joins, what is not there, and groups that change."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from benchmarks.contestant import Outcome
from benchmarks.contestants.windrow import Windrow
from benchmarks.disk import size
from benchmarks.workload import COLUMNS, SECOND

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import polars as pl

    from benchmarks.workload import Readings

#: with s and t, both over the past so many seconds
QUERIES = {
    "join": "SELECT ISTREAM(s.ts AS ts, s.k AS k, s.v AS v, t.ts AS other, t.v AS w)"
    " FROM s [RANGE {0} SECONDS], t [RANGE {0} SECONDS] WHERE s.k = t.k",
    "outer join": "SELECT ISTREAM(s.ts AS ts, s.k AS k, s.v AS v, t.ts AS other, t.v AS w)"
    " FROM s [RANGE {0} SECONDS] LEFT JOIN t [RANGE {0} SECONDS] ON s.k = t.k",
    "distinct": "SELECT ISTREAM(DISTINCT k) FROM s [RANGE {0} SECONDS]",
    "not exists": "SELECT ISTREAM(ts, k, v) FROM s [RANGE {0} SECONDS] WHERE NOT EXISTS"
    " (SELECT 1 FROM t [RANGE {0} SECONDS] WHERE t.k = s.k)",
    "group": "SELECT ISTREAM(k, COUNT(*) AS n, SUM(v) AS total, MAX(v) AS most)"
    " FROM s [RANGE {0} SECONDS] GROUP BY k",
}
#: what other systems have as well: rows that never had a partner are told when none can come any more, and
#: a join without windows
COMMON = {
    "not exists, in the end": "SELECT ISTREAM(ts, k, v) FROM s [RANGE 1 MICROSECOND LAG {1} MICROSECONDS]"
    " WHERE NOT EXISTS (SELECT 1 FROM t [RANGE {2} MICROSECONDS] WHERE t.k = s.k)",
    "join of all rows": "SELECT ISTREAM(s.ts AS ts, s.k AS k, s.v AS v, t.ts AS other, t.v AS w)"
    " FROM s [UNBOUNDED], t [UNBOUNDED] WHERE s.k = t.k",
}
#: what the others are asked as well, and their word for it
ASKED_OF_OTHERS = {
    "join": "INNER",
    "outer join": "LEFT",
    "not exists, in the end": "LEFT",
    "join of all rows": "INNER",
    "join, skewed": "INNER",
}
#: half of all rows of s have one and the same key
HOT = "IF(s.k % 2 = 0, 0, s.k)"
SKEWED = {
    "join, skewed": QUERIES["join"].replace("s.k = t.k", f"{HOT} = t.k"),
    "distinct, skewed": QUERIES["distinct"].replace("DISTINCT k", f"DISTINCT {HOT} AS k"),
    "group, skewed": QUERIES["group"].replace("(k,", f"({HOT} AS k,").replace("BY k", f"BY {HOT}"),
}
_TEXTS = {**QUERIES, **COMMON, **SKEWED}
_WITH_TWO = frozenset({"not exists", *ASKED_OF_OTHERS})


def streams_read(queries: Sequence[str]) -> int:
    """How many streams these queries need."""
    return 2 if _WITH_TWO.intersection(queries) else 1


def comparable(answers: pl.LazyFrame, query: str, seconds: int, end: int) -> pl.LazyFrame:
    """The answers that everyone can be sure of, under the names that `benchmarks.checks` compares.

    At the last instant more rows could come. Of an outer join these are the pairs, and the rows that never
    had a partner: the others do not tell that a row has none for a while.
    """
    import polars as pl

    at, ts = (pl.col(name).cast(pl.Datetime("us")).cast(pl.Int64) for name in ("at", "ts"))
    over = pl.col("ts").cast(pl.Int64) + seconds * SECOND < end - SECOND
    if query == "outer join":
        known = answers.select(at, ts, "k", "v", "w")
        pairs = known.filter(pl.col("w").is_not_null() & (pl.col("at") < end))
        alone = known.filter(pl.col("w").is_null() & over).join(pairs, on="ts", how="anti")
        answers = pl.concat([pairs, alone.with_columns(at=pl.col("ts"), w=pl.lit(0.0))])
    elif query == "not exists, in the end":
        answers = answers.select(ts, "k", "v").filter(over).with_columns(at=pl.col("ts"))
    else:
        answers = answers.filter(at < end)
    one = {"n": pl.lit(1)}
    columns = {
        "join": {"m": pl.col("v"), "t": pl.col("w"), **one},
        "distinct": {"m": pl.lit(0.0), "t": pl.lit(0.0), **one},
        "not exists": {"m": pl.col("v"), "t": pl.lit(0.0), **one},
        "group": {"m": pl.col("most"), "t": pl.col("total"), "n": pl.col("n")},
    }[query.removeprefix("outer ").split(",")[0].removesuffix(" of all rows")]
    return answers.select("at", "k", **columns)


class WindrowOperators(Windrow):
    """Timed from opening the engine to closing it; and, beside that, from commit to commit."""

    def answer(self, queries: Sequence[str], streams: Sequence[Readings], seconds: int) -> Outcome:
        """These queries at once, over the past so many seconds."""
        import polars as pl

        commits: list[float] = []
        out, took = self._run(queries, streams, seconds, lambda: commits.append(time.perf_counter()))
        half = commits[len(commits) // 2 :]
        rows = streams[0].rows_per_file * streams_read(queries)
        steady = rows * (len(half) - 1) / (half[-1] - half[0]) if len(half) > 1 else 0.0
        found = None
        if len(queries) == 1:
            found = comparable(pl.scan_parquet(out / "*.parquet"), queries[0], seconds, streams[0].end)
        return Outcome(took, found, {"rows per second, steady": steady})

    def watched(
        self, queries: Sequence[str], streams: Sequence[Readings], seconds: int, watch: Callable[[int], None]
    ) -> None:
        """These queries at once; `watch` is told the bytes of the state after each commit."""
        state = self._setting.scratch / "windrow-state"
        self._run(queries, streams, seconds, lambda: watch(size(state, without=("checkpoints", "outbox"))))

    def _run(
        self,
        queries: Sequence[str],
        streams: Sequence[Readings],
        seconds: int,
        watch: Callable[[], None],
    ) -> tuple[Path, float]:
        import windrow as wr

        out, state = self._setting.fresh("windrow-answers"), self._setting.fresh("windrow-state")
        spark = self._setting.awake()
        began = time.perf_counter()
        with wr.connect(spark, state=state) as engine:
            for name, rows in zip("st", streams, strict=False):
                if name == "s" or streams_read(queries) > 1:
                    source = f"files://{rows.folder}/*.parquet?files_per_batch=1"
                    engine.sql(f"CREATE STREAM {name} ({COLUMNS}) WATTR ts ORDERED FROM '{source}'")
            for number, name in enumerate(queries):
                folder = out if len(queries) == 1 else out / str(number)
                apart = seconds * SECOND - 1
                text = _TEXTS[name].format(seconds, apart, 2 * apart + 1)
                engine.query(f"q{number}", text, sink=f"files://{folder}")
            engine.run(once=True, watch=watch)
        return out, time.perf_counter() - began
