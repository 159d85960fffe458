"""A streaming DataFrame of the user's own, as a source: the one place where Spark's streaming loop runs.

Spark keeps its own log of what it has handed out, in a checkpoint; a commit of ours holds the number of the
batch it took. The two must be about the same query: a checkpoint that was deleted begins again with a new id
and batch 0, which is told. Spark takes the return of its callback for "this batch is dealt with": so the call
returns normally only when a commit holds the batch; in every other case it raises.
"""

from __future__ import annotations

import json
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex
from threading import Event, Lock
from typing import Any

from windrow.errors import StateError, WindrowError
from windrow.spark import failures, frames
from windrow.spark.sources.source import Begun, Offsets, Position, Source
from windrow.state import crash, store

#: how often a query is begun before its Python process counts as one that does not come up
_STARTS = 10


class NotCommitted(Exception):  # noqa: N818  it is for Spark's eyes only: the batch has to come again
    """The batch is in no commit."""


@dataclass(eq=False)
class FrameBatch:
    """Rows that Spark hands over, and the thread that waits for their commit."""

    frame: Any
    query: str
    number: int
    done: Event = field(default_factory=Event)
    is_committed: bool = False

    def settle(self, *, committed: bool) -> None:
        """Let the waiting thread go on."""
        self.is_committed = committed
        self.done.set()


class StreamingFrame(Source):
    """A streaming frame; its position is the id of Spark's query and the number of its last batch."""

    wakes = True

    def __init__(self, frame: frames.DataFrame, fingerprint: str) -> None:
        self._frame, self.fingerprint = frame, fingerprint
        self._lock = Lock()
        self._query: frames.StreamingQuery | None = None
        self._begun = Begun("", {})
        self._waiting: FrameBatch | None = None
        self._ended = False
        self._starts_left = _STARTS
        #: what went wrong inside a callback, where Spark would only show a trace
        self.failure: BaseException | None = None

    def describe(self) -> str:
        return "a streaming frame"

    # ------------------------------------------------------------ a run

    def begin(self, begun: Begun) -> None:
        self._begun, self._waiting, self.failure = begun, None, None
        self._ended, self._starts_left = False, _STARTS
        folder: Path = begun.folder
        with store.explained("make the directory", folder):
            store.make_private(folder.parent)
            commits = folder / "commits"
            if "query" not in begun.start and commits.is_dir() and any(commits.iterdir()):
                store.remove_folder(
                    folder.parent, folder.name
                )  # it is of a stream of that name that was dropped
        self._start()

    def _start(self) -> None:
        """Begin, or go on where the checkpoint is."""
        self._starts_left -= 1
        # Names are for people, and must differ within a session, which several engines may use.
        name = f"windrow {self._begun.stream} {token_hex(4)}"
        with self._reading():
            writer = self._frame.writeStream.foreachBatch(self._on_batch)
            writer = writer.option("checkpointLocation", str(self._begun.folder)).queryName(name)
            once, trigger = self._begun.once, self._begun.trigger
            writer = writer.trigger(availableNow=True) if once else writer.trigger(processingTime=trigger)
            self._query = writer.start()

    def end(self) -> None:
        """End the query. The batch that waits is sent back first: Spark waits for it."""
        with self._lock:
            self._ended, waiting, self._waiting = True, self._waiting, None
        if waiting is not None:
            waiting.settle(committed=False)
        with self._reading():
            if self._query is not None:
                self._query.stop()

    def is_over(self) -> bool:
        return self._waiting is None and not self._is_active() and not self._began_again()

    def latest(self) -> FrameBatch | None:
        if self._waiting is None and not self._is_active():
            self._began_again()
        return self._waiting

    def whole(self) -> None:
        """Spark itself ends when it has handed out what was there."""

    def upto(self, start: Position, latest: FrameBatch | None) -> Offsets | None:
        if latest is None or latest.done.is_set():
            return None
        if not _is_next(self._begun.stream, start, latest):  # the last commit holds it; Spark did not know
            self.committed(Offsets({}, (latest,)), 0)
            return None
        return Offsets({"query": latest.query, "batch": latest.number}, (latest,))

    def frame(self, start: Position, end: Offsets) -> Any:
        return end.items[0].frame

    def committed(self, end: Offsets, commit: int) -> None:
        batch = end.items[0]
        with self._lock:
            if self._waiting is batch:
                self._waiting = None
        batch.settle(committed=True)

    # ------------------------------------------------------------ Spark's side

    def _on_batch(self, frame: frames.DataFrame, number: int) -> None:
        """Spark's callback: whatever happens inside, it returns only if the batch is committed."""
        try:
            metadata = json.loads((self._begun.folder / "metadata").read_text())
            self._hand_over(FrameBatch(frame, str(metadata["id"]), number))
            crash.crash_point("before-spark-commit")
        except BaseException as error:  # noqa: BLE001  even SystemExit: Spark would wait for it for ever
            self.failure = error
            raise RuntimeError(f"batch {number} of stream {self._begun.stream} is not committed") from None

    def _hand_over(self, batch: FrameBatch) -> None:
        with self._lock:
            if self._ended:
                raise NotCommitted("the engine is stopping")
            self._waiting = batch
        self._begun.wake()
        batch.done.wait()
        if not batch.is_committed:
            raise NotCommitted("the engine is stopping")

    # ------------------------------------------------------------ failures

    def _began_again(self) -> bool:
        """Raise why the query has ended, if not in order; begin it again if Spark has given up on the Python
        process that asks the source: on a busy machine that takes longer than the ten seconds it is given."""
        if isinstance(self.failure, WindrowError):
            raise self.failure
        if self.failure is not None and not isinstance(self.failure, NotCommitted):
            text = f"{type(self.failure).__name__}: {self.failure}"
            raise WindrowError(f"{self._what} failed: {text}", code="job-failed")
        with self._reading():
            found = None if self._query is None or self._query.isActive else failures.failure_of(self._query)
        if found is None:
            return False
        if failures.is_late_worker(found) and self._starts_left:
            self._start()
            return True
        raise failures.translated(found, self._what)

    def _is_active(self) -> bool:
        with self._reading():
            return self._query is not None and bool(self._query.isActive)

    @property
    def _what(self) -> str:
        return f"reading stream `{self._begun.stream}`"

    def _reading(self) -> AbstractContextManager[None]:
        return failures.job_failed(self._what)


def _is_next(stream: str, start: Position, batch: FrameBatch) -> bool:
    """Whether a batch is the one after the last commit; False if the last commit holds it already."""
    query, last = start.get("query"), start.get("batch")
    found, known = f"batch {batch.number}", f"batch {last} was committed last"
    if query is None:
        last, query, known = -1, batch.query, "none was ever committed"
    if query != batch.query:
        raise StateError(
            f"stream `{stream}`: Spark's checkpoint is not the one this state belongs to: it begins anew, and"
            " rows would be read twice or never",
            code="checkpoint-lost",
            hint="restore the folder `checkpoints` of the state directory, or start with a new one",
        )
    if batch.number == last:
        return False
    if last is None or batch.number != last + 1:
        raise StateError(
            f"stream `{stream}`: Spark's checkpoint goes on with {found}, but {known}",
            code="checkpoint-mismatch",
            hint="restore the whole state directory from one backup, or start with a new one",
        )
    return True
