"""SELECT: from the question to the answer, within limits, by itself or in the background.

Everything about a commit is in its manifest, so a question needs no lock of the engine: it holds a commit, so
that no file it may read is removed, reads the parts of what is kept that it needs, and is evaluated. Commits
never wait. A window that slides meanwhile is read by a policy of `windrow.archive.snapshot`:

    WINDOW   the window of the commit at which the read begins; its files stay as long as somebody reads
    LATEST   the window of the commit that is current when the read ends: sub-windows that are committed
             meanwhile are read too, the one that expires last first, and what has expired is let go of

A few read at a time; of those who wait, the highest priority goes first. A query asks for a turn for each
sub-window, so that one of higher priority overtakes it in the middle.

>>> turns = Turns(places=1)
>>> with turns.turn(0):
...     turns.waiting
0
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from threading import Condition, Lock

import polars as pl
import pyarrow as pa

from windrow.archive.snapshot import LATEST as LATEST_LEVEL, SNAPSHOT, UNDOING, IsolationPolicy
from windrow.engine.adhoc import access_paths, from_synopses
from windrow.engine.adhoc.question import Answer, Question
from windrow.engine.archives import Archiving
from windrow.errors import QueryError
from windrow.language.binder.once import LATEST, WINDOW, Once
from windrow.language.catalog import StandingQuery
from windrow.state.log import CommitLog
from windrow.state.manifest import Manifest

#: seconds between looks at whether a waiting query was cancelled
_LOOK = 0.05


class Turns:
    """Turns for readers in many threads."""

    def __init__(self, places: int = 2) -> None:
        self._free = places
        self._changed = Condition()
        self._waiting: list[tuple[int, int]] = []
        self._tickets = count()

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    @contextmanager
    def turn(self, priority: int, check: Callable[[], None] = lambda: None) -> Iterator[None]:
        """A turn, to the end of the block. `check` is called while waiting; it raises to give up."""
        ticket = (-priority, next(self._tickets))
        with self._changed:
            self._waiting.append(ticket)
            try:
                while not (self._free and min(self._waiting) == ticket):
                    self._changed.wait(_LOOK)
                    check()
                self._free -= 1
            finally:
                self._waiting.remove(ticket)
                self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self._free += 1
                self._changed.notify_all()


@dataclass(frozen=True)
class Limits:
    """None: no limit. Rows are those of the answer; bytes those that are read, and those of the answer."""

    seconds: float | None = None
    rows: int | None = None
    bytes: int | None = None

    def __post_init__(self) -> None:
        for name, value in (("timeout", self.seconds), ("max_rows", self.rows), ("max_bytes", self.bytes)):
            if value is not None and value <= 0:
                raise QueryError(f"{name} {value} allows nothing", code="bad-value", hint="more than 0")


class SelectWatch:
    """Watches over one SELECT. `check` raises when it has to end."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self._ends = None if self.limits.seconds is None else time.monotonic() + self.limits.seconds
        self._bytes = 0
        self._error: QueryError | None = None
        self._stoppers: list[Callable[[], None]] = []
        self._lock = threading.Lock()

    def cancel(self) -> None:
        """Stop it, from any thread. It ends with an error as soon as it can."""
        self._end(QueryError("the SELECT was cancelled", code="cancelled"))

    def check(self) -> None:
        """Whether to go on; an error if not."""
        if self._ends is not None and time.monotonic() >= self._ends:
            self._end(self._too_long())
        if self._error is not None:
            raise self._error

    def has_read(self, count: int) -> None:
        """So many bytes were read."""
        self._bytes += count
        self._compare(self._bytes, "read")

    def has_answer(self, rows: int, size: int) -> None:
        """The answer is so large."""
        most = self.limits.rows
        if most is not None and rows > most:
            raise QueryError(
                f"the answer has {rows} rows, and {most} are allowed",
                code="too-many-rows",
                hint="ask for less, with WHERE, GROUP BY or LIMIT; or allow more: max_rows",
            )
        self._compare(size, "in the answer")

    @contextmanager
    def stopping(self, stop: Callable[[], None]) -> Iterator[None]:
        """Within the block, `stop` ends what is under way elsewhere, if the SELECT has to end."""
        timer = None
        if self._ends is not None:
            timer = threading.Timer(
                max(self._ends - time.monotonic(), 0), lambda: self._end(self._too_long())
            )
            timer.daemon = True
            timer.start()
        with self._lock:
            self._stoppers.append(stop)
        try:
            self.check()
            yield
        except BaseException:
            with suppress(Exception):  # what is raised already says more
                stop()
            if self._error is not None:
                raise self._error from None
            raise
        finally:
            with self._lock:
                self._stoppers.remove(stop)
            if timer is not None:
                timer.cancel()

    def _end(self, error: QueryError) -> None:
        with self._lock:
            self._error = self._error or error
            stoppers = list(self._stoppers)
        for stop in stoppers:
            stop()

    def _too_long(self) -> QueryError:
        return QueryError(
            f"the SELECT has taken longer than {self.limits.seconds} s",
            code="too-long",
            hint="ask for less, or allow more time: timeout",
        )

    def _compare(self, count: int, where: str) -> None:
        most = self.limits.bytes
        if most is not None and count > most:
            raise QueryError(
                f"there are {count} bytes {where}, and {most} are allowed",
                code="too-many-bytes",
                hint="ask about a shorter window, or allow more: max_bytes",
            )


