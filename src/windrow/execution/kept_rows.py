"""Rows of a stream that are kept for queries to come: a Parquet file for each piece of a batch.

Such a file is a sub-window. What is in it never changes; it is forgotten when all its rows are too old.
Anything that reads Parquet reads it: times are times, and `arrival_ts` is a column.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, BinaryIO

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from windrow.algebra import PSEUDO_COLUMNS, Field, Schema, Stream
from windrow.errors import DataError, StateError
from windrow.execution import bundle, delta_file, reports
from windrow.kernels.columnar.columns import arrow_type, frame_from_arrow, polars_type, published
from windrow.kernels.intake import Intake, Known
from windrow.state import chunk, crash, manifest, names
from windrow.state.store import Store, damaged, explained
from windrow.windows.domain import ARRIVAL_TS

#: the only part of such a file, and rows that are written together
ROWS, _ROWS_PER_GROUP = "rows", 1 << 16


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
        wattr = self._stream.wattr
        moments = accepted[f"#{ARRIVAL_TS}" if wattr == ARRIVAL_TS else wattr].cast(pl.Int64)
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
class KeepTask(reports.IngestTask):
    """Keeps rows of a batch whose queries need only what Spark makes of them."""

    stream: Stream
    known: Known
    now: int
    place: delta_file.WriteTarget

    def run(self, batches: Iterable[pa.RecordBatch]) -> reports.Ingested:
        """Judge the rows and keep those that count."""
        intake, schema = Intake(self.stream), self.stream.schema
        try:
            with KeptWriter(self.place, self.stream) as kept:
                for batch in batches:
                    frame = frame_from_arrow(bundle.as_declared(batch, schema), schema)
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


def _for_readers(accepted: pl.DataFrame, stream: Stream) -> pa.Table:
    """Times as times; what is inside arrays stays as kernels have it."""
    schema = kept_schema(stream)
    table = accepted.rename({f"#{ARRIVAL_TS}": ARRIVAL_TS}).select(schema.names).to_arrow()
    fields = [
        own if field.type.fields else pa.field(field.name, arrow_type(field.type))
        for own, field in zip(table.schema, schema, strict=True)
    ]
    return published(table, pa.schema(fields))


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
