"""Which files a pattern stands for now, wherever Spark can read: on this machine or in a remote store."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlparse

from windrow.errors import SourceError
from windrow.spark.sources.java_errors import SPARK_ERRORS, reason
from windrow.state.entries import SourceFile

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import SparkSession

_WILDCARD = re.compile(r"[*?\[{]")
_SHOWN = 5


@dataclass(frozen=True)
class FoundFiles:
    """What a pattern matches: `files` are those with something in them, the oldest first."""

    files: tuple[str, ...]
    #: the pattern is the name of one file, not of a directory and without wildcards
    is_one_file: bool


def find_files(spark: SparkSession, place: str, *, may_be_empty: bool) -> FoundFiles:
    """The files of a pattern. None at all is an error, unless they may still come into an empty directory."""
    matched, files = _find(spark, place, may_be_empty)
    files.sort(key=lambda status: (status.getModificationTime(), status.getPath().toString()))
    full = tuple(status.getPath().toString() for status in files if status.getLen() > 0)
    is_one_file = _WILDCARD.search(place) is None and bool(matched) and matched[0].isFile()
    return FoundFiles(full, is_one_file)


def file_facts(spark: SparkSession, place: str) -> tuple[SourceFile, ...]:
    """The files of a pattern by name, size and time of change, as exactly as the file system knows it."""
    _, files = _find(spark, place, may_be_empty=False)
    return tuple(sorted(map(_facts, files), key=lambda file: file.path))


def _facts(status: Any) -> SourceFile:
    path = str(status.getPath().toString())
    if path.startswith("file:"):
        with suppress(OSError):  # it is gone by now, and the next look tells
            known = Path(unquote(urlparse(path).path)).stat()
            return SourceFile(path, known.st_size, known.st_mtime_ns)
    return SourceFile(path, int(status.getLen()), int(status.getModificationTime()) * 1_000_000)


def _find(spark: SparkSession, place: str, may_be_empty: bool) -> tuple[list[Any], list[Any]]:
    """What a pattern matches, and the files in it."""
    try:
        path = _jvm(spark).org.apache.hadoop.fs.Path(place)
        system = path.getFileSystem(spark._jsc.hadoopConfiguration())
        matched = list(system.globStatus(path) or [])
        if not matched:
            _refuse_missing(system, path, place, may_be_empty)
        files = [found for status in matched for found in _files_in(system, status)]
    except SPARK_ERRORS as error:
        raise SourceError(f"`{place}` cannot be read: {reason(error)}", hint="check the path") from None
    if not files and not may_be_empty:
        raise SourceError(f"there are no files in `{place}`", code="no-files", hint="check the path")
    return matched, files


def _files_in(system: Any, status: Any) -> Iterable[Any]:
    if status.isFile():
        return [status]
    inside = system.listStatus(status.getPath())
    return [
        child for child in inside if child.isFile() and not child.getPath().getName().startswith(("_", "."))
    ]


def _refuse_missing(system: Any, path: Any, place: str, may_be_empty: bool) -> None:
    """Nothing matches. A directory that is there and empty may be waiting for its first file."""
    folder = path.getParent()
    while folder is not None and _WILDCARD.search(folder.getName()):
        folder = folder.getParent()
    if folder is None or not system.exists(folder):
        raise SourceError(
            f"there is no directory `{_local(folder or path)}`",
            code="no-files",
            hint="check the path, or create it",
        )
    inside = sorted(child.getPath().getName() for child in system.listStatus(folder))
    if inside or not may_be_empty:
        shown = ", ".join(f"`{name}`" for name in inside[:_SHOWN]) + (", …" if len(inside) > _SHOWN else "")
        raise SourceError(
            f"no file matches `{place}`",
            code="no-files",
            hint=f"`{_local(folder)}` has {shown}" if inside else f"`{_local(folder)}` is empty",
        )
    if _WILDCARD.search(path.getName()) is None:
        raise SourceError(f"there is no file `{place}`", code="no-files", hint="check the path")


def _local(path: Any) -> str:
    return str(path.toString()).removeprefix("file:")


def _jvm(spark: SparkSession) -> Any:
    return spark._jvm
