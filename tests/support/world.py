"""A world around engines: a script of batches, a sink of every kind, and lives that end anywhere.

What a life leaves on the disk is copied at the very moment of its death, before any `finally`; the next life
begins from the copy. Callbacks, printed lines and memory are what an observer outside would have seen.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any

from deltalake import DeltaTable
from tests.support.crashes import Crash, crashing_at
from tests.support.history import BATCHES, QUERIES, rows_in, rows_of
from tests.support.life import Life
from tests.support.oracle import STREAMS, Declared, named, oracle

from windrow.engine.declarations import register
from windrow.language.compile import compile_script
from windrow.sinks import MemorySink
from windrow.state.store import Store

KINDS = frozenset(QUERIES)


@dataclass
class World:
    """Everything outside of one process. Queries are declared when a life begins."""

    folder: Path
    queries: dict[str, str] = field(default_factory=lambda: dict(QUERIES))
    streams: Mapping[str, Declared] = field(default_factory=lambda: STREAMS)
    tables: Mapping[str, Declared] = field(default_factory=dict)
    #: batches of streams, and whole contents of tables
    script: Sequence[Any] = BATCHES
    #: the kind of sink of queries that are not named after one
    sink: str = "memory"
    #: where the state is, if not in the folder
    place: Store | None = None
    #: rows as they are compared
    plain: Callable[[tuple[Any, ...]], tuple[Any, ...]] = tuple
    #: by query, and by commit: every time the rows of that commit came
    heard: dict[str, dict[int, list[Any]]] = field(default_factory=dict)
    printed: StringIO = field(default_factory=StringIO)
    #: when tables had the contents of the script, by their number in it
    instants: dict[int, int | None] = field(default_factory=dict)

    @property
    def state(self) -> Path:
        return self.folder / "now" / "state"

    def _kind(self, name: str) -> str:
        return name if name in KINDS else self.sink

    # ------------------------------------------------------------ lives

    def live(self) -> None:
        """A whole life: open, go on with the script where the state is, end all, close."""
        with redirect_stdout(self.printed):
            life = self.open()
            try:
                self.follow(life)
                life.close()
            finally:
                self.listen(life)

    def open(self) -> Life:
        """A life with everything declared, in one commit."""
        life = Life(self.place or self.state)
        declared = [("STREAM", *each) for each in self.streams.items()]
        declared += [("TABLE", *each) for each in self.tables.items()]
        script = "; ".join(f"CREATE {kind} {name} ({of[0]}) {of[1]}" for kind, name, of in declared)
        for statement in compile_script(script, life._catalog):
            register(life.engine, statement)
        for name, text in self.queries.items():
            self.add(life, name, text)
        life.engine.commit()
        return life

    def add(self, life: Life, name: str, text: str) -> None:
        """A query, and a sink of its kind."""
        kind, place = self._kind(name), self.folder / "now" / name
        urls = {"files": f"files://{place}", "delta": f"delta://{place}", "console": "console:"}
        hear = lambda table, commit: self.hear(name, commit, rows_of(table))  # noqa: E731
        life.add(name, text, urls.get(kind), hear if kind == "callback" else None)

    def follow(self, life: Life) -> None:
        """The script from where the state is, then the end."""
        life.engine.deliver()
        life.follow(self.script, self._note)
        if not all(life.engine.streams[name].known.sealed for name in self.streams):
            life.end(*self.streams)

    def _note(self, number: int, at: int | None) -> None:
        assert self.instants.setdefault(number, at) == at, "another instant than in a life before"

    def die(self, point: str, passage: int) -> bool:
        """A life that ends at a crash point; whether it came so far."""
        with crashing_at(point, passage, self.copy) as crash, suppress(Crash):
            self.live()
        if crash.happened:
            self.go_back()
        return crash.happened

    def copy(self) -> None:
        shutil.copytree(self.folder / "now", self.folder / "then")

    def go_back(self) -> None:
        shutil.rmtree(self.folder / "now")
        (self.folder / "then").rename(self.folder / "now")

    # ------------------------------------------------------------ what was seen

    def hear(self, name: str, commit: int, rows: list[Any]) -> None:
        """Rows of a commit came to somebody who remembers."""
        self.heard.setdefault(name, {}).setdefault(commit, []).append(rows)

    def listen(self, life: Life) -> None:
        """Memory is lost with its process, so an observer looks at it before."""
        for name, record in life.engine.queries.items():
            if isinstance(record.sink, MemorySink):
                for commit, rows in life.told(name).items():
                    self.hear(name, commit, rows)

    def answers(self, name: str) -> Counter[Any]:
        """What a sink holds. Where rows may come twice, each commit's must be the same each time."""
        kind, place = self._kind(name), self.folder / "now" / name
        if kind == "files":
            return rows_in(place)
        if kind == "delta":
            return Counter(rows_of(DeltaTable(str(place)).to_pyarrow_table()))
        if kind == "console":
            return Counter(self._lines().values())
        found: Counter[Any] = Counter()
        for times in self.heard.get(name, {}).values():
            first, *again = ([self.plain(row) for row in rows] for rows in times)
            assert all(rows == first for rows in again), f"{name}: a repetition with other rows"
            found.update(first)
        return found

    def _lines(self) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        for line in self.printed.getvalue().splitlines():
            entry = json.loads(line)
            row = tuple(entry["values"].values())
            assert found.setdefault((entry["commit"], entry["row"]), row) == row
        return found

    def expected(self, text: str, *, ended: bool = True) -> Counter[Any]:
        """What the oracle says to a query over the script."""
        found = oracle(text, self._history(), self.streams, self.tables, ended=ended)
        return Counter(self.plain(row) for row in found.elements())

    def _history(self) -> Iterator[Any]:
        """The script, with contents of tables as differences, at the instants the engine chose."""
        held: dict[str, Counter[Any]] = {table: Counter() for table in self.tables}
        for number, (name, what) in enumerate(map(named, self.script)):
            if name in held:
                before, held[name] = held[name], Counter(what)
                new, gone = held[name] - before, before - held[name]
                yield name, self.instants[number], list(new.elements()), list(gone.elements())
            else:
                yield name, what

    def check(self) -> None:
        """Every sink has every answer; once, or told apart by its commit."""
        for name, text in self.queries.items():
            assert self.answers(name) == self.expected(text), name
