"""The commit log: one manifest after the other, by one owner at a time.

A commit is the exclusive creation of manifest N+1: of two engines that both believe to be next, one fails. A
new owner first repeats the last manifest under its own epoch. From then on whoever owned the directory before
finds its next number taken, however late it wakes up; no clock and no lock is needed for that to be safe.
"""

from __future__ import annotations

import threading
from collections import Counter
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from threading import RLock
from typing import TYPE_CHECKING, Self

from windrow.errors import StateError
from windrow.state.history import History
from windrow.state.manifest import Manifest
from windrow.state.names import LOCK, ChunkName, commit_name
from windrow.state.owner import (
    Lease,
    Owner,
    last_owner,
    lease_is_over,
    read_owner,
    two_owners,
    was_released,
    write_owner,
    write_released,
)
from windrow.state.reader import chunk_missing
from windrow.state.store import RESTORE, Store

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windrow.state.filelock import Lock

# ------------------------------------------------------------ leases
#
# Readers hold a commit; the sweep asks which commits it must leave alone.
#
# The floor is the oldest commit that must stay. It only rises, and never above a commit that somebody holds.


class Leases:
    """The commits held by readers of this process.

    >>> leases = Leases(floor=1)
    >>> with leases.pin(4):
    ...     leases.raise_floor(9)
    4
    >>> leases.raise_floor(9)
    9
    """

    def __init__(self, floor: int) -> None:
        self._lock = threading.Lock()
        self._pins: Counter[int] = Counter()
        self._floor = floor

    @property
    def floor(self) -> int:
        """The oldest commit that stays."""
        return self._floor

    @contextmanager
    def pin(self, number: int) -> Iterator[None]:
        """Keep a commit, and all after it, to the end of the block."""
        with self._lock:
            if number < self._floor:
                hint = "only the last commits are kept; ask for a later one"
                raise StateError(f"commit {number} is not kept", code="commit-missing", hint=hint)
            self._pins[number] += 1
        try:
            yield
        finally:
            with self._lock:
                self._pins[number] -= 1
                self._pins += Counter()  # drops what is down to zero

    def raise_floor(self, wanted: int) -> int:
        """Let go of what is older than `wanted`, as far as nobody holds it."""
        with self._lock:
            self._floor = max(self._floor, min([wanted, *self._pins]))
            return self._floor


# ------------------------------------------------------------ log


class CommitLog:
    """An owned state directory. Made by `CommitLog.open`.

    >>> from pathlib import Path; from tempfile import TemporaryDirectory
    >>> from windrow.state.store import LocalStore
    >>> with TemporaryDirectory() as folder, CommitLog.open(LocalStore(Path(folder))) as log:
    ...     log.commit(log.last.successor(shards=2)).number
    2
    """

    def __init__(self, store: Store, owner: Owner, lock: Lock | None, last: Manifest) -> None:
        self.store, self.owner, self.last = store, owner, last
        self.history = History(store)
        self.leases = Leases(self.history.numbers()[0])
        self._lock = lock
        self._turn = RLock()
        #: the files each kept commit names, as far as somebody asked
        self._named: dict[int, frozenset[str]] = {}
        #: why no more commits are possible, once that is so
        self._ended: StateError | None = None

    @classmethod
    def open(cls, store: Store, *, takeover: bool = False) -> Self:
        """Become the owner, and the author of the next commit.

        `takeover` is the user's word that an owner on another machine is gone.
        """
        store.prepare()
        lock = _lock(store)
        owner = None
        try:
            owner = _become_owner(store, lock, takeover=takeover)
            if store.lease is not None:
                lock = Lease(store, owner, store.lease)
            store.clear()
            log = cls(store, owner, lock, _fence(store, owner, lock))
            log._note()
            return log
        except BaseException:
            if owner is not None:
                _release(store, owner)
            if lock:
                lock.release()
            raise

    def commit(self, manifest: Manifest) -> Manifest:
        """Make the manifest the last one. It must be the successor of `last`."""
        with self._turn:
            if self._ended:
                raise self._ended
            self._check(manifest)
            try:
                self.store.create(commit_name(manifest.number), manifest.encode(), "manifest")
            except FileExistsError:
                self._ended = self._overtaken(manifest.number)
                raise self._ended from None
            except BaseException as error:
                self._settle(manifest.number, error)
                raise
            self.last = manifest
            self._note()
            return manifest

    @contextmanager
    def reader(self, number: int | None = None) -> Iterator[Manifest]:
        """A manifest (the last one unless told) whose files all stay to the end of the block."""
        with ExitStack() as held:
            with self._turn:
                last = self.last
                wanted = last.number if number is None else number
                held.enter_context(self.leases.pin(wanted))
            yield last if wanted == last.number else self.history.read(wanted)

    def named_since(self, floor: int) -> set[str]:
        """The files that the commits from `floor` on name."""
        with self._turn:
            numbers = [number for number in self.history.numbers() if number >= floor]
            for number in numbers:
                if number not in self._named:
                    self._named[number] = frozenset(self.history.read(number).files)
            self._named = {number: self._named[number] for number in numbers}
            return {name for names in self._named.values() for name in names}

    def check_owner(self) -> None:
        """Whether this is still the owner; an error if it is not."""
        with self._turn:
            if self._ended:
                raise self._ended
            newest = last_owner(self.store, self.owner.epoch)
            if newest and newest.epoch > self.owner.epoch:
                raise _lost_to(self.store, newest)

    @property
    def is_in_doubt(self) -> bool:
        """Whether nobody can tell if the last manifest was made: a new start decides."""
        return self._ended is not None and self._ended.code == "commit-in-doubt"

    def close(self) -> None:
        """End in order: the next owner needs no evidence of it."""
        with self._turn:
            if self._ended is None or self._ended.code != "log-closed":
                self._ended = StateError("the commit log is closed", code="log-closed")
                _release(self.store, self.owner)
            if self._lock:
                self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _note(self) -> None:
        """Leave word of the last commit, should its manifest be lost."""
        if self._lock:
            self._lock.note(self.last.number)

    def _check(self, manifest: Manifest) -> None:
        """Nothing wrong becomes visible: the number, the owner, and every file named for the first time."""
        expected = (self.last.number + 1, self.owner.epoch)
        if (manifest.number, manifest.owner) != expected:
            raise ValueError(f"expected (number, owner) {expected}, got {(manifest.number, manifest.owner)}")
        old, new = self.last.files, manifest.files
        fresh = {name: ref.bytes for name, ref in new.items() if name not in old}
        for name in fresh:
            self._check_name(name, manifest.number)
        missing = self.store.missing(fresh)
        if missing is not None:
            raise chunk_missing(self.store.place(missing))

    def _check_name(self, name: str, number: int) -> None:
        """A file the sweep may be about to remove cannot be named: it has another owner, or is too old."""
        parsed = ChunkName.parse(name)
        if not parsed or parsed.owner != self.owner.epoch or not self.leases.floor <= parsed.commit <= number:
            raise ValueError(f"{name} was not made for commit {number} of owner {self.owner.epoch}")

    def _overtaken(self, number: int) -> StateError:
        """Why the next number was taken."""
        theirs = self.history.read(number)
        if theirs.owner != self.owner.epoch:
            return _lost_to(self.store, read_owner(self.store, theirs.owner))
        hint = "open the state again to go on from it"
        return StateError(f"commit {number} was made already", code="commit-exists", hint=hint)

    def _settle(self, number: int, error: BaseException) -> None:
        """After a failed creation: if the manifest is visible nevertheless, only a new start can tell."""
        place = self.store.place(commit_name(number))
        doubt = StateError(
            f"{place} may be durable or not",
            code="commit-in-doubt",
            hint="open the state again: it is decided there",
        )
        try:
            unknown = isinstance(error, StateError) and error.code == "outcome-unknown"
            visible = unknown or self.store.size(commit_name(number)) is not None
        except StateError:
            visible = True
        self._ended = doubt if visible else None


