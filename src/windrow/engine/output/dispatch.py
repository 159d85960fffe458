"""Giving every sink what is committed and it does not have yet.

Sinks that take time have a worker each while the engine runs, so that they take the answers of
one epoch while the next one is made. All others are given theirs between two epochs.

Where a sink fails, in whatever way, its rows go on waiting in the outbox, and those of others go out: no
failure of a sink is one of the run. What was delivered is told to the next commit, which names it no more.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Condition, Thread

import pyarrow as pa

from windrow.engine.output.outbox import Outgoing, published_schema, stored_as
from windrow.engine.records import QueryRecord
from windrow.errors import SinkError
from windrow.sinks import Delivery, Sink
from windrow.sinks.delivery import is_failure, sink_failed
from windrow.state.crash import crash_point
from windrow.state.manifest import OutboxEntry
from windrow.state.store import Store

#: what waits for a sink of one commit
Waiting = tuple[int, "list[OutboxEntry]"]


@dataclass(frozen=True)
class Acknowledged:
    """What became of a delivery. `trouble` is what no sink is to blame for."""

    commit: int
    entries: Sequence[OutboxEntry]
    failure: SinkError | None = None
    trouble: BaseException | None = None


class SinkWorker(Thread):
    """Delivers to one sink, commit by commit, while the next epochs are made. What it has delivered, or why
    it could not, waits until the thread that makes epochs asks. After a failure all that it was given is
    forgotten: it is still in the outbox, and is given again."""

    def __init__(self, name: str, section: str, deliver: Deliver, wake: Callable[[], None]) -> None:
        super().__init__(name=f"windrow delivers to {name}", daemon=True)
        self.sink_name, self.section = name, section
        self._deliver, self._wake = deliver, wake
        self._changed = Condition()
        self._queue: deque[Waiting] = deque()
        #: the commits that are queued, under way, or done and not asked about
        self._given: dict[int, int] = {}
        self._done: list[Acknowledged] = []
        #: after a failure nothing is taken until it was asked about: no commit must overtake another
        self._failed = False
        self._ended = False

    def give(self, waiting: Sequence[Waiting]) -> None:
        """What waits for the sink, oldest first; what it was given already is not given twice."""
        with self._changed:
            for commit, entries in () if self._failed else waiting:
                if commit not in self._given:
                    self._given[commit] = _all_bytes([(commit, entries)], self.section)
                    self._queue.append((commit, entries))
            self._changed.notify_all()

    def acknowledged(self) -> list[Acknowledged]:
        """What has become of deliveries since this was last asked."""
        with self._changed:
            found, self._done = self._done, []
            for each in found:
                self._given.pop(each.commit, None)
            if self._failed:
                self._given, self._failed = {}, False
            return found

    @property
    def waiting(self) -> int:
        """The bytes of all answers that the sink was given and has not taken."""
        with self._changed:
            return sum(self._given.values())

    @property
    def has_failed(self) -> bool:
        """Whether it waits to be given everything again."""
        return self._failed

    def run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._queue or self._ended)
                if self._ended:
                    return
                commit, entries = self._queue.popleft()
            found = self._deliver(commit, entries)
            with self._changed:
                self._done.append(found)
                if found.failure or found.trouble:
                    self._failed = True
                    self._queue.clear()
                else:
                    self._given[commit] = 0
            self._wake()
            if found.trouble is not None:
                return

    def stop(self) -> None:
        """Nothing more is delivered; a delivery under way is waited for."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()
        if self.is_alive():
            self.join()


Deliver = Callable[[int, "list[OutboxEntry]"], Acknowledged]


def _all_bytes(waiting: Sequence[Waiting], section: str) -> int:
    """The bytes that a section has in outbox files, or that of the query whose answers it reads; those of
    files that others fill are not counted."""
    places = [(entry.ref, stored_as(entry.ref, section)) for _, entries in waiting for entry in entries]
    known = [ref.operators.get(place.section) for ref, place in places if place is not None]
    return sum(facts.bytes for facts in known if facts is not None)


#: so many bytes of answers may wait for one sink; then no more are made until it takes some
MOST_WAITING = 1 << 30


@dataclass(frozen=True)
class Receiver:
    """A sink, of a query or of late or malformed rows, and the columns that it gets."""

    name: str
    sink: Sink
    schema: pa.Schema


