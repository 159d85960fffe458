"""Sources: where the rows of a stream come from, as the engine asks for them.

A source says how far it could be read (`latest`), how much of that an epoch takes (`upto`), and gives just
these rows (`frame`). Which rows are read is in the manifest, beside the state they led to, and nowhere else:
a source remembers nothing that it could not be told again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from windrow.errors import SourceError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

Item = TypeVar("Item")
#: how far a source is read, as it counts itself; plain values, which a manifest holds
Position = Mapping[str, Any]


@dataclass(frozen=True)
class Offsets:
    """The end of what an epoch takes: all rows after the position before, up to this one."""

    at: Position
    #: what lies between the two one by one, where no number tells: files, pushes
    items: tuple[Any, ...] = ()
    #: how many rows the source had beyond, if it counts rows
    backlog: int = 0
    #: whether it had more than was taken
    has_more: bool = False
    #: how many rows these are, if that is known before they are read
    rows: int | None = None


class Unsettled(Exception):  # noqa: N818  it is for the loop, which asks once more
    """What a source has found may still be written."""


class Source:
    """What every source is; the rows of `frame` have the declared columns, in order and of the declared
    types, and after them the columns of `order_key`.
    """

    #: the same text after a restart if, and only if, it is the same source; never a password in it
    fingerprint: str
    #: whether its rows come to an end by themselves; they are one epoch, after which the stream is sealed
    is_bounded: bool = False
    #: columns that give each row its place in arrival order within an epoch; () if there is none
    order_key: tuple[str, ...] = ()
    #: whether rows that are none come along, told of in a column of their own
    hands_on_malformed: bool = False
    #: whether looking how far it is takes time: then a thread of its own looks
    is_slow: bool = False
    #: whether it calls `wake` when there is something new, so that nobody need look
    wakes: bool = False

    def describe(self) -> str:
        """What it is, for people."""
        return self.fingerprint

    def continues(self, before: str) -> bool:
        """Whether it is the source with this fingerprint, of which the state tells; "" if there was none."""
        return before in ("", self.fingerprint)

    def begin(self, begun: Begun) -> None:
        """A run begins: where the last commit is, and whom to tell that there is something new."""

    def end(self) -> None:
        """The run is over."""

    def latest(self) -> Any:
        """How far it could be read now; a SourceError if it is away, or not what it was."""
        raise NotImplementedError

    def whole(self) -> Any:
        """How far a run goes that takes what is there and ends."""
        return self.latest()

    def is_over(self) -> bool:
        """Whether nothing more can come in this run, whatever is waited for."""
        return False

    def upto(self, start: Position, latest: Any) -> Offsets | None:
        """How far the next epoch goes; None if there is nothing new. May be `Unsettled`."""
        raise NotImplementedError

    def frame(self, start: Position, end: Offsets) -> Any:
        """The rows after `start` up to `end`: a Spark frame, an Arrow table, or `Few`."""
        raise NotImplementedError

    def rest(self, start: Position, end: Offsets) -> Offsets | None:
        """What is left of a range of which some is committed by now; None if nothing is."""
        return end

    def half(self, start: Position, end: Offsets) -> Offsets | None:
        """Where the first half of a range ends; None if it is in one piece."""
        return None

    def piece(self, start: Position, end: Offsets) -> str:
        """A range that is in one piece, for people."""
        return self.describe()

    def row(self, end: Offsets, number: int) -> str:
        """One of the rows of a range that is in one piece, for people."""
        return f"row {number + 1:,}"

    def check(self, end: Offsets) -> bool:
        """Whether what was read is still what it was, before a commit says so."""
        return True

    def is_settled(self, end: Offsets) -> bool:
        """Whether what could not be read will stay so; if not, it is looked at anew."""
        return self.check(end)

    def keys(self, end: Offsets) -> pa.Table | None:
        """What is remembered of items one by one, of which the last commit knows the others."""
        return None

    def committed(self, end: Offsets, commit: int) -> None:
        """A commit holds these rows."""

    def returned(self, end: Offsets) -> None:
        """These rows are in no commit, and will be asked for again, or never."""


@dataclass(frozen=True)
class Begun:
    """What a source is told when a run begins."""

    stream: str
    #: how far the last commit is
    start: Position
    #: the keys of all items that were ever committed
    keys: pa.Table | None = None
    #: to be called when something is there to be read
    wake: Callable[[], None] = lambda: None
    #: the run takes what is there, and ends
    once: bool = False
    #: a folder of its own, for what only it can read
    folder: Any = None
    trigger: str = "0 seconds"


class Absent(Source):
    """A source that did not answer when it was to be opened. How far it could be read is the source itself,
    once it answers: before that there are no rows, and nobody can tell how it is."""

    is_slow = True
    fingerprint = ""

    def __init__(self, opens: Callable[[], Source], error: Exception) -> None:
        self._opens = opens
        self._opened: Source | None = None
        self._error: Exception | None = error

    def latest(self) -> Source:
        """The source, opened; the first answer is known."""
        error, self._error = self._error, None
        if error is not None:
            raise error
        self._opened = self._opened or self._opens()
        return self._opened


@dataclass
class Bounded(Source):
    """Rows that are all there: a frame or a table, read in one epoch."""

    rows: Any
    fingerprint: str
    order_key: tuple[str, ...] = ()
    is_bounded: bool = field(default=True, init=False)

    def latest(self) -> Any:
        return True

    def upto(self, start: Position, latest: Any) -> Offsets | None:
        return Offsets({"end": True})

    def frame(self, start: Position, end: Offsets) -> Any:
        return self.rows


def portion(items: Sequence[Item], size: Callable[[Item], int], most: int) -> list[Item]:
    """The first items whose sizes are no more than that together; at least one, if there is any."""
    sums = accumulate(map(size, items))
    return [item for item, upto in zip(items, sums, strict=True) if upto <= most] or list(items[:1])


def keys_schema() -> pa.Schema:
    """The keys of items: of fixed size, whatever the items are."""
    numbers = [(name, pa.int64()) for name in ("size", "modified", "digest")]
    return pa.schema([("key", pa.binary(16)), *numbers])


# ------------------------------------------------------------ tasks
#
# Rows that Python tasks read: each part of a range is one task, and gives Arrow batches.


class SourceTaskError(RuntimeError):
    """The error of a source, on its way from a task to the driver."""


#: how a traceback names it
_TOLD = re.compile(rf"{re.escape(SourceTaskError.__module__)}\.{SourceTaskError.__name__}: ([0-9a-f]+)")


@contextmanager
def told_to_driver(stream: str) -> Iterator[None]:
    """Errors of a source in a task reach the driver as what they are."""
    try:
        yield
    except SourceError as error:
        told = {"stream": stream, "code": error.code, "message": error.message, "hint": error.hint}
        raise SourceTaskError(json.dumps(told).encode().hex()) from None  # so that it is named first


def told_by_task(raised: str) -> SourceError | None:
    """The error of a source, out of the line of a traceback that says what a task has raised."""
    found = _TOLD.fullmatch(raised)
    if found is None:
        return None
    told = json.loads(bytes.fromhex(found[1]))
    error = SourceError(told["message"], code=told["code"], hint=told["hint"])
    error.stream = told["stream"]
    return error


def _read_parts(
    parts: Sequence[Any], read: Callable[[Any], Iterator[pa.RecordBatch]], numbers: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            yield from read(parts[number])


def frame_of_parts(
    spark: SparkSession,
    parts: Sequence[Any],
    read: Callable[[Any], Iterator[pa.RecordBatch]],
    schema: StructType | str,
) -> DataFrame:
    """The rows of all parts, each read by a task of its own."""
    numbers = spark.range(0, len(parts), 1, max(1, len(parts)))
    return numbers.mapInArrow(partial(_read_parts, tuple(parts), read), schema)