def _lock(store: Store) -> Lock | None:
    try:
        return store.lock(LOCK)
    except BlockingIOError:
        raise two_owners(str(store), last_owner(store), alive=True) from None


def _release(store: Store, owner: Owner) -> None:
    with suppress(FileExistsError, StateError):  # the end of the lock, or of the lease, tells it too
        write_released(store, owner.epoch)


def _become_owner(store: Store, lock: Lock | None, *, takeover: bool) -> Owner:
    """The next owner epoch, if the last owner lets go of its own or is gone."""
    history = History(store)
    while True:
        before, me = last_owner(store), Owner.this_process()
        if before and not was_released(store, before.epoch):
            _check_gone(store, before, me, locked=lock is not None, takeover=takeover)
        last = history.latest()
        number = last.number if last else 0
        if before and before.after > number:
            raise _commit_lost(store, before.after, f"{before} has seen it")
        if lock and (noted := lock.noted()) > number:
            raise _commit_lost(store, noted, "the last owner has made it")
        history.check_nothing_lost(last)
        epoch = max(before.epoch if before else 0, last.owner if last else 0) + 1
        me = replace(me, epoch=epoch, after=number)
        with suppress(FileExistsError):  # somebody was quicker, and is now the one to ask about
            write_owner(store, me)
            return me


def _check_gone(store: Store, before: Owner, me: Owner, *, locked: bool, takeover: bool) -> None:
    """Refuse to begin unless the owner before is gone."""
    if store.lease is None:
        alive = before.same_machine(me)
        if not before.certainly_gone(me, locked) and (alive or not takeover):
            raise two_owners(str(store), before, alive=alive)
        return
    # containers of one machine do not see each other's processes: these tell only where the host is the same
    near = before.host == me.host and before.same_machine(me)
    if near and before.certainly_gone(me, locked):
        return
    if near or not (takeover or lease_is_over(store, before, store.lease)):
        raise two_owners(str(store), before, alive=True)


def _fence(store: Store, owner: Owner, lock: Lock | None) -> Manifest:
    """Repeat the last manifest under the new owner: earlier owners find the number after theirs taken."""
    history = History(store)
    while True:
        last = history.latest() or Manifest()
        if last.owner > owner.epoch:
            raise _lost_to(store, read_owner(store, last.owner))
        if isinstance(lock, Lease) and lock.noted() > last.number:
            raise _commit_lost(store, lock.noted(), "the last owner has made it")
        fence = last.successor(owner=owner.epoch, decisions=last.decisions)
        with suppress(FileExistsError):  # the earlier owner has just made a last commit
            store.create(commit_name(fence.number), fence.encode(), "manifest")
            return fence


def _lost_to(store: Store, owner: Owner) -> StateError:
    return StateError(
        f"{store} was taken over by {owner}: this engine commits no more",
        code="owner-lost",
        hint="stop this engine; what it had not committed, the other reads again from the sources",
    )


def _commit_lost(store: Store, number: int, evidence: str) -> StateError:
    place = store.place(commit_name(number))
    return StateError(f"{place} is missing, but {evidence}", code="commit-lost", hint=RESTORE)
