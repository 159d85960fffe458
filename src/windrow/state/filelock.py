"""A lock that ends with its process, however that ends.

Who holds it can note a number in its file: the last commit it has made. A note costs next to nothing, as it
is not made durable; whoever comes next believes it if it is whole, and does without it if it is not.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Protocol, Self
from weakref import WeakSet

_NOTE = re.compile(rb"([0-9]{12,18}) ([0-9a-f]{8})\n")
_NO_LOCKS_HERE = frozenset({errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS})


class Lock(Protocol):
    def release(self) -> None: ...

    def note(self, number: int) -> None:
        """Leave a number for whoever holds it next; best effort."""

    def noted(self) -> int:
        """The number that was left last; 0 if there is none, or if it is not whole."""


class FileLock:
    """An exclusive `flock` on a file. The kernel releases it when the process dies, even by SIGKILL."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor: int | None = descriptor
        _held.add(self)

    @classmethod
    def hold(cls, path: Path) -> Self | None:
        """The lock; BlockingIOError if it is held, in this process too; None if the disk knows no locks."""
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            if error.errno in _NO_LOCKS_HERE:
                return None
            raise
        return cls(descriptor)

    def note(self, number: int) -> None:
        digits = b"%012d" % number
        with suppress(OSError):
            if self._descriptor is not None:
                os.pwrite(self._descriptor, digits + b" %08x\n" % zlib.crc32(digits), 0)

    def noted(self) -> int:
        if self._descriptor is None:
            return 0
        found = _NOTE.fullmatch(os.pread(self._descriptor, 64, 0))
        return int(found[1]) if found and int(found[2], 16) == zlib.crc32(found[1]) else 0

    def release(self) -> None:
        """End the lock, also for a forked child that has the file open still."""
        if self._descriptor is not None:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)
            self.forget()

    def forget(self) -> None:
        """Close the file. The lock ends when nobody has it open any more."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def __del__(self) -> None:
        self.release()


_held: WeakSet[FileLock] = WeakSet()


def _forget_in_child() -> None:
    """A forked child shares the lock with its parent: it must not keep it alive after the parent's death."""
    for lock in list(_held):
        lock.forget()


os.register_at_fork(after_in_child=_forget_in_child)