POLICIES: Mapping[str, IsolationPolicy] = {WINDOW: SNAPSHOT, LATEST: UNDOING}
#: bytes of sub-windows, as they are in memory, that stay for the next who asks
REMEMBERED = 64 << 20
#: a window that has slid so often while it was read slides faster than it can be read
PATIENCE = 256


class SubWindowCache:
    """Sub-windows that were read lately. They never change, so whoever wants one may have it."""

    def __init__(self, most: int = REMEMBERED) -> None:
        self._most, self._held = most, 0
        self._frames: OrderedDict[str, pl.DataFrame] = OrderedDict()
        self._lock = Lock()

    def get(self, part: access_paths.SubWindow) -> pl.DataFrame:
        with self._lock:
            found = self._frames.get(part.name)
            if found is not None:
                self._frames.move_to_end(part.name)
                return found
        frame = part.fetch()
        size = int(frame.estimated_size())
        with self._lock:
            if part.name not in self._frames and size <= self._most // 4:
                self._frames[part.name] = frame
                self._held += size
                while self._held > self._most:
                    _, gone = self._frames.popitem(last=False)
                    self._held -= int(gone.estimated_size())
        return frame


@dataclass
class Read:
    """What was read: the rows of every part, and the commit they are the state of."""

    manifest: Manifest
    frames: dict[str, pl.DataFrame] = field(default_factory=dict)
    #: how many parts were read, let go of, and how often all was begun anew
    reads: int = 0
    undone: int = 0
    restarts: int = 0
    #: how many commits were taken in on the way
    slides: int = 0


@dataclass(frozen=True)
class Reader:
    """Reads parts of committed state, each in a turn of its own."""

    log: CommitLog
    turns: Turns
    memory: SubWindowCache

    def read(
        self,
        parts_of: Callable[[Manifest], list[access_paths.SubWindow]],
        policy: IsolationPolicy,
        watch: SelectWatch,
        priority: int = 0,
    ) -> Read:
        """All parts that `parts_of` names. The caller holds a commit from before."""
        done = Read(self.log.last)
        wanted = self._parts(parts_of, done)
        while True:
            newest = self.log.last if policy.level is LATEST_LEVEL else done.manifest
            if newest.number != done.manifest.number:
                done.slides += 1
                done.manifest = newest
                wanted = self._parts(parts_of, done)
                self._let_go(done, {part.name for part in wanted}, policy)
            missing = [place for place, part in enumerate(wanted) if part.name not in done.frames]
            if not missing:
                return done
            if done.slides > PATIENCE:
                raise QueryError(
                    f"the window has slid {PATIENCE} times while it was read, and was never read to its end",
                    code="too-fast",
                    hint="ask about a shorter window, or WITH ISOLATION WINDOW: as it is when the read"
                    " begins",
                )
            first = done.manifest.number  # on a ring, versions go on counting as the window slides
            part = wanted[policy.order([first + place for place in missing], len(wanted)) - first]
            with self.turns.turn(priority, watch.check):
                watch.check()
                watch.has_read(part.bytes)
                done.frames[part.name] = self.memory.get(part)
                done.reads += 1

    @staticmethod
    def _parts(
        parts_of: Callable[[Manifest], list[access_paths.SubWindow]], done: Read
    ) -> list[access_paths.SubWindow]:
        return sorted(parts_of(done.manifest), key=lambda part: (part.ends, part.name))

    def _let_go(self, done: Read, wanted: set[str], policy: IsolationPolicy) -> None:
        """What was read and has expired since: its rows go, or all is begun anew."""
        expired = done.frames.keys() - wanted
        if not expired:
            return
        if policy.undo:
            done.undone += len(expired)
            done.frames = {name: frame for name, frame in done.frames.items() if name in wanted}
        else:
            done.restarts += 1
            done.frames = {}


