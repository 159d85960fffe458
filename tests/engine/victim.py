"""A process of its own that consumes files, a streaming frame or a generator, and may be killed anywhere.

python -m tests.engine.victim files FOLDER once
python -m tests.engine.victim frame FOLDER once
python -m tests.engine.victim generator FOLDER forever
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.support.history import COLUMNS, OPTIONS, SUMS

from windrow.session import Windrow
from windrow.spark.session import start_session

#: 12 seconds of traffic, in 6 seconds by the clock on the wall
ROWS, EVENT_RATE = 1200, 100
TRAFFIC_COLUMNS, TRAFFIC_OPTIONS = "segment BIGINT, speed DOUBLE, ts TIMESTAMP", "WATTR ts SLACK 1 SECOND"
TRAFFIC = f"generator:traffic?rows={ROWS}&rate=200&event_rate={EVENT_RATE}&keys=3&rows_per_batch=100"
TOPS = (
    "SELECT segment, COUNT(*) AS n, MAX(speed) AS m FROM s [RANGE 2 SECONDS SLIDE 1 SECOND] GROUP BY segment"
)


def main(kind: str, folder: Path, how: str) -> None:
    """Consume what there is, or go on until somebody stops it."""
    columns, options, source, query = {
        "files": (COLUMNS, OPTIONS, f" FROM 'files://{folder}/in/*.json?files_per_batch=1'", SUMS),
        "frame": (COLUMNS, OPTIONS, "", SUMS),
        "generator": (TRAFFIC_COLUMNS, TRAFFIC_OPTIONS, f" FROM '{TRAFFIC}'", TOPS),
    }[kind]
    spark = start_session("victim", "local[2]")
    with Windrow(spark, folder / "now" / "state") as w:
        w.sql(f"CREATE STREAM s ({columns}) {options}{source}")
        if kind == "frame":
            files = spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1)
            w.stream("s", files.json(str(folder / "in")))
        w.sql(f"CREATE QUERY sums AS {query} INTO 'files://{folder}/now/sums'")
        w.run(once=how == "once", flush=how == "once")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
