"""Layouts: how pieces are kept until they expire; and the options and labels by which one is chosen.

A layout is a rule for chunks; every chunk knows when the first and the last of its rows expires, so that
expiry opens only what is due and drops what is over.

Card: FIFO (WKS)
    requirements  rows expire in the order they came
    time          new rows: one chunk appended, or joined to a small one; expiry: chunks from the front
    space         the rows alive, and at most the rest of one chunk
Card: calendar (WK)
    requirements  the expiry of a row is known when it comes
    time          new rows: one small chunk, cut into `buckets` spans of expiry when it is large; expiry: the
                  first spans, which are cut again
    space         as FIFO; more buckets, less is opened in vain
Card: hash (STR)
    requirements  negative rows that equal what they take away
    time          new rows are added up with all rows kept; expiry of itself: all are looked at
    space         the rows alive
Card: calendar with negative rows (STR, few early expiries)
    requirements  negative rows end when the row they take away would have
    time          as calendar for rows that end; those without a known end are added up, as in a hash
    space         the rows alive, and those taken away early until their end
Card: list (DIRECT)
    requirements  the expiry of a row is known when it comes
    time          expiry: all rows are looked at
    space         the rows alive
source: Golab's thesis, 2.3.3 and 3.5.2

Options change the cost of a plan, never its answers. None stands for "as the plan and its labels say"; every
other value forces a choice, to compare it. Strategies are for whole plans (thesis, 2.3.3 and 3.6):

    NT      negative rows everywhere: windows keep their rows and send a negative row when one expires
    DIRECT  rows carry their expiry; state is a list that is looked through for expired rows
    UPA     by update pattern: FIFO for WKS, a calendar for WK, hash with negative rows for STR

Windows in which expiry cannot be known (ROWS, slide-by-tuple, SESSION) send negative rows under every
strategy.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum

import numpy as np
import polars as pl

from windrow.kernels.relational.operator import Operator
from windrow.kernels.relational.signed_rows import FOREVER, VE, Columns, N, consolidated, parted, together
from windrow.kernels.state import Chunk
from windrow.windows.patterns import Label, Pattern

Chunks = tuple[Chunk, ...]
#: chunks are put together before there are more of them
MOST_CHUNKS = 48
#: new rows join the last chunk as long as it is small: to open a chunk takes as long as to copy a thousand
#: rows, but it leaves only as a whole. Up to the first size it may have a quarter of all rows, and from there
#: to the second one a sixteenth
TINY_CHUNK, SMALL_CHUNK = 512, 4096
#: how many rows there were when those that belong together were last put together
MERGED = "merged"


def chunk_of(frame: pl.DataFrame) -> Chunk:
    """Rows with the span of their expiry; rows without one never expire.

    In one piece: rows that were put together and filtered again and again would be thousands of small ones.
    Strings are copied, not viewed: a view keeps all text alive that its row was ever cut out of, which made
    the state of joins several times as large, for a tenth of the time.
    """
    frame = frame.rechunk()
    if VE not in frame.columns:
        return Chunk(0, 0, frame.to_arrow())
    least, greatest = frame.select(pl.col(VE).min().alias("a"), pl.col(VE).max().alias("b")).row(0)
    return Chunk(int(least), int(greatest), frame.to_arrow())


def chunks_of(frame: pl.DataFrame) -> Chunks:
    """A frame as one chunk; none if it is empty."""
    return (chunk_of(frame),) if frame.height else ()


def frame_of(chunks: Sequence[Chunk], columns: Columns, *new: pl.DataFrame) -> pl.DataFrame:
    """All rows of some chunks, and new ones."""
    return together([*(chunk.frame for chunk in chunks), *new], columns)


@dataclass(frozen=True)
class ExpiryLayout(ABC):
    """A rule for chunks of rows with `#ve`, and perhaps `#n`."""

    @property
    @abstractmethod
    def text(self) -> str:
        """What people read."""

    def add(self, chunks: Chunks, frame: pl.DataFrame) -> Chunks:
        """With new rows."""
        return self._added(chunks, frame) if frame.height else chunks

    @abstractmethod
    def _added(self, chunks: Chunks, frame: pl.DataFrame) -> Chunks:
        """The same, where there are any."""

    def due(self, chunks: Chunks, stop: int, columns: Columns) -> tuple[pl.DataFrame, Chunks]:
        """The rows that expire before `stop`, and the others."""
        expired: list[pl.DataFrame] = []
        kept: list[Chunk] = []
        for chunk in chunks:
            if chunk.first >= stop:
                kept.append(chunk)
            elif chunk.last < stop:
                expired.append(chunk.frame)
            else:
                over, left = parted(chunk.frame, chunk.frame[VE] < stop)
                expired.append(over)
                kept += chunks_of(left)
        return together(expired, columns), tuple(kept)

    def forget(self, chunks: Chunks, stop: int) -> Chunks:
        """Without what expires before `stop`; rows of a chunk that is not all over may stay."""
        return tuple(chunk for chunk in chunks if chunk.last >= stop)

    def ended(
        self, chunks: Chunks, new: pl.DataFrame, stop: int, columns: Columns
    ) -> tuple[pl.DataFrame, Chunks]:
        """What is due, new rows that have an end included."""
        ending = new.filter(pl.col(VE) < FOREVER).select(list(columns))
        return self.due(self.add(chunks, ending), stop, columns)

    def alive(self, chunks: Chunks, new: pl.DataFrame, stop: int, columns: Columns) -> Chunks:
        """With new rows, and without what expires before `stop`."""
        return self.add(self.forget(chunks, stop), new.filter(pl.col(VE) >= stop).select(list(columns)))


@dataclass(frozen=True)
class Fifo(ExpiryLayout):
    """Chunks in the order they came."""

    text = "FIFO chunks"

    def _added(self, chunks: Chunks, frame: pl.DataFrame) -> Chunks:
        if chunks and frame.height + chunks[-1].table.num_rows <= _small(chunks):
            return (*chunks[:-1], chunk_of(pl.concat([chunks[-1].frame, frame])))
        if len(chunks) >= MOST_CHUNKS:
            chunks = merged_pairs(chunks)
        return (*chunks, chunk_of(frame))


def _small(chunks: Chunks) -> int:
    """How many rows a chunk may have to be joined by others."""
    rows = sum(int(chunk.table.num_rows) for chunk in chunks)
    return min(max(min(rows // 4, TINY_CHUNK), rows // 16), SMALL_CHUNK)


@dataclass(frozen=True)
class Calendar(ExpiryLayout):
    """Chunks by span of expiry: small ones grow, large ones are cut into at most `buckets`.

    The last chunk is small, or the one that expires first: new rows join it, since it is opened in every step
    anyway. What is left of a large chunk of which some rows have expired is cut again, so that a row is moved
    as often as its chunk can be divided by `buckets`, however many rows there are (as in a ladder queue).
    """

    buckets: int = 10

    @property
    def text(self) -> str:
        return f"a calendar of {self.buckets} buckets"

    def _added(self, chunks: Chunks, frame: pl.DataFrame) -> Chunks:
        if chunks and frame.height + chunks[-1].table.num_rows <= SMALL_CHUNK:
            frame = pl.concat([chunks[-1].frame, frame])
            chunks = chunks[:-1]
        if len(chunks) + self._parts(frame) > max(MOST_CHUNKS, 4 * self.buckets):
            by_size = sorted(chunks, key=lambda chunk: chunk.table.num_rows, reverse=True)
            chunks, small = tuple(by_size[: self.buckets]), by_size[self.buckets :]
            frame = pl.concat([*(chunk.frame for chunk in small), frame])
        return (*chunks, *self._cut(frame))

    def due(self, chunks: Chunks, stop: int, columns: Columns) -> tuple[pl.DataFrame, Chunks]:
        expired, kept = super().due(chunks, stop, columns)
        known = {id(chunk) for chunk in chunks}
        large = [c for c in kept if id(c) not in known and c.table.num_rows > 2 * SMALL_CHUNK]
        if not large:
            return expired, kept
        others = tuple(chunk for chunk in kept if all(chunk is not one for one in large))
        return expired, (*others, *(part for chunk in large for part in self._cut(chunk.frame)))

    def forget(self, chunks: Chunks, stop: int) -> Chunks:
        kept = super().forget(chunks, stop)
        if not kept or kept[-1].first >= stop:
            return kept
        # new rows keep the last chunk from being over, so what has expired in it leaves by itself
        return (*kept[:-1], *chunks_of(kept[-1].frame.filter(pl.col(VE) >= stop)))

    def _parts(self, frame: pl.DataFrame) -> int:
        return 1 if frame.height <= SMALL_CHUNK else min(self.buckets, frame.height // TINY_CHUNK)

    def _cut(self, frame: pl.DataFrame) -> Chunks:
        buckets = self._parts(frame)
        if buckets == 1:
            return chunks_of(frame)
        ends = frame[VE].to_numpy()
        places = np.arange(1, buckets) * len(ends) // buckets
        limits = np.unique(np.partition(ends, places)[places])
        bucket = np.searchsorted(limits, ends)
        return tuple(
            chunk
            for number in reversed(range(len(limits) + 1))
            for chunk in chunks_of(frame.filter(pl.Series(bucket == number)))
        )


@dataclass(frozen=True)
class ExpiryList(ExpiryLayout):
    """One list, looked through from end to end."""

    text = "a list that is looked through"

    def _added(self, chunks: Chunks, frame: pl.DataFrame) -> Chunks:
        return chunks_of(pl.concat([*(chunk.frame for chunk in chunks), frame]))

    def forget(self, chunks: Chunks, stop: int) -> Chunks:
        return tuple(kept for chunk in chunks for kept in chunks_of(chunk.frame.filter(pl.col(VE) >= stop)))


@dataclass(frozen=True)
class Hashed(ExpiryLayout):
    """Equal rows added up: a negative row takes its like away. New rows wait until they are worth it."""

    text = "a hash with negative rows"

    def _added(self, chunks: Chunks, frame: pl.DataFrame) -> Chunks:
        if not chunks:
            return chunks_of(consolidated(frame))
        first, *waiting = (chunk.frame for chunk in chunks)
        waiting.append(frame)
        if sum(new.height for new in waiting) * 4 < first.height and len(waiting) < MOST_CHUNKS:
            return (chunks[0], *chunks_of(consolidated(pl.concat(waiting))))
        return chunks_of(consolidated(pl.concat([first, *waiting])))


@dataclass(frozen=True)
class Sorted(ExpiryLayout):
    """Rows that end in a calendar, their negative rows with them; those without an end in a hash."""

    buckets: int = 10

    @property
    def text(self) -> str:
        return f"a calendar of {self.buckets} buckets, early ends by negative rows"

    def _added(self, chunks: Chunks, frame: pl.DataFrame) -> Chunks:
        open_, ending = parted(frame, frame[VE] >= FOREVER)
        others, endless = self._halves(chunks)
        return (*Calendar(self.buckets).add(others, ending), *Hashed().add(endless, open_))

    def forget(self, chunks: Chunks, stop: int) -> Chunks:
        others, endless = self._halves(chunks)
        return (*Calendar(self.buckets).forget(others, stop), *endless)

    @staticmethod
    def _halves(chunks: Chunks) -> tuple[Chunks, Chunks]:
        ending = tuple(chunk for chunk in chunks if chunk.first < FOREVER)
        return ending, tuple(chunk for chunk in chunks if chunk.first >= FOREVER)


def condensed(
    layout: ExpiryLayout,
    chunks: Chunks,
    columns: Columns,
    before: int,
    put_together: Callable[[pl.DataFrame], pl.DataFrame],
) -> tuple[Chunks, int]:
    """Rows that can be put together are, once there are twice as many as after the last time; and how many
    there were then."""
    count = sum(chunk.table.num_rows for chunk in chunks)
    if count <= max(2 * before, TINY_CHUNK):
        return chunks, min(before, count)
    rows = put_together(frame_of(chunks, columns))
    return layout.add((), rows), rows.height


def merged_pairs(chunks: Chunks) -> Chunks:
    """Neighbouring chunks put together, so that there are half as many."""
    pairs = [chunks[place : place + 2] for place in range(0, len(chunks), 2)]
    return tuple(
        pair[0] if len(pair) == 1 else chunk_of(pl.concat([chunk.frame for chunk in pair])) for pair in pairs
    )


def count_of(chunks: Chunks) -> int:
    """How many rows chunks hold, copies counted."""
    return sum(
        int(np.abs(chunk.frame[N].to_numpy()).sum())
        if N in chunk.table.column_names
        else chunk.table.num_rows
        for chunk in chunks
    )


class Strategy(Enum):
    """How expiry is told."""

    NT = "NT"
    DIRECT = "DIRECT"
    UPA = "UPA"


class Evaluation(Enum):
    """When results are computed (thesis, 5.2)."""

    #: as rows come, also those of a report that is not yet due
    EAGER = "eager"
    #: when a report is due, for all rows since the last one; only periodic queries can wait
    LAZY = "lazy"


class Tables(Enum):
    """How partners are found."""

    HASH = "hash tables per window"
    LOOPS = "nested loops"


class Negation(Enum):
    """How the results of a negation leave (thesis, 3.5.2)."""

    #: on their own when they expire; a negative row only where a match comes first
    CALENDAR = "calendar"
    #: every one by a negative row
    NEGATIVE = "negative rows"


class Ends(Enum):
    """Who keeps the end of a result until it comes (`windrow.kernels.relational.join.partners`)."""

    #: a result carries its end, and whoever reads it keeps both
    CARRIED = "carried"
    #: the operator tells it when it comes, from the rows that it keeps anyway
    TOLD = "told"


class Counted(Enum):
    """How results over count-based windows leave (Patroumpas and Sellis 2011, 4.2)."""

    #: results are kept, with an order of expiry for each window
    CATALOGUES = "catalogues"
    #: expired rows look for their partners again
    NEGATIVE = "negative rows"


@dataclass(frozen=True, slots=True)
class Options:
    """The physical choices of one plan."""

    strategy: Strategy = Strategy.UPA
    #: of each batch of rows in a calendar
    buckets: int = 10
    #: None: lazy if the query is periodic
    evaluation: Evaluation | None = None
    #: expired rows leave the state of a join every so many instants, 0: at once; None: chunk by chunk, as
    #: soon as all rows of one have expired
    expire_every: int | None = None
    #: None: hash tables where the predicate has an equality
    tables: Tables | None = None
    #: None: as the share of results that leave early says
    negation: Negation | None = None
    #: None: told where nobody above keeps results, carried elsewhere
    ends: Ends | None = None
    #: None: negative rows where only changes read results, else catalogues where every input is a window
    counted: Counted | None = None
    #: whether joins of three and more inputs change their order as rates and values are observed
    reorder: bool = True
    #: whether aggregates over slide-by-tuple windows keep bins instead of rows, where they can
    bins: bool = True


@dataclass
class Choice:
    """The options for one plan, and the label of each operator's output."""

    options: Options = field(default_factory=Options)
    labels: dict[int, Label] = field(default_factory=dict)
    #: operators of which some rows end when they say, and negative rows take the others away
    mixed: set[int] = field(default_factory=set)

    @property
    def strategy(self) -> Strategy:
        return self.options.strategy

    @property
    def buckets(self) -> int:
        return self.options.buckets

    def label(self, operator: Operator, label: Label) -> None:
        """The rows of an operator expire in this way."""
        self.labels[id(operator)] = label

    def pass_on(self, below: Operator, above: Operator) -> None:
        """An operator that leaves expiry alone has the rows of the one below."""
        if id(below) in self.mixed:
            self.mixed.add(id(above))

    def take_over(self, below: Operator, above: Operator) -> None:
        """Where an operator tells of ends although the plan would know them, so do those above it."""
        label = self.labels.get(id(below))
        if label is not None and label.pattern is Pattern.STR:
            self.label(above, label)

    def known(self, operator: Operator) -> bool:
        """Whether every row of an operator carries its expiry, so that no negative rows come."""
        label = self.labels.get(id(operator))
        if label is None or label.pattern is Pattern.STR:
            return False
        return self.strategy is not Strategy.NT or label.pattern is Pattern.MON

    def ends(self, operator: Operator) -> bool:
        """Whether some rows of an operator end at an instant that they carry."""
        label = self.labels.get(id(operator))
        ends = label is not None and label.pattern is not Pattern.MON
        return id(operator) in self.mixed or (ends and self.known(operator))

    def ending(self, operator: Operator) -> ExpiryLayout:
        """How rows with a known end are kept by someone who tells of it when it comes, and of no other."""
        if self.strategy is Strategy.DIRECT:
            return ExpiryList()
        label = self.labels.get(id(operator))
        in_order = label is not None and label.fifo and self.known(operator)
        return Fifo() if in_order else Calendar(self.buckets)

    def layout(self, operator: Operator) -> ExpiryLayout:
        """How the rows of an operator are kept."""
        if not self.known(operator):
            return Sorted(self.buckets) if id(operator) in self.mixed else Hashed()
        never = self.labels[id(operator)].pattern is Pattern.MON
        return Fifo() if never and self.strategy is not Strategy.DIRECT else self.ending(operator)
