"""Commits follow each other without gaps, name only what is there, and are never silently forgotten."""

from __future__ import annotations

import errno
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.state.support import commit_values, manifests, overwrite, values_of, write_next

from windrow.errors import StateError
from windrow.state.history import History, sweep
from windrow.state.log import CommitLog
from windrow.state.manifest import Manifest, OutboxEntry
from windrow.state.names import commit_name
from windrow.state.store import LocalStore, Store


def failing_fsync(monkeypatch: pytest.MonkeyPatch, passes: int) -> None:
    """The disk is full after so many calls, for one call."""
    real, calls = os.fsync, iter(range(1_000))

    def fsync(descriptor: int) -> None:
        if next(calls) == passes:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)


def test_a_new_state_begins_with_an_empty_commit_of_its_owner(store: Store) -> None:
    assert History(store).latest() is None
    with CommitLog.open(store) as log:
        assert log.last == Manifest(1, 1) == History(store).latest()


def test_what_was_committed_is_there_after_a_restart(store: Store) -> None:
    with CommitLog.open(store) as log:
        commit_values(log, [1, 2])
        before = commit_values(log, [3], shard=1)
    with CommitLog.open(store) as log:
        assert log.last == replace(before, number=4, owner=2)
        assert values_of(store, log.last) == [1, 2, 3]
        assert [manifest.number for manifest in manifests(store)] == [1, 2, 3, 4]
        assert History(store).read(3) == before


def test_only_the_successor_of_the_last_commit_is_accepted(store: Store) -> None:
    with CommitLog.open(store) as log:
        after = log.last.successor()
        for wrong in (log.last, after.successor(), replace(after, owner=7)):
            with pytest.raises(ValueError, match="expected"):
                log.commit(wrong)
        log.commit(after)
    with pytest.raises(StateError, match="closed"):
        log.commit(after.successor())


def test_a_number_that_is_taken_is_never_overwritten(store: Store) -> None:
    with CommitLog.open(store) as log:
        mine = log.last.successor(decisions={"by": "me"})
        log.commit(mine)
        log.last = log.last.successor(number=1)  # as if this log had missed its own commit
        with pytest.raises(StateError, match="commit 2 was made already") as caught:
            log.commit(log.last.successor())
        assert caught.value.code == "commit-exists"
        assert History(store).latest() == mine


def test_a_manifest_names_only_files_that_are_there(local: LocalStore) -> None:
    with CommitLog.open(local) as log:
        ref = write_next(log, [1])
        named = log.last.successor(chunks={0: (ref,)})
        local.remove(ref.name)
        with pytest.raises(StateError, match=f"{ref.name} is missing"):
            log.commit(named)
        assert History(local).latest() == log.last


def test_a_manifest_names_no_file_of_another_owner_or_of_nobody(store: Store) -> None:
    with CommitLog.open(store) as log:
        stale = write_next(log, [1])
    with CommitLog.open(store) as log:
        for name in (stale.name, "chunks/somebody.chunk"):
            with pytest.raises(ValueError, match="was not made for commit"):
                log.commit(log.last.successor(chunks={0: (replace(stale, name=name),)}))


def test_output_waits_in_the_outbox_until_it_is_delivered(store: Store) -> None:
    with CommitLog.open(store) as log:
        ref = write_next(log, [7], folder="outbox")
        entry = OutboxEntry(log.last.number + 1, ref, pending=("console",))
        log.commit(log.last.successor(outbox=(entry,)))
        sweep(log, keep=1)
        assert list(store.list("outbox")) == [ref.name]
        log.commit(log.last.successor(outbox=()))
        sweep(log, keep=1)
        assert store.list("outbox") == {}


