"""A server around an engine that needs no Spark: rows are pushed, and each push is an epoch.

python -m tests.server.world --port 8642 --rate 300     a live one, to look at with a browser
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pyarrow as pa
from tests.support.patience import PATIENCE

from windrow.engine.engine import Arrival, WatermarkAdvance
from windrow.errors import WindrowError
from windrow.execution.local import HereJobs
from windrow.kernels.columnar.columns import rows_schema
from windrow.server.access import AccessTokens
from windrow.server.serve import Listener
from windrow.server.service import ClientLimits, Service
from windrow.session import Windrow
from windrow.spark.sources.generators import TRAFFIC as TRAFFIC_ROWS, Disorder, Settings

STREAM = "CREATE STREAM s (k BIGINT, v DOUBLE, name STRING, t BIGINT) WATTR t SLACK 3 KEEP 100000"
SUMS = "CREATE QUERY sums AS SELECT k, SUM(v) AS total, COUNT(*) AS n FROM s [RANGE 20 SLIDE 10] GROUP BY k"
SCRIPT = f"{STREAM};\n{SUMS};"


class Here(Windrow):
    """Windrow as a server sees it; `push` is as the real one: committed on return, once for each key."""

    def __init__(self, state: Path | None) -> None:
        context = SimpleNamespace(environment={}, master="local", defaultParallelism=2)
        no_spark: Any = SimpleNamespace(sparkContext=context)
        super().__init__(no_spark, state)
        self._engine.jobs = HereJobs()
        self._asker.elsewhere = None
        self._epoch = threading.Lock()
        self._keys: dict[tuple[str, str], int] = {}
        self._watching: Callable[[], None] = lambda: None
        #: as if the engine could not keep up
        self.is_full = False

    def run(self, trigger: str = "", **how: Any) -> None:
        stop = threading.Event()
        self._watching = how["watch"]
        self._loop = SimpleNamespace(stop=stop.set, board=SimpleNamespace(absent={}))  # type: ignore[assignment]
        stop.wait()
        self._loop = None

    def push(self, stream: str, rows: Any, key: str | None = None, timeout: float | None = None) -> int:
        if self.is_full:
            raise WindrowError("there are more rows than there is time for", code="busy")
        with self._epoch:
            if key is not None and (stream, key) in self._keys:
                return self._keys[stream, key]
            commit = self._engine.epoch([Arrival(stream, rows)]).number
            if key is not None:
                self._keys[stream, key] = commit
        self._watching()
        return commit

    def quicken(self, stream: str, times: float) -> float:
        """As if nine times the rate were more than the engine can bear."""
        self.shed(0.6 if times >= 9 else None)
        return 600 * times

    def promise(self, stream: str, progress: int) -> None:
        with self._epoch:
            self._engine.epoch(promises=[WatermarkAdvance(stream, progress)])
        self._watching()

    def rows(self, *rows: tuple[int, float, str, int]) -> int:
        names = ("k", "v", "name", "t")
        schema = rows_schema(self.streams["s"].declared.schema)
        found = [dict(zip(names, row, strict=True)) for row in rows]
        return self.push("s", pa.Table.from_pylist(found, schema=schema))


class Server:
    """A server that listens, with a client for it."""

    def __init__(self, service: Service, tokens: AccessTokens | None = None, port: int = 0) -> None:
        self.service = service
        self.listener = Listener(service, port=port, tokens=tokens)
        self._thread = threading.Thread(target=self.listener.run, daemon=True)
        self._thread.start()
        while not self.listener.is_started:
            time.sleep(0.01)
        self.url = self.listener.url.rstrip("/")
        self.http = httpx.Client(base_url=self.url, timeout=30, trust_env=False)

    @property
    def windrow(self) -> Any:
        return self.service.windrow

    def close(self) -> None:
        self.http.close()
        self.listener.stop()
        self._thread.join(20)
        self.service.close()


@contextmanager
def serving(
    state: Path | None = None,
    script: str = SCRIPT,
    tokens: AccessTokens | None = None,
    limits: ClientLimits | None = None,
    port: int = 0,
    *,
    needs_sources: bool = False,
) -> Iterator[Server]:
    """A server for the length of a block."""
    service = Service(Here(state), limits, script=script, needs_sources=needs_sources)
    service.start()
    server = Server(service, tokens, port)
    try:
        yield server
    finally:
        server.close()


def events(response: httpx.Response, most: int = 1000) -> Iterator[dict[str, Any]]:
    """The events of a stream as they come: id, event, data."""
    found: dict[str, Any] = {}
    until = time.monotonic() + PATIENCE
    for line in response.iter_lines():
        assert time.monotonic() < until, "nothing but signs of life comes"
        if not line:
            if "data" in found:
                until = time.monotonic() + PATIENCE
                yield {**found, "data": json.loads(found["data"])}
                most -= 1
                if not most:
                    return
            found = {}
        elif not line.startswith(":"):
            name, _, value = line.partition(": ")
            found[name] = value


TRAFFIC = """
CREATE STREAM traffic (segment BIGINT, speed DOUBLE, sensor BIGINT, ts TIMESTAMP)
  WATTR ts SLACK 5 SECONDS KEEP 15 MINUTES SHEDDABLE;
