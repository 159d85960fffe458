"""`generator:name?…`: bundled streams, in step with the clock on the wall, or all rows at once.

A position is the number of rows given so far. Rows are a function of their number, so that a range always
gives the same rows. The rows of a second are due at its beginning, so that there is something to see at once.
A run that begins at some position counts the rows due from there and from then: the time in between is not
made up for. A change of the rate counts in the same way, from the rows due at that moment.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession, functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import LongType, StructField, StructType

from windrow.execution.bundle import Few
from windrow.kernels.columnar.columns import rows_schema
from windrow.spark.sources import fit, generators, source, urls

if TYPE_CHECKING:
    from windrow.algebra.catalog import Stream

_ROWS_PER_ARROW_BATCH = 1 << 16
#: fewer rows are not worth a task of their own
_ROWS_PER_TASK = 1 << 15


@dataclass(frozen=True)
class ReadRows:
    """Reads a range of a generator's rows, in a task."""

    generator: str
    settings: generators.Settings
    columns: tuple[str, ...]

    def __call__(self, part: tuple[int, int]) -> Iterator[pa.RecordBatch]:
        first, last = part
        for start in range(first, last, _ROWS_PER_ARROW_BATCH):
            end = min(start + _ROWS_PER_ARROW_BATCH, last)
            yield generators.GENERATORS[self.generator].rows(self.settings, start, end, self.columns)


def in_parts(first: int, last: int, tasks: int) -> list[tuple[int, int]]:
    """A range of rows in equal parts, one for each task.

    >>> in_parts(0, 100_000, 2), in_parts(5, 7, 2), in_parts(3, 3, 2)
    ([(0, 50000), (50000, 100000)], [(5, 7)], [(3, 3)])
    """
    tasks = max(1, min(tasks, (last - first) // _ROWS_PER_TASK))
    return list(pairwise(first + (last - first) * task // tasks for task in range(tasks + 1)))


def check_columns(generator: generators.Generator, stream: Stream) -> dict[str, str]:
    """For each declared column its name in the generator, if that has it."""
    return fit.check_types(from_arrow_schema(generator.schema), stream, f"generator:{generator.name}")


class GeneratorSource(source.Source):
    """A generator's rows by their numbers."""

    order_key = (generators.ROW,)

    def __init__(
        self,
        spark: SparkSession,
        stream: Stream,
        wanted: urls.GeneratorUrl,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._spark, self._stream, self._wanted, self._clock = spark, stream, wanted, clock
        self.is_bounded = wanted.rate is None
        self.fingerprint = wanted.fingerprint
        self._where = f"generator:{wanted.generator.name}"
        fit.check_order_names(stream, self.order_key)
        schema, names = from_arrow_schema(wanted.generator.schema), check_columns(wanted.generator, stream)
        columns = tuple(dict.fromkeys(names.values()))
        self._schema = StructType(
            [*(schema[name] for name in columns), StructField(generators.ROW, LongType())]
        )
        self._read = ReadRows(wanted.generator.name, wanted.settings, (*columns, generators.ROW))
        self._start, self._times = 0, 1.0
        #: since when and from which row rows are counted; before a run those of one second are due
        self._since: float | None = None
        self._first = 0
        self._names = list(names.values())
        kinds = [wanted.generator.schema.field(name).type for name in self._names]
        #: whether rows are of the declared types as they are made
        self._is_plain = kinds == rows_schema(stream.schema).types and not stream.forms

    def describe(self) -> str:
        return self._where

    def begin(self, begun: source.Begun) -> None:
        self._start = self._first = int(begun.start.get("row", 0))
        self._since = self._clock() - 1

    @property
    def rate(self) -> float | None:
        """How many rows come in a second; None if all are there at once."""
        return None if self._wanted.rate is None else self._wanted.rate * self._times

    def quicken(self, times: float) -> None:
        """From now on the declared rate, so many times."""
        now = self._clock()
        self._first, self._since, self._times = self._due(now), now, times

    def _due(self, now: float) -> int:
        seconds = 1.0 if self._since is None else now - self._since
        return self._first + int(seconds * (self.rate or 0))

    def latest(self) -> int:
        rows = self._wanted.settings.rows
        if self._wanted.rate is None:
            return rows or 0
        due = self._due(self._clock())
        return due if rows is None else min(due, rows)

    def whole(self) -> int:
        """A run that takes what is there takes all rows of a stream that ends, else those of one second."""
        rows = self._wanted.settings.rows
        return rows if rows is not None else self._start + (self._wanted.rate or 0)

    def upto(self, start: source.Position, latest: Any) -> source.Offsets | None:
        first, most = int(start.get("row", 0)), self._wanted.rows_per_batch
        last = latest if most is None or self.is_bounded else min(latest, first + most)
        if last <= first and not self.is_bounded:
            return None
        return source.Offsets({"row": last}, backlog=latest - last, has_more=last < latest)

    def frame(self, start: source.Position, end: source.Offsets) -> DataFrame | Few:
        first, last = int(start.get("row", 0)), int(end.at["row"])
        make = partial(self._frame, first, last)
        return Few(last - first, partial(self._table, first, last), make) if self._is_plain else make()

    def half(self, start: source.Position, end: source.Offsets) -> source.Offsets | None:
        first, last = int(start.get("row", 0)), int(end.at["row"])
        is_whole = self.is_bounded or last - first < 2
        return None if is_whole else source.Offsets({"row": (first + last) // 2}, has_more=True)

    def piece(self, start: source.Position, end: source.Offsets) -> str:
        return f"row {start.get('row', 0)}"

    def _frame(self, first: int, last: int) -> DataFrame:
        parts = in_parts(first, last, self._spark.sparkContext.defaultParallelism)
        frame = source.frame_of_parts(self._spark, parts, self._read, self._schema)
        return fit.fitting(frame, self._stream, self._where, [F.col(generators.ROW)]).of(frame)

    def _table(self, first: int, last: int) -> pa.Table:
        """A few rows, made here."""
        made = self._wanted.generator.rows(self._wanted.settings, first, last, (*self._names, generators.ROW))
        return pa.Table.from_batches([made]).rename_columns([*self._stream.schema.names, generators.ROW])