def test_a_full_disk_leaves_the_log_usable(local: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    with CommitLog.open(local) as log:
        with monkeypatch.context() as patch:
            failing_fsync(patch, passes=0)
            with pytest.raises(StateError, match=r"the disk is full .*make room") as caught:
                log.commit(log.last.successor())
        assert caught.value.code == "disk-full"
        assert (local.list("tmp"), len(local.list("commits"))) == ({}, 1)
        commit_values(log, [1])


def test_a_commit_of_unknown_outcome_ends_the_log(local: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    with CommitLog.open(local) as log:
        with monkeypatch.context() as patch:
            failing_fsync(patch, passes=1)  # the manifest is visible, its folder not durable
            with pytest.raises(StateError, match="the disk is full"):
                log.commit(log.last.successor(decisions={"round": 1}))
        with pytest.raises(StateError, match=r"may be durable or not .*open the state again") as caught:
            log.commit(log.last.successor())
        assert caught.value.code == "commit-in-doubt"
    with CommitLog.open(local) as log:
        assert log.last.decisions == {"round": 1}


def test_an_interrupted_commit_ends_the_log_only_if_it_is_visible(
    local: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    with CommitLog.open(local) as log:
        with monkeypatch.context() as patch:
            patch.setattr(Path, "hardlink_to", interrupt)
            with pytest.raises(KeyboardInterrupt):
                log.commit(log.last.successor())
        commit_values(log, [1])


def three_commits(store: Store) -> Manifest:
    with CommitLog.open(store) as log:
        commit_values(log, [1])
        return commit_values(log, [2])


def test_a_gap_is_an_error(store: Store) -> None:
    three_commits(store)
    store.remove(commit_name(2))
    with pytest.raises(StateError, match=r"commits/000000000002.json is missing, but commit 3 is there"):
        CommitLog.open(store)


@pytest.mark.parametrize("lost", [[3], [2, 3], [1, 2, 3]])
def test_lost_manifests_are_told_from_the_chunks_that_followed(store: Store, lost: list[int]) -> None:
    three_commits(store)
    with CommitLog.open(store) as log:
        write_next(log, [3])
    for number in [*lost, 4]:
        store.remove(commit_name(number))
    with pytest.raises(StateError, match=r"commits/.* is missing, but .*(was made after it|has seen it)"):
        CommitLog.open(store)


@pytest.mark.parametrize("ends", [CommitLog.close, lambda log: log._lock.release()])
def test_the_loss_of_the_last_manifest_is_told_though_nothing_followed(local: LocalStore, ends: Any) -> None:
    log = CommitLog.open(local)
    log.commit(log.last.successor(shards=2))
    ends(log)
    local.remove("commits/000000000002.json")
    with pytest.raises(StateError, match=r"000000000002.json is missing, but the last owner") as caught:
        CommitLog.open(local)
    assert caught.value.code == "commit-lost"
    assert "restore" in str(caught.value.hint)


@pytest.mark.parametrize("note", [b"", b"000000000002", b"000000000009 00000000\n", b"\xff" * 22])
def test_a_note_that_is_not_whole_is_not_believed(local: LocalStore, note: bytes) -> None:
    with CommitLog.open(local) as log:
        log.commit(log.last.successor(shards=2))
    Path(local.place("owners/lock")).write_bytes(note)
    with CommitLog.open(local) as log:
        assert log.last.shards == 2


def test_an_emptied_state_is_not_taken_for_a_new_one(store: Store) -> None:
    three_commits(store)
    CommitLog.open(store).close()
    for folder in ("commits", "chunks"):
        for name in store.list(folder):
            store.remove(name)
    with pytest.raises(StateError, match=r"commits/000000000003.json is missing, but process .* has seen it"):
        CommitLog.open(store)


def test_a_lost_or_cut_chunk_is_named_at_the_start(store: Store) -> None:
    last = three_commits(store)
    name = next(iter(last.files))
    whole = store.read(name)
    overwrite(store, name, whole[:-1])
    with pytest.raises(StateError, match=f"{name} is damaged: it has {len(whole) - 1} bytes"):
        CommitLog.open(store)
    overwrite(store, name, None)
    with pytest.raises(StateError, match=f"{name} is missing, and commit 3 names it") as caught:
        CommitLog.open(store)
    assert caught.value.code == "chunk-missing"
    overwrite(store, name, whole)
    CommitLog.open(store).close()


def test_a_failed_start_does_not_keep_the_lock(store: Store) -> None:
    three_commits(store)
    whole = store.read(commit_name(3))
    overwrite(store, commit_name(3), b"")
    with pytest.raises(StateError, match=r"000000000003.json is damaged"):
        CommitLog.open(store)
    overwrite(store, commit_name(3), whole)
    CommitLog.open(store).close()


def test_a_renamed_manifest_is_an_error(store: Store) -> None:
    three_commits(store)
    overwrite(store, commit_name(3), store.read(commit_name(2)))
    with pytest.raises(StateError, match=r"000000000003.json is damaged: it is the manifest of commit 2"):
        CommitLog.open(store)


def test_files_of_other_names_among_the_commits_do_no_harm(store: Store) -> None:
    three_commits(store)
    overwrite(store, "commits/000000000009.json.bak", b"")
    overwrite(store, "commits/README", b"")
    with CommitLog.open(store) as log:
        assert log.last.number == 4


def test_a_commit_that_is_not_kept_is_said_so(store: Store) -> None:
    three_commits(store)
    with pytest.raises(StateError, match="commit 9 is not kept") as caught:
        History(store).read(9)
    assert caught.value.code == "commit-missing"
