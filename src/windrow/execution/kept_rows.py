"""Rows of a stream that are kept for queries to come: a Parquet file for each piece of a batch.

Such a file is a sub-window. What is in it never changes; it is forgotten when all its rows are too old.
Anything that reads Parquet reads it: times are times, and `arrival_ts` is a column.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, BinaryIO

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from windrow.algebra.catalog import PSEUDO_COLUMNS, Stream
from windrow.algebra.expressions import Field, Schema
from windrow.algebra.types import Kind
from windrow.errors import DataError, StateError
from windrow.execution import bundle, delta_file, reports
from windrow.kernels.columnar.columns import frame_from_arrow, polars_type
from windrow.kernels.intake import Intake, Known
from windrow.state import chunk, crash, manifest, names
from windrow.state.store import Store, damaged, explained
from windrow.windows.domain import ARRIVAL_TS

#: the only part of such a file, and rows that are written together
ROWS, _ROWS_PER_GROUP = "rows", 1 << 16
_DAY = 86_400_000_000
_TIMES = {Kind.TIMESTAMP: pa.timestamp("us", tz="UTC"), Kind.INTERVAL: pa.duration("us")}


def kept_schema(stream: Stream) -> Schema:
    """The columns of the files: those of the stream, and when each row came."""
    return Schema((*stream.schema.fields, Field(ARRIVAL_TS, PSEUDO_COLUMNS[ARRIVAL_TS])))


class KeptWriter:
    """Writes accepted rows, as the intake gives them, to one file; without rows there is none."""

    def __init__(self, place: delta_file.WriteTarget, stream: Stream, **metadata: Any) -> None:
        self._place, self._stream = place, stream
        self._metadata = {"stream": stream.name, "commit": place.commit, **metadata}
        self._name = names.new_chunk_name(place.commit, place.owner, names.DRIVER, names.CHUNKS, "parquet")
        self._stack = ExitStack()
        self._file: _Summed | None = None
        self._writer: pq.ParquetWriter | None = None
        self._waiting: list[pa.Table] = []
        self._rows = 0
        self._ends: list[int] = []

    def add(self, accepted: pl.DataFrame) -> None:
        """Some accepted rows."""
        if not accepted.height:
            return
        moments = accepted[_moment(self._stream)].cast(pl.Int64)
        self._ends = [moments.min(), moments.max(), *self._ends]  # type: ignore[list-item]
        self._ends = [min(self._ends), max(self._ends)]
        self._rows += accepted.height
        self._waiting.append(_for_readers(accepted, self._stream))
        if sum(table.num_rows for table in self._waiting) >= _ROWS_PER_GROUP:
            self._write()

    @property
    def ref(self) -> manifest.ChunkRef | None:
        """The finished file, if there is one."""
        if self._file is None:
            return None
        facts = manifest.Facts(self._rows, self._file.size, *self._ends)
        digest = self._file.digest.hexdigest()
        return manifest.ChunkRef(
            self._name, self._file.size, digest, self._rows, {ROWS: facts}, self._metadata
        )

    def __enter__(self) -> KeptWriter:
        return self

    def __exit__(self, *error: Any) -> None:
        with self._stack:
            if error[0] is not None:
                self._stack.__exit__(*error)
            elif self._waiting:
                self._write()
        if self._file is not None:
            crash.crash_point("chunk-written")

    def _write(self) -> None:
        table = pa.concat_tables(self._waiting)
        self._waiting = []
        if self._writer is None:
            store = self._place.store
            self._stack.enter_context(explained("write", store.place(self._name)))
            self._file = _Summed(self._stack.enter_context(store.writer(self._name)))
            self._writer = self._stack.enter_context(pq.ParquetWriter(self._file, table.schema))
        self._writer.write_table(table, row_group_size=_ROWS_PER_GROUP)
        crash.crash_point("chunk-partly-written")


@dataclass(frozen=True)
class KeepTask:
    """Keeps rows of a batch whose queries need only what Spark makes of them."""

    stream: Stream
    known: Known
    now: int
    place: delta_file.WriteTarget

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        reports.undisturbed()
        yield reports.message(reports.DONE, self.run(batches))

    def run(self, batches: Iterable[pa.RecordBatch]) -> reports.Ingested:
        """Judge the rows and keep those that count."""
        intake = Intake(self.stream)
        try:
            with KeptWriter(self.place, self.stream) as kept:
                for batch in batches:
                    frame = frame_from_arrow(
                        bundle.as_declared(batch, self.stream.schema), self.stream.schema
                    )
                    kept.add(intake.judge(self.known, frame, self.now).accepted)
        except DataError as error:
            return reports.Ingested(self.stream.name, refusal=error)
        return reports.Ingested(self.stream.name, kept=kept.ref)


def read_kept(
    store: Store, ref: manifest.ChunkRef, stream: Stream, columns: Iterable[str] | None = None
) -> pl.DataFrame:
    """The rows of a sub-window as kernels have them, `#arrival_ts` among them."""
    data = kept_bytes(store, ref)
    schema = kept_schema(stream)
    if columns is not None:
        wanted = {*columns, stream.wattr}
        schema = Schema(tuple(field for field in schema if field.name in wanted))
    table = pq.read_table(pa.BufferReader(data), columns=list(schema.names), use_threads=False)
    return frame_from_arrow(table, schema).rename({ARRIVAL_TS: f"#{ARRIVAL_TS}"}, strict=False)


def kept_bytes(store: Store, ref: manifest.ChunkRef) -> pa.Buffer:
    """The file of a sub-window, every byte of which is as it was written."""
    try:
        data = store.map(ref.name).slice()
    except StateError as error:
        if error.code != "file-missing":
            raise
        raise chunk.chunk_missing(store.place(ref.name)) from error
    if data.size != ref.bytes or blake2b(data, digest_size=16).hexdigest() != ref.checksum:
        raise damaged(store.place(ref.name), "it is not the file that was committed under this name")
    return data


def empty_rows(stream: Stream) -> pl.DataFrame:
    """No rows of a stream, with all columns that kept ones have."""
    names = {ARRIVAL_TS: f"#{ARRIVAL_TS}"}
    kinds = {names.get(f.name, f.name): polars_type(f.type) for f in kept_schema(stream)}
    return pl.DataFrame(schema=kinds)


def span_of(ref: manifest.ChunkRef) -> tuple[int, int]:
    """The least and the greatest windowing attribute of a sub-window."""
    facts = ref.operators[ROWS]
    return int(facts.lowest), int(facts.highest)


def _moment(stream: Stream) -> str:
    return f"#{ARRIVAL_TS}" if stream.wattr == ARRIVAL_TS else stream.wattr


def _for_readers(accepted: pl.DataFrame, stream: Stream) -> pa.Table:
    """Times as times; what is inside arrays stays as kernels have it."""
    named = accepted.rename({f"#{ARRIVAL_TS}": ARRIVAL_TS})
    columns = {field.name: _cast(named[field.name], field.type.kind) for field in kept_schema(stream)}
    return pa.table(columns)


def _cast(column: pl.Series, kind: Kind) -> pa.Array:
    if kind is Kind.DATE:
        return (column // _DAY).cast(pl.Int32).to_arrow().cast(pa.date32())
    found = column.to_arrow()
    if kind in (Kind.STRING, Kind.BINARY):
        found = found.cast(pa.string() if kind is Kind.STRING else pa.binary())
    return found.cast(_TIMES[kind]) if kind in _TIMES else found


class _Summed:
    """A file that knows how much was written to it, and the checksum of that."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self.size = file, 0
        self.digest = blake2b(digest_size=16)
        self.closed = False

    def write(self, data: Any) -> int:
        self.digest.update(data)
        self.size += len(memoryview(data).cast("B"))
        return self._file.write(data)

    def tell(self) -> int:
        return self.size

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        self.closed = True
