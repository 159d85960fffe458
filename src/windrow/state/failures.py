"""Errors of the file system, in words: what could not be done, to which file, and the way out."""

from __future__ import annotations

import errno
from contextlib import contextmanager
from typing import TYPE_CHECKING

from windrow.errors import StateError

if TYPE_CHECKING:
    from collections.abc import Iterator

#: a damaged or lost file cannot be mended here; every such error ends with this
RESTORE = (
    "restore the whole state directory from a copy, or begin again with an empty one and let the "
    "sources be read anew"
)

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_DENIED = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})


@contextmanager
def explained(doing: str, place: object) -> Iterator[None]:
    """Turn an error of the system into one for the user. That a file exists already is left to the caller.

    >>> with explained("read", "/state/chunks/a"):  # doctest: +ELLIPSIS
    ...     raise PermissionError(errno.EACCES, "Permission denied")
    Traceback (most recent call last):
        ...
    windrow.errors.StateError: cannot read /state/chunks/a: permission denied (let the user who runs ...)
    """
    try:
        yield
    except (FileExistsError, BlockingIOError):
        raise
    except OSError as error:
        raise explain(error, doing, place) from error


def explain(error: OSError, doing: str, place: object) -> StateError:
    """The error a user sees for one of the system."""
    what = f"cannot {doing} {place}: "
    if error.errno in _FULL:
        hint = "make room on the disk and start the engine again: everything up to the last commit is kept"
        return StateError(what + "the disk is full", code="disk-full", hint=hint)
    if error.errno in _DENIED:
        hint = "let the user who runs the engine read and write the whole state directory"
        return StateError(what + "permission denied", code="permission-denied", hint=hint)
    if error.errno == errno.ENOENT:
        hint = "if the state directory was moved or part of it removed, put it back"
        return StateError(what + "it does not exist", code="file-missing", hint=hint)
    if error.errno == errno.EXDEV:
        hint = "keep the state directory whole, on one file system"
        return StateError(what + "it lies on another file system", code="two-file-systems", hint=hint)
    reason = error.strerror or str(error)
    return StateError(what + reason, code="file-system", hint="see to the disk, then start the engine again")


def damaged(place: object, what: str) -> StateError:
    """A file that is not as it was written."""
    return StateError(f"{place} is damaged: {what}", code="damaged", hint=RESTORE)


def too_new(place: object, found: int, known: int) -> StateError:
    """A file written by a later version."""
    return StateError(
        f"{place} has format {found}, and this version of Windrow reads formats up to {known}",
        code="format-too-new",
        hint="run the version of Windrow that wrote it, or a newer one",
    )


def too_old(place: object, found: int, known: int) -> StateError:
    """A file written by an earlier version, in a way that is no longer read."""
    return StateError(
        f"{place} has format {found}, and this version of Windrow reads format {known} only",
        code="format-too-old",
        hint="run the version of Windrow that wrote it, or begin again with an empty state directory",
    )