class Asked:
    """What `w.ask` gives."""

    def __init__(self, answer: Callable[[], pa.Table], watch: SelectWatch) -> None:
        self._answer, self._watch = answer, watch
        self._table: pa.Table | None = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="windrow select", daemon=True)
        self._thread.start()

    @property
    def is_done(self) -> bool:
        """Whether there is an answer, or an error."""
        return not self._thread.is_alive()

    def cancel(self) -> None:
        """Stop it; `result` then raises. What was read is let go of."""
        self._watch.cancel()

    def result(self, timeout: float | None = None) -> pa.Table:
        """The answer; an error after so many seconds without one, while it goes on."""
        self._thread.join(timeout)
        if self._thread.is_alive():
            raise QueryError(f"no answer after {timeout} s", code="not-yet", hint="wait longer, or cancel()")
        if self._error is not None:
            raise self._error
        return self._table

    def _run(self) -> None:
        try:
            self._table = self._answer()
        except BaseException as error:  # noqa: BLE001  it is raised again by whoever wants the answer
            self._error = error


#: what an answer tells of itself, in the metadata of its schema
COMMIT, INSTANT, ISOLATION = "windrow.commit", "windrow.at", "windrow.isolation"
#: evaluates a question elsewhere, or says that it will not
Elsewhere = Callable[[Question, SelectWatch, "IsolationPolicy"], Answer | None]


@dataclass
class Asker:
    """Answers questions about one state directory, from any thread."""

    log: CommitLog
    turns: Turns = field(default_factory=Turns)
    memory: SubWindowCache = field(default_factory=SubWindowCache)
    #: where there is more to read than one process should hold
    elsewhere: Elsewhere | None = None
    archives: Archiving | None = None
    #: what each standing query asks of its stream, if it shares that with others
    standing: from_synopses.Standing | None = None

    def ask(
        self,
        once: Once,
        queries: Mapping[str, StandingQuery],
        isolation: str | None = None,
        watch: SelectWatch | None = None,
        policy: IsolationPolicy | None = None,
    ) -> pa.Table:
        """The answer as a table; its metadata says which commit and instant it is about."""
        question = self._question(once, queries, isolation)
        watch, level = watch or SelectWatch(), question.level
        chosen = policy or POLICIES[level]
        with self.log.reader():
            answer = self.elsewhere(question, watch, chosen) if self.elsewhere is not None else None
            if answer is None:
                reader = Reader(self.log, self.turns, self.memory)
                read = reader.read(lambda m: question.at(m).parts, chosen, watch, once.priority)
                with self.turns.turn(once.priority, watch.check):
                    answer = question.at(read.manifest).answer(read.frames)
        watch.check()
        table = question.published(answer)
        watch.has_answer(table.num_rows, table.nbytes)
        about = {COMMIT: str(answer.commit), ISOLATION: level}
        about |= {} if answer.at is None else {INSTANT: str(answer.at)}
        return table.replace_schema_metadata(about)

    def ways(self, once: Once, queries: Mapping[str, StandingQuery]) -> list[str]:
        """Where a SELECT would read from, one line for each."""
        question = self._question(once, queries)
        with self.log.reader() as manifest:
            return question.at(manifest).described

    def _question(
        self, once: Once, queries: Mapping[str, StandingQuery], isolation: str | None = None
    ) -> Question:
        asked = once.isolation or isolation or LATEST
        if asked.upper() not in POLICIES:
            raise QueryError(
                f"no isolation level `{asked}`", code="bad-value", hint="LATEST (the default) or WINDOW"
            )
        return Question(once, queries, self.log, self.archives, self.standing, asked.upper())
