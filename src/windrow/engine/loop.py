"""The loop: one epoch after the other, over all sources.

    what is new           each source is asked how far it could be read; slow ones by threads
    how much to take      by the limits of the sources; of those that are behind, the one furthest back first
    the epoch             ingest, watermarks, close what is due, commit; made again if it fails
                          for a reason that passes
    wait                  for something new, the trigger, or the next look at the clock

Nothing is read ahead of a commit. A source that is away holds up itself and not the others, also when a run
begins: it is opened, and known again or refused, when it answers. A table whose source is away stays as it
was; one that never was read holds up the streams that are read with it.

At Ctrl-C the epoch under way is finished, then everything stops, where Spark's own handler would cancel all
jobs. A second Ctrl-C ends at once, as it would anywhere.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from threading import Condition, Event, Thread
from types import FrameType
from typing import Any, Protocol

import pyarrow as pa

from windrow.engine.engine import Arrival, Event as Told, SourceChanged, WatermarkAdvance, sealed
from windrow.engine.output.dispatch import Delivering
from windrow.engine.records import Registered
from windrow.engine.tables import Refreshing
from windrow.errors import DataError, SourceError, StateError, WindrowError
from windrow.spark.failures import job_failed
from windrow.spark.frames import row_count, rows_between
from windrow.spark.sources.source import Absent, Begun, Offsets, Source, Unsettled
from windrow.state import crash, manifest
from windrow.state.names import file_name
from windrow.windows import INFINITY, OrderedPer

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def standing_here(stop: Callable[[], None]) -> Iterator[None]:
    """Calls `stop` at the first signal, for the length of a block."""

    def on_signal(number: int, frame: FrameType | None) -> None:
        stop()
        signal.signal(signal.SIGINT, signal.default_int_handler)

    is_main = threading.current_thread() is threading.main_thread()
    before = {each: signal.signal(each, on_signal) for each in (_SIGNALS if is_main else ())}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


#: seconds between looks at the clock when no rows come
TICK = 1.0
#: seconds between looks whether a source has something new, at least and at most
SOONEST, LATEST = 0.02, 0.5
#: and how many times longer than a look takes, so that looking is not what the machine does
AT_EASE = 10
#: seconds before an epoch that failed is made again, the first time and at most
PAUSE, LONGEST_PAUSE = 0.1, 30.0
#: seconds before a source that is away is asked again, at first
AWAY = 1.0
#: how often an epoch is made before its failure ends the run
ATTEMPTS = 4
#: how often a source that is away is asked by a run that takes what is there and ends
ASKED_ONCE = 3
#: how often such a run tries a sink for which too much waits
TRIED_ONCE = 3
#: the codes of errors that pass by themselves: nothing is wrong with rows, queries or the state
PASSING = frozenset({"job-failed", "worker-late", "worker-died", "source-away", "kafka"})
#: how often workers may die of one range, before it is read in halves
DEATHS = 2


class Driven(Registered, Protocol):
    """An engine, as far as the loop drives it."""

    events: list[Told]
    delivering: Delivering

    @property
    def now(self) -> Callable[[], int]: ...
    def keys_of(self, stream: str) -> pa.Table | None: ...
    def read_from(self, name: str, source: Source) -> None: ...
    def epoch(
        self,
        arrivals: Sequence[Arrival] = ...,
        promises: Sequence[WatermarkAdvance] = ...,
        seals: Sequence[str] = ...,
        unwatched: Mapping[str, int] | None = ...,
    ) -> manifest.Manifest: ...
    def deliver(self, *, only_due: bool = ...) -> None: ...
    def maintain(self) -> None: ...
    def tell(self, kind: str, name: str, error: WindrowError | None) -> None: ...


@dataclass(frozen=True)
class Taken:
    """What an epoch takes of one stream."""

    stream: str
    source: Source
    end: Offsets


@dataclass
class Loop:
    """One run of the engine over its sources."""

    engine: Driven
    #: of one that is away there is what opens it
    sources: dict[str, Source]
    checkpoints: Path
    trigger: str = "0 seconds"
    #: seconds between the beginnings of two epochs
    period: float = 0.0
    once: bool = False
    flush: bool = False
    #: called after every epoch
    watch: Callable[[], None] = lambda: None
    promises: list[WatermarkAdvance] = field(default_factory=list)
    #: those whose content may have changed are asked between epochs
    tables: Refreshing | None = None

    def __post_init__(self) -> None:
        self.board = Board()
        self.stopping = Event()
        self._looks: dict[str, Look] = {}
        #: of tables whose sources take time to answer, those that are asked; those that have, in this run
        self._table_looks: dict[str, Look] = {}
        self._answered: set[str] = set()
        #: for a run that takes what is there: how far that was for each source when it began
        self._targets: dict[str, Any] = {}
        #: for sources of which workers have died, the end of the range that has the row in it
        self._suspects: dict[str, Offsets] = {}
        self._watched = Watched(self.engine)
        #: whether more waits for a sink than should, so that nothing is taken; how often it was tried since
        self._is_held_up, self._tries = False, 0
        #: when sources have told how far they can be read, those that were asked
        self._told: dict[str, int | None] = {}
        self._next = self._delivered = 0.0

    def stop(self) -> None:
        """End after the epoch that runs now. Any thread may call this; it does not wait."""
        self.stopping.set()
        self.board.wake()

    def run(self) -> None:
        """Run until the inputs end, `stop` is called or something fails."""
        for name, source in self.sources.items():
            if not isinstance(source, Absent):
                self._check(name)
        try:
            self.engine.delivering.begin(self.board.wake)
            self.engine.deliver()
            self._refresh()
            for name in list(self.sources):
                self._begin_with(name)
            while not self.stopping.is_set():
                taken = self._what_to_take()
                if taken or self.promises or self._watched.is_due():
                    self._epoch(taken)
                elif self._is_over():
                    break
                self._wait(at_once=bool(taken))
                self._refresh()
            if self.flush and not self.stopping.is_set():  # the end of every stream that was read
                names = [name for name in self.sources if not self.engine.streams[name].known.sealed]
                names += [name for name, table in self.engine.tables.items() if table.progress != INFINITY]
                if names:
                    self.engine.epoch(seals=names)
                    self.watch()
        finally:
            for look in (*self._looks.values(), *self._table_looks.values()):
                look.stop()
            for source in self.sources.values():
                source.end()
            self.engine.delivering.end()

    # ------------------------------------------------------------ sources

    def _check(self, name: str) -> None:
        """The source is the one that was read before."""
        source, record = self.sources[name], self.engine.streams[name]
        if not source.continues(record.read.fingerprint):
            raise StateError(
                f"stream `{name}` comes from another source than before: {source.fingerprint}",
                code="source-changed",
                hint=f"read it from `{record.read.fingerprint}` again, or use a new state directory",
            )
        self.engine.read_from(name, source)

    def _begin_with(self, name: str) -> None:
        source, record = self.sources[name], self.engine.streams[name]
        if source.is_bounded and record.known.sealed:
            return
        folder, keys = self.checkpoints / file_name(name), self.engine.keys_of(name)
        how = self.board.wake, self.once, folder, self.trigger
        source.begin(Begun(name, record.read.offsets, keys, *how))
        if self.once or source.is_bounded:
            self._aim(name)
        elif source.is_slow:
            self._look_at(self._looks, name, source.latest)

    def _look_at(self, looks: dict[str, Look], name: str, latest: Callable[[], Any]) -> None:
        looks[name] = Look(name, latest, self.board, lambda: self.engine.now())
        looks[name].start()

    def _aim(self, name: str) -> None:
        """Find out how far to go with a source. One that does not answer is waited for, if the run does."""
        source = self.sources[name]
        try:
            found = self._asked(source.whole)
        except SourceError as error:
            if self.once or error.code not in PASSING:
                raise
            self.sources[name] = Absent(lambda: _answering(source), error)
            self._look_at(self._looks, name, self.sources[name].latest)
            return
        if isinstance(source, Absent):
            self._take_up(name, found)
        else:
            self._targets[name] = found

    def _take_up(self, name: str, source: Source) -> None:
        """A source that was away answers, and is read from now on."""
        if name in self._looks:
            self._looks.pop(name).stop()
        self.board.forget(name)
        self.sources[name] = source
        self._check(name)
        self._begin_with(name)

    def _asked(self, ask: Callable[[], Any]) -> Any:
        """What a source answers in a run that ends; one that is away is asked a few times."""
        for attempt in range(ASKED_ONCE):
            try:
                return ask()
            except WindrowError as error:
                if error.code not in PASSING or attempt == ASKED_ONCE - 1:
                    raise
                self.stopping.wait(PAUSE)
        return None

    # ------------------------------------------------------------ tables

    def _refresh(self) -> None:
        """Take over what is new in tables. Sources that may take time to answer are asked by threads."""
        if self.tables is None:
            return
        for name in list(self._table_looks):
            self._take_over(self.tables, name)
        if not self.tables.is_due():
            return
        for name in self.tables.names:
            ask = partial(self.tables.news, name)
            if not self.tables.is_slow(name):
                self.tables.take_over(name, ask())
            elif self.once:
                self.tables.take_over(name, self._asked(ask))
            elif name not in self._table_looks:
                # asked until there is an answer, which may be that nothing is new
                self._look_at(self._table_looks, name, cache(lambda ask=ask: (ask(),)))
        self.tables.looked()

    def _take_over(self, tables: Refreshing, name: str) -> None:
        """What a source has answered, if it has."""
        answer, _ = self.board.latest(name)
        is_dropped = name not in tables.names
        if answer is not None or is_dropped:
            self._table_looks.pop(name).stop()
            self.board.forget(name, entirely=is_dropped)
        if answer is not None:
            self._answered.add(name)
            tables.take_over(name, *answer)

    def _without_tables(self) -> set[str]:
        """The streams that some query reads with a table of which it is not known what it holds: nobody has
        ever read it, or it is asked for the first time and may have changed."""
        if self.tables is None or not self._table_looks:
            return set()
        known = self._answered | self.board.absent.keys()
        unknown = {name for name in self._table_looks if name not in known or self.tables.is_unread(name)}
        waiting = [query for query in self.engine.queries.values() if not unknown.isdisjoint(query.tables)]
        return {stream for query in waiting for stream in query.streams}

    # ------------------------------------------------------------ what is new, and how much of it

    def _what_to_take(self) -> list[Taken]:
        """What the next epoch reads. Among sources that are behind and are read by the same queries, those
        whose watermark is ahead wait for the others: what they give would only lie in the state."""
        self._is_held_up, self._told = self.engine.delivering.is_full, {}
        names = [] if self._is_held_up else list(self._suspects) or list(self.sources)
        held = self._without_tables()
        found = [taken for name in names if name not in held and (taken := self._new(name)) is not None]
        behind = {each.stream for each in found if each.end.has_more}
        self._watched.look(self._told, found)
        return [each for each in found if each.stream not in behind or not self._waits(each.stream, behind)]

    def _new(self, name: str) -> Taken | None:
        source, record = self.sources[name], self.engine.streams[name]
        if source.is_bounded and record.known.sealed:
            return None
        if (suspect := self._suspects.pop(name, None)) is not None:
            rest = source.rest(record.read.offsets, suspect)
            if rest is not None:
                self._suspects[name] = rest
                return Taken(name, source, source.half(record.read.offsets, rest) or rest)
        latest, self._told[name] = self._latest(name, source)
        if latest is None:
            return None
        if isinstance(source, Absent):
            self._take_up(name, latest)
            return self._new(name)
        ask = partial(source.upto, record.read.offsets, latest)
        try:
            end = self._asked(ask) if self.once else ask()
        except Unsettled:
            self._left_out([], name)
            return self._new(name) if self.once else None
        except SourceError as error:
            if self.once or error.code not in PASSING:
                raise
            self.board.away(name, error)
            return None
        if end is not None and record.known.sealed:
            raise sealed(name)
        return None if end is None else Taken(name, source, end)

    def _latest(self, name: str, source: Source) -> tuple[Any, int | None]:
        """How far a source can be read, and when it has told so."""
        now = self.engine.now()
        if name in self._targets and self._targets[name] is not None:
            return self._targets[name], None if source.is_slow else now
        return self.board.latest(name) if source.is_slow else (source.latest(), now)

    def _waits(self, name: str, behind: set[str]) -> bool:
        reached = {each: record.known.progress.progress for each, record in self.engine.streams.items()}
        queries = [query for query in self.engine.queries.values() if name in query.streams]
        beside = {other for query in queries for other in query.streams if other in behind}
        return any(reached[other] < reached[name] for other in beside)

    def _is_over(self) -> bool:
        """Whether nothing is left to wait for."""
        if self._is_held_up or self._without_tables():
            return False
        if not self.once:
            return all(source.is_bounded or source.is_over() for source in self.sources.values())
        endless = {name: source for name, source in self.sources.items() if not source.is_bounded}
        return all(self._targets.get(name) is not None or each.is_over() for name, each in endless.items())

    # ------------------------------------------------------------ epochs

    def _epoch(self, taken: list[Taken]) -> None:
        """One epoch, made again as long as its failures pass. A source that fails it is left out."""
        promises, whole = list(self.promises), taken
        self._next = time.monotonic() + self.period
        attempt, pause = 0, PAUSE
        while not self.stopping.is_set() or not attempt:
            attempt += 1
            try:
                arrivals = [self._arrival(each) for each in taken]
                seals = [each.stream for each in taken if each.source.is_bounded]
                unwatched = self._watched.unwatched([each.stream for each in taken if each in whole])
                self.engine.epoch(arrivals, promises, seals, unwatched)
                break
            except SourceChanged as changed:
                self.stopping.wait(pause)
                taken = self._left_out(taken, changed.stream)
            except WindrowError as error:
                before, taken = taken, self._after(error, taken, attempt, pause)
                if taken != before:
                    attempt, pause = 0, PAUSE
            pause = min(pause * 4, LONGEST_PAUSE)
        else:
            return
        del self.promises[: len(promises)]  # more may have come meanwhile
        self._watched.committed()
        crash.crash_point("before-source-told")
        for each in taken:
            each.source.committed(each.end, self.engine.last.number)
            suspect = self._suspects.get(each.stream)
            if suspect is not None and suspect.at == each.end.at:
                del self._suspects[each.stream]
        self.engine.tell("retried", "epoch", None)
        self.watch()

    def _arrival(self, taken: Taken) -> Arrival:
        began = time.perf_counter()
        source, end, record = taken.source, taken.end, self.engine.streams[taken.stream]
        with _told_of(taken.stream):
            frame = source.frame(record.read.offsets, end)
        read = manifest.SourceState(source.fingerprint, end.at)
        around = time.perf_counter() - began
        keys = source.keys(end)

        def is_unchanged() -> bool:
            with _told_of(taken.stream):
                return source.check(end)

        return Arrival(taken.stream, frame, read, end.backlog, around, keys, is_unchanged)

    def _after(self, error: WindrowError, taken: list[Taken], attempt: int, pause: float) -> list[Taken]:
        """What an epoch that failed takes when it is made again; raises the error if that cannot help."""
        changed = [each for each in taken if not self._is_settled(each, error)]
        if changed:
            return self._left_out(taken, *(each.stream for each in changed))
        if error.code not in PASSING or attempt >= ATTEMPTS:
            raise error
        self.engine.tell("retried", "epoch", error)
        if error.code == "worker-died" and attempt >= DEATHS and taken:
            return self._halved(taken, error)
        if isinstance(error, SourceError) and not self.once:
            away = error.stream or self._away(taken)
            if away is not None:
                self.board.away(away, error)
                return self._left_out(taken, away)
        self.stopping.wait(pause)
        return taken

    def _away(self, taken: list[Taken]) -> str | None:
        """The stream whose source does not answer, where a job of several has not told."""
        for each in taken:
            try:
                each.source.check(each.end)
            except SourceError:
                return each.stream
        return None

    def _halved(self, taken: list[Taken], error: WindrowError) -> list[Taken]:
        """Less than what workers died of: first half of the streams, then half of the one's rows. What is
        left is looked at in the next epochs, so that at last the row is known by itself."""
        if len(taken) > 1:
            return taken[: len(taken) // 2]
        name, source, end = taken[0].stream, taken[0].source, taken[0].end
        start = self.engine.streams[name].read.offsets
        half = source.half(start, end)
        if half is None:
            row = self._deadly_row(taken[0])
            where = f"{source.piece(start, end)} of stream `{name}`{f' at {row}' if row else ''}"
            raise DataError(
                f"workers die of {where}: {error.message}",
                code="poison-row",
                hint="take it out of the source, or mend the function that the queries call for it",
            )
        self._suspects[name] = end
        return [Taken(name, source, half)]

    def _deadly_row(self, taken: Taken) -> str | None:
        """The row of a range in one piece that workers die of; None if it has no other, or if there is no
        such row. Halves of what is left are taken in, and no commit holds them."""
        try:
            with job_failed("looking for the row"):
                first, last = 0, row_count(self._arrival(taken).frame)
            if last < 2:
                return None
            while last - first > 1 and not self.stopping.is_set():
                middle = (first + last) // 2
                first, last = (first, middle) if self._is_deadly(taken, first, middle) else (middle, last)
            is_found = last - first == 1 and self._is_deadly(taken, first, last)
            return taken.source.row(taken.end, first) if is_found else None
        except WindrowError:
            return None  # it only adds to a message, which must not get lost for it

    def _is_deadly(self, taken: Taken, first: int, last: int) -> bool:
        """Whether workers die of some rows of a range: an epoch with these, as far as its commit."""
        whole = self._arrival(taken)
        part = replace(whole, frame=rows_between(whole.frame, first, last), is_unchanged=lambda: False)
        try:
            self.engine.epoch([part], list(self.promises), [taken.stream] * taken.source.is_bounded)
        except SourceChanged:
            return False
        except WindrowError as error:
            if error.code != "worker-died":
                raise
        return True

    def _is_settled(self, taken: Taken, error: WindrowError) -> bool:
        """Whether a source has what it had: a file that is being written is no file with a fault."""
        if error.code not in ("malformed-row", "bad-files", "file-missing", "job-failed"):
            return True
        with _told_of(taken.stream):
            return taken.source.is_settled(taken.end)

    def _left_out(self, taken: list[Taken], *streams: str) -> list[Taken]:
        """The others; what is left out is looked at anew."""
        for name in streams:
            self.board.forget(name)
            self._suspects.pop(name, None)
            if name in self._targets:
                del self._targets[name]
                self._aim(name)
        return [each for each in taken if each.stream not in streams]

    def _wait(self, *, at_once: bool) -> None:
        """For the trigger; and, unless there was something to take, for something new or the next look at
        the clock."""
        rest = self._next - time.monotonic()
        if rest > 0 and not self.once:
            self.stopping.wait(rest)
        if not at_once and not self.promises:
            self.engine.maintain()
            self._deliver_again()
            is_told = all(source.is_slow or source.wakes for source in self.sources.values())
            self.board.wait(TICK if is_told and not self.once else SOONEST)
            self._watched.tell(self.watch)

    def _deliver_again(self) -> None:
        """Sinks that have failed are tried again now and then, whether there are new answers or not. A run
        that is to end does not wait for ever until one takes what is too much to wait."""
        if not self._is_held_up:
            self._tries = 0
        if self.engine.delivering.has_failed and time.monotonic() - self._delivered >= TICK:
            self._delivered = time.monotonic()
            failures = [event.error for event in self.engine.events if event.kind == "sink-failed"]
            if self._is_held_up and self.once and self._tries >= TRIED_ONCE and failures:
                raise failures[0]
            self._tries += 1
            self.engine.deliver(only_due=True)


def _answering(source: Source) -> Source:
    """The source, which has answered."""
    source.whole()
    return source


@contextmanager
def _told_of(stream: str) -> Iterator[None]:
    """Errors of a source tell whose it is."""
    try:
        yield
    except SourceError as error:
        error.stream = error.stream or stream
        raise


class Board:
    """Where those who look at slow sources post what they find."""

    def __init__(self) -> None:
        self._changed = Condition()
        #: how far each source can be read, and when it was asked
        self._found: dict[str, tuple[Any, int]] = {}
        self._away: dict[str, WindrowError] = {}
        self._fatal: BaseException | None = None
        self._woken = False

    def post(self, name: str, found: Any, asked: int) -> None:
        """A source could be read up to here; when it was asked, by the clock of the engine."""
        with self._changed:
            before, _ = self._found.get(name, (None, None))
            self._found[name] = found, asked
            if self._away.pop(name, None) is not None or before != found:
                self.wake()

    def away(self, name: str, error: WindrowError) -> None:
        """A source does not answer."""
        with self._changed:
            self._found.pop(name, None)
            self._away[name] = error

    def fail(self, error: BaseException) -> None:
        """A source is not what it was."""
        with self._changed:
            self._fatal = error
            self.wake()

    def latest(self, name: str) -> tuple[Any, int | None]:
        """What was posted last, and when the source was asked; None if nothing was, or the source is away."""
        with self._changed:
            if self._fatal is not None:
                raise self._fatal
            return self._found.get(name, (None, None))

    def forget(self, name: str, *, entirely: bool = False) -> None:
        """What was posted is not so any more; or nobody looks any more."""
        with self._changed:
            self._found.pop(name, None)
            if entirely:
                self._away.pop(name, None)

    @property
    def absent(self) -> dict[str, WindrowError]:
        """The sources that do not answer, and why."""
        with self._changed:
            return dict(self._away)

    def wait(self, seconds: float) -> None:
        """Until something is posted, somebody calls `wake`, or time runs out."""
        with self._changed:
            self._changed.wait_for(lambda: self._woken, seconds)
            self._woken = False

    def wake(self) -> None:
        with self._changed:
            self._woken = True
            self._changed.notify_all()


class Look(Thread):
    """Looks at one slow source again and again, how far it is, and posts what it finds."""

    def __init__(self, name: str, latest: Callable[[], Any], board: Board, now: Callable[[], int]) -> None:
        super().__init__(name=f"windrow looks at {name}", daemon=True)
        self._stream, self._latest, self._board, self._now = name, latest, board, now
        self._ended = Event()

    def run(self) -> None:
        pause = SOONEST
        while not self._ended.is_set():
            began, asked = time.monotonic(), self._now()
            try:
                self._board.post(self._stream, self._latest(), asked)
                pause = min(LATEST, max(SOONEST, AT_EASE * (time.monotonic() - began)))
            except BaseException as error:  # noqa: BLE001  it is raised again by the thread that makes epochs
                if not isinstance(error, WindrowError) or error.code not in PASSING:
                    self._board.fail(error)
                    return
                self._board.away(self._stream, error)
                pause = min(LONGEST_PAUSE, max(AWAY, pause * 2))
            self._ended.wait(pause)

    def stop(self) -> None:
        """No more looks; the one under way is waited for."""
        self._ended.set()
        if self.is_alive():
            self.join()


class Watched:
    """Up to which moment all rows of streams are known: only so far can a source of theirs be idle.

    Time counts if the source has answered since, and everything up to its answer is in commits. While it is
    away, is behind a limit or is not asked, time does not count, not even when it answers again.
    """

    def __init__(self, engine: Driven) -> None:
        self._engine = engine
        now = engine.now()
        #: for each stream up to which moment that is so
        self._until: dict[str, int] = {}
        #: up to which it will be so, once what was found is in a commit; and then, once that is made
        self._found: dict[str, int] = {}
        self._next: dict[str, int] = {}
        #: the microseconds that do not count, but for those since that moment
        self._missed: dict[str, int] = {}
        self._ticked = self._looked = time.monotonic()
        last = engine.last.decisions.get("now")
        if last is not None:  # nobody looked while there was no run
            for name in self._idle_streams():
                self._begin(name, now, max(0, now - int(last)))

    def _begin(self, name: str, now: int, missed: int = 0) -> None:
        self._until[name] = now
        self._missed[name] = self._engine.streams[name].unwatched + missed

    def _idle_streams(self) -> list[str]:
        policies = {name: each.stream.progress.policy for name, each in self._engine.streams.items()}
        return [n for n, each in policies.items() if isinstance(each, OrderedPer) and each.idle is not None]

    def look(self, told: Mapping[str, int | None], found: list[Taken]) -> None:
        """What is known of each stream at this moment: what was found, and when its source was asked."""
        now, self._found = self._engine.now(), {}
        behind = {each.stream for each in found if each.end.has_more}
        new = {each.stream for each in found}
        for name in self._idle_streams():
            if name not in self._until:
                self._begin(name, now)
            before, moment = self._until[name], told.get(name)
            if name in behind or moment is None:
                self._missed[name] += max(0, now - before)
                self._until[name] = max(before, now)
            elif name in new:
                self._found[name] = max(before, moment)
            else:
                self._until[name] = max(before, moment)

    def is_due(self) -> bool:
        """Whether sources may have become idle that nobody has looked at for a while."""
        if not self._idle_streams() or time.monotonic() - self._ticked < TICK:
            return False
        self._ticked = time.monotonic()
        return True

    def tell(self, watch: Callable[[], None]) -> None:
        """Whoever looks on is told now and then, whether something happens or not."""
        if time.monotonic() - self._looked >= TICK:
            self._looked = time.monotonic()
            watch()

    def unwatched(self, taken: Collection[str]) -> dict[str, int]:
        """How many microseconds do not count, more or fewer than at the last commit, if the next one holds
        what was found of these streams."""
        now = self._engine.now()
        self._next = self._until | {name: moment for name, moment in self._found.items() if name in taken}
        missed = {name: self._missed[name] + max(0, now - moment) for name, moment in self._next.items()}
        idle = [name for name in self._idle_streams() if name in missed]
        return {name: missed[name] - self._engine.streams[name].unwatched for name in idle}

    def committed(self) -> None:
        """A commit holds what was told last."""
        self._until = self._next
