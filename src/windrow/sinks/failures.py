"""What goes wrong around sinks, in words: what could not be done, where, and the way out.

Files that appear whole or not at all, and are still there after a power cut.
"""

from __future__ import annotations

import errno
import os
import secrets
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from windrow.errors import SinkError, WindrowError

if TYPE_CHECKING:
    from collections.abc import Iterator


_TOKEN_BYTES = 8


def make_directory(directory: Path) -> None:
    """Make it, and all above it, durably. OSError if that cannot be."""
    absolute = directory.absolute()
    missing = [path for path in (absolute, *absolute.parents) if not path.exists()]
    directory.mkdir(parents=True, exist_ok=True)
    for path in missing:
        sync(path.parent)


def temporary_prefix(name: str) -> str:
    """How temporary files that become `name` begin. Readers of directories skip names with a dot."""
    return f".{name}."


@contextmanager
def temporary_file(final: Path) -> Iterator[tuple[Path, BinaryIO]]:
    """A file beside the final one; it is gone after the block, unless the block gave it another name."""
    path = final.with_name(f"{temporary_prefix(final.name)}{secrets.token_hex(_TOKEN_BYTES)}.tmp")
    try:
        with path.open("xb") as file:
            yield path, file
    finally:
        with suppress(OSError):  # the error that led here says more
            path.unlink(missing_ok=True)


def write_through(file: BinaryIO) -> None:
    """Put what was written on the disk."""
    file.flush()
    os.fsync(file.fileno())


def sync(path: Path) -> None:
    """Put a file's contents, or a directory's entries, on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


#: ends every hint of an error that passes: nothing is lost by it
KEPT = "the rows are kept, and delivered again after the next start"

_WAYS_OUT = {
    errno.ENOSPC: ("the disk is full", "disk-full", "make room on the disk"),
    errno.EDQUOT: ("the disk quota is used up", "disk-full", "make room on the disk"),
    errno.EFBIG: ("the file would be too large", "disk-full", "raise the limit on the size of files"),
    errno.EACCES: ("permission denied", "permission-denied", "let the user who runs the engine write there"),
    errno.EPERM: ("permission denied", "permission-denied", "let the user who runs the engine write there"),
    errno.EROFS: ("the file system is read-only", "permission-denied", "choose a place that can be written"),
    errno.ENOENT: ("its directory does not exist any more", "place-missing", "put it back, or start again"),
    errno.EISDIR: ("it is a directory", "place-taken", "move the directory away"),
    errno.ENOTDIR: (
        "part of its path is a file",
        "place-taken",
        "move the file away, or choose another place",
    ),
    errno.EEXIST: ("it is a file", "place-taken", "move the file away, or choose another place"),
    errno.ENAMETOOLONG: ("the name is too long", "name-too-long", "give the query a shorter name"),
    errno.EPIPE: ("nobody reads it any more", "closed", "start the reader again"),
}


@contextmanager
def explained(doing: str, place: object) -> Iterator[None]:
    """Turn an error of the system into one for the user.

    >>> with explained("write", "/data/out/top-1.csv"):  # doctest: +ELLIPSIS
    ...     raise OSError(errno.ENOSPC, "No space left on device")
    Traceback (most recent call last):
        ...
    windrow.errors.SinkError: cannot write /data/out/top-1.csv: the disk is full (make room on the disk; ...)
    """
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        what, code, way_out = _WAYS_OUT.get(error.errno or 0, (reason, "file-system", "see to the disk"))
        raise SinkError(f"cannot {doing} {place}: {what}", code=code, hint=f"{way_out}; {KEPT}") from error


def is_failure(error: BaseException) -> bool:
    """Whether something has failed, and nobody wants the process to end."""
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"  # of libraries in Rust


def sink_failed(query: str, error: BaseException) -> SinkError:
    """Whatever came out of a sink, as its failure.

    >>> sink_failed("top", KeyError("at"))
    SinkError("the sink of `top` failed: KeyError: 'at'")
    """
    if isinstance(error, SinkError):
        return error
    if isinstance(error, WindrowError):
        failed = SinkError(f"the sink of `{query}` failed: {error.message}", code=error.code, hint=error.hint)
    else:
        what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        failed = SinkError(f"the sink of `{query}` failed: {what}", code="sink-failed", hint=KEPT)
    failed.__cause__ = error
    return failed


def imported(module: str, extra: str) -> Any:
    """A package that not everybody has installed.

    >>> imported("no_such_package", "delta")
    Traceback (most recent call last):
        ...
    windrow.errors.SinkError: the package `no_such_package` is missing (pip install 'windrow[delta]')
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.partition(".")[0]:
            raise
        hint = f"pip install 'windrow[{extra}]'"
        raise SinkError(f"the package `{error.name}` is missing", code="package-missing", hint=hint) from None
