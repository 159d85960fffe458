"""Listings: which files a pattern names now, each with its size and time of change.

On this machine's file systems the names are read here, and patterns mean what they mean to Hadoop: `*`, `?`,
`[ab]`, `[^ab]`, `{a,b}` and `\\` before a character. Elsewhere Spark is asked, once for all files: a call of
the JVM for each of them would take seconds.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, DataFrameReader, SparkSession

from windrow.errors import SourceError
from windrow.spark.failures import SPARK_ERRORS, is_away, is_gone, reason
from windrow.state.manifest import SourceFile

_WILDCARD = re.compile(r"[*?\[{\\]")
#: the first group of a pattern that has no other inside, and what it is a choice of
_GROUP = re.compile(r"((?:\\.|[^\\])*?)\{((?:\\.|[^\\{}])*)\}(.*)", re.DOTALL)
_CHOICE = re.compile(r"(?:^|,)((?:\\.|[^\\,])*)", re.DOTALL)
#: what a pattern consists of: an escaped character, a set of them, or any other
_SIGN = re.compile(r"\\(.)|\[([!^]?)(.[^]]*)\]|(.)", re.DOTALL)
_SHOWN = 5
#: so many bytes of the beginning and of the end of a file tell it from another of its size
_PROBE = 4096


def list_files(spark: SparkSession, place: str) -> list[SourceFile]:
    """The files of a pattern, in order of their times and then of their names. A directory stands for its
    files, and for those in folders called `column=value`. Hidden files do not count."""
    if is_local(place):
        found = list(local_files(place))
    else:  # Spark lists the files, without reading them
        frame = spark.read.format("binaryFile").option("recursiveFileLookup", "true").load(place)
        found = [file for file in _listed(frame) if not _is_hidden(file.path.rpartition("/")[2])]
    # as exactly as all file systems tell times
    return sorted(found, key=lambda file: (file.modified // 1_000_000, file.path))


def is_local(place: str) -> bool:
    """Whether a path is one of this machine."""
    return "://" not in place and not place.startswith("file:")


def pattern_root(place: str) -> str:
    """The directory below which everything is that a pattern can match: columns are in names of folders
    from there on.

    >>> pattern_root("/in/day=*/*.csv"), pattern_root("/in"), pattern_root("s3a://b/in/x.csv")
    ('/in', '/in', 's3a://b/in')
    """
    parts = place.split("/")
    wild = next((number for number, part in enumerate(parts) if _WILDCARD.search(part)), None)
    if wild is not None:
        return "/".join(parts[:wild]) or "/"
    return place if not Path(place).suffix or Path(place).is_dir() else place.rpartition("/")[0]


def facts(path: str) -> SourceFile | None:
    """A file of this machine as it is now; None if there is none."""
    try:
        known = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return SourceFile(path, known.st_size, known.st_mtime_ns)


def digest(file: SourceFile) -> int:
    """What the beginning and the end of a file of this machine say; 0 if it is gone, or elsewhere."""
    if not is_local(file.path):
        return 0
    try:
        with Path(file.path).open("rb") as content:
            read = content.read(_PROBE)
            if file.size > _PROBE:
                content.seek(max(_PROBE, file.size - _PROBE))
                read += content.read(_PROBE)
    except FileNotFoundError:
        return 0
    return int.from_bytes(blake2b(read, digest_size=8).digest(), "big", signed=True)


# ------------------------------------------------------------ this machine


def local_files(place: str) -> Iterator[SourceFile]:
    """The files of a pattern on this machine, in no certain order."""
    if os.path.lexists(place):  # a name, whatever signs are in it
        paths = _files_in(place)
    else:
        parts = ([part for part in pattern.split("/") if part] for pattern in _alternatives(place))
        paths = iter(dict.fromkeys(chain.from_iterable(_matching("/", each) for each in parts)))
    yield from filter(None, map(facts, paths))


def _matching(folder: str, parts: list[str]) -> Iterator[str]:
    """The files that the rest of a pattern matches below a folder."""
    if not parts:
        yield from _files_in(folder)
        return
    part, rest = parts[0], parts[1:]
    if _WILDCARD.search(part) is None:
        names: Iterable[str] = [part] if os.path.lexists(os.path.join(folder, part)) else []
    else:
        wanted = re.compile(_regex(part), re.DOTALL)
        with os.scandir(folder) as entries:
            names = [entry.name for entry in entries if wanted.fullmatch(entry.name)]
    for name in names:
        path = os.path.join(folder, name)
        if rest and os.path.isdir(path):
            yield from _matching(path, rest)
        elif not rest and not (_is_hidden(name) and os.path.isfile(path)):
            yield from _files_in(path)


def _files_in(path: str) -> Iterator[str]:
    """A file, or those of a directory and of its folders that are values of columns."""
    try:
        known = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return
    if stat.S_ISREG(known.st_mode):
        yield path
    elif stat.S_ISDIR(known.st_mode):
        with os.scandir(path) as entries:
            inside = [(entry.name, entry.is_dir()) for entry in entries if not _is_hidden(entry.name)]
        for name, is_folder in inside:
            if not is_folder:
                yield os.path.join(path, name)
            elif "=" in name:
                yield from _files_in(os.path.join(path, name))


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def _alternatives(pattern: str) -> list[str]:
    """A pattern with braces as several without.

    >>> _alternatives("/in/{a,b{1,2}}.csv")
    ['/in/a.csv', '/in/b1.csv', '/in/b2.csv']
    """
    found = _GROUP.fullmatch(pattern)
    if found is None:
        return [pattern]
    before, inside, after = found.groups()
    several = (_alternatives(before + choice + after) for choice in _CHOICE.findall(inside))
    return list(dict.fromkeys(chain.from_iterable(several)))


def _regex(part: str) -> str:
    r"""A part of a pattern as a regular expression.

    >>> _regex("a*[^b]?"), _regex(r"\*[a-c]")
    ('a.*[^b].', '\\*[a-c]')
    """

    def meaning(found: re.Match[str]) -> str:
        escaped, negated, inside, sign = found.groups()
        if inside:
            plain = re.sub(r"([\[^\\])", r"\\\1", inside)
            return f"[{'^' if negated else ''}{plain}]"
        return {"*": ".*", "?": "."}.get(sign) or re.escape(escaped or sign)

    return _SIGN.sub(meaning, part)


# ------------------------------------------------------------ elsewhere


def load(spark: SparkSession, reader: DataFrameReader, paths: Sequence[str]) -> DataFrame:
    """What a reader makes of some files, by one call of the JVM: a list would take one for each of them."""
    known: Any = reader._jreader
    if len(paths) == 1:
        return DataFrame(known.load(paths[0]), spark)
    jvm: Any = spark._jvm
    names = jvm.org.apache.commons.lang3.StringUtils.splitPreserveAllTokens("\0".join(paths), "\0")
    return DataFrame(known.load(names), spark)


def as_now(spark: SparkSession, paths: Sequence[str]) -> set[SourceFile]:
    """Files elsewhere as they are now; none of them if one is gone."""
    try:
        return set(_listed(unread(spark, paths)))
    except SPARK_ERRORS as error:
        if is_gone(error):
            return set()
        raise SourceError(f"files cannot be looked at again: {reason(error)}", code="source-away") from None


def unread(spark: SparkSession, paths: Sequence[str]) -> Any:
    """Files elsewhere, to be listed."""
    return load(spark, spark.read.format("binaryFile").option("__globPaths__", "false"), paths)


def _listed(frame: DataFrame) -> list[SourceFile]:
    table = frame.selectExpr("path", "length", "unix_micros(modificationTime) AS modified").toArrow()
    columns = (table[name].to_pylist() for name in ("path", "length", "modified"))
    return [SourceFile(path, size, modified * 1000) for path, size, modified in zip(*columns, strict=True)]


# ------------------------------------------------------------ nothing there


def opened_listing(spark: SparkSession, place: str, *, may_be_empty: bool) -> list[SourceFile]:
    """The files of a pattern when it is first looked at. None at all is an error, unless they may still come
    into an empty directory."""
    try:
        files = list_files(spark, place)
        if not files and is_local(place):
            _refuse_missing(place, may_be_empty=may_be_empty)
    except SPARK_ERRORS as error:
        code, what = "source-away" if is_away(error) else None, f"`{place}` cannot be read: {reason(error)}"
        raise SourceError(what, code=code, hint="check the path") from None
    except PermissionError as error:
        raise SourceError(
            f"`{place}` cannot be listed: {error.strerror}",
            code="permission-denied",
            hint="let the user who runs the engine read it",
        ) from None
    except OSError as error:
        raise unlisted(place, error) from None
    if not files and not may_be_empty:
        raise _no_files(f"there are no files in `{place}`")
    return files


def unlisted(place: str, error: OSError) -> SourceError:
    """A directory that cannot be read, for now or for good."""
    reason = error.strerror or str(error)
    return SourceError(f"`{place}` cannot be listed: {reason}", code="source-away", hint="check the path")


def _refuse_missing(place: str, *, may_be_empty: bool) -> None:
    """Nothing matches. A directory that is there and empty may be waiting for its first file."""
    if os.path.isdir(place):
        return
    folder = os.path.dirname(place)
    while _WILDCARD.search(folder):
        folder = os.path.dirname(folder)
    if not os.path.isdir(folder):
        raise _no_files(f"there is no directory `{folder}`", "check the path, or create it")
    inside = sorted(os.listdir(folder))
    if inside or not may_be_empty:
        shown = ", ".join(f"`{name}`" for name in inside[:_SHOWN]) + (", …" if len(inside) > _SHOWN else "")
        hint = f"`{folder}` has {shown}" if inside else f"`{folder}` is empty"
        raise _no_files(f"no file matches `{place}`", hint)
    if _WILDCARD.search(os.path.basename(place)) is None:
        raise _no_files(f"there is no file `{place}`")


def _no_files(message: str, hint: str = "check the path") -> SourceError:
    return SourceError(message, code="no-files", hint=hint)
