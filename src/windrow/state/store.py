"""The few operations on files that everything in `state` rests on.

The one that matters is `create`: of all who create a name, exactly one succeeds, and nobody ever sees part of
the contents. On a local disk that is a hard link to a temporary file that is already durable; on an object
store it is a conditional put (`object_store`). Files are never changed; what may be replaced (`put`) are
notes that only help: the sign of life of an owner, and where the kept commits begin.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, ClassVar, Protocol

import pyarrow as pa

from windrow.errors import StateError
from windrow.state import crash, filelock
from windrow.state.names import COMMITS, FOLDERS, TEMPORARY

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


_NAME = re.compile(r"[a-z]+/[A-Za-z0-9][A-Za-z0-9._-]*")
_PART = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
#: have the disk take files at once
_THREADS = ThreadPoolExecutor(8, thread_name_prefix="windrow sync")
#: rows are the user's own business: nobody else reads what the engine keeps of them
_MINE, _MY_FOLDER = 0o600, 0o700


class Contents(Protocol):
    """What is in a file, to be read in parts. A `pyarrow.Buffer` is one."""

    @property
    def size(self) -> int: ...

    def slice(self, offset: int = 0, length: int | None = None) -> pa.Buffer:
        """Some of them, or all from the offset on."""


class Store(Protocol):
    """A place for immutable files, named `folder/file`. As text it is where it is, for people."""

    @property
    def lease(self) -> float | None:
        """How many seconds an owner counts as living after its last sign; None: locks and processes tell."""

    @property
    def local(self) -> Path:
        """A directory of this machine for what belongs to the state, and can be done without."""

    def place(self, name: str) -> str:
        """The full name of a file, for messages."""

    def is_there(self) -> bool: ...

    def prepare(self) -> None: ...

    def create(self, name: str, data: bytes, what: str) -> None:
        """Create the file, durably and all at once; FileExistsError if the name is taken.

        A StateError of code `outcome-unknown`: the file is there, or may come to be there yet.
        """

    def put(self, name: str, data: bytes) -> None:
        """Write a note, in place of the one there was; whoever reads sees one or the other."""

    def writer(self, name: str) -> AbstractContextManager[BinaryIO]:
        """A new file to write to; durable at the end of the block, gone if the block fails."""

    def grouped(self) -> Store:
        """The same place, for the files of one commit: what this process writes is durable after `settle`."""

    def settle(self) -> None:
        """Make durable what was written through `grouped`, all of it at once."""

    def read(self, name: str) -> bytes: ...

    def map(self, name: str) -> Contents:
        """The contents without copying them, or reading more than is asked for, where that is possible."""

    def size(self, name: str) -> int | None:
        """How many bytes a file has; None if it is not there."""

    def age(self, name: str) -> float:
        """How many seconds ago a file was written, by the clock of the store; 0 if it is not there."""

    def missing(self, sizes: Mapping[str, int]) -> str | None:
        """One of these files that is not there in this size; those that a store has confirmed are there."""

    def list(self, folder: str) -> dict[str, int]:
        """The names in a folder, each with its size in bytes. It may be behind: it decides nothing alone."""

    def remove(self, *names: str) -> None:
        """Remove files in this order, those that are there; durable at the end."""

    def nested(self, folder: str, name: str) -> Store:
        """A store inside this one, with commits of its own: `archives/past-5f0c9a1e`."""

    def nests(self, folder: str) -> tuple[str, ...]: ...

    def remove_nested(self, folder: str, name: str) -> None: ...

    def lock(self, name: str) -> filelock.Lock | None:
        """Hold a lock until it is released or the process ends; BlockingIOError if somebody else holds it.
        None where there are no locks."""

    def clear(self) -> None:
        """Remove what interrupted `create` calls have left. Only for the owner, before its first commit."""


@dataclass(frozen=True)
class LocalStore:
    """A directory of this machine, or of a file system that has hard links. Can be sent to other processes.

    >>> LocalStore(Path("state")).place("commits/../../passwords")
    Traceback (most recent call last):
        ...
    windrow.errors.StateError: `commits/../../passwords` is not a name of a file in a state directory
    """

    root: Path
    lease: ClassVar[float | None] = None

    @property
    def local(self) -> Path:
        return self.root

    def __str__(self) -> str:
        return str(self.root)

    def place(self, name: str) -> str:
        return str(self._path(name))

    def is_there(self) -> bool:
        return self.root.is_dir()

    def prepare(self) -> None:
        with explained("make the state directory", self.root):
            try:
                make_private(self.root)
            except FileExistsError:
                hint = "give a directory that is empty or does not exist yet"
                what = f"the state directory {self.root} is a file"
                raise StateError(what, code="foreign-directory", hint=hint) from None
            refuse_foreign(self, {entry.name for entry in self.root.iterdir()})
            missing = [path for folder in FOLDERS if not (path := self.root / folder).is_dir()]
            for path in missing:
                make_private(path)
            if missing:
                sync(self.root)
                sync(self.root.resolve().parent)

    def create(self, name: str, data: bytes, what: str) -> None:
        path = self._path(name)
        with self._temporary(path) as temporary:
            with _new_file(temporary) as file:
                file.write(data)
                write_through(file)
            crash.crash_point(f"{what}-temp-written")
            path.hardlink_to(temporary)
        crash.crash_point(f"{what}-linked")
        self._sync(path.parent.name)

    def put(self, name: str, data: bytes) -> None:
        path = self._path(name)
        with self._temporary(path) as temporary:
            with _new_file(temporary) as file:
                file.write(data)
            temporary.replace(path)

    @contextmanager
    def _temporary(self, path: Path) -> Iterator[Path]:
        """A name for what becomes another file; it is free again after the block."""
        temporary = self.root / TEMPORARY / f"{path.name}-{secrets.token_hex(8)}"
        with explained("write", path):
            try:
                yield temporary
            finally:
                temporary.unlink(missing_ok=True)

    @contextmanager
    def writer(self, name: str) -> Iterator[BinaryIO]:
        path = self._path(name)
        with explained("write", path):
            with _new_file(path) as file:
                try:
                    yield file
                    file.flush()
                    self._written(path, file)
                except BaseException:
                    path.unlink(missing_ok=True)
                    raise
            self._listed(path.parent.name)

    def _written(self, path: Path, file: BinaryIO) -> None:
        os.fsync(file.fileno())

    def _listed(self, folder: str) -> None:
        self._sync(folder)

    def grouped(self) -> LocalStore:
        return _GroupedStore(self.root)

    def settle(self) -> None:
        """Every file is durable when it is written."""

    def read(self, name: str) -> bytes:
        path = self._path(name)
        with explained("read", path):
            return path.read_bytes()

    def map(self, name: str) -> pa.Buffer:
        path = self._path(name)
        with explained("read", path):
            return mapped(path)

    def size(self, name: str) -> int | None:
        path = self._path(name)
        with explained("read", path), suppress(FileNotFoundError):
            return path.stat().st_size
        return None

    def age(self, name: str) -> float:
        path = self._path(name)
        with explained("read", path), suppress(FileNotFoundError):
            return time.time() - path.stat().st_mtime
        return 0.0

    def missing(self, sizes: Mapping[str, int]) -> str | None:
        return next((name for name, size in sizes.items() if self.size(name) != size), None)

    def list(self, folder: str) -> dict[str, int]:
        if folder not in FOLDERS:
            raise StateError(f"`{folder}` is not a folder of a state directory", code="bad-name")
        with explained("list", self.root / folder):
            if not self.root.is_dir():
                hint = "check the path; if the engine has never run with it, there is no state to read yet"
                raise StateError(
                    f"the state directory {self.root} does not exist", code="directory-missing", hint=hint
                )
            if not (self.root / folder).is_dir():
                return {}
            with os.scandir(self.root / folder) as entries:
                sizes = {f"{folder}/{entry.name}": _size(entry) for entry in entries if entry.is_file()}
            return dict(sorted(sizes.items()))

    def remove(self, *names: str) -> None:
        for path in [self._path(name) for name in names]:
            with explained("remove", path):
                path.unlink(missing_ok=True)
            crash.crash_point("sweep-between-removals")
        for folder in sorted({name.partition("/")[0] for name in names}):
            self._sync(folder)

    def nested(self, folder: str, name: str) -> LocalStore:
        make_private(self.root / folder)
        return LocalStore(folder_in(self.root / folder, name))

    def nests(self, folder: str) -> tuple[str, ...]:
        root = self.root / folder
        return tuple(sorted(path.name for path in root.iterdir())) if root.is_dir() else ()

    def remove_nested(self, folder: str, name: str) -> None:
        with explained("remove", self.root / folder / name):
            remove_folder(self.root / folder, name)

    def _sync(self, folder: str) -> None:
        crash.crash_point("before-directory-sync")
        with explained("write", self.root / folder):
            sync(self.root / folder)
        crash.crash_point("after-directory-sync")

    def lock(self, name: str) -> filelock.Lock | None:
        path = self._path(name)
        with explained("lock", path):
            return filelock.FileLock.hold(path)

    def clear(self) -> None:
        for name in self.list(TEMPORARY):
            self._path(name).unlink(missing_ok=True)
        for name in self.nests(TEMPORARY):  # of queries that were cut short
            with suppress(StateError):
                self.remove_nested(TEMPORARY, name)

    def _path(self, name: str) -> Path:
        return self.root / check_name(name)


@dataclass(frozen=True)
class _GroupedStore(LocalStore):
    """Writes the files of a commit, and has the disk take them all at once: one after the other, each would
    wait for a turn of the disk of its own. A process that it is sent to has a plain store."""

    _waiting: list[Path] = field(default_factory=list, repr=False, compare=False)

    def __reduce__(self) -> tuple[type[LocalStore], tuple[Path]]:
        return LocalStore, (self.root,)

    def _written(self, path: Path, file: BinaryIO) -> None:
        self._waiting.append(path)

    def _listed(self, folder: str) -> None:
        """The folder's turn is in `settle`."""

    def settle(self) -> None:
        found = [path for path in self._waiting if path.exists()]  # not those of an attempt that failed
        self._waiting.clear()
        with explained("write", self.root):
            list(_THREADS.map(sync, found))
        for folder in sorted({path.parent.name for path in found}):
            self._sync(folder)


