"""The ingest job's tasks: rows of a stream become delta files. No state is read.

`RowsTask` gets the rows themselves, judges them and makes every query's pane states; `FeedTask` gets what
Spark has aggregated already, and only has to put it away.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import gcd

import numpy as np
import polars as pl
import pyarrow as pa

from windrow.algebra import Field, Schema, Stream
from windrow.errors import DataError, WindrowError
from windrow.execution import bundle, delta_file, kept_rows, malformed_rows, relational, shared
from windrow.execution.reports import Ingested, IngestTask, late_section, timed
from windrow.kernels.columnar import columns, hashing
from windrow.kernels.intake import Intake, Observed, moments_of
from windrow.kernels.relational.signed_rows import VE, VS, N
from windrow.physical import native_sql, units
from windrow.state.names import OUTBOX, RESERVED
from windrow.windows.domain import ARRIVAL_TS, FARTHEST, ROW_NUM, too_far
from windrow.windows.progress import Batch

#: rows that no query needs, told as a handful of intervals [begin, end) of WATTR. They are left out before
#: anything is computed from them, but after progress and lateness were judged: what is late, and how far a
#: stream is, must not depend on what is shed
Intervals = Sequence[tuple[int, int]]

#: more cells than these times 64 are not told by bits
MOST_WORDS = 64


def without(rows: pl.DataFrame, wattr: str, shed: Intervals) -> pl.DataFrame:
    """The rows outside of all intervals, which are in order and apart: a row behind an odd number of bounds
    is inside of one.

    >>> without(pl.DataFrame({"t": [1, 5, 9, 10]}), "t", [(5, 10)])["t"].to_list()
    [1, 10]
    """
    if not shed or not rows.height:
        return rows
    bounds = np.array(shed, dtype=np.int64).ravel()
    passed = np.searchsorted(bounds, moments_of(rows, wattr).to_numpy(), side="right")
    return rows.filter(pl.Series(passed % 2 == 0))


def shed_sql(shed: Intervals, moment: str) -> str:
    """The condition that a row is in one of the intervals, which are in order; nothing if there are none.

    Windows end in step, and so do the intervals: time is cut into cells of their common step, and a bit says
    of each whether it is shed. A row is looked up, however many intervals there are. The numbers are new in
    every epoch. As elements of an array they are no part of the generated code, which would have to be
    compiled anew.

    >>> shed_sql([], "t")
    ''
    >>> shed_sql([(5, 10)], "t").partition(" AND ")[0]
    '((t >= element_at(array(5L, 0L), IF(t IS NULL, 2, 1))'
    """
    if not shed:
        return ""

    def number(value: int) -> str:
        return f"element_at(array({value}L, 0L), IF({moment} IS NULL, 2, 1))"

    def between(begin: int, end: int) -> str:
        return f"({moment} >= {number(begin)} AND {moment} < {number(end)})"

    grid = cells_of(shed)
    # 64 bits are enough to count from the first cell to the end
    is_near = grid.first >= -(1 << 63) and shed[-1][1] - grid.first < 1 << 63
    if len(shed) == 1 or len(grid.words) > MOST_WORDS or not is_near:
        return f"({' OR '.join(between(*each) for each in shed)})"
    cell = f"(({moment} - {number(grid.first)}) div {number(grid.step)})"
    near = f"least(greatest({cell}, 0L), {number(64 * len(grid.words) - 1)})"
    word = (
        f"element_at(array({', '.join(f'{word}L' for word in grid.words)}), CAST({near} div 64L AS INT) + 1)"
    )
    bit = f"shiftright({word}, CAST({near} % 64L AS INT)) & 1L"
    return f"({between(shed[0][0], shed[-1][1])} AND ({bit}) = 1L)"


@dataclass(frozen=True, slots=True)
class ShedCells:
    """Cells of `step` ticks from `first` on; bit n of the words says whether cell n is shed."""

    first: int
    step: int
    words: tuple[int, ...]


def cells_of(shed: Intervals) -> ShedCells:
    """The cells of some intervals. The first one may begin within a cell, and the last one end within one.

    >>> cells_of([(3, 20), (30, 45)])
    ShedCells(first=0, step=10, words=(27,))
    """
    inner = [bound for each in shed for bound in each][1:-1]
    step = gcd(*(bound - inner[0] for bound in inner)) or max(1, shed[-1][1] - shed[0][0])
    anchor = inner[0] if inner else shed[0][0]
    first = anchor + (shed[0][0] - anchor) // step * step
    bits = 0
    for begin, end in shed:
        low, high = (begin - first) // step, -((first - end) // step)
        bits |= (1 << high) - (1 << low)
    words = np.frombuffer(bits.to_bytes(8 * -(-bits.bit_length() // 64), "little"), dtype="<i8")
    return ShedCells(first, step, tuple(words.tolist()))


@dataclass(frozen=True)
class RowsTask(IngestTask):
    """The rows of a batch, which come to it, to pane states, for every query by itself."""

    batch: bundle.Arrived
    now: int
    place: delta_file.WriteTarget

    def run(self, batches: Iterable[pa.RecordBatch]) -> Ingested:
        try:
            return self._run(batches)
        except DataError as error:
            return Ingested(self.batch.stream.name, refusal=error)

    def _run(self, batches: Iterable[pa.RecordBatch]) -> Ingested:
        batch, place = self.batch, self.place
        stream, known = batch.stream, batch.known
        intake, late_sink = (
            Intake(stream),
            late_section(stream.name) if stream.late_sink is not None else None,
        )
        own = [self._gathering(queries) for queries in _filed_together(batch.queries)]
        common = [shared.SharedStateGathering(shared_state) for shared_state in batch.shared_states]
        observed: list[Observed] = []
        shed = malformed = 0
        spent: dict[str, float] = {}
        with delta_file.Spool(place, folder=OUTBOX) as outbox, kept_rows.KeptWriter(place, stream) as kept:
            for rows in batches:
                frame, left_out = self._read(rows, intake, outbox)
                malformed += left_out
                judged = intake.judge(known, frame, self.now)
                # numbers go on where this piece's rows ended; pieces with numbers are judged one by one
                known = intake.counted(known, judged.observed)
                observed.append(judged.observed)
                if stream.keep is not None:
                    kept.add(judged.accepted)
                needed = without(judged.accepted, stream.wattr, batch.shed)
                shed += judged.accepted.height - needed.height
                for each in own:
                    with timed(spent, *each.names):
                        each.take(self._own(needed, each.names[0]))
                for shared_state in common:
                    shared_state.take(needed)
                if batch.archived and judged.accepted.height:
                    accepted = stream_rows(stream, judged.accepted)
                    outbox.writer.add(archived_section(stream_source(stream.name)), accepted.to_arrow())
                if late_sink is not None and judged.late.height:
                    outbox.writer.add(late_sink, judged.late.to_arrow())
        with delta_file.Spool(place, stream=stream.name) as spool:
            for each in own:
                with timed(spent, *each.names):
                    each.put(spool, place.shards)
            for shared_state in common:
                shared_state.put(spool, place.shards)
        everything: list[delta_file.Gathering] = [*own, *common]
        return Ingested(
            stream.name,
            Observed.all(observed),
            spool.ref,
            outbox.ref,
            latest={name: each.latest for each in own if each.latest is not None for name in each.names},
            faults={name: each.fault for each in everything if each.fault is not None for name in each.names},
            shed=shed,
            kept=kept.ref,
            seconds=spent,
            malformed=malformed,
        )

    def _read(
        self, rows: pa.RecordBatch, intake: Intake, outbox: delta_file.Spool
    ) -> tuple[pl.DataFrame, int]:
        """The rows of a batch, and how many were malformed; these are put away, if a sink is to have them."""
        stream, sink = self.batch.stream, self.batch.malformed_sink
        rest, told = bundle.parted(rows)
        left_out = 0
        if told is not None:
            left_out += len(told)
            if sink is not None:
                outbox.writer.add(sink, malformed_rows.letters(told.to_pylist()))
        frame = columns.frame_from_arrow(bundle.as_declared(rest, stream.schema), stream.schema)
        if self.batch.hands_on and stream.domain.resolution is not None:
            frame, stray = intake.sound(frame)
            left_out += stray.height
            if sink is not None and stray.height:
                outbox.writer.add(sink, malformed_rows.stray_letters(stream, stray))
        return frame, left_out

    def _own(self, needed: pl.DataFrame, query: str) -> pl.DataFrame:
        """The rows that a query needs itself; where it needs all that anybody does, nothing is looked at."""
        own = self.batch.own.get(query, ())
        return without(needed, self.batch.stream.wattr, own) if own != self.batch.shed else needed

    def _gathering(self, queries: Sequence[bundle.Bundle]) -> delta_file.Gathering:
        unit, stream, known = queries[0].unit, self.batch.stream.name, self.batch.known
        if isinstance(unit, units.SlidingUnit):
            (query,) = queries
            return delta_file.PaneGathering(query.name, unit.program, known)
        everything = {**self.batch.others, stream: known}
        return relational.RowsGathering(queries, unit, stream, everything, self.batch.held)


def _filed_together(queries: Iterable[bundle.Bundle]) -> Iterable[list[bundle.Bundle]]:
    """Queries of a query group have the same rows filed, once for all of them."""
    found: dict[str, list[bundle.Bundle]] = {}
    for query in queries:
        found.setdefault(query.files, []).append(query)
    return found.values()


@dataclass(frozen=True)
class FeedTask(IngestTask):
    """Natively aggregated panes to delta files; `observes` is false for all feeds of a batch but one."""

    stream: Stream
    feed: native_sql.Feed
    place: delta_file.WriteTarget
    queries: tuple[bundle.Bundle, ...]
    observes: bool = True

    def run(self, batches: Iterable[pa.RecordBatch]) -> Ingested:
        """Put the panes away, each shard's by themselves."""
        received = list(batches)
        if not received:
            return Ingested(self.stream.name)
        frame = self._frame(pa.Table.from_batches(received))
        malformed = frame[native_sql.BEGIN].eq(native_sql.NO_ROW).fill_null(False)
        refused, frame = int(frame.filter(malformed)[native_sql.COUNT].sum()), frame.filter(~malformed)
        late, shed = (
            frame[native_sql.BEGIN].is_null(),
            frame[native_sql.BEGIN].eq(native_sql.SHED).fill_null(False),
        )
        refusal = self._refusal(frame.filter(late), frame.filter(~shed))
        if refusal is not None:
            return Ingested(self.stream.name, refusal=refusal)
        panes = frame.filter(~late & ~shed)
        with delta_file.Spool(self.place, stream=self.stream.name) as spool:
            for feed in self.feed.parts or (self.feed,):
                own = self.feed.part(panes, feed)
                for shard, rows in hashing.split(own, feed.key_kinds, self.place.shards):
                    spool.writer.add((delta_file.FEED, feed.name, shard), rows.to_arrow())
        return Ingested(
            self.stream.name,
            self._observed(frame, late) if self.observes else None,
            spool.ref,
            panes=panes.height,
            latest=self._latest(panes),
            shed=int(frame.filter(shed)[native_sql.COUNT].sum()) if self.observes else 0,
            together=bool(self.feed.parts),
            malformed=refused if self.observes else 0,
        )

    def _frame(self, table: pa.Table) -> pl.DataFrame:
        """The columns as kernels have them: times as integers."""
        kinds = {**self.feed.key_kinds, **self.feed.kinds}
        typed = columns.frame_from_arrow(
            table, Schema(tuple(Field(name, kind) for name, kind in kinds.items()))
        )
        rest = pl.from_arrow(table.drop_columns(list(kinds)))
        assert isinstance(rest, pl.DataFrame)
        return pl.concat([rest, typed], how="horizontal")

    def _refusal(self, late: pl.DataFrame, needed: pl.DataFrame) -> WindrowError | None:
        """Rows in no pane are late, or have no moment at all. Others have instants that no window can be told
        about; a pane may begin a window's length before its rows."""
        nowhere = late.filter(pl.col(native_sql.GREATEST).is_null())
        if nowhere.height:
            count = int(nowhere[native_sql.COUNT].sum())
            return Intake(self.stream).no_moment(f"{count} row{'s' if count > 1 else ''} of the batch")
        instants = pl.concat(
            [needed[name].cast(pl.Int64).alias("#t") for name in (native_sql.GREATEST, native_sql.BEGIN)]
        )
        outside = instants.filter((instants > FARTHEST) | (instants < -2 * FARTHEST))
        whose = f"`{self.stream.wattr}` of stream `{self.stream.name}`"
        return too_far(int(outside[0]), whose) if len(outside) else None

    def _observed(self, frame: pl.DataFrame, late: pl.Series) -> Observed:
        greatest = frame[native_sql.GREATEST].max()
        batch = Batch([greatest] if isinstance(greatest, int) else [])
        return Observed(
            batch,
            int(frame.filter(~late)[native_sql.COUNT].sum()),
            int(frame.filter(late)[native_sql.COUNT].sum()),
        )

    def _latest(self, panes: pl.DataFrame) -> dict[str, int]:
        found: dict[str, int] = {}
        for query in self.queries:
            native = native_sql.native_query(query.program) if query.program is not None else None
            if native is None or native.latest not in panes.columns:
                continue
            greatest = panes[native.latest].max()
            if isinstance(greatest, int):
                found[query.name] = (greatest - native.cut.origin) // native.cut.slide
        return found


