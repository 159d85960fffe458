"""What an epoch costs with its state in an object store, against a local directory.

    python tools/state_overhead.py 's3://bucket/prefix?region=eu-west-1' --epochs 100

The same epochs run over both, in turn, in this process: 1000 rows each, a query that closes a window every
time. Credentials are found as always. Requests are counted, and may be slowed down, to see what a store that
is further away would cost: writes of one commit go out at once, and the manifest is one more.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.engine.engine import Arrival, Engine
from windrow.execution.local import HereJobs
from windrow.language.catalog import Catalog, StandingQuery
from windrow.language.compile import compile_query, compile_script
from windrow.state import object_store
from windrow.state.log import CommitLog
from windrow.state.object_store import open_store

ROWS, SECOND = 1000, 1_000_000
QUERY = "SELECT k, COUNT(*) AS n, SUM(v) AS total FROM s [RANGE 10000000 SLIDE 1000000] GROUP BY k"


class Counted:
    """A client of an object store that counts what it is asked."""

    def __init__(self, client: Any, delay: float) -> None:
        self._client, self._delay, self.requests = client, delay, Counter[str]()

    def __getattr__(self, name: str) -> Any:
        self.requests[name] += 1
        time.sleep(self._delay)
        return getattr(self._client, name)


class Run:
    """An engine over a store, and how long its epochs took."""

    def __init__(self, place: str | Path) -> None:
        self.engine = Engine(HereJobs(), CommitLog.open(open_store(place)), shards=2)
        catalog = Catalog()
        compile_script("CREATE STREAM s (k BIGINT, v BIGINT, t BIGINT) WATTR t ORDERED", catalog)
        self.engine.add_stream(catalog.streams["s"])
        self.engine.add_query(StandingQuery("sums", compile_query(QUERY, catalog)))
        self.engine.commit()
        self.times: list[float] = []

    def epoch(self, number: int) -> None:
        """The next second of the stream."""
        random = np.random.default_rng(number)
        rows = {
            "k": random.integers(0, 100, ROWS),
            "v": random.integers(0, 1000, ROWS),
            "t": np.sort(random.integers(number * SECOND, (number + 1) * SECOND, ROWS)),
        }
        frame: Any = pa.table(rows)
        began = time.perf_counter()
        self.engine.epoch([Arrival("s", frame)])
        self.times.append(1000 * (time.perf_counter() - began))


def main() -> None:
    """The command line."""
    command = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    command.add_argument("url", help="an empty prefix of an object store")
    command.add_argument("--epochs", type=int, default=100)
    command.add_argument("--delay", type=float, default=0, help="milliseconds more for each request")
    told = command.parse_args()
    opened, clients = object_store._opened, dict[str, Counted]()

    def counted(url: str, process: int) -> Any:
        client, secrets = opened(url, process)
        return clients.setdefault(url, Counted(client, told.delay / 1000)), secrets

    object_store._opened = counted  # type: ignore[assignment]
    with TemporaryDirectory(prefix="windrow-") as folder:
        runs = {"directory": Run(Path(folder)), "objects": Run(told.url)}
        before = Counter[str]()
        for number in range(told.epochs + 5):
            if number == 5:  # the first ones compile
                before = sum((client.requests for client in clients.values()), Counter[str]())
                for run in runs.values():
                    run.times.clear()
            for run in runs.values():
                run.epoch(number)
        asked = sum((client.requests for client in clients.values()), Counter[str]()) - before
        for name, run in runs.items():
            print(f"{name:10} {median(run.times):8.1f} ms per epoch, {max(run.times):8.1f} ms at most")
            run.engine.close()
    ratio = median(runs["objects"].times) / median(runs["directory"].times)
    print(f"ratio      {ratio:8.2f}")
    print("requests per epoch: " + ", ".join(f"{what} {n / told.epochs:.1f}" for what, n in asked.items()))


if __name__ == "__main__":
    main()
