"""Which files a pattern stands for now, wherever Spark can read: on this machine or in a remote store."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from windrow.errors import SourceError
from windrow.spark.sources.java_errors import SPARK_ERRORS, reason

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
    files.sort(key=lambda status: (status.getModificationTime(), status.getPath().toString()))
    full = tuple(status.getPath().toString() for status in files if status.getLen() > 0)
    is_one_file = _WILDCARD.search(place) is None and bool(matched) and matched[0].isFile()
    return FoundFiles(full, is_one_file)


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
