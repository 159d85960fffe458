"""`files://…`: the files of a pattern as a source, in the order of their times.

Left to itself Spark would match CSV columns by position, and give NULL for a column that a file does not
have. So the first file is looked at before anything is read, what is found there is kept with the first
commit, and later files are held against it.

Which files were read is remembered by keys of fixed size, one for each: its time orders a file and never
excludes one, since files that are copied or moved come late with old times. A file that was read and comes
back under another name is known by its size, its time and what is in it.
"""

from __future__ import annotations

import io
import json
import re
import time
from contextlib import suppress
from functools import partial
from hashlib import blake2b
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession, functions as F
from pyspark.sql.types import DataType as SparkType, StringType, StructField, StructType

from windrow.algebra.catalog import Stream, Table
from windrow.errors import SourceError, nearest
from windrow.execution.bundle import Few
from windrow.kernels.columnar.columns import rows_schema
from windrow.spark.failures import SPARK_ERRORS, is_away, is_unanswered, reason
from windrow.spark.sources import fit, listing, malformed_rows, parquet_files, parsers, urls
from windrow.spark.sources.source import Begun, Offsets, Position, Source, Unsettled, keys_schema, portion

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from windrow.algebra.types import DataType
    from windrow.state.manifest import SourceFile

_SAMPLE_LINES = 1000
#: seconds for which a file that was written to has to stay the same, and for which a run that ends waits
_STABLE, _SETTLING = 0.5, 2.0
#: files of so many bytes are small; of text that is plain, a line has at least so many
_SMALL, _PLAIN_TEXT, _SHORT_LINE = 1 << 26, (".csv", ".json", ".jsonl", ".ndjson", ".txt"), 16
#: the columns of an order key
_TIME, _FILE, _ROW_INDEX, _BLOCK, _LINE = "__time", "__file", "__row_index", "__block", "__line"
#: what stands before a path, where it is not one of this machine
_SCHEME = re.compile(r"^[\w+.-]+:(?://[^/]*)?(?=/)")
#: text as Spark reads it
_LINES = StructType([StructField("value", StringType())])


