"""The sweep removes what no kept commit names, and nothing else, whoever reads or writes meanwhile."""

from __future__ import annotations

from threading import Event, Thread

import pytest
from tests.state.support import commit_values, manifests, values_of, write_next

from windrow.errors import StateError
from windrow.state.history import sweep
from windrow.state.log import CommitLog
from windrow.state.store import Store


def replace_all(log: CommitLog, value: int) -> str:
    """A commit whose only chunk is a new one; its name."""
    ref = write_next(log, [value])
    log.commit(log.last.successor(chunks={0: (ref,)}))
    return ref.name


def test_the_last_commits_stay_with_all_they_name(store: Store) -> None:
    with CommitLog.open(store) as log:
        names = [replace_all(log, value) for value in range(6)]
        swept = sweep(log, keep=3)
        assert sorted(swept) == sorted(names[:3])
        assert [manifest.number for manifest in manifests(store)] == [5, 6, 7]
        assert [values_of(store, manifest) for manifest in manifests(store)] == [[3], [4], [5]]
        assert sweep(log, keep=3) == ()


def test_a_reader_keeps_its_commit_and_all_after_it(store: Store) -> None:
    with CommitLog.open(store) as log:
        replace_all(log, 1)
        with log.reader() as held:
            for value in (2, 3, 4):
                replace_all(log, value)
            sweep(log, keep=1)
            assert values_of(store, held) == [1]
            assert values_of(store, log.history.read(3)) == [2]
        sweep(log, keep=1)
        assert [manifest.number for manifest in manifests(store)] == [5]
        with pytest.raises(StateError, match="commit 2 is not kept"):
            log.history.read(held.number)


def test_chunks_of_the_epoch_that_runs_stay(store: Store) -> None:
    with CommitLog.open(store) as log:
        for value in range(3):
            replace_all(log, value)
        building = write_next(log, [9])
        sweep(log, keep=1)
        log.commit(log.last.successor(chunks={0: (building,)}))
        assert values_of(store, log.last) == [9]


def test_what_a_failed_epoch_left_goes_when_its_commit_is_old(store: Store) -> None:
    with CommitLog.open(store) as log:
        left = write_next(log, [9])
        replace_all(log, 1)
        assert left.name not in sweep(log, keep=1)
        replace_all(log, 2)
        assert left.name in sweep(log, keep=1)


def test_a_chunk_too_old_to_be_named_is_refused(store: Store) -> None:
    with CommitLog.open(store) as log:
        slow = write_next(log, [9])
        for value in range(3):
            replace_all(log, value)
        sweep(log, keep=2)
        assert slow.name not in store.list("chunks")
        with pytest.raises(ValueError, match="was not made for commit"):
            log.commit(log.last.successor(chunks={0: (slow,)}))


def test_what_an_earlier_owner_left_goes_at_once(store: Store) -> None:
    with CommitLog.open(store) as log:
        commit_values(log, [1])
        left = write_next(log, [2])
    with CommitLog.open(store) as log:
        assert sweep(log, keep=100) == (left.name,)
        assert values_of(store, log.last) == [1]


def test_files_that_are_nobodys_stay(store: Store) -> None:
    store.create("chunks/notes.txt", b"mine", "manifest")
    with CommitLog.open(store) as log:
        replace_all(log, 1)
        sweep(log, keep=1)
    assert store.read("chunks/notes.txt") == b"mine"


def test_early_owners_are_forgotten(store: Store) -> None:
    for _ in range(12):
        with CommitLog.open(store) as log:
            sweep(log, keep=1)
    epochs = [name for name in store.list("owners") if name.endswith(".json")]
    assert (len(epochs), max(epochs)) == (8, "owners/000012.json")


def test_at_least_the_last_commit_is_kept(store: Store) -> None:
    with CommitLog.open(store) as log, pytest.raises(ValueError, match="always kept"):
        sweep(log, keep=0)


def test_commits_sweeps_and_readers_at_once(store: Store) -> None:
    """Readers in threads of their own always see all of the commit they hold."""
    done, failures = Event(), []

    def read(log: CommitLog) -> None:
        while not done.is_set():
            try:
                with log.reader() as held:
                    assert len(values_of(store, held)) == held.decisions.get("values", 0)
            except (AssertionError, StateError) as error:
                failures.append(error)

    def keep_sweeping(log: CommitLog) -> None:
        while not done.is_set():
            sweep(log, keep=1)

    with CommitLog.open(store) as log:
        threads = [Thread(target=read, args=(log,)) for _ in range(2)]
        threads.append(Thread(target=keep_sweeping, args=(log,)))
        for thread in threads:
            thread.start()
        try:
            for value in range(60):
                ref = write_next(log, range(value + 1))
                log.commit(log.last.successor(chunks={0: (ref,)}, decisions={"values": value + 1}))
        finally:
            done.set()
            for thread in threads:
                thread.join()
    assert failures == []
