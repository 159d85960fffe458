"""Another number of shards: the state of a stopped engine is routed anew, and one commit switches.

A rescale is an epoch without rows. The queries are those of the last manifest, by their recorded plans, so
nothing has to be declared. The states of every operator are read from all shards and written to new files;
rows that wait in delta files are routed in the same way, and are still waiting afterwards. Until the manifest
with the new number appears, nothing has happened; files of a rescale that failed are swept.
"""

from __future__ import annotations

from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

import polars as pl

from windrow.engine.query_start import recorded
from windrow.engine.records import QueryRecord, stream_of
from windrow.engine.sharing.shared_state import Common
from windrow.engine.tables import table_of
from windrow.errors import QueryError, StateError
from windrow.execution.delta_file import FEED, QUERY, WriteTarget, key_types
from windrow.execution.relational import OF
from windrow.kernels.columnar.columns import to_frame
from windrow.kernels.columnar.hashing import split
from windrow.kernels.panes.subtract_on_evict import TOTAL
from windrow.kernels.state import PANE, State, joined
from windrow.physical.native_sql import native_ledger, native_query
from windrow.physical.rescale import RowStates, Shards, by_keys, cannot_rescale
from windrow.physical.units import SlidingUnit
from windrow.state.chunk import Key, chunk_writer
from windrow.state.crash import crash_point
from windrow.state.names import DRIVER
from windrow.state.reader import open_chunk
from windrow.state.shard import Shard, change_shard
from windrow.state.sweep import discard

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from windrow.algebra.types import DataType
    from windrow.state.log import CommitLog
    from windrow.state.manifest import ChunkRef, Manifest


def check_shards(shards: int) -> None:
    """Refuse a number of shards that there cannot be."""
    if shards < 1:
        raise StateError(
            f"there cannot be {shards} shards",
            code="bad-shards",
            hint="a state has at least one shard; about as many as Spark has cores are best",
        )


def rescale(log: CommitLog, shards: int) -> Manifest:
    """Route the state of an engine that does not run; nothing is done if it has so many shards already."""
    check_shards(shards)
    last = log.last
    if last.shards in (0, shards):
        return last
    try:
        return _Rescale(log, Shards(last.shards, shards)).run()
    except BaseException:
        if log.last is last:
            with suppress(StateError):
                discard(log)
        raise