@dataclass
class Delivering:
    """What has been delivered since the last commit, and the sinks of late and malformed rows."""

    #: told of each sink that fails, and with None of each that works
    tell: Callable[[str, SinkError | None], None]
    #: by section
    row_sinks: dict[str, Receiver] = field(default_factory=dict)
    #: which sections of which outbox files the sinks have, since the last commit
    done: dict[str, set[str]] = field(default_factory=dict)
    #: called when all have got theirs, before what was delivered is let go of
    flushes: list[Callable[[], None]] = field(default_factory=list)
    #: seconds that the last delivery of an epoch took
    seconds: float = 0.0
    #: the columns of each query's answers
    _schemas: dict[str, pa.Schema] = field(default_factory=dict)
    #: by section, while the engine runs
    _workers: dict[str, SinkWorker] = field(default_factory=dict)
    #: called when a worker has done something; None while there are none
    _wake: Callable[[], None] | None = None
    #: whether a sink without a worker has failed when it was last given something
    _failed: bool = False
    #: by section, the bytes of what waits for sinks without a worker that have failed
    _left: dict[str, int] = field(default_factory=dict)

    def begin(self, wake: Callable[[], None]) -> None:
        """From now on sinks that take time have workers, which call `wake` when they have done something."""
        self._wake = wake

    def end(self) -> None:
        """No more workers; what they were not done with is still in the outbox."""
        self._wake = None
        while self._workers:
            self._stop_worker(next(iter(self._workers)))

    def _stop_worker(self, section: str) -> None:
        worker = self._workers.pop(section)
        worker.stop()
        self._collect(worker)

    @property
    def has_failed(self) -> bool:
        """Whether something waits for a sink that has failed."""
        return self._failed or any(worker.has_failed for worker in list(self._workers.values()))

    @property
    def is_full(self) -> bool:
        """Whether so much waits for some sink that no more answers should be made."""
        waiting = [worker.waiting for worker in list(self._workers.values())]
        return max([*waiting, *list(self._left.values())], default=0) > MOST_WAITING

    def collect(self) -> None:
        """What workers have delivered is done, and their failures are told."""
        for worker in list(self._workers.values()):
            self._collect(worker)

    def _collect(self, worker: SinkWorker) -> None:
        for each in worker.acknowledged():
            self._note(worker.sink_name, worker.section, each)

    def _note(self, name: str, section: str, found: Acknowledged) -> None:
        if found.trouble is not None:
            raise found.trouble
        self.tell(name, found.failure)
        if found.failure is None:
            self.mark(found.entries, section)

    def deliver(self, store: Store, outbox: Sequence[OutboxEntry], queries: Iterable[QueryRecord]) -> None:
        """All that waits, to all who wait."""
        self._failed, self._left = False, {}
        self.collect()
        before = {name: set(sections) for name, sections in self.done.items()}
        outgoing = Outgoing(store, outbox, self.done)
        try:
            for record in queries:
                if record.sink is not None and outgoing.pending(record.id):
                    to = Receiver(record.query.name, record.sink, self._schema(record))
                    self._give(record.id, to, outgoing)
            for section, to in self.row_sinks.items():
                self._give(section, to, outgoing)
        finally:
            try:
                for flush in self.flushes:  # what sinks put off until many had theirs
                    flush()
            except BaseException:
                self.done = before  # none of them has anything
                raise

    def mark(self, entries: Sequence[OutboxEntry], section: str) -> None:
        """The next commit need not name them for this section any more."""
        for entry in entries:
            self.done.setdefault(entry.ref.name, set()).add(section)

    def forget(self, query: str) -> None:
        self._schemas.pop(query, None)

    def _schema(self, record: QueryRecord) -> pa.Schema:
        if record.id not in self._schemas:
            self._schemas[record.id] = published_schema(record.query.plan)
        return self._schemas[record.id]

    def _give(self, section: str, to: Receiver, outgoing: Outgoing) -> None:
        if self._wake is not None and to.sink.is_slow:
            if section not in self._workers:
                deliver = partial(_delivered, outgoing.store, section, to)
                self._workers[section] = SinkWorker(to.name, section, deliver, self._wake)
                self._workers[section].start()
            self._workers[section].give(outgoing.pending(section))
            return
        pending = outgoing.pending(section)
        for number, (commit, waiting) in enumerate(pending):
            found = _delivered(outgoing, section, to, commit, waiting)
            self._note(to.name, section, found)
            if found.failure is not None:
                self._failed = True
                self._left[section] = _all_bytes(pending[number:], section)
                return

    def let_go(self, name: str, sink: Sink) -> None:
        """Close a sink that is not needed any more."""
        for section in [each.section for each in self._workers.values() if each.sink_name == name]:
            self._stop_worker(section)
        try:
            sink.close()
        except BaseException as error:
            if not is_failure(error):
                raise
            self._failed = True
            self.tell(name, sink_failed(name, error))


def _delivered(
    outgoing: Outgoing | Store, section: str, to: Receiver, commit: int, entries: list[OutboxEntry]
) -> Acknowledged:
    """What becomes of the answers of one commit: every failure is the sink's, unless the outbox cannot be
    read. A worker has only the store, and looks the outbox files through by itself."""
    unread: list[BaseException] = []

    def read(delivery: Delivery) -> Iterator[pa.Table]:
        try:
            yield from delivery.tables()
        except GeneratorExit:  # the sink has read enough
            raise
        except BaseException as error:
            unread.append(error)
            raise

    try:
        if not isinstance(outgoing, Outgoing):
            outgoing = Outgoing(outgoing, entries, {})
        delivery = outgoing.delivery(to.name, section, commit, entries, to.schema)
    except BaseException as error:  # noqa: BLE001  the thread that makes epochs raises it
        return Acknowledged(commit, entries, trouble=error)
    try:
        to.sink.deliver(replace(delivery, tables=partial(read, delivery)))
        crash_point("sink-delivered")
    except BaseException as error:  # noqa: BLE001  the thread that makes epochs raises what is not the sink's
        if unread or not is_failure(error):
            return Acknowledged(commit, entries, trouble=unread[-1] if unread else error)
        return Acknowledged(commit, entries, sink_failed(to.name, error))
    return Acknowledged(commit, entries)
