"""A streaming frame as one Spark streaming query, whose micro-batches go to the engine.

Spark keeps its own log of what it has handed out, in a checkpoint; the engine keeps another, of what it has
committed. The two must be about the same source: a checkpoint that was deleted begins again with a new id and
batch 0, and a file that was overwritten would be read with other contents than it was announced with. Both
are told, and nothing is lost silently.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlparse

from windrow.errors import SourceError, StateError, WindrowError
from windrow.spark.failures import is_late_worker, job_failed, translated
from windrow.state.crash import crash_point
from windrow.state.entries import SourceFile, SourceState

if TYPE_CHECKING:
    from windrow.spark.frames import DataFrame, StreamingQuery
    from windrow.spark.sources import Source

#: so many of the files read last are remembered, to notice when one changes afterwards
FILES_KEPT = 64
#: how often a source is begun before its Python process counts as one that does not come up
_STARTS = 10


class NotCommitted(Exception):  # noqa: N818  it is for Spark's eyes only: the batch has to come again
    """The batch is in no commit."""


@dataclass(frozen=True)
class MicroBatch:
    """Rows that Spark hands over, and which of its batches they are."""

    stream: str
    frame: DataFrame
    query_id: str
    number: int
    #: looks at the files it comes from; those of a batch that is committed already may be gone
    files: Callable[[], tuple[SourceFile, ...]] = tuple
    #: rows that the source had left when the batch before this one was taken, if it says so
    waiting: int = 0
    #: seconds that Spark spent on the batch before this one, beyond handing it over
    around: float = 0.0


class StreamFeed:
    """One stream's source, running. `hand_over` returns only when the batch is committed."""

    def __init__(
        self, stream: str, source: Source, checkpoint: Path, hand_over: Callable[[MicroBatch], None]
    ) -> None:
        self.stream, self.source, self.checkpoint = stream, source, checkpoint
        self._hand_over = hand_over
        self._query: StreamingQuery | None = None
        self._how: tuple[str, bool] | None = None
        self._starts_left = _STARTS
        #: what went wrong inside a callback, where Spark would only show a trace
        self.failure: BaseException | None = None

    def start(self, trigger: str, *, once: bool) -> None:
        """Begin, or go on where the checkpoint is."""
        self._how, self._starts_left = (trigger, once), self._starts_left - 1
        # Names are for people, and must differ within a session, which several engines may use.
        name = f"windrow {self.stream} {token_hex(4)}"
        with self._reading():
            writer = self.source.frame.writeStream.foreachBatch(self._on_batch)
            writer = writer.option("checkpointLocation", str(self.checkpoint)).queryName(name)
            writer = writer.trigger(availableNow=True) if once else writer.trigger(processingTime=trigger)
            self._query = writer.start()

    def start_again(self) -> bool:
        """Begin anew if Spark has given up on the Python process that asks the source: no batch was begun.

        On a busy machine that takes longer than the ten seconds which Spark gives it. False if there was no
        need, or it was tried often enough.
        """
        found = self._exception()
        if found is None or not is_late_worker(found) or self._how is None or not self._starts_left:
            return False
        trigger, once = self._how
        self.start(trigger, once=once)
        return True

    @property
    def is_active(self) -> bool:
        with self._reading():
            return self._query is not None and bool(self._query.isActive)

    def stop(self) -> None:
        """End the query. Never called while the engine holds a batch of it."""
        with self._reading():
            if self._query is not None:
                self._query.stop()

    def forget_plan(self, last: int | None) -> None:
        """Let Spark announce anew which files come after batch `last`: they were refused, and will be mended.

        What a batch is comes first: without it, announcements of files are simply taken in by the next one.
        """
        if not self.source.is_files:
            return
        announced = -1 if last is None else self._announced(last)
        _remove_after(self.checkpoint / "offsets", -1 if last is None else last)
        _remove_after(self.checkpoint / "sources" / "0", announced)

    def error(self) -> WindrowError | None:
        """Why it ended by itself, if not in order."""
        if isinstance(self.failure, WindrowError):
            return self.failure
        if self.failure is not None and not self.is_active and not isinstance(self.failure, NotCommitted):
            text = f"{type(self.failure).__name__}: {self.failure}"
            return WindrowError(f"reading stream `{self.stream}` failed: {text}", code="job-failed")
        found = self._exception()
        return None if found is None else translated(found, f"reading stream `{self.stream}`")

    def _exception(self) -> str | None:
        """What Spark says of a query that has failed."""
        with self._reading():
            found = None if self._query is None or self._query.isActive else self._query.exception()
        return None if found is None else str(found)

    def _reading(self) -> AbstractContextManager[None]:
        return job_failed(f"reading stream `{self.stream}`")

    def _on_batch(self, frame: DataFrame, number: int) -> None:
        """Spark's callback: whatever happens inside, it returns only if the batch is committed."""
        try:
            files, told = partial(self._files, number), self._told()
            self._hand_over(MicroBatch(self.stream, frame, self._id(), number, files, *told))
            crash_point("before-spark-commit")
        except BaseException as error:  # noqa: BLE001  even SystemExit: Spark would wait for it for ever
            self.failure = error
            raise RuntimeError(f"batch {number} of stream {self.stream} is not committed") from None

    def _told(self) -> tuple[int, float]:
        """What Spark says of the batch before: rows that were left waiting, and seconds around it."""
        progress = self._query.lastProgress if self._query is not None else None
        if progress is None:
            return 0, 0.0
        return rows_waiting(progress["sources"][0]), seconds_around(progress["durationMs"])

    def _id(self) -> str:
        metadata = json.loads((self.checkpoint / "metadata").read_text())
        return str(metadata["id"])

    def _files(self, number: int) -> tuple[SourceFile, ...]:
        """The files of a batch as Spark has announced them; each must still be the same."""
        if not self.source.is_files:
            return ()
        first = self._announced(number - 1) + 1 if number else 0
        entries = [e for each in range(first, self._announced(number) + 1) for e in self._announcement(each)]
        local = [(path, entry["timestamp"]) for entry in entries if (path := _local(entry["path"]))]
        return tuple(_unchanged(path, timestamp, self.stream) for path, timestamp in local)

    def _announced(self, number: int) -> int:
        """The last announcement of files that a batch takes in: after a crash it may take in two."""
        found = re.search(r'"logOffset":(\d+)', (self.checkpoint / "offsets" / str(number)).read_text())
        return int(found[1]) if found else number

    def _announcement(self, number: int) -> Iterator[dict[str, Any]]:
        log = self.checkpoint / "sources" / "0"
        paths = (log / name for name in (str(number), f"{number}.compact"))
        path = next((path for path in paths if path.exists()), None)
        # bytes: a file's name may have line separators of Unicode in it, at which `splitlines()` would cut
        lines = path.read_bytes().split(b"\n")[1:] if path else []
        entries: list[dict[str, Any]] = [json.loads(line) for line in lines if line.strip()]
        yield from (entry for entry in entries if entry["batchId"] == number)