CREATE STREAM incidents (segment BIGINT, kind STRING, ts TIMESTAMP) WATTR ts SLACK 5 SECONDS KEEP 1 HOUR;
CREATE QUERY average_speed AS
SELECT segment, AVG(speed) AS speed, COUNT(*) AS readings
FROM traffic [RANGE 5 MINUTES SLIDE 1 MINUTE] GROUP BY segment MAX GAP 2;
CREATE QUERY jams AS
SELECT segment, AVG(speed) AS speed, MIN(speed) AS slowest
FROM traffic [RANGE 5 MINUTES SLIDE 1 MINUTE] GROUP BY segment HAVING AVG(speed) < 40 MAX GAP 2;
CREATE QUERY past_hour AS
SELECT COUNT(*) AS readings, AVG(speed) AS speed, MAX(speed) AS fastest
FROM traffic [RANGE 1 HOUR SLIDE 10 SECONDS] MAX GAP 5;
CREATE QUERY jams_without_incident AS
SELECT ISTREAM(t.segment, t.speed) FROM traffic [RANGE 1 MINUTE] AS t
WHERE t.speed < 14 AND NOT EXISTS (
  SELECT i.segment FROM incidents [RANGE 10 MINUTES] AS i WHERE i.segment = t.segment);
"""


class Feeder(threading.Thread):
    """Rows of the traffic generator, as time passes: thirty seconds of theirs in one of ours."""

    def __init__(self, windrow: Here, rate: int) -> None:
        super().__init__(daemon=True)
        self.windrow, self.rate, self.is_over = windrow, rate, False

    def run(self) -> None:
        number = 0
        settings = Settings(event_rate=max(1, self.rate // 30), disorder=Disorder.BOUNDED)
        schema = rows_schema(self.windrow.streams["traffic"].declared.schema)
        while not self.is_over:
            began = time.monotonic()
            count = self.rate // 4
            table = pa.table(TRAFFIC_ROWS.rows(settings, number, number + count))
            number += count
            self.windrow.push("traffic", table.select(schema.names).cast(schema))
            at = pa.compute.max(table["ts"]).as_py()
            rows = [{"segment": number // count % 10, "kind": "accident", "ts": at}]
            self.windrow.push(
                "incidents",
                pa.Table.from_pylist(
                    rows, schema=rows_schema(self.windrow.streams["incidents"].declared.schema)
                ),
            )
            time.sleep(max(0.0, 0.25 - (time.monotonic() - began)))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=8642)
    parser.add_argument("--rate", type=int, default=600)
    parser.add_argument("--state", type=Path)
    given = parser.parse_args()
    with serving(given.state, TRAFFIC, port=given.port) as server:
        Feeder(server.windrow, given.rate).start()
        sys.stdout.write(f"{server.url}\n")
        sys.stdout.flush()
        threading.Event().wait()


if __name__ == "__main__":
    main()
