"""`files:`: one file per commit, in a directory.

A file is written under a temporary name, made durable, and renamed: readers see it whole or not at all. Its
name is that of the query and the number of the commit, so a repetition meets its own file, and leaves it.
"""

from __future__ import annotations

import errno
import filecmp
import re
from pathlib import Path
from typing import TYPE_CHECKING, Self

import pyarrow as pa

from windrow.errors import SinkError
from windrow.sinks.delivery import Sink
from windrow.sinks.durable import make_directory, sync, temporary_file, write_through
from windrow.sinks.failures import KEPT, explained
from windrow.sinks.formats import FORMATS, same_rows
from windrow.state.names import file_name

if TYPE_CHECKING:
    from windrow.sinks.delivery import Delivery, Opening
    from windrow.sinks.urls import SinkUrl


class FilesSink(Sink):
    """Writes into one directory, which other queries may share."""

    guarantee = "exactly once: each commit is one file, which appears whole or not at all"

    def __init__(self, directory: Path, form: str, opening: Opening) -> None:
        self._directory, self._form = directory, form
        self._stem = file_name(opening.query)
        self._hook = opening.hook
        with explained("use the directory", directory):
            make_directory(directory)
            self._clear()

    @classmethod
    def check(cls, url: SinkUrl) -> None:
        url.path()
        url.allow(("format",))
        url.choice("format", FORMATS, "parquet")

    @classmethod
    def open(cls, url: SinkUrl, opening: Opening) -> Self:
        return cls(url.path().absolute(), url.choice("format", FORMATS, "parquet"), opening)

    def deliver(self, delivery: Delivery) -> None:
        if next(delivery.pieces(), None) is None:
            return
        path = self._directory / f"{self._stem}-{delivery.commit:012d}.{self._form}"
        self._hook("sink-before-write")
        with explained("write", path):
            try:
                self._write(path, delivery)
            except pa.ArrowException as error:
                hint = "CAST the column that does not fit, or choose another format"
                raise SinkError(f"cannot write {path}: {error}", code="no-such-type", hint=hint) from error
            sync(self._directory)

    def close(self) -> None:
        """Nothing is held open."""

    def _write(self, path: Path, delivery: Delivery) -> None:
        with temporary_file(path) as (temporary, file):
            FORMATS[self._form](file, delivery.schema, delivery.pieces())
            write_through(file)
            self._hook("sink-written")
            if not path.exists():
                temporary.replace(path)
            elif path.is_dir():
                raise IsADirectoryError(errno.EISDIR, "it is a directory")
            elif not self._is_repetition(temporary, path, delivery):
                raise _other_rows(path, delivery)
        self._hook("sink-after-rename")

    def _is_repetition(self, temporary: Path, path: Path, delivery: Delivery) -> bool:
        if filecmp.cmp(temporary, path, shallow=False):
            return True
        if self._form != "parquet":
            return False
        try:
            return same_rows(path, delivery.schema, delivery.pieces())
        except pa.ArrowException:  # not Parquet at all
            return False

    def _clear(self) -> None:
        """Remove what this query's interrupted deliveries have left."""
        left = re.compile(rf"\.{re.escape(self._stem)}-\d{{12,}}\.\w+\.[0-9a-f]+\.tmp")
        for path in self._directory.iterdir():
            if left.fullmatch(path.name):
                path.unlink(missing_ok=True)


def _other_rows(path: Path, delivery: Delivery) -> SinkError:
    return SinkError(
        f"{path} is there already, with other rows than commit {delivery.commit} of `{delivery.query}` has",
        code="place-taken",
        hint="if an earlier state of the engine wrote it, choose another directory or move its files away; "
        + KEPT,
    )
