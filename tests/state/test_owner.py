"""One engine at a time: a second is refused, a dead one is succeeded, one that comes back is too late."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.state.processes import CONTEXT, run, start
from tests.state.support import commit_values, overwrite, place_of, values_of, with_chunk, write_next
from tests.state.victim import fork_and_reopen, hold

from windrow.errors import StateError
from windrow.state import log as log_module
from windrow.state.history import sweep
from windrow.state.log import CommitLog, Owner, last_owner
from windrow.state.store import LocalStore, Store

if TYPE_CHECKING:
    from windrow.state.filelock import Lock


class NoLocks(LocalStore):
    """A directory on a file system that knows no locks, or not across machines."""

    def lock(self, name: str) -> Lock | None:
        return None


def elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on this is another machine."""
    monkeypatch.setattr("socket.gethostname", lambda: "elsewhere")
    monkeypatch.setattr(log_module, "_boot", lambda: "another boot")


ME = Owner(0, 100, "here", "noon", boot="b1", born="77")


@pytest.mark.parametrize(
    ("before", "locked", "gone"),
    [
        (ME, True, True),  # this process: the lock tells that its last log was closed
        (ME, False, False),
        (replace(ME, pid=200, born="88"), True, False),  # it lives, whatever became of the lock
        (replace(ME, pid=200, born="55"), False, True),  # a later process has the number
        (replace(ME, pid=200, born=None), True, True),
        (replace(ME, pid=200, born=None), False, False),
        (replace(ME, pid=300), False, True),  # no such process
        (replace(ME, boot="b0"), False, True),  # before the last start of the machine
        (replace(ME, host="there", pid=300), True, True),  # another container of the same machine
        (replace(ME, host="there", boot="b2"), True, False),
        (replace(ME, host="there", boot=None), True, False),
    ],
)
def test_what_tells_that_an_owner_is_gone(
    before: Owner, locked: bool, gone: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    living = {100: "77", 200: "88"}
    monkeypatch.setattr(log_module, "_born", living.get)
    monkeypatch.setattr(log_module, "_exists", living.__contains__)
    assert before.certainly_gone(ME, locked) is gone


def test_a_second_engine_is_refused_and_told_who_is_first(store: Store) -> None:
    with CommitLog.open(store):
        with pytest.raises(StateError, match=rf"in use by process {os.getpid()} on .*, since 20") as caught:
            CommitLog.open(store, takeover=True)
        assert caught.value.code == "two-owners"
        assert "a state directory of its own" in str(caught.value)
    with CommitLog.open(store) as log:
        assert log.owner.epoch == 2


def test_an_engine_of_another_process_is_refused_until_it_is_killed(store: Store) -> None:
    ready = CONTEXT.Event()
    process = start(hold, place_of(store), ready)
    assert ready.wait(30)
    with pytest.raises(StateError, match=f"in use by process {process.pid} "):
        CommitLog.open(store)
    os.kill(process.pid or 0, signal.SIGKILL)
    process.join()
    with CommitLog.open(store) as log:
        assert (log.owner.epoch, values_of(store, log.last)) == (2, [1, 2, 3])


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the system does not tell of its processes")
def test_a_killed_engine_that_nobody_has_reaped_is_gone() -> None:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    born = log_module._born(process.pid)
    before = replace(Owner.this_process(), pid=process.pid, born=born)
    assert not before.certainly_gone(Owner.this_process(), locked=False)
    process.send_signal(signal.SIGKILL)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # dead, and still listed
    assert before.certainly_gone(Owner.this_process(), locked=False)
    process.wait()


def test_without_locks_the_process_itself_is_the_evidence(local: LocalStore) -> None:
    store: Store = NoLocks(local.root)
    first = CommitLog.open(store)
    with pytest.raises(StateError, match="in use by process"):
        CommitLog.open(store)
    first.close()
    CommitLog.open(store).close()


def test_an_owner_elsewhere_needs_the_users_word(local: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store: Store = NoLocks(local.root)
    with monkeypatch.context() as there:
        elsewhere(there)
        CommitLog.open(store)
    with pytest.raises(StateError, match=r"elsewhere.*cannot be told.*takeover=True") as caught:
        CommitLog.open(store)
    assert caught.value.code == "two-owners"
    with CommitLog.open(store, takeover=True) as log:
        assert log.owner.epoch == 2


def test_an_owner_elsewhere_that_ended_in_order_is_succeeded(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as there:
        elsewhere(there)
        CommitLog.open(store).close()
    CommitLog.open(store).close()


def test_an_owner_that_comes_back_commits_and_sweeps_no_more(
    local: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store: Store = NoLocks(local.root)
    with monkeypatch.context() as there:
        elsewhere(there)
        old = CommitLog.open(store)
        commit_values(old, [1])
    prepared = write_next(old, [2])
    with CommitLog.open(store, takeover=True) as new:
        commit_values(new, [3])
        next_of_old = old.last.successor(chunks=with_chunk(old.last, prepared))
        for _ in range(2):
            with pytest.raises(StateError, match=r"taken over by process .* commits no more") as caught:
                old.commit(next_of_old)
            assert caught.value.code == "owner-lost"
        with pytest.raises(StateError, match="taken over"):
            sweep(old, keep=1)
        old.close()
        assert values_of(store, new.last) == [1, 3]
        sweep(new, keep=1)
        assert prepared.name not in store.list("chunks")


def test_a_last_commit_of_the_old_owner_is_not_lost_in_the_takeover(
    local: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old owner commits after the new one has looked, before the new one has made its first commit."""
    store: Store = NoLocks(local.root)
    with monkeypatch.context() as there:
        elsewhere(there)
        old = CommitLog.open(store)
    real = LocalStore.create
    late: list[bool] = []

    def create(self: LocalStore, name: str, data: bytes, what: str) -> None:
        if what == "manifest" and not late:
            late.append(True)
            commit_values(old, [1])
        real(self, name, data, what)

    monkeypatch.setattr(LocalStore, "create", create)
    with CommitLog.open(store, takeover=True) as new:
        assert values_of(store, new.last) == [1]
        assert (new.last.number, new.last.owner) == (3, 2)


def test_of_two_who_take_over_at_once_the_later_epoch_wins(
    local: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store: Store = NoLocks(local.root)
    real = LocalStore.create
    rivals: list[Any] = []

    def create(self: LocalStore, name: str, data: bytes, what: str) -> None:
        if what == "manifest" and not rivals:
            rivals.append(None)
            with monkeypatch.context() as there:
                elsewhere(there)
                rivals.append(CommitLog.open(store, takeover=True))
        real(self, name, data, what)

    with monkeypatch.context() as patch:
        patch.setattr(LocalStore, "create", create)
        patch.setattr(Owner, "certainly_gone", lambda *_: True)
        with pytest.raises(StateError, match=r"taken over by process .* on elsewhere"):
            CommitLog.open(store)
    commit_values(rivals[1], [1])


def test_a_forked_child_does_not_keep_the_lock(local: LocalStore) -> None:
    assert run(fork_and_reopen, str(local.root)) == 0


def test_an_owner_file_that_tells_nothing_is_named(store: Store) -> None:
    overwrite(store, "owners/000007.json", b"?")
    with pytest.raises(StateError, match=r"owners/000007.json is damaged"):
        CommitLog.open(store)


def test_epochs_grow_even_if_the_owner_files_are_gone(store: Store) -> None:
    CommitLog.open(store).close()
    CommitLog.open(store).close()
    for name in store.list("owners"):
        store.remove(name)
    with CommitLog.open(store) as log:
        assert log.owner.epoch == 3
        known: Any = last_owner(store)
        assert known.after == 2