class FilesSource(Source):
    """Files, each read once. A position is how many were read, and what their columns are called."""

    is_slow = True

    def __init__(self, spark: SparkSession, stream: Stream | Table, wanted: urls.FilesUrl) -> None:
        self._spark, self._stream, self._wanted = spark, stream, wanted
        self.is_bounded = wanted.bounded
        found = listing.opened_listing(spark, wanted.place, may_be_empty=not wanted.bounded)
        files = [file for file in found if file.size]
        kinds = {wanted.format} if wanted.format else {urls.format_of(file.path) for file in files}
        kind = kinds.pop() if len(kinds) == 1 else None
        if kind is None:
            raise urls.unknown_format(wanted.place)
        order_key = _order_key(kind, wanted)
        self.hands_on_malformed = kind != "parquet" and parsers.hands_on(stream, wanted.malformed)
        fit.check_order_names(stream, order_key)
        self.order_key, self.fingerprint = tuple(order_key), wanted.fingerprint(kind)
        self._reader = _Reader(spark, stream, wanted, kind, order_key)
        self._files = found if wanted.bounded else files
        self._read = _Read()
        if files:
            self._open(files[0])

    def _open(self, file: SourceFile) -> None:
        """Find out which columns the first file has; if it is still written, the run does."""
        try:
            self._reader.look_at(file)
        except SourceError:
            if self._reader.is_whole(file):
                raise
            time.sleep(_STABLE)
            if listing.facts(file.path) == file:
                raise

    def describe(self) -> str:
        return f"files {self._wanted.place}"

    def all_rows(self) -> DataFrame:
        """The rows of all files that are there."""
        self._reader.check(self._files)
        return self._reader.frame(self._files)

    def begin(self, begun: Begun) -> None:
        self._read = _Read(begun.keys)
        stored = begun.start.get("columns")
        if stored is not None:
            self._reader.columns = stored

    def latest(self) -> list[SourceFile]:
        """The files that nobody has read, the oldest first."""
        if self.is_bounded:  # what is there when a run begins, which may have been mended since the last one
            self._files = listing.opened_listing(self._spark, self._wanted.place, may_be_empty=False)
            return self._files
        try:
            listed = listing.list_files(self._spark, self._wanted.place)
        except OSError as error:
            raise listing.unlisted(self._wanted.place, error) from None
        except SPARK_ERRORS as error:
            raise SourceError(
                f"`{self._wanted.place}` cannot be listed: {reason(error)}", code="source-away"
            ) from None
        return self._read.new(listed, self._stream.title)

    def whole(self) -> list[SourceFile]:
        """A file that may still be written is waited for a little: a run that ends reads what is there."""
        found, until = self.latest(), time.monotonic() + _SETTLING
        while self._read.unstable and time.monotonic() < until:
            time.sleep(_SETTLING / 20)
            found = self.latest()
        return found

    def upto(self, start: Position, latest: Sequence[SourceFile]) -> Offsets | None:
        files = [file for file in latest if self.is_bounded or self._read.awaits(file)]
        taken = files
        if not self.is_bounded:
            some = files[: self._wanted.files_per_batch]
            taken = portion(some, lambda file: file.size, self._wanted.bytes_per_batch)
            if not taken:
                return None
        if taken and self._reader.columns is None:
            self._look_at(taken[0])
        self._reader.check(taken)
        return self._end(start, taken, has_more=len(taken) < len(files))

    def _end(self, start: Position, files: Sequence[SourceFile], *, has_more: bool) -> Offsets:
        at = {"files": int(start.get("files", 0)) + len(files), "columns": self._reader.columns}
        return Offsets(at, tuple(files), has_more=has_more, rows=self._reader.count(files))

    def _look_at(self, file: SourceFile) -> None:
        """Find out which columns the first file has, unless it may still be written."""
        try:
            self._reader.look_at(file)
        except SourceError as error:
            if self.is_settled(Offsets({}, (file,))):
                raise
            raise Unsettled(error.message) from None

    def frame(self, start: Position, end: Offsets) -> DataFrame | Few:
        make = partial(self._reader.frame, end.items)
        return make() if end.rows is None else Few(end.rows, partial(self._reader.table, end.items), make)

    def rest(self, start: Position, end: Offsets) -> Offsets | None:
        left = tuple(file for file in end.items if self.is_bounded or self._read.awaits(file))
        return self._end(start, left, has_more=end.has_more) if left else None

    def half(self, start: Position, end: Offsets) -> Offsets | None:
        taken = end.items[: len(end.items) // 2]
        return self._end(start, taken, has_more=True) if taken and not self.is_bounded else None

    def piece(self, start: Position, end: Offsets) -> str:
        return f"file {end.items[0].path}" if len(end.items) == 1 else self.describe()

    def row(self, end: Offsets, number: int) -> str:
        line = self._reader.line(end.items[0], number) if len(end.items) == 1 else None
        return super().row(end, number) if line is None else f"line {line:,}"

    def check(self, end: Offsets) -> bool:
        """Whether the files are as they were when they were listed."""
        changed = [f for f in end.items if listing.is_local(f.path) and listing.facts(f.path) != f]
        elsewhere = [f for f in end.items if not listing.is_local(f.path)]
        if elsewhere:
            now = listing.as_now(self._spark, [file.path for file in elsewhere])
            changed += [file for file in elsewhere if file not in now]
        self._read.unstable.update(file.path for file in changed)
        return not changed

    def is_settled(self, end: Offsets) -> bool:
        """A Parquet file without an end may still be written, unless it has stayed as it is for a while."""
        cut = [file for file in end.items if not self._reader.is_whole(file)]
        return self.check(end) and not self._read.may_grow(cut)

    def keys(self, end: Offsets) -> pa.Table | None:
        return None if self.is_bounded else self._read.keys(end.items)

    def committed(self, end: Offsets, commit: int) -> None:
        if not self.is_bounded:
            self._read.add(end.items)


#: the size of a file, when it was modified, and a digest of what is in it
Facts = tuple[int, int, int]


class _Read:
    """The files that were read: by the hash of the path, what is known of each."""

    def __init__(self, keys: pa.Table | None = None) -> None:
        self._known: dict[bytes, Facts] = {}
        #: and the other way round, to know a file that has got another name
        self._names: dict[tuple[int, int], list[bytes]] = {}
        #: other names of files that were read, not yet in a commit
        self._renamed: dict[bytes, Facts] = {}
        #: what was told of the files that the next commit is about
        self._pending: dict[bytes, Facts] = {}
        #: files that were written to while they were read, and how each was when it was last looked at
        self.unstable: set[str] = set()
        self._seen: dict[str, tuple[SourceFile, float]] = {}
        #: files that could not be read to their end, as they were then
        self._cut: dict[str, SourceFile] = {}

        if keys is not None:  # what commits remember
            columns = (keys[name].to_pylist() for name in keys_schema().names)
            for key, *known in zip(*columns, strict=True):
                self._add(key, tuple(known))

    def _add(self, key: bytes, known: Facts) -> None:
        self._known[key] = known
        self._names.setdefault(known[:2], []).append(key)

    def add(self, files: Sequence[SourceFile]) -> None:
        """These were read, and a commit holds them."""
        for file in files:
            key = _key(file)
            self._add(key, self._pending.get(key) or _facts(file))
        self._renamed.clear()

    def awaits(self, file: SourceFile) -> bool:
        """Whether a file was not read, and need not be looked at again before it is."""
        return _key(file) not in self._known and file.path not in self.unstable

    def keys(self, files: Sequence[SourceFile]) -> pa.Table:
        """What a commit remembers of files that it reads, and of new names of others."""
        self._pending = {_key(file): _facts(file) for file in files}
        known = {**self._pending, **self._renamed}
        rows = [dict(zip(keys_schema().names, (key, *each), strict=True)) for key, each in known.items()]
        return pa.Table.from_pylist(rows, schema=keys_schema())

    def new(self, listed: Sequence[SourceFile], title: str) -> list[SourceFile]:
        """The files of a listing that nobody has read; one that has changed since is refused."""
        there = {_key(file): file for file in listed}
        if self.unstable:
            self.unstable.intersection_update([file.path for file in listed])
        found = []
        for key, file in there.items():
            known = self._known.get(key)
            if known is None:
                if file.size and self._is_stable(file) and not self._is_renamed(key, file, there, title):
                    found.append(file)
            elif known[:2] != (file.size, file.modified):
                if (
                    known[0] != file.size
                    or not listing.is_local(file.path)
                    or known != (*known[:2], listing.digest(file))
                ):
                    raise SourceError(
                        f"{title}: {file.path} was changed after it was read",
                        code="file-changed",
                        hint="restore it, or start with a new state directory; write new rows to new files",
                    )
                self._known[key] = (file.size, file.modified, known[2])  # only its time is another
        return found

    def _is_stable(self, file: SourceFile) -> bool:
        """Whether a file that was once written to while it was read has stayed the same for a while."""
        if file.path not in self.unstable:
            return True
        now = time.monotonic()
        seen, since = self._seen.get(file.path, (None, now))
        if seen == file and now - since >= _STABLE:
            self.unstable.discard(file.path)
            del self._seen[file.path]
            return True
        self._seen[file.path] = file, since if seen == file else now
        return False

    def may_grow(self, cut: Sequence[SourceFile]) -> bool:
        """Whether some of these are cut off otherwise than before, so that they are worth another look."""
        others = [file for file in cut if self._cut.get(file.path) != file]
        self._cut |= {file.path: file for file in others}
        self.unstable.update(file.path for file in others)
        return bool(others)

    def _is_renamed(self, key: bytes, file: SourceFile, there: dict[bytes, SourceFile], title: str) -> bool:
        """Whether a file was read under a name that is gone."""
        before = [old for old in self._names.get((file.size, file.modified), ()) if old not in there]
        if not before:
            return False
        if not listing.is_local(file.path):
            raise SourceError(
                f"{title}: {file.path} has the size and the time of a file that was read and is gone: it"
                " seems to be the same one under another name",
                code="file-renamed",
                hint="give it back its name; or, if it is new, write it once more",
            )
        known = (file.size, file.modified, listing.digest(file))
        if not any(self._known[old] == known for old in before):
            return False
        self._add(key, known)
        self._renamed[key] = known
        return True


def _key(file: SourceFile) -> bytes:
    return blake2b(file.path.encode("utf-8", "surrogateescape"), digest_size=16).digest()


def _facts(file: SourceFile) -> Facts:
    return file.size, file.modified, listing.digest(file)


def _in_path(path: str, root: str) -> list[str]:
    """The columns that are in the names of folders, in lower case.

    >>> _in_path("/in=1/Day=2/x.parquet", "/in=1")
    ['day']
    >>> _in_path("file:/in=1/Day=2/x.parquet", "file:///in=1")
    ['day']
    """
    folders = _SCHEME.sub("", path).removeprefix(_SCHEME.sub("", root)).split("/")[:-1]
    return [folder.partition("=")[0].lower() for folder in folders if "=" in folder]


def _order_key(kind: str, wanted: urls.FilesUrl) -> dict[str, Column]:
    """What rows are ordered by: files by their times and names, as they are taken. Only Parquet numbers its
    rows; in a bounded read Spark can count lines."""
    if kind != "parquet" and not wanted.bounded:
        return {}
    time = F.col("_metadata.file_modification_time").alias(_TIME)
    file = F.col("_metadata.file_path").alias(_FILE)
    if kind == "parquet":
        return {_TIME: time, _FILE: file, _ROW_INDEX: F.col("_metadata.row_index").alias(_ROW_INDEX)}
    block = F.col("_metadata.file_block_start").alias(_BLOCK)
    return {_TIME: time, _FILE: file, _BLOCK: block, _LINE: F.monotonically_increasing_id().alias(_LINE)}


# ------------------------------------------------------------ reading


class _Reader:
    """Files to rows. `columns` is what was found in the first file; plain values, kept with the commits."""

    def __init__(
        self,
        spark: SparkSession,
        stream: Stream | Table,
        wanted: urls.FilesUrl,
        kind: str,
        order: dict[str, Column],
    ) -> None:
        self.spark, self.stream, self.wanted, self.kind = spark, stream, wanted, kind
        self._order_names, self._order = list(order), list(order.values())
        self.columns: dict[str, Any] | None = None
        self.where, self.root = f"`{wanted.place}`", listing.pattern_root(wanted.place)
        #: what reads files of one schema, and makes them fit: the same for every epoch
        self._prepared: dict[str, tuple[Any, fit.Fitting]] = {}

    def look_at(self, file: SourceFile) -> None:
        """Find out what the columns are called, and whether they fit."""
        self.where = f"`{file.path}`".replace("`file:", "`")
        look = {"parquet": self._parquet_columns, "csv": self._csv_columns, "json": self._json_keys}
        try:
            self.columns = look[self.kind](file.path)
        except SPARK_ERRORS as error:
            raise _unreadable(self.wanted, error) from None

    def frame(self, files: Sequence[SourceFile]) -> DataFrame:
        """The rows of these files."""
        paths = [file.path for file in files]
        rows = {"parquet": self._parquet, "csv": self._csv, "json": self._json}
        try:
            return rows[self.kind](paths)
        except SPARK_ERRORS as error:
            raise _unreadable(self.wanted, error) from None

    def check(self, files: Sequence[SourceFile]) -> None:
        """Refuse a file that lacks a column which files before it have: Spark would read NULL."""
        if self.columns is None or self.wanted.absent == "null" or self.kind == "csv":
            return
        lacking = {"parquet": self._lacking_in_parquet, "json": self._lacking_in_json}[self.kind]
        found = next(lacking([file.path for file in files]), None)
        if found is not None:
            raise SourceError(
                f"{self.stream.title}: {found[0]} has no column `{found[1]}`, which files before it have",
                code="missing-column",
                hint="write it with all columns; if it may be left out, say `?absent=null`",
            )

    def _lacking_in_parquet(self, paths: Sequence[str]) -> Iterator[tuple[str, str]]:
        """Files, each with a column that it lacks. What is no Parquet file is told when it is read."""
        assert self.columns is not None
        names = {field["name"].lower(): field["name"] for field in self.columns["schema"]["fields"]}
        for path, given in chain(parquet_files.columns_here(paths), self._given_elsewhere(paths)):
            absent = names.keys() - given - set(_in_path(path, self.root))
            if absent:
                yield path, names[min(absent)]

    def _given_elsewhere(self, paths: Sequence[str]) -> Iterator[tuple[str, set[str]]]:
        elsewhere = [path for path in paths if not listing.is_local(path)]
        try:
            yield from parquet_files.columns_elsewhere(self.spark, elsewhere) if elsewhere else ()
        except SPARK_ERRORS as error:
            if is_unanswered(error):
                raise _unreadable(self.wanted, error) from None

    def _lacking_in_json(self, paths: Sequence[str]) -> Iterator[tuple[str, str]]:
        """Files without a key in any of their objects. In most, the first lines have all; other files are
        looked through by Spark, at once."""
        assert self.columns is not None
        keys = set(self.columns["keys"].values())
        rest = [path for path in paths if keys and not (_is_plain(path) and _has_at_begin(path, keys))]
        if not rest:
            return
        lines = self._load("text", _LINES, rest)
        known = F.explode(F.expr("json_object_keys(value)"))
        try:
            pairs = (
                lines.select(malformed_rows.file_of(lines).alias("file"), known.alias("key"))
                .distinct()
                .toArrow()
            )
        except SPARK_ERRORS as error:
            raise _unreadable(self.wanted, error) from None
        given: dict[str, set[str]] = {}
        for path, key in zip(*(pairs[name].to_pylist() for name in ("file", "key")), strict=True):
            given.setdefault(path, set()).add(key)
        for path in sorted(given):
            if absent := keys - given[path]:
                yield unquote(path).removeprefix("file://"), min(absent)

    def is_whole(self, file: SourceFile) -> bool:
        """Whether a file has an end, as far as that is to be seen: what a Parquet file is stands there."""
        if self.kind != "parquet" or not listing.is_local(file.path):
            return True
        with suppress(OSError, pa.ArrowException):
            pq.read_metadata(file.path)
            return True
        return False

    def count(self, files: Sequence[SourceFile]) -> int | None:
        """About how many rows files have, at most, if they are small; nobody knows of compressed text."""
        size = sum(file.size for file in files)
        if size > _SMALL or not all(listing.is_local(file.path) for file in files):
            return None
        if self.kind != "parquet":
            plain = all(Path(file.path).suffix in _PLAIN_TEXT for file in files)
            return size // _SHORT_LINE if plain else None
        with suppress(OSError, pa.ArrowException):  # what is no Parquet file is told when it is read
            return sum(int(pq.read_metadata(file.path).num_rows) for file in files)
        return None

    def line(self, file: SourceFile, number: int) -> int | None:
        """The line of a text file of this machine that a row of it stands in: Spark passes over empty ones,
        and over a header."""
        if self.kind == "parquet" or not listing.is_local(file.path):
            return None
        is_csv, spaces = self.kind == "csv", "".join(map(chr, range(33)))
        failures = suppress(OSError, pa.ArrowException)
        with failures, pa.input_stream(file.path, compression="detect") as stream:
            lines = io.TextIOWrapper(stream, encoding="utf-8", errors="replace", newline=None)
            kept = (at for at, line in enumerate(lines, 1) if line.strip(spaces if is_csv else " \n"))
            return next(islice(kept, number + (is_csv and self.wanted.header), None), None)
        return None

    def table(self, files: Sequence[SourceFile]) -> pa.Table | None:
        """The rows of Parquet files of this machine whose columns are of the declared types as they are; None
        if there is anything about them that Spark had better deal with."""
        in_paths = any("=" in file.path for file in files)  # a column may be in the path
        if self.kind != "parquet" or self.columns is None or self.stream.forms or in_paths:
            return None
        names = [field["name"] for field in self.columns["schema"]["fields"]]
        try:
            found = [
                parquet_files.parquet_rows(file.path, names, rows_schema(self.stream.schema))
                for file in files
            ]
        except (OSError, pa.ArrowException):
            return None
        known = [table for table in found if table is not None]
        return None if len(known) < len(files) else parquet_files.numbered(known, self._order_names)

    def _load(self, kind: str, schema: StructType | None, paths: Sequence[str], **options: Any) -> DataFrame:
        """The files as Spark gives them."""
        return listing.load(self.spark, self._reader(kind, schema, **options), paths)

    def _reader(self, kind: str, schema: StructType | None, **options: Any) -> DataFrameReader:
        """What reads files of a kind: their names are names, and no patterns."""
        reader = self.spark.read.format(kind).options(__globPaths__="false", basePath=self.root, **options)
        return reader if schema is None else reader.schema(schema)

    # Parquet.

    def _parquet_columns(self, path: str) -> dict[str, Any]:
        given = self._load("parquet", None, [path]).schema
        if self.wanted.absent == "null":
            known = {name.lower() for name in given.names}
            lacking = [f for f in self.stream.schema if f.name.lower() not in known]
            given = StructType([*given.fields, *(StructField(f.name, fit.to_spark(f.type)) for f in lacking)])
        names = fit.check_types(given, self.stream, self.where)
        fields = [
            StructField(names[f.name], _read_as(f.type, given[names[f.name]].dataType))
            for f in self.stream.schema
        ]
        return {"schema": json.loads(StructType(fields).json())}

    def _parquet(self, paths: Sequence[str]) -> DataFrame:
        key = json.dumps(self.columns)
        if key not in self._prepared:
            if self.columns is None:
                schema = StructType([StructField(f.name, fit.to_spark(f.type)) for f in self.stream.schema])
            else:
                schema = StructType.fromJson(self.columns["schema"])
            reader = self._reader("parquet", schema)
            place = F.expr("concat(_metadata.file_path, ', row ', _metadata.row_index + 1)")
            shape = fit.fitting(
                listing.load(self.spark, reader, paths), self.stream, self.where, self._order, place
            )
            self._prepared[key] = reader, shape
        known, fits = self._prepared[key]
        return fits.of(listing.load(self.spark, known, paths))

    # CSV.

    def _csv_columns(self, path: str) -> dict[str, Any]:
        parsers.check_flat(self.stream, "a csv file")
        header = self._load_csv(None, [path]).columns if self.wanted.header else None
        parsers.csv_schema(self.stream, header, self.where)
        return {"header": header}

    def _load_csv(self, schema: StructType | None, paths: Sequence[str]) -> DataFrame:
        options = parsers.csv_options(header=self.wanted.header, delimiter=self.wanted.delimiter)
        return self._load("csv", schema, paths, **options)

    def _csv(self, paths: Sequence[str]) -> DataFrame:
        header = None if self.columns is None else self.columns["header"]
        frame = self._load_csv(parsers.csv_schema(self.stream, header, self.where), paths)
        how = parsers.TextFormat("csv", self.wanted.malformed, self.wanted.delimiter)
        return parsers.parse_csv(
            frame, how, self.stream, self._order, malformed_rows.file_of(frame), self.where
        )

    # JSON.

    def _json(self, paths: Sequence[str]) -> DataFrame:
        keys = {} if self.columns is None else self.columns["keys"]
        lines = self._load("text", _LINES, paths)
        how = parsers.TextFormat("json", self.wanted.malformed)
        rows = lines.where(F.trim("value") != "")
        place = malformed_rows.file_of(lines)
        return parsers.parse(rows, F.col("value"), how, self.stream, keys, self._order, place, in_files=True)

    def _json_keys(self, path: str) -> dict[str, Any]:
        """What the declared columns are called: JSON minds the case of names, SQL does not."""
        lines = self._first_lines(path)
        keys = [key for line in lines for key in _keys_of(line)]
        found = {**{key.lower(): key for key in keys}, **{key: key for key in keys}}
        names = {name: found.get(name) or found.get(name.lower()) for name in self.stream.schema.names}
        absent = next((name for name, key in names.items() if key is None), None)
        if keys and absent is not None and self.wanted.absent == "fail":
            raise SourceError(
                f"{self.stream.title} declares a column `{absent}`, which the first {len(lines):,}"
                f" lines of {self.where} do not have",
                code="missing-column",
                hint=f"{nearest(absent, keys) or 'check the name'}; if it may be absent, say `?absent=null`",
            )
        return {"keys": {name: key for name, key in names.items() if key is not None}}

    def _first_lines(self, path: str) -> list[bytes]:
        if _is_plain(path):
            with Path(path).open("rb") as file:
                return list(islice(file, _SAMPLE_LINES))
        raw = self._load("text", None, [path]).limit(_SAMPLE_LINES).select(F.col("value").cast("binary"))
        lines: list[bytes] = raw.toArrow()["value"].to_pylist()
        return lines


def _read_as(declared: DataType, given: SparkType) -> SparkType:
    """Spark reads wider numbers from narrower ones itself, so that files may have either."""
    ours = fit.from_spark(given)
    widens = ours is not None and (
        (ours.is_integer and declared.is_integer) or (ours.is_fractional and declared.is_fractional)
    )
    return fit.to_spark(declared) if widens else given


def _is_plain(path: str) -> bool:
    """Whether the lines of a file can be read here as they are."""
    return listing.is_local(path) and not path.endswith(urls.COMPRESSED)


def _has_at_begin(path: str, keys: set[str]) -> bool:
    """Whether the first objects of a file have all of some keys."""
    with suppress(OSError), Path(path).open("rb") as file:  # it is told when it is read
        for line in islice(file, _SAMPLE_LINES):
            keys = keys.difference(_keys_of(line))
            if not keys:
                return True
    return False


def _keys_of(line: bytes) -> list[str]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return []  # what is malformed is dealt with when it is read
    return list(row) if isinstance(row, dict) else []


def _unreadable(wanted: urls.FilesUrl, error: BaseException) -> SourceError:
    text, code = reason(error), "bad-files"
    hint: str | None = "check that the files are what `format` says"
    if not listing.is_local(wanted.place) and is_away(error):
        code, hint = "source-away", None
    elif "NANOS" in text:
        hint = (
            "Spark reads no nanoseconds: write the file with microseconds, in pyarrow coerce_timestamps='us'"
        )
    return SourceError(f"`{wanted.place}` cannot be read: {text}", code=code, hint=hint)
