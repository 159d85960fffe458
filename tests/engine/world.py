"""A world around an engine: a script of batches, a sink of every kind, and lives that end anywhere.

What a life leaves on the disk is copied at the very moment of its death, before any `finally`; the next life
begins from the copy. Callbacks, printed lines and memory are what an observer outside would have seen.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
from deltalake import DeltaTable
from tests.support import oracle as support
from tests.support.crashes import Crash, crashing_at

from windrow.engine.engine import Arrival, Engine
from windrow.execution.local import HereJobs
from windrow.language.catalog import Catalog, StandingQuery
from windrow.language.compile import compile_query, compile_script
from windrow.sinks import Callback, MemorySink
from windrow.state.log import CommitLog
from windrow.state.manifest import SourceState
from windrow.state.store import LocalStore, Store

COLUMNS, OPTIONS = "k BIGINT, v BIGINT, t BIGINT", "WATTR t SLACK 3"
SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.int64()), ("t", pa.int64())])

Row = tuple[int, int, int]
#: every batch moves the clock past something, but for the third; one row is late
BATCHES: tuple[tuple[Row, ...], ...] = (
    ((1, 10, 0), (2, 20, 4), (1, 5, 11)),
    ((2, 7, 16), (3, 1, 12), (1, 2, 25)),
    ((2, 2, 24),),
    ((1, 9, 38), (3, 4, 31), (2, 100, 3)),
    ((2, 6, 47), (1, 8, 51)),
    ((3, 3, 52), (2, 1, 55)),
    ((1, 4, 63), (1, 6, 74)),
)

SUMS = "SELECT k, SUM(v) AS total, COUNT(*) AS n FROM s [RANGE 20 SLIDE 10] GROUP BY k"
MEDIANS = "SELECT k, MEDIAN(v) AS middle FROM s [RANGE 60 SLIDE 30] GROUP BY k"
GREATEST = "SELECT MAX(v) AS greatest FROM s [RANGE 40 SLIDE 20]"
NESTED = (
    "SELECT MAX(total) AS top FROM (SELECT k, SUM(v) AS total FROM s [RANGE 10 SLIDE 10] GROUP BY k)"
    " [RANGE 20 SLIDE 20]"
)
COUNTS = "SELECT COUNT(*) AS n FROM s [RANGE 10 SLIDE 10]"
#: one query for each kind of sink
QUERIES = {"files": SUMS, "delta": MEDIANS, "callback": NESTED, "console": COUNTS, "memory": GREATEST}


def oracle(query: str, batches: Any = BATCHES, options: str = OPTIONS, *, ended: bool = True) -> Counter[Any]:
    """What the query answers over batches of the stream `s`."""
    return support.oracle(query, {"s": (COLUMNS, options)}, [("s", batch) for batch in batches], ended=ended)


def table_of(rows: Any) -> pa.Table:
    """Rows of the stream as an Arrow table."""
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], schema=SCHEMA)


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    """A table's rows as tuples."""
    return [tuple(row.values()) for row in table.to_pylist()]


@dataclass
class World:
    """Everything outside of one process."""

    folder: Path
    queries: dict[str, str] = field(default_factory=lambda: dict(QUERIES))
    options: str = OPTIONS
    #: where the state is, if not in the folder
    place: Store | None = None
    #: by sink, and by commit: every time the rows of that commit came
    heard: dict[str, dict[int, list[Any]]] = field(default_factory=dict)
    printed: StringIO = field(default_factory=StringIO)

    @property
    def state(self) -> Path:
        return self.folder / "now" / "state"

    def sink(self, name: str) -> str | None:
        """The URL of a query's sink, where it has one."""
        place = self.folder / "now" / name
        urls = {"files": f"files://{place}", "delta": f"delta://{place}", "console": "console:"}
        return urls.get(name)

    # ------------------------------------------------------------ lives

    def live(self, batches: Any = BATCHES) -> None:
        """A whole life: open, go on with the script where the state is, end all, close."""
        with redirect_stdout(self.printed):
            engine = self.open()
            try:
                follow(engine, batches)
                engine.close()
            finally:
                self.remember(engine)

    def open(self) -> Engine:
        """An engine with everything declared."""
        log = CommitLog.open(self.place or LocalStore(self.state))
        engine = Engine(HereJobs(), log, shards=2, now=lambda: 0)
        catalog = Catalog()
        compile_script(f"CREATE STREAM s ({COLUMNS}) {self.options}", catalog)
        engine.add_stream(catalog.streams["s"])
        for name, text in self.queries.items():
            standing = StandingQuery(name, compile_query(text, catalog), self.sink(name))
            called = Callback(name, lambda table, commit: self.hear("callback", commit, rows_of(table)))
            engine.add_query(standing, called if name == "callback" else None)
        engine.commit()
        return engine

    def die(self, point: str, passage: int) -> bool:
        """A life that ends at a crash point; whether it came so far."""
        with crashing_at(point, passage, self._copy) as crash, suppress(Crash):
            self.live()
        if crash.happened:
            self._go_back()
        return crash.happened

    def _copy(self) -> None:
        shutil.copytree(self.folder / "now", self.folder / "then")

    def _go_back(self) -> None:
        shutil.rmtree(self.folder / "now")
        (self.folder / "then").rename(self.folder / "now")

    # ------------------------------------------------------------ what was seen

    def hear(self, sink: str, commit: int, rows: list[Any]) -> None:
        """Rows of a commit came to somebody who remembers."""
        self.heard.setdefault(sink, {}).setdefault(commit, []).append(rows)

    def remember(self, engine: Engine) -> None:
        """Memory is lost with its process, so an observer looks at it before."""
        record = engine.queries.get("memory")
        if record is not None and isinstance(record.sink, MemorySink):
            for commit, table in record.sink._tables.items():
                self.hear("memory", commit, rows_of(table))

    def answers(self, name: str) -> Counter[Any]:
        """What a sink holds. Where rows may come twice, each commit's must be the same each time."""
        place = self.folder / "now" / name
        if name == "files":
            files = [path for path in place.iterdir() if not path.name.startswith(".")]
            return Counter(row for path in files for row in rows_of(pa.parquet.read_table(path)))
        if name == "delta":
            table = DeltaTable(str(place)).to_pyarrow_table()
            return Counter(rows_of(table))
        if name == "console":
            return Counter(self._lines().values())
        for times in self.heard[name].values():
            assert all(rows == times[0] for rows in times), f"{name}: a repetition with other rows"
        return Counter(row for times in self.heard[name].values() for row in times[0])

    def _lines(self) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        for line in self.printed.getvalue().splitlines():
            entry = json.loads(line)
            row = tuple(entry["values"].values())
            assert found.setdefault((entry["commit"], entry["row"]), row) == row
        return found

    def check(self) -> None:
        """Every sink has every answer; once, or told apart by its commit."""
        for name, text in self.queries.items():
            assert self.answers(name) == oracle(text, options=self.options), name


def follow(engine: Engine, batches: Any = BATCHES) -> None:
    """Batch after batch from where the state is, then the end."""
    engine.deliver()
    last = engine.streams["s"].read.offsets.get("batch")
    for number in range(0 if last is None else last + 1, len(batches)):
        read = SourceState("script", {"batch": number})
        frame: Any = table_of(batches[number])
        engine.epoch([Arrival("s", frame, read)])
    if not engine.streams["s"].known.sealed:
        engine.epoch(seals=["s"])