class _Rescale:
    """A state on its way from one number of shards to another."""

    def __init__(self, log: CommitLog, shards: Shards) -> None:
        self.log, self.last, self.shards = log, log.last, shards
        self.files = log.store.grouped()
        self.place = WriteTarget(self.files, self.last.number + 1, log.owner.epoch, shards.new)
        self.records = self._records()
        self.rows: dict[str, tuple[RowStates, str]] = {}
        self.panes: dict[str, SlidingUnit] = {}
        #: the key columns of what waits in delta files, by query and by feed
        self.kinds: dict[str, Mapping[str, DataType]] = {}
        self.feeds: dict[str, Mapping[str, DataType]] = {}
        self.ledgers: dict[str, Mapping[str, DataType]] = {}
        for record in self.records:
            self._know(record)
        self._know_ledgers()

    def _records(self) -> list[QueryRecord]:
        """The queries that have a state."""
        streams = {name: stream_of(name, state) for name, state in self.last.streams.items()}
        tables = {name: table_of(name, state) for name, state in self.last.tables.items()}
        found = []
        for name, stored in self.last.queries.items():
            if stored.status == "failed":
                continue
            try:
                found.append(recorded(name, stored, streams, tables))
            except (QueryError, StateError) as error:
                raise cannot_rescale(name, f"its plan cannot be read ({error.message})") from error
        return found

    def _know(self, record: QueryRecord) -> None:
        unit, bundle = record.bundle.unit, record.bundle
        if isinstance(unit, SlidingUnit):
            self.panes[record.id] = unit
            self.kinds[record.id] = key_types(unit.program.bottom)
            native = native_query(unit.program)
            if native is not None:
                self.feeds[native.feed] = {f"k{n}": key.type for n, key in enumerate(native.keys)}
        else:
            states = RowStates(record.query.name, unit, self.shards)
            for name, path in bundle.places.items():
                self.rows.setdefault(name, (states, path))

    def _know_ledgers(self) -> None:
        common = Common.of(self.last.decisions)
        sharing = [record for record in self.records if record.shares]
        for record in sharing:
            common.adopt(record.bundle, record.physical.emit, record.shares)
        for name in {common.ledger_of(record.shares) for record in sharing}:
            ledger = common.ledger(name)
            self.kinds[name] = self.ledgers[name] = ledger.key_types
            native = native_ledger(ledger)
            if native is not None:
                self.feeds[native.feed] = ledger.key_types
        for record in self.records:
            if record.seed is not None:  # the ledger that it leaves has its keys
                self.ledgers[record.seed.ledger] = self.kinds[record.id]

    # ------------------------------------------------------------ states

    def run(self) -> Manifest:
        """Write everything, and commit it."""
        numbers = [number for number in self.last.chunks if number >= 0]
        chunks = {number: refs for number, refs in self.last.chunks.items() if number < 0}
        for stage in range(1 + max(numbers, default=-1) // self.shards.old):
            chunks |= self._stage(stage)
        if DRIVER in chunks:
            chunks[DRIVER] = tuple(ref for old in chunks[DRIVER] if (ref := self._delta(old)) is not None)
        crash_point("before-commit")
        self.files.settle()
        kept = {number: refs for number, refs in chunks.items() if refs}
        more = {"shards": self.shards.new, "chunks": kept, "decisions": self.last.decisions}
        found = self.log.commit(self.last.successor(**more))
        crash_point("after-commit")
        return found

    def _stage(self, stage: int) -> dict[int, tuple[ChunkRef, ...]]:
        """The state files of one stage of the close job."""
        old = {
            shard: Shard(self.files, self.last.chunks.get(stage * self.shards.old + shard, ()))
            for shard in range(self.shards.old)
        }
        written: dict[int, list[ChunkRef]] = {}
        with ExitStack() as stack:
            changes = {}
            for shard in range(self.shards.new):
                number = stage * self.shards.new + shard
                name, files = self.place.new_name(number), written.setdefault(number, [])
                changes[shard] = stack.enter_context(change_shard(Shard(self.files, ()), name, files))
            for operator in dict.fromkeys(name for shard in old.values() for name in shard.operators):
                states = {n: shard.state(operator) for n, shard in old.items() if operator in shard.operators}
                for shard, state in self._moved(operator, states).items():
                    changes[shard].put(operator, state)
        return {number: tuple(files) for number, files in written.items()}

    def _moved(self, operator: str, states: Mapping[int, State]) -> Mapping[int, State]:
        """The states of an operator by its new shards; none of one that no query has any more."""
        name, _, path = operator.partition(OF)
        if name in self.ledgers:
            return by_keys(states, self.ledgers[name], self.shards, _united_intervals)
        if name in self.panes:
            level = self.panes[name].program.levels[int(path)]
            return by_keys(states, key_types(level), self.shards, level.kernel.united)
        if name in self.rows:
            rows, around = self.rows[name]
            return rows.moved(f"{around}{path}", states)
        return {}

    # ------------------------------------------------------------ rows that wait

    def _delta(self, ref: ChunkRef) -> ChunkRef | None:
        """A delta file for the new shards; what belongs to a table is for all of them, and stays."""
        if "stream" not in ref.metadata:
            return ref
        file = open_chunk(self.files, ref)
        parts = dict.fromkeys(key[:-1] for key in file.keys)
        found: list[tuple[Key, pl.DataFrame]] = []
        for part in parts:
            kinds = self._kinds(part)
            if kinds is None:
                continue
            for old in range(self.shards.old):
                if (*part, old) in file.keys:
                    rows = to_frame(file.read((*part, old)))
                    found += [((*part, new), some) for new, some in split(rows, kinds, self.shards.new)]
        if not found:
            return None
        with chunk_writer(self.files, self.place.new_name(), dict(ref.metadata)) as writer:
            for key, rows in found:
                if PANE in rows.columns:
                    writer.add(key, rows.to_arrow(), rows[PANE].min(), rows[PANE].max())  # type: ignore[arg-type]
                else:
                    writer.add(key, rows.to_arrow())
        return writer.ref

    def _kinds(self, part: Key) -> Mapping[str, DataType] | None:
        """By which columns the rows of a section are routed; None if nobody waits for them."""
        match part:
            case (kind, feed) if kind == FEED:
                return self.feeds.get(str(feed))
            case (kind, name, table) if kind == QUERY and name in self.rows:
                return self.rows[str(name)][0].routed(str(table))
            case (kind, name, _) if kind == QUERY:
                return self.kinds.get(str(name))
        return None


def _united_intervals(states: Sequence[State]) -> State:
    """What queries share, of several shards: sums over intervals are made again from these."""
    return State({name: chunks for name, chunks in joined(states).items() if not name.endswith(TOTAL)})
