"""Who may commit: one engine at a time. Each that comes gets the next owner epoch.

Whether the last owner still lives is told by the best evidence there is:
- it wrote that it ended in order: it is gone;
- it holds the lock (which the kernel releases at its death): it lives;
- it ran on this machine: it lives if its process does, told from a later one of the same number by its start;
- it ran on this machine before the last boot: it is gone;
- it ran elsewhere: nobody can tell from here, so only the user can say so, with `takeover`.

On an object store there are no locks, and machines come and go. There an owner has a lease: it writes a sign
of life again and again, and is gone if none came for as long as the lease lasts, by the clock of the store.
Who comes meanwhile waits for the one or the other. A process that has died on this machine is not waited for.

A wrong guess costs nothing but the loser's unfinished epoch: see `windrow.state.log` for why.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Event, Thread
from typing import Self

from windrow.errors import StateError
from windrow.state.names import OWNERS, lease_name, owner_epoch, owner_name, released_name
from windrow.state.store import Store, damaged


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
    def this_process(cls, epoch: int = 0, after: int = 0) -> Self:
        """The process that calls."""
        since = datetime.now(UTC).isoformat(sep=" ", timespec="seconds")
        host, pid = socket.gethostname(), os.getpid()
        return cls(epoch, pid, host, since, _boot(), _born(pid), after, secrets.token_hex(8))

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
    epochs = [epoch for name in store.list(OWNERS) if (epoch := owner_epoch(name)) is not None]
    last = max([known, *epochs])
    while store.size(owner_name(last + 1)) is not None:  # a list may be behind
        last += 1
    return read_owner(store, last) if last else None


def read_owner(store: Store, epoch: int) -> Owner:
    """Who had an epoch."""
    name = owner_name(epoch)
    try:
        stored = json.loads(store.read(name))
        owner = Owner(**{item.name: stored[item.name] for item in fields(Owner) if item.name != "token"})
    except (ValueError, TypeError, KeyError) as error:
        raise damaged(store.place(name), "it does not tell who the owner is") from error
    return replace(owner, epoch=epoch)


def write_owner(store: Store, owner: Owner) -> None:
    """Take an epoch; FileExistsError if somebody else has just done so."""
    store.create(owner_name(owner.epoch), json.dumps(asdict(owner)).encode(), "owner")


def write_released(store: Store, epoch: int) -> None:
    """Say that the owner of an epoch has ended in order."""
    store.create(released_name(epoch), b"", "owner")


def was_released(store: Store, epoch: int) -> bool:
    """Whether the owner of an epoch has ended in order."""
    return store.size(released_name(epoch)) is not None


class Lease:
    """The sign of life of an owner, given until it is released. It carries the number of its last commit."""

    def __init__(self, store: Store, owner: Owner, seconds: float) -> None:
        self._store, self._name = store, lease_name(owner.epoch)
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
        """Give no more signs."""
        self._over.set()

    def _go_on(self) -> None:
        while not self._over.wait(self._pause):
            with suppress(StateError):  # there is time for one or two that are lost
                self._give()

    def _give(self) -> None:
        self._signs += 1
        self._store.put(self._name, b"%d %d" % (self._commit, self._signs))


def _sign(store: Store, epoch: int) -> bytes:
    """The last sign of life of the owner of an epoch; nothing if it has not given one yet."""
    try:
        return store.read(lease_name(epoch))
    except StateError as error:
        if error.code != "file-missing":
            raise
        return b""


def lease_is_over(store: Store, owner: Owner, seconds: float) -> bool:
    """Wait until an owner gives a sign of life (False), or has not for as long as its lease lasts (True)."""
    first = _sign(store, owner.epoch)
    age = store.age(lease_name(owner.epoch) if first else owner_name(owner.epoch))
    ends = time.monotonic() + seconds - age
    while (left := ends - time.monotonic()) > 0:
        time.sleep(min(left, seconds / 10))
        if was_released(store, owner.epoch):
            return True
        if _sign(store, owner.epoch) != first:
            return False
    return True


def two_owners(place: str, owner: Owner | None, *, alive: bool) -> StateError:
    """The refusal of a second owner."""
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
