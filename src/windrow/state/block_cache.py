"""Blocks of objects on the disk of this machine: written by rename, checksummed, bounded."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from threading import Lock

import pyarrow as pa

from windrow.state.store import make_private, mapped


class BlockCache:
    """Blocks of objects on the disk of this machine, for all of its processes.

    A file is a block, followed by the size of the object, a checksum and a mark. It appears by rename, whole;
    one that does not match its checksum is dropped and fetched again. When all are more than `most` bytes,
    those that were used longest ago go.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     cache = BlockCache(Path(folder), "lake", 1000)
    ...     cache.keep("chunks/a", 0, pa.py_buffer(b"rows"), 4)
    ...     data, size = cache.find("chunks/a", 0)
    ...     data.to_pybytes(), size, cache.find("chunks/b", 0)
    (b'rows', 4, None)
    """

    _END = 24
    _MARK = b"wrblock\n"

    def __init__(self, root: Path, own: str, most: int) -> None:
        self.root, self._folder, self._most = root, root / own, most
        self._lock = Lock()
        #: how much may be written before all is looked at again
        self._room = 0

    def path(self, name: str, number: int) -> Path:
        return self._folder / f"{name.replace('/', '-')}.{number}"

    def find(self, name: str, number: int) -> tuple[pa.Buffer, int] | None:
        """A block and the size of its object, if it is here."""
        path = self.path(name, number)
        try:
            data = mapped(path)
            os.utime(path)
        except OSError:
            return None
        length = max(0, data.size - self._END)
        block, end = data.slice(0, length), data.slice(length).to_pybytes()
        if end[8:] != _checksum(block, end[:8]) + self._MARK:
            path.unlink(missing_ok=True)
            return None
        return block, int.from_bytes(end[:8], "little")

    def keep(self, name: str, number: int, data: pa.Buffer, size: int) -> None:
        """Have a block here from now on. A cache that cannot be written to is done without."""
        length = size.to_bytes(8, "little")
        with suppress(OSError):
            self._make_room(data.size)
            with self.scratch() as path:
                with path.open("wb") as file:
                    file.write(data)
                    file.write(length + _checksum(data, length) + self._MARK)
                path.replace(self.path(name, number))

    def drop(self, names: Iterable[str]) -> None:
        for name in names:
            number = 0
            with suppress(OSError):
                while (path := self.path(name, number)).exists():
                    path.unlink(missing_ok=True)
                    number += 1

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """A file to write to, gone at the end of the block unless it was renamed."""
        make_private(self.root)
        make_private(self._folder)
        path = self._folder / f".{token_hex(8)}"
        try:
            yield path
        finally:
            path.unlink(missing_ok=True)

    def _make_room(self, size: int) -> None:
        with self._lock:
            self._room -= size
            if self._room >= 0:
                return
            found = [(entry.stat(), Path(entry.path)) for entry in _files(self.root)]
            total = size + sum(stat.st_size for stat, _ in found)
            for stat, path in sorted(found, key=lambda each: each[0].st_mtime):
                if total <= self._most * 3 // 4:
                    break
                path.unlink(missing_ok=True)
                total -= stat.st_size
            self._room = max(0, self._most - total) // 4  # others write too


def _files(root: Path) -> Iterator[os.DirEntry[str]]:
    with suppress(FileNotFoundError), os.scandir(root) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _files(Path(entry.path))
            elif not entry.name.startswith("."):
                yield entry


def _checksum(data: pa.Buffer, size: bytes) -> bytes:
    return zlib.crc32(size, zlib.crc32(data)).to_bytes(8, "little")
