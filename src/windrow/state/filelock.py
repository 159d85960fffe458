"""A lock that ends with its process, however that ends."""

from __future__ import annotations

import errno
import fcntl
import os
from typing import TYPE_CHECKING, Protocol, Self
from weakref import WeakSet

if TYPE_CHECKING:
    from pathlib import Path

_NO_LOCKS_HERE = frozenset({errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS})


class Lock(Protocol):
    """Something held."""

    def release(self) -> None:
        """Let others have it."""


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