def rows_waiting(source: Mapping[str, Any]) -> int:
    """From Spark's progress of a source, where its offsets count rows: how far it was read, against what it
    had.

    >>> rows_waiting({"endOffset": '{"0": 10, "1": 10}', "latestOffset": '{"0": 17, "1": 12}'})
    9
    >>> rows_waiting({"endOffset": '{"logOffset": 3}', "latestOffset": None})
    0
    """
    read, there = (_offsets(source.get(name)) for name in ("endOffset", "latestOffset"))
    return sum(max(0, last - read.get(part, last)) for part, last in there.items())


def seconds_around(took: Mapping[str, int]) -> float:
    """From Spark's progress: what it takes to find out what is new, to plan and to write its own logs.

    >>> seconds_around({"addBatch": 700, "walCommit": 40, "triggerExecution": 950})
    0.25
    """
    return max(0, took.get("triggerExecution", 0) - took.get("addBatch", 0)) / 1000


def _offsets(told: Any) -> dict[str, int]:
    """Offsets by the part of the source they are of; nothing if they are of another kind."""
    try:
        known = json.loads(told) if isinstance(told, str) else told
    except ValueError:
        return {}
    counts = isinstance(known, dict) and all(type(offset) is int for offset in known.values())
    return known if counts else {}


def _remove_after(folder: Path, last: int) -> None:
    """Remove the entries of one of Spark's logs that come after `last`, with their checksums."""
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        found = re.fullmatch(r"\.?(\d+)(\.compact)?(\.crc)?", path.name)
        if found and int(found[1]) > last:
            path.unlink(missing_ok=True)


def _local(url: str) -> Path | None:
    parsed = urlparse(url)
    return Path(unquote(parsed.path)) if parsed.scheme in ("", "file") else None


def _unchanged(path: Path, announced: int, stream: str) -> SourceFile:
    try:
        facts = path.stat()
    except FileNotFoundError:
        raise SourceError(
            f"stream `{stream}`: {path} was announced and is gone before it was read",
            code="file-missing",
            hint="put it back as it was; or start with a new state directory, without it",
        ) from None
    if facts.st_mtime_ns // 1_000_000 != announced:
        raise SourceError(
            f"stream `{stream}`: {path} was changed after it was announced and before it was read",
            code="file-changed",
            hint="restore it with its time of change, or start with a new state directory; "
            "write new rows to new files",
        )
    return SourceFile(str(path), facts.st_size, facts.st_mtime_ns)


def check_files(stream: str, read: SourceState) -> None:
    """Files that were read may be gone by now, but not changed: what was added would be ignored."""
    for file in read.files:
        try:
            facts = Path(file.path).stat()
        except FileNotFoundError:
            continue
        if (facts.st_size, facts.st_mtime_ns) != (file.size, file.modified):
            raise SourceError(
                f"stream `{stream}`: {file.path} was changed after it was read",
                code="file-changed",
                hint="restore it, or start with a new state directory; write new rows to new files",
            )


def next_read(stream: str, read: SourceState, batch: MicroBatch, fingerprint: str) -> SourceState | None:
    """How far the source is with this batch; None if the last commit holds it already."""
    if read.query_id is None:
        if batch.number != 0:
            raise _other_batch(stream, f"batch {batch.number}", "none was ever committed")
    elif read.query_id != batch.query_id:
        raise StateError(
            f"stream `{stream}`: Spark's checkpoint is not the one this state belongs to: it begins anew, and"
            " rows would be read twice or never",
            code="checkpoint-lost",
            hint="restore the folder `checkpoints` of the state directory, or start with a new one",
        )
    elif batch.number == read.last_batch:
        return None
    elif read.last_batch is None or batch.number != read.last_batch + 1:
        raise _other_batch(stream, f"batch {batch.number}", f"batch {read.last_batch} was committed last")
    files = (*read.files, *batch.files())[-FILES_KEPT:]
    return SourceState(batch.query_id, batch.number, fingerprint, read.schema, files)


def _other_batch(stream: str, found: str, known: str) -> StateError:
    return StateError(
        f"stream `{stream}`: Spark's checkpoint goes on with {found}, but {known}",
        code="checkpoint-mismatch",
        hint="restore the whole state directory from one backup, or start with a new one",
    )
