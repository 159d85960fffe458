"""A store in memory that can lose power: what was not made durable may be there afterwards, or not.

It shows that nothing in `state` needs more of a store than `Store` promises; and it is harsher than any disk.
"""

from __future__ import annotations

from contextlib import contextmanager
from io import BytesIO
from typing import TYPE_CHECKING, BinaryIO

import pyarrow as pa

from windrow.errors import StateError
from windrow.state.crash import crash_point

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


class Crash(BaseException):
    """The process ends here."""


class MemoryStore:
    """Files as visible now, those surely on the disk, and the changes in between, in order."""

    lease = None

    def __init__(self) -> None:
        self.visible: dict[str, bytes] = {}
        self.durable: dict[str, bytes] = {}
        self.pending: list[tuple[str, bytes | None]] = []
        self.locked = False
        self.last_note = 0

    def __str__(self) -> str:
        return "memory"

    def place(self, name: str) -> str:
        return f"memory/{name}"

    def prepare(self) -> None:
        pass

    def create(self, name: str, data: bytes, what: str) -> None:
        crash_point(f"{what}-temp-written")
        if name in self.visible:
            raise FileExistsError(name)
        self._change(name, data)
        crash_point(f"{what}-linked")
        self.sync(name.partition("/")[0])

    def put(self, name: str, data: bytes) -> None:
        self._change(name, data)

    @contextmanager
    def writer(self, name: str) -> Iterator[BinaryIO]:
        if name in self.visible:
            raise FileExistsError(name)
        file = BytesIO()
        try:
            yield file
        except Crash:
            self._change(name, file.getvalue())
            raise
        self._change(name, file.getvalue())
        self.sync(name.partition("/")[0])

    def grouped(self) -> MemoryStore:
        return self

    def settle(self) -> None:
        pass

    def read(self, name: str) -> bytes:
        if name not in self.visible:
            raise StateError(f"cannot read {name}", code="file-missing")
        return self.visible[name]

    def map(self, name: str) -> pa.Buffer:
        return pa.py_buffer(self.read(name))

    def list(self, folder: str) -> dict[str, int]:
        return {name: len(data) for name, data in self.visible.items() if name.startswith(f"{folder}/")}

    def size(self, name: str) -> int | None:
        return len(self.visible[name]) if name in self.visible else None

    def missing(self, sizes: Mapping[str, int]) -> str | None:
        return next((name for name, size in sizes.items() if self.size(name) != size), None)

    def remove(self, *names: str) -> None:
        for name in names:
            if name in self.visible:
                self._change(name, None)
            crash_point("sweep-between-removals")
        for folder in sorted({name.partition("/")[0] for name in names}):
            self.sync(folder)

    def sync(self, folder: str) -> None:
        crash_point("before-directory-sync")
        for name, data in self.pending:
            if name.startswith(f"{folder}/"):
                _apply(self.durable, name, data)
        self.pending = [change for change in self.pending if not change[0].startswith(f"{folder}/")]
        crash_point("after-directory-sync")

    def lock(self, name: str) -> MemoryStore:
        if self.locked:
            raise BlockingIOError(name)
        self.locked = True
        return self

    def release(self) -> None:
        self.locked = False

    def note(self, number: int) -> None:
        self.last_note = number

    def noted(self) -> int:
        return self.last_note

    def clear(self) -> None:
        pass

    def lose_power(self, survives: Callable[[], bool]) -> None:
        """Each change that was not made durable survives or not, as drawn."""
        for name, data in self.pending:
            if survives():
                _apply(self.durable, name, data)
        self.visible, self.pending, self.locked = dict(self.durable), [], False
        self.last_note = 0

    def _change(self, name: str, data: bytes | None) -> None:
        _apply(self.visible, name, data)
        self.pending.append((name, data))


def _apply(files: dict[str, bytes], name: str, data: bytes | None) -> None:
    if data is None:
        files.pop(name, None)
    else:
        files[name] = data