def check_name(name: str, folders: tuple[str, ...] = FOLDERS) -> str:
    """A name of a file in a store, or an error: nothing else becomes part of a path."""
    if not _NAME.fullmatch(name) or name.partition("/")[0] not in folders:
        raise StateError(f"`{name}` is not a name of a file in a state directory", code="bad-name")
    return name


def refuse_foreign(store: Store, found: set[str]) -> None:
    """A place that holds other things is never made a state directory by mistake."""
    if COMMITS not in found and not found <= set(FOLDERS):
        raise StateError(
            f"{store} is not a state directory: it holds `{min(found - set(FOLDERS))}`",
            code="foreign-directory",
            hint="give a directory that is empty or does not exist yet",
        )


def mapped(path: Path) -> pa.Buffer:
    """What is in a file, without reading it; it stays when the file is removed."""
    if path.stat().st_size == 0:  # an empty file cannot be mapped
        return pa.py_buffer(b"")
    with pa.memory_map(str(path)) as file:
        return file.read_buffer()


def make_private(path: Path) -> None:
    """Make a directory that only its owner can enter, unless it is there. What is above it is not touched."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.mkdir(_MY_FOLDER, exist_ok=True)


def folder_in(root: Path, name: str) -> Path:
    """A directory directly in another, by a name that was read or made elsewhere.

    >>> folder_in(Path("state/archives"), "../../home")
    Traceback (most recent call last):
        ...
    windrow.errors.StateError: `../../home` is not a name of a folder in state/archives
    """
    if not _PART.fullmatch(name):
        raise StateError(f"`{name}` is not a name of a folder in {root}", code="bad-name")
    return root / name


def remove_folder(root: Path, name: str) -> None:
    """Remove a directory directly in another with all it holds, if it is there. OSError if that fails.

    A link is removed, and not what it leads to.
    """
    path = folder_in(root, name)
    if path.is_symlink():
        path.unlink()
    elif path.is_dir():
        if path.resolve().parent != root.resolve():
            raise StateError(f"{path} does not lie in {root}", code="bad-name")
        shutil.rmtree(path)


def _new_file(path: Path) -> BinaryIO:
    """A file that nobody else has made, for its owner alone whatever the umask allows."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _MINE), "wb")


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


def _size(entry: os.DirEntry[str]) -> int:
    try:
        return entry.stat().st_size
    except FileNotFoundError:  # removed between the listing and here
        return 0