@dataclass(frozen=True)
class LettersTask(IngestTask):
    """Malformed rows that Spark has only counted, on their way to a sink."""

    stream: str
    section: str
    place: delta_file.WriteTarget

    def run(self, batches: Iterable[pa.RecordBatch]) -> Ingested:
        with delta_file.Spool(self.place, folder=OUTBOX) as outbox:
            for batch in batches:
                told = batch.column(malformed_rows.MALFORMED).to_pylist()
                outbox.writer.add(self.section, malformed_rows.letters(told))
        return Ingested(self.stream, outbox=outbox.ref)


# What tasks file for archives are rows with the instant at which they begin and, if they have one, their end.
# It lies in outbox files, beside the answers for sinks. The rows of a query that emits a stream are not filed
# a second time: its archive reads the answers themselves.

#: the columns that are not the user's: the first begins every row, the second ends those of relations
AT, UNTIL = "#at", "#until"
_PREFIX = f"{RESERVED}archived rows of "


def stream_source(stream: str) -> str:
    """A stream as what an archive is of; no query has such an id."""
    return f"{RESERVED}{stream}"


def archived_section(source: str) -> str:
    """What rows of a stream (`stream_source`), or of the query with an id, are filed under for archives."""
    return f"{_PREFIX}{source}"


def is_archived(section: str) -> bool:
    """Whether a section is for archives."""
    return section.startswith(_PREFIX)


def stream_rows(stream: Stream, accepted: pl.DataFrame) -> pl.DataFrame:
    """The accepted rows of a stream, each from its windowing attribute on."""
    moment = f"#{stream.wattr}" if stream.wattr in (ROW_NUM, ARRIVAL_TS) else stream.wattr
    return accepted.select(pl.col(moment).cast(pl.Int64).alias(AT), *stream.schema.names)


def lived_rows(pieces: pl.DataFrame, names: Sequence[str], first: int | None) -> pl.DataFrame:
    """The rows of an answer with the instants they are in it; none that begins before `first`.

    >>> pieces = pl.DataFrame({"k": [7, 8], VS: [3, 4], VE: [9, 5], N: [2, 1]})
    >>> lived_rows(pieces, ["k"], None).rows()
    [(3, 7, 9), (3, 7, 9), (4, 8, 5)]
    """
    kept = pieces if first is None else pieces.filter(pl.col(VS) >= first)
    rows = kept.select(pl.col(VS).alias(AT), *names, pl.col(VE).alias(UNTIL), N)
    return rows.select(pl.exclude(N).repeat_by(N).explode()) if (rows[N] != 1).any() else rows.drop(N)
