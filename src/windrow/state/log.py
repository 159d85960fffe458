"""The commit log: one manifest after the other, by one owner at a time.

A commit is the exclusive creation of manifest N+1: of two engines that both believe to be next, one fails. A
new owner first repeats the last manifest under its own epoch. From then on whoever owned the directory before
finds its next number taken, however late it wakes up; no clock and no lock is needed for that to be safe.

Who may commit: one engine at a time. Each that comes gets the next owner epoch.

Whether the last owner still lives is told by the best evidence there is:
- it wrote that it ended in order: it is gone;
- it holds the lock (which the kernel releases at its death): it lives;
- it ran on this machine: it lives if its process does, told from a later one of the same number by its start;
- it ran on this machine before the last boot: it is gone;
- it ran elsewhere: nobody can tell from here, so only the user can say so, with `takeover`.

On an object store there are no locks, and machines come and go. There an owner has a lease: it writes a sign
of life again and again, and is gone if none came for as long as the lease lasts, by the clock of the store.
Who comes meanwhile waits for the one or the other. A process that has died on this machine is not waited for.
A wrong guess costs nothing but the loser's unfinished epoch.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Event, RLock, Thread
from typing import Self

from windrow.errors import StateError
from windrow.state import chunk, filelock, names as file_names
from windrow.state.history import History
from windrow.state.manifest import Manifest
from windrow.state.store import RESTORE, Store, damaged


@dataclass(frozen=True)
class Owner:
    """An engine that owns, or has owned, a state directory."""

    epoch: int
    pid: int
    host: str
    #: when it came, for messages
    since: str
    #: of the running kernel, where the system tells
    boot: str | None = None
    #: when the process began, in the system's own units, where the system tells
    born: str | None = None
    #: the last commit there was when it came
    after: int = 0
    #: by which whoever wrote this knows it again, should it not learn that it was written
    token: str = ""

    @classmethod
    def this_process(cls) -> Self:
        since = datetime.now(UTC).isoformat(sep=" ", timespec="seconds")
        host, pid = socket.gethostname(), os.getpid()
        return cls(0, pid, host, since, _boot(), _born(pid), token=secrets.token_hex(8))

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}, since {self.since}"

    def same_machine(self, me: Owner) -> bool:
        """Whether both run on one machine that was not started anew in between."""
        return self.boot == me.boot if self.boot and me.boot else self.host == me.host

    def certainly_gone(self, me: Owner, locked: bool) -> bool:
        """Whether this owner is known not to run any more; `locked` if the lock is now held by `me`."""
        if (self.pid, self.born, self.host, self.boot) == (me.pid, me.born, me.host, me.boot):
            return locked
        if not self.same_machine(me):
            return self.host == me.host  # the same machine after all, before it was last started
        born = _born(self.pid)
        if born is not None and self.born is not None:
            return born != self.born
        return locked or not _exists(self.pid)


def last_owner(store: Store, known: int = 0) -> Owner | None:
    """The owner with the greatest epoch, if there was ever one; that of epoch `known` is known to be."""
    epochs = [
        epoch for name in store.list(file_names.OWNERS) if (epoch := file_names.owner_epoch(name)) is not None
    ]
    last = max([known, *epochs])
    while store.size(file_names.owner_name(last + 1)) is not None:  # a list may be behind
        last += 1
    return read_owner(store, last) if last else None


def read_owner(store: Store, epoch: int) -> Owner:
    name = file_names.owner_name(epoch)
    try:
        stored = json.loads(store.read(name))
        owner = Owner(**{item.name: stored[item.name] for item in fields(Owner) if item.name != "token"})
    except (ValueError, TypeError, KeyError) as error:
        raise damaged(store.place(name), "it does not tell who the owner is") from error
    return replace(owner, epoch=epoch)


def was_released(store: Store, epoch: int) -> bool:
    return store.size(file_names.owner_name(epoch, "released")) is not None


class Lease:
    """The sign of life of an owner, given until it is released. It carries the number of its last commit."""

    def __init__(self, store: Store, owner: Owner, seconds: float) -> None:
        self._store, self._name = store, file_names.owner_name(owner.epoch, "lease")
        self._pause, self._signs, self._commit = seconds / 3, 0, owner.after
        self._over = Event()
        self._before = _sign(store, owner.epoch - 1)
        self._give()
        Thread(target=self._go_on, name="windrow lease", daemon=True).start()

    def note(self, number: int) -> None:
        """The next sign says that this is the last commit."""
        self._commit = number

    def noted(self) -> int:
        """The last commit that the owner before has told of."""
        digits = self._before.partition(b" ")[0]
        return int(digits) if digits.isdigit() else 0

    def release(self) -> None:
        self._over.set()

    def _go_on(self) -> None:
        while not self._over.wait(self._pause):
            with suppress(Exception):  # there is time for one or two that are lost
                self._give()

    def _give(self) -> None:
        self._signs += 1
        self._store.put(self._name, b"%d %d" % (self._commit, self._signs))


def _sign(store: Store, epoch: int) -> bytes:
    """The last sign of life of the owner of an epoch; nothing if it has not given one yet."""
    try:
        return store.read(file_names.owner_name(epoch, "lease"))
    except StateError as error:
        if error.code != "file-missing":
            raise
        return b""


def lease_is_over(store: Store, owner: Owner, seconds: float) -> bool:
    """Wait until an owner gives a sign of life (False), or has not for as long as its lease lasts (True)."""
    first = _sign(store, owner.epoch)
    age = store.age(file_names.owner_name(owner.epoch, "lease" if first else "json"))
    ends = time.monotonic() + seconds - age
    while (left := ends - time.monotonic()) > 0:
        time.sleep(min(left, seconds / 10))
        if was_released(store, owner.epoch):
            return True
        if _sign(store, owner.epoch) != first:
            return False
    return True


def two_owners(place: str, owner: Owner | None, *, alive: bool) -> StateError:
    who = str(owner) if owner else "a process that has just started"
    if alive:
        hint = "stop that engine first, or give this one a state directory of its own"
        return StateError(f"{place} is in use by {who}", code="two-owners", hint=hint)
    return StateError(
        f"{place} belongs to {who}, and it cannot be told from here whether that still runs",
        code="two-owners",
        hint="stop that engine; if it is gone for good, open the state with takeover=True",
    )


def _boot() -> str | None:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return None


def _born(pid: int) -> str | None:
    """The start of a process, in ticks since boot: field 22; field 2, in parentheses, may hold spaces."""
    try:
        facts = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
        return "ended" if facts[0] in "ZX" else facts[19]  # a dead process stays listed until it is reaped
    except (OSError, IndexError):
        return None


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


class Leases:
    """The commits held by readers of this process; the sweep asks which it must leave alone.

    The floor is the oldest commit that must stay. It only rises, and never above one that somebody holds.

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
        #: the oldest commit that stays
        self.floor = floor

    @contextmanager
    def pin(self, number: int) -> Iterator[None]:
        """Keep a commit, and all after it, to the end of the block."""
        with self._lock:
            if number < self.floor:
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
            self.floor = max(self.floor, min([wanted, *self._pins]))
            return self.floor


