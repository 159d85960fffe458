"""A process that starts, answers one thing and ends: what it prints is when it had come how far.

    python -m benchmarks.contestants.first_answer windrow /data/readings

Standard output gets one line of JSON: the time of each stage, in seconds since 1970.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

    from windrow.spark.frames import DataFrame

IMPORTED, STARTED, ANSWERED = "imported", "Spark started", "first answer"
_RANGE, _SLIDE = 60, 10
#: in the manner of `windrow demo`: a minute of the stream takes two seconds
_DEMO = """
CREATE STREAM s (segment BIGINT, speed DOUBLE, ts TIMESTAMP) WATTR ts SLACK 5 SECONDS
  FROM 'generator:traffic?rate=3000&event_rate=100';
"""
_DEMO_QUERY = "SELECT segment, AVG(speed) AS v FROM s [RANGE 5 MINUTES SLIDE 1 MINUTE] GROUP BY segment"

Stages = dict[str, float]


def windrow_files(folder: Path) -> Stages:
    """A standing query over files."""
    from benchmarks.contestants.windrow import AGGREGATES
    from benchmarks.workload import COLUMNS

    stream = f"CREATE STREAM s ({COLUMNS}) WATTR ts ORDERED FROM 'files://{folder}/*.parquet'"
    window = f"[RANGE {_RANGE} SECONDS SLIDE {_SLIDE} SECONDS]"
    return _windrow(stream, f"SELECT {AGGREGATES} FROM s {window} GROUP BY k", once=True)


def windrow_demo(_folder: Path) -> Stages:
    """A standing query over a stream that runs, as `windrow demo` has them."""
    return _windrow(_DEMO, _DEMO_QUERY, once=False)


def _windrow(stream: str, query: str, *, once: bool) -> Stages:
    import windrow as wr
    from windrow.spark.session import start_session

    stages = {IMPORTED: time.time()}
    spark = start_session()
    stages[STARTED] = time.time()
    with wr.connect(spark, state=None) as engine:

        def take(_table: pa.Table, _commit: int) -> None:
            stages.setdefault(ANSWERED, time.time())

        engine.sql(stream)
        engine.query("q", query, sink=take)
        if once:
            engine.run(once=True)
        else:
            engine.start("1 second")
            while ANSWERED not in stages and engine.is_running:
                time.sleep(0.05)
            engine.stop()
    return stages


def spark_files(folder: Path) -> Stages:
    """Spark's `window()` over files."""
    from benchmarks.contestants.spark_window import aggregated, store_settings, stream_of
    from benchmarks.spark_settings import settings_of
    from windrow.spark.session import start_session

    stages = {IMPORTED: time.time()}
    spark = start_session()
    stages[STARTED] = time.time()

    def take(rows: DataFrame, _batch: int) -> None:
        if rows.toArrow().num_rows:
            stages.setdefault(ANSWERED, time.time())

    with TemporaryDirectory() as checkpoint, settings_of(spark, store_settings(spark, "rocksdb")):
        answers = aggregated(stream_of(spark, str(folder)), f"{_RANGE} seconds", f"{_SLIDE} seconds")
        writer = answers.writeStream.foreachBatch(take).option("checkpointLocation", checkpoint)
        writer.trigger(availableNow=True).start().awaitTermination()
    return stages


WAYS = {"windrow": windrow_files, "windrow demo": windrow_demo, "spark rocksdb": spark_files}


def main() -> None:
    """The way of the first argument, over the directory of the second."""
    way, folder = sys.argv[1:]
    stages = WAYS[way](Path(folder))
    sys.stdout.write(json.dumps(stages) + "\n")


if __name__ == "__main__":
    main()
