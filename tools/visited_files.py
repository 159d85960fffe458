"""How many files a registration and a micro-batch come through, and how often they go from one to another.

A file is visited if one of its functions is called; each call into another file than that of the call before
is a switch. The statement is registered, and the rows are taken in, on an engine without Spark.

    python -m tools.visited_files
    python -m tools.visited_files "CREATE QUERY q AS SELECT DISTINCT k FROM s [RANGE 20]"
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType, SimpleNamespace
from typing import Any

import windrow
from windrow.engine.engine import Arrival
from windrow.execution.local import HereJobs
from windrow.kernels.columnar.columns import frame_of, published, rows_schema
from windrow.session import Windrow

STREAM = "CREATE STREAM s (k BIGINT, v BIGINT, t BIGINT) WATTR t SLACK 3"
QUERY = "CREATE QUERY q AS SELECT k, MAX(v) AS m FROM s [RANGE 20 SLIDE 10] GROUP BY k"
_PACKAGE = str(Path(windrow.__file__).parent)


@dataclass
class Way:
    """The files that were visited, in how many calls, and the switches between them."""

    files: dict[str, int] = field(default_factory=dict)
    calls: int = 0
    switches: int = 0
    _last: str = ""

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        """For `sys.setprofile`."""
        file = frame.f_code.co_filename
        if event != "call" or not file.startswith(_PACKAGE):
            return
        self.calls += 1
        self.files[file] = self.files.get(file, 0) + 1
        self.switches += file != self._last
        self._last = file


@contextmanager
def watched() -> Iterator[Way]:
    """The way of all that is called in the block."""
    way = Way()
    sys.setprofile(way)
    try:
        yield way
    finally:
        sys.setprofile(None)


def ways_of(query: str) -> dict[str, Way]:
    """The ways of one statement, over a stream that is declared, and of a micro-batch that ends a window."""
    context = SimpleNamespace(environment={}, defaultParallelism=2, master="local[2]")
    no_spark: Any = SimpleNamespace(sparkContext=context)
    with TemporaryDirectory() as folder, Windrow(no_spark, Path(folder)) as session:
        session.sql(STREAM)
        with watched() as registration:
            session.sql(query)
        engine = session._engine
        engine.jobs = HereJobs()
        schema = engine.streams["s"].stream.schema
        for times in (range(8, 12), range(28, 32)):
            rows = frame_of(schema, [(time % 3, time, time) for time in times]).to_arrow()
            with watched() as batch:
                engine.epoch([Arrival("s", published(rows, rows_schema(schema)))])
    return {"a registration": registration, "a micro-batch": batch}


def main() -> None:
    """Print the figures, and by packages where the calls were."""
    for what, way in ways_of(sys.argv[1] if len(sys.argv) > 1 else QUERY).items():
        print(f"{what}: {len(way.files)} files, {way.calls:,} calls, {way.switches:,} switches between files")
        rooms: dict[str, list[int]] = {}
        for file, calls in way.files.items():
            room = Path(file).relative_to(_PACKAGE).parts[0].removesuffix(".py")
            rooms.setdefault(room, []).append(calls)
        for room, found in sorted(rooms.items(), key=lambda each: -sum(each[1])):
            print(f"  {room:<12} {len(found):>3} files {sum(found):>7,} calls")


if __name__ == "__main__":
    main()