class CommitLog:
    """An owned state directory. Made by `CommitLog.open`.

    >>> from pathlib import Path; from tempfile import TemporaryDirectory
    >>> from windrow.state.store import LocalStore
    >>> with TemporaryDirectory() as folder, CommitLog.open(LocalStore(Path(folder))) as log:
    ...     log.commit(log.last.successor(shards=2)).number
    2
    """

    def __init__(self, store: Store, owner: Owner, lock: filelock.Lock | None, last: Manifest) -> None:
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
        try:
            lock = store.lock(file_names.LOCK)
        except BlockingIOError:
            raise two_owners(str(store), last_owner(store), alive=True) from None
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
                self.store.create(file_names.commit_name(manifest.number), manifest.encode(), "manifest")
            except FileExistsError:
                theirs = self.history.read(manifest.number)
                if theirs.owner != self.owner.epoch:
                    self._ended = _lost_to(self.store, read_owner(self.store, theirs.owner))
                else:
                    hint = "open the state again to go on from it"
                    self._ended = StateError(
                        f"commit {manifest.number} was made already", code="commit-exists", hint=hint
                    )
                raise self._ended from None
            except BaseException as error:
                self._settle(manifest.number, error)
                raise
            self.last = manifest
            self._note()
            return manifest

    @contextmanager
    def reader(self) -> Iterator[Manifest]:
        """The last manifest, whose files all stay to the end of the block."""
        with ExitStack() as held:
            with self._turn:
                last = self.last
                held.enter_context(self.leases.pin(last.number))
            yield last

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
        known, number, owner = self.last.files, manifest.number, self.owner.epoch
        fresh = {name: ref.bytes for name, ref in manifest.files.items() if name not in known}
        for name in fresh:
            made = file_names.ChunkName.parse(name)
            # one that the sweep may be about to remove cannot be named: it has another owner, or is too old
            if not made or made.owner != owner or not self.leases.floor <= made.commit <= number:
                raise ValueError(f"{name} was not made for commit {number} of owner {owner}")
        missing = self.store.missing(fresh)
        if missing is not None:
            raise chunk.chunk_missing(self.store.place(missing))

    def _settle(self, number: int, error: BaseException) -> None:
        """After a failed creation: if the manifest is visible nevertheless, only a new start can tell."""
        place = self.store.place(file_names.commit_name(number))
        doubt = StateError(
            f"{place} may be durable or not",
            code="commit-in-doubt",
            hint="open the state again: it is decided there",
        )
        try:
            unknown = isinstance(error, StateError) and error.code == "outcome-unknown"
            visible = unknown or self.store.size(file_names.commit_name(number)) is not None
        except StateError:
            visible = True
        self._ended = doubt if visible else None


def _release(store: Store, owner: Owner) -> None:
    with suppress(FileExistsError, StateError):  # the end of the lock, or of the lease, tells it too
        store.create(file_names.owner_name(owner.epoch, "released"), b"", "owner")


def _become_owner(store: Store, lock: filelock.Lock | None, *, takeover: bool) -> Owner:
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
            store.create(file_names.owner_name(epoch), json.dumps(asdict(me)).encode(), "owner")
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


def _fence(store: Store, owner: Owner, lock: filelock.Lock | None) -> Manifest:
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
            store.create(file_names.commit_name(fence.number), fence.encode(), "manifest")
            return fence


def _lost_to(store: Store, owner: Owner) -> StateError:
    return StateError(
        f"{store} was taken over by {owner}: this engine commits no more",
        code="owner-lost",
        hint="stop this engine; what it had not committed, the other reads again from the sources",
    )


def _commit_lost(store: Store, number: int, evidence: str) -> StateError:
    place = store.place(file_names.commit_name(number))
    return StateError(f"{place} is missing, but {evidence}", code="commit-lost", hint=RESTORE)
