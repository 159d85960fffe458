"""Any sequence of writing, committing, merging, sweeping, reading, losing power and starting again.

The model is a list of values per commit: no commit that returned is lost, no live chunk is, and nothing that
was removed comes back.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any
from unittest import mock

from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.state.memory_store import Crash, MemoryStore
from tests.state.support import manifests, merge_chunks, values_of, write_next

from windrow.state import crash
from windrow.state.chunk import open_chunk
from windrow.state.history import History, sweep
from windrow.state.log import CommitLog
from windrow.state.names import new_chunk_name
from windrow.state.shard import plan_compaction

if TYPE_CHECKING:
    from collections.abc import Callable

    from windrow.state.manifest import ChunkRef, Manifest

points = st.builds("{}:{}".format, st.sampled_from(crash.POINTS), st.integers(1, 3))


def die() -> None:
    raise Crash


class StateMachine(RuleBasedStateMachine):
    """`committed[n]` are the values that commit n holds; one commit may be in doubt while power is lost."""

    def __init__(self) -> None:
        super().__init__()
        self.store = self.make_store()
        self.committed: dict[int, list[int]] = {}
        self.doubtful: list[int] | None = None
        self.removed: set[str] = set()
        self.readers = ExitStack()
        self.held: list[tuple[Manifest, list[int]]] = []
        self.next_value = 0
        self.patches = ExitStack()
        self.patches.enter_context(mock.patch.object(crash, "_kill", die))

    def make_store(self) -> Any:
        """Where the state is."""
        return MemoryStore()

    def teardown(self) -> None:
        self.readers.close()
        self.patches.close()

    @initialize()
    def begin(self) -> None:
        self.reopen()

    def reopen(self) -> None:
        """Start an engine; what it finds must be the last commit, or the one in doubt."""
        found = History(self.store).latest()
        last = max(self.committed, default=0)
        values = self.committed.get(last, [])
        if found is not None and found.number > last:
            assert found.number == last + 1
            values = values if self.doubtful is None else self.doubtful
            self.committed[found.number] = values
        else:
            assert (found.number if found else 0) == last
        self.doubtful = None
        self.log = CommitLog.open(self.store)
        self.committed[self.log.last.number] = values
        self.staged: list[ChunkRef] = []

    def attempt(self, action: Callable[[], None], crash_at: str | None, data: Any) -> None:
        """Do it; if the process dies on the way, lose power and start again."""
        crash._passed.clear()
        with mock.patch.dict(os.environ, {crash.VARIABLE: crash_at} if crash_at else {}):
            try:
                action()
                return
            except Crash:
                pass
        self.lose_power(data)

    @rule(shard=st.integers(0, 1), crash_at=st.none() | points, data=st.data())
    def write(self, shard: int, crash_at: str | None, data: Any) -> None:
        def action() -> None:
            self.next_value += 1
            self.staged.append(write_next(self.log, [self.next_value], shard))

        self.attempt(action, crash_at, data)

    @rule(crash_at=st.none() | points, data=st.data())
    def commit(self, crash_at: str | None, data: Any) -> None:
        last = self.log.last
        chunks = {0: (*last.chunks.get(0, ()), *self.staged)} if self.staged else last.chunks
        values = sorted(self.committed[last.number] + [_value(self.store, ref) for ref in self.staged])
        self._commit(chunks, values, crash_at, data)

    @rule(crash_at=st.none() | points, data=st.data())
    def expire(self, crash_at: str | None, data: Any) -> None:
        """Drop the oldest chunk."""
        last = self.log.last
        oldest, *left = last.chunks.get(0, ()) or (None,)
        if oldest is not None:
            gone = _values(self.store, oldest)
            values = [value for value in self.committed[last.number] if value not in gone]
            self._commit({0: tuple(left)} if left else {}, values, crash_at, data)

    @rule(crash_at=st.none() | points, data=st.data())
    def compact(self, crash_at: str | None, data: Any) -> None:
        last = self.log.last
        chunks = list(last.chunks.get(0, ()))

        def action() -> None:
            for group in plan_compaction(chunks, most_files=2):
                at = chunks.index(group[0])
                name = new_chunk_name(last.number + 1, self.log.owner.epoch, 0)
                chunks[at : at + len(group)] = [merge_chunks(self.store, group, name)]

        log = self.log
        self.attempt(action, crash_at, data)
        if self.log is log and chunks:
            self._commit({0: tuple(chunks)}, self.committed[last.number], crash_at, data)

    def _commit(self, chunks: Any, values: list[int], crash_at: str | None, data: Any) -> None:
        self.doubtful = values

        def action() -> None:
            manifest = self.log.commit(self.log.last.successor(chunks=chunks))
            self.committed[manifest.number] = values
            self.doubtful, self.staged = None, []

        self.attempt(action, crash_at, data)

    @rule(keep=st.integers(1, 4), crash_at=st.none() | points, data=st.data())
    def sweep(self, keep: int, crash_at: str | None, data: Any) -> None:
        self.attempt(lambda: self.removed.update(sweep(self.log, keep)), crash_at, data)

    @rule()
    def hold(self) -> None:
        manifest = self.readers.enter_context(self.log.reader())
        self.held.append((manifest, self.committed[manifest.number]))

    @precondition(lambda self: self.held)
    @rule()
    def let_go(self) -> None:
        self.readers.close()
        self.held = []

    @rule(data=st.data())
    def lose_power(self, data: Any) -> None:
        self.readers.close()
        self.held = []
        self.store.lose_power(lambda: data.draw(st.booleans()))
        self.reopen()

    @rule(crash_at=points, data=st.data())
    def lose_power_twice(self, crash_at: str, data: Any) -> None:
        """The second time on the way up."""
        self.lose_power(data)
        self.store.locked = False
        self.attempt(self.reopen, crash_at, data)

    @rule()
    def stop_in_order(self) -> None:
        self.let_go()
        self.log.close()
        self.reopen()

    @invariant()
    def everything_kept_is_whole(self) -> None:
        kept = manifests(self.store)
        assert kept[-1] == self.log.last
        assert kept[-1].number == max(self.committed)
        for manifest in kept:
            assert values_of(self.store, manifest) == self.committed[manifest.number]

    @invariant()
    def readers_see_what_they_hold(self) -> None:
        for manifest, values in self.held:
            assert values_of(self.store, manifest) == values

    @invariant()
    def nothing_removed_comes_back(self) -> None:
        assert not self.removed & (self.store.list("chunks").keys() | self.log.last.files.keys())


def _values(store: MemoryStore, ref: ChunkRef) -> list[int]:
    values: list[int] = open_chunk(store, ref).read(("sum", 0))["n"].to_pylist()
    return values


def _value(store: MemoryStore, ref: ChunkRef) -> int:
    return _values(store, ref)[0]


StateMachine.TestCase.settings = settings(stateful_step_count=30, deadline=None)
TestStateMachine = StateMachine.TestCase
