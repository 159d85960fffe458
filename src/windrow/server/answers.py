"""The log of answers: what every query answered, by commit, to be read by any number of clients.

It is a sink like others: it has the answers of a commit when the engine takes them for delivered, and keeps
them in a file of the state directory, so that a client goes on after a restart where it was. Readers have a
place in the log and nothing else; a slow one costs no memory, and holds nobody up. Of each query the newest
answers are kept, up to a number of bytes; who is further behind is told what is gone.

A place is a commit, or a commit and one of its parts: `17` is after all of commit 17, `17-2` after its parts
0, 1 and 2.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock, local
from typing import Self

import pyarrow as pa

from windrow.errors import QueryError, StateError
from windrow.sinks import Delivery, Sink

#: so many rows are read, and sent, at a time
PART_ROWS = 1000
#: after the last part of every commit
ALL_PARTS = (1 << 31) - 1
#: so many bytes of a query's answers are kept
KEPT_BYTES = 64 << 20

_PLACE = re.compile(r"([0-9]{1,15})(?:-([0-9]{1,9}))?")
_TABLES = """
CREATE TABLE IF NOT EXISTS parts (
  query TEXT NOT NULL, place INTEGER NOT NULL, part INTEGER NOT NULL, is_last INTEGER NOT NULL,
  rows INTEGER NOT NULL, bytes INTEGER NOT NULL, body BLOB NOT NULL, PRIMARY KEY (query, place, part)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS queries (
  query TEXT PRIMARY KEY, id TEXT NOT NULL, gone INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS statements (
  number INTEGER PRIMARY KEY, kind TEXT NOT NULL, name TEXT NOT NULL, text TEXT NOT NULL, UNIQUE (kind, name)
);
"""

_SIZES = "SELECT query, SUM(bytes) FROM parts GROUP BY query"


@dataclass(frozen=True, order=True)
class ReadPosition:
    """How far a reader is.

    >>> ReadPosition.parse("17"), str(ReadPosition.parse("17-2"))
    (ReadPosition(commit=17, part=2147483647), '17-2')
    >>> ReadPosition.parse("17") > ReadPosition.parse("17-2")
    True
    """

    commit: int
    part: int = ALL_PARTS

    @classmethod
    def parse(cls, text: str) -> Self:
        found = _PLACE.fullmatch(text.strip())
        if found is None:
            raise QueryError(
                f"`{text[:40]}` is no place among answers",
                code="bad-place",
                hint="it is the number of a commit, or the id of an event: 17 or 17-2",
            )
        commit, part = found.groups()
        return cls(int(commit)) if part is None else cls(int(commit), min(int(part), ALL_PARTS))

    def __str__(self) -> str:
        return str(self.commit) if self.part == ALL_PARTS else f"{self.commit}-{self.part}"


@dataclass(frozen=True)
class Part:
    """Some rows of what a query answered with one commit."""

    query: str
    commit: int
    number: int
    is_last: bool
    rows: int
    body: bytes

    @property
    def place(self) -> ReadPosition:
        return ReadPosition(self.commit) if self.is_last else ReadPosition(self.commit, self.number)

    @property
    def table(self) -> pa.Table:
        with pa.ipc.open_stream(self.body) as reader:
            return reader.read_all()


class AnswerLog:
    """The answers of all queries, in one file. Any thread may write and read.

    >>> from tempfile import TemporaryDirectory
    >>> from pathlib import Path
    >>> from windrow.sinks import Delivery
    >>> table = pa.table({"at": [5], "k": ["a"]})
    >>> with TemporaryDirectory() as folder:
    ...     log = AnswerLog(Path(folder) / "answers.db")
    ...     for commit in (1, 2, 2):
    ...         log.add(Delivery("top", commit, table.schema, lambda: iter([table])))
    ...     log.flush()
    ...     [part.commit for part in log.after("top", ReadPosition(0))], log.last("top")
    ...     log.close()
    ([1, 2], ReadPosition(commit=2, part=2147483647))
    """

    def __init__(self, path: Path, kept_bytes: int = KEPT_BYTES) -> None:
        self._path, self._kept = path, kept_bytes
        self._lock = Lock()
        self._mine = local()
        self._opened: list[sqlite3.Connection] = []
        self._sizes: dict[str, int] = {}
        self._closed = False
        #: called with the name of a query, in the thread of its delivery, when it has new answers
        self.listeners: list[Callable[[str], None]] = []
        self._fresh: list[str] = []
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        self._writer = self._connected()
        with self._storing(self._writer) as found:
            found.executescript(_TABLES)
            self._sizes.update(found.execute(_SIZES))

    # ------------------------------------------------------------ writing

    def add(self, delivery: Delivery) -> None:
        """The answers of a commit; if they are there already, nothing happens. With the next `flush` they are
        there for readers, and durable."""
        parts = list(_bodies(delivery))
        if not parts:
            return
        last = len(parts) - 1
        rows = [
            (delivery.query, delivery.commit, number, number == last, count, len(body), body)
            for number, (count, body) in enumerate(parts)
        ]
        with self._lock, self._storing(self._writer) as found:
            known = found.execute(
                "SELECT 1 FROM parts WHERE query = ? AND place = ? LIMIT 1", (delivery.query, delivery.commit)
            ).fetchone()
            if known is None:
                found.executemany("INSERT INTO parts VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
                self._sizes[delivery.query] = self._sizes.get(delivery.query, 0) + sum(r[5] for r in rows)
                self._shorten(found, delivery.query)
            self._fresh.append(delivery.query)

    def flush(self) -> None:
        """Make durable what was added, and tell who listens."""
        with self._lock:
            fresh, self._fresh = self._fresh, []
            if fresh:
                with self._storing(self._writer) as found:
                    found.commit()
        for query in dict.fromkeys(fresh):
            for listener in list(self.listeners):
                listener(query)

    def _shorten(self, found: sqlite3.Connection, query: str) -> None:
        """Let go of the oldest commits, if there are more than are kept; the newest stays, however large."""
        if self._sizes[query] <= self._kept:
            return
        sizes = found.execute(
            "SELECT place, SUM(bytes) FROM parts WHERE query = ? GROUP BY place ORDER BY place", (query,)
        ).fetchall()
        gone = 0
        for commit, size in sizes[:-1]:
            if self._sizes[query] <= self._kept * 3 // 4:
                break
            gone, self._sizes[query] = commit, self._sizes[query] - size
        found.execute("DELETE FROM parts WHERE query = ? AND place <= ?", (query, gone))
        found.execute("UPDATE queries SET gone = ? WHERE query = ? AND gone < ?", (gone, query, gone))

    def keep_only(self, ids: Mapping[str, tuple[str, int]], others: Iterable[str] = ()) -> None:
        """The queries there are: by name, their id and the commit before they began. The answers of queries
        that had the name before are forgotten, and of all but them and `others`."""
        with self._lock, self._storing(self._writer) as found, found:
            known = dict(found.execute("SELECT query, id FROM queries"))
            for name in known.keys() - ids.keys() - set(others):
                found.execute("DELETE FROM queries WHERE query = ?", (name,))
                self._forget(found, name, 1 << 62)
            for name, (id_, began) in ids.items():
                if known.get(name) != id_:
                    self._forget(found, name, began)
                    found.execute("INSERT OR REPLACE INTO queries VALUES (?, ?, 0)", (name, id_))

    def _forget(self, found: sqlite3.Connection, query: str, up_to: int) -> None:
        found.execute("DELETE FROM parts WHERE query = ? AND place <= ?", (query, up_to))
        (left,) = found.execute("SELECT SUM(bytes) FROM parts WHERE query = ?", (query,)).fetchone()
        self._sizes[query] = left or 0

    # ------------------------------------------------------------ statements

    def remember(self, made: Iterable[tuple[str, str, str]], dropped: Iterable[tuple[str, str]]) -> None:
        """Statements that came over HTTP, by kind and name: they are made again at the next start."""
        with self._lock, self._storing(self._writer) as found, found:
            found.executemany("DELETE FROM statements WHERE kind = ? AND name = ?", list(dropped))
            found.executemany(
                "INSERT OR REPLACE INTO statements (kind, name, text) VALUES (?, ?, ?)", list(made)
            )

    def remembered(self) -> list[tuple[str, str, str]]:
        """Kind, name and text of each, in the order in which they came."""
        with self._storing() as found:
            return found.execute("SELECT kind, name, text FROM statements ORDER BY number").fetchall()

    # ------------------------------------------------------------ reading

    def after(self, query: str, place: ReadPosition, rows: int = PART_ROWS) -> list[Part]:
        """What comes after a place, oldest first: about so many rows, and at least one part."""
        return self._read("(place, part) > (?, ?) ORDER BY place, part", query, place, rows)

    def before(self, query: str, place: ReadPosition, rows: int = PART_ROWS) -> list[Part]:
        return self._read("(place, part) < (?, ?) ORDER BY place DESC, part DESC", query, place, rows)

    def _read(self, where: str, query: str, place: ReadPosition, rows: int) -> list[Part]:
        text = f"SELECT place, part, is_last, rows, body FROM parts WHERE query = ? AND {where}"
        parts: list[Part] = []
        with (
            self._storing() as found,
            closing(found.execute(text, (query, place.commit, place.part))) as cursor,
        ):
            for commit, number, is_last, count, body in cursor:
                if parts and rows < count:
                    break
                parts.append(Part(query, commit, number, bool(is_last), count, body))
                rows -= count
                if rows <= 0:
                    break
        return parts

    def last(self, query: str) -> ReadPosition:
        """The place of who has everything."""
        with self._storing() as found:
            (commit,) = found.execute("SELECT MAX(place) FROM parts WHERE query = ?", (query,)).fetchone()
        return ReadPosition(max(commit or 0, self.gone(query)))

    def gone(self, query: str) -> int:
        """Answers up to this commit may be gone: a reader who is before it has missed some."""
        with self._storing() as found:
            row = found.execute("SELECT gone FROM queries WHERE query = ?", (query,)).fetchone()
        return int(row[0]) if row else 0

    def size(self, query: str) -> int:
        return self._sizes.get(query, 0)

    # ------------------------------------------------------------ the file

    def close(self) -> None:
        with self._lock:
            self._closed = True
            for connection in self._opened:
                connection.close()

    @contextmanager
    def _storing(self, writer: sqlite3.Connection | None = None) -> Iterator[sqlite3.Connection]:
        """The one way to write, or this thread's to read. What is wrong with it is told as one of our errors;
        what was written since the last commit is not there then."""
        try:
            yield writer or self._reader()
        except sqlite3.Error as error:
            if writer is not None:
                with suppress(sqlite3.Error):
                    writer.rollback()
                    self._sizes = dict(writer.execute(_SIZES))
            raise self._unusable(error) from error

    def _unusable(self, error: sqlite3.Error) -> StateError:
        return StateError(
            f"the log of answers {self._path} cannot be used: {error}",
            code="answers-lost",
            hint="look at the disk; the file may be removed while the server is stopped: answers that"
            " clients have not read yet are lost with it, the state is not",
        )

    def _reader(self) -> sqlite3.Connection:
        known: sqlite3.Connection | None = getattr(self._mine, "connection", None)
        if known is None:
            if self._closed:
                raise sqlite3.ProgrammingError("it is closed")
            known = self._mine.connection = self._connected()
        return known

    def _connected(self) -> sqlite3.Connection:
        made = sqlite3.connect(self._path, timeout=30, check_same_thread=False)
        self._opened.append(made)
        try:
            made.execute("PRAGMA journal_mode = WAL")
            made.execute("PRAGMA synchronous = FULL")  # what is taken for delivered outlives a power cut
        except sqlite3.Error as error:
            raise self._unusable(error) from error
        return made


class LoggedSink(Sink):
    """The log as the sink of a query, alone or before another."""

    guarantee = "exactly once, in the server's log of answers"

    def __init__(self, log: AnswerLog, then: Sink | None = None) -> None:
        self._log, self._then = log, then
        if then is not None:
            self.guarantee = then.guarantee

    def deliver(self, delivery: Delivery) -> None:
        self._log.add(delivery)
        if self._then is not None:
            self._then.deliver(delivery)

    def close(self) -> None:
        if self._then is not None:
            self._then.close()


def _bodies(delivery: Delivery) -> Iterator[tuple[int, bytes]]:
    """The parts of a delivery: how many rows, and these."""
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    for piece in delivery.pieces():
        for start in range(0, piece.num_rows, PART_ROWS):
            part, sink = piece.slice(start, PART_ROWS), pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, part.schema, options=options) as writer:
                writer.write_table(part.combine_chunks())
            yield part.num_rows, sink.getvalue().to_pybytes()
