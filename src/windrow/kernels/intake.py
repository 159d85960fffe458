"""What a stream accepts, a batch at a time: lateness by the punctuation that was known before the batch.

A batch may be judged in pieces, wherever they lie: each piece gives its accepted rows, its late ones, and
what was `Observed`: little, but all a policy (`windrow.windows.progress`) can learn from it, of each
source its greatest values and marks. What is known after the batch follows from all pieces together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np
import polars as pl

from windrow.algebra.catalog import Late, Stream
from windrow.algebra.values import canonical
from windrow.errors import DataError
from windrow.kernels.columnar import columns, decimals, expressions
from windrow.windows import ARRIVAL_TS, INFINITY, ROW_NUM, Domain, Instant, domain as attributes
from windrow.windows.progress import Batch, Policy, Progress, SlackRows

_LIMIT = 1 << 62
#: before the name of an attribute of ALSO: its value, for windows on it; NULL in a row that is late for them
ALSO = "#also."


def moments_of(rows: pl.DataFrame, attribute: str) -> pl.Series:
    """The instants of accepted rows for windows on an attribute; NULL in those that are in none."""
    hidden = {ROW_NUM: f"#{ROW_NUM}", ARRIVAL_TS: f"#{ARRIVAL_TS}"}.get(attribute, ALSO + attribute)
    found = rows[hidden if hidden in rows.columns else attribute]
    assert found.dtype.is_integer(), f"{attribute} has values and no instants"
    return found.cast(pl.Int64)


def ticks_of(values: pl.Series, domain: Domain) -> pl.Series:
    """The ticks of an attribute's values, as `Domain.tick`: NULL where there is none.

    Within reach, products and quotients of DOUBLEs are off by less than half a tick, so that rounding finds
    the only tick it can be; whether it is, is one exact division.
    """
    if domain.resolution is None:
        return values.cast(pl.Int64)
    n, d = domain.resolution.as_integer_ratio()
    if domain.scale is None:
        with np.errstate(all="ignore"):
            x = values.fill_null(math.nan).to_numpy()
            near = np.rint(x * d / n)
            known = (np.abs(near) <= domain.reach) & (near * n / d == x)
        ticks = np.where(known, near, 0).astype(np.int64)
    else:
        whole = decimals.unscaled(values.fill_null(0)).astype(object) * d
        step = n * 10**domain.scale
        known = np.array([u % step == 0 and abs(u // step) <= domain.reach for u in whole], dtype=bool)
        known &= values.is_not_null().to_numpy()
        ticks = np.array([u // step if fits else 0 for u, fits in zip(whole, known, strict=True)], np.int64)
    return pl.select(pl.when(pl.Series(known)).then(pl.Series(ticks))).to_series()


@dataclass(frozen=True)
class Known:
    """What is known of a stream's progress between two batches; a value, to be stored with a commit."""

    progress: Progress
    per: str | None
    accepted: int = 0
    last_arrival: Instant = -INFINITY
    sealed: bool = False
    #: of the attributes of ALSO
    also: Mapping[str, Progress] = field(default_factory=dict)

    def progress_on(self, stream: Stream, attribute: str) -> Instant:
        """P for a window on an attribute: the stream's own, the greatest row number or arrival time so far,
        or nothing known until the end."""
        if self.sealed:
            return INFINITY
        if attribute == stream.wattr:
            return self.progress.progress
        if attribute in self.also:
            return self.also[attribute].progress
        if attribute == ROW_NUM and self.accepted:
            return self.accepted
        return self.last_arrival if attribute == ARRIVAL_TS else -INFINITY

    def progress_of(self, source: Any) -> Instant:
        """P of one source."""
        return INFINITY if self.sealed else self.progress.progress_of(source)


@dataclass(frozen=True)
class Observed:
    """What a piece of a batch tells about the stream's progress."""

    batch: Batch
    accepted: int = 0
    late: int = 0
    #: of the attributes of ALSO, the greatest values
    also: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    @classmethod
    def all(cls, pieces: Sequence[Observed]) -> Observed:
        """What several pieces tell together."""
        batch = _joined([piece.batch for piece in pieces])
        also: dict[str, tuple[int, ...]] = {}
        for name, values in ((name, values) for piece in pieces for name, values in piece.also.items()):
            also[name] = also.get(name, ()) + values
        return cls(batch, sum(piece.accepted for piece in pieces), sum(piece.late for piece in pieces), also)


@dataclass(frozen=True)
class Judged:
    """A piece of a batch: the rows that count, with `#row_num` and `#arrival_ts`, and the late ones."""

    accepted: pl.DataFrame
    late: pl.DataFrame
    observed: Observed


class Intake:
    """Judges the batches of one stream. It has no state of its own: `Known` goes in and comes out."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        rule = stream.progress
        self.mark = expressions.compile_expression(rule.mark) if rule.mark is not None else None
        self.when = expressions.compile_expression(rule.when) if rule.when is not None else None

    def start(self) -> Known:
        """Before the first batch."""
        also = {name: policy.start() for name, policy in self.stream.also}
        return Known(self.stream.progress.policy.start(), self.stream.progress.per, also=also)

    def accept(self, known: Known, batch: pl.DataFrame, now: int) -> tuple[Known, pl.DataFrame, pl.DataFrame]:
        """What is known after a batch, its accepted rows and its late ones."""
        judged = self.judge(known, batch, now)
        return self.learn(known, [judged.observed], now), judged.accepted, judged.late

    def sound(self, batch: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
        """The rows whose windowing attribute is a multiple of its RESOLUTION, or NULL, and the others."""
        values = batch[self.stream.wattr]
        stray = ticks_of(values, self.stream.domain).is_null() & values.is_not_null()
        return batch.filter(~stray), batch.filter(stray)

    def judge(self, known: Known, batch: pl.DataFrame, now: int) -> Judged:
        """A piece of a batch, by what was known before the batch."""
        if known.sealed:
            raise DataError(
                f"stream `{self.stream.name}` is sealed: its end was announced",
                code="sealed",
                hint="push before finish()",
            )
        nothing = pl.Series([False]).new_from_index(0, batch.height)
        only = expressions.holds(self.when, batch) if self.when else nothing
        moments = self._moments(known, batch, only, now)
        self._refuse_null(moments.filter(~only), batch.filter(~only))
        check_instants(moments.filter(~only), f"`{self.stream.wattr}` of stream `{self.stream.name}`")
        late = self._late(known, batch, moments) & ~only
        kept = ~only if self.stream.late is Late.KEEP else ~only & ~late
        accepted = self._stamped(known, batch.filter(kept), now)
        shown = self._shown(known, batch, moments, only, late)
        also = {name: self._greatest(accepted[name], policy) for name, policy in self.stream.also}
        seen = Observed(shown, accepted.height, int(late.sum()), also)
        missed = ~only & ~kept
        for name in known.also:
            missed |= kept & self._late_on(known, batch, name)
        return Judged(accepted, batch.filter(missed), seen)

    def learn(self, known: Known, pieces: Sequence[Observed], now: int, watched: int | None = None) -> Known:
        """What is known after a batch, given what its pieces tell. `watched` is the time by which sources are
        idle, if that is not the time on the wall."""
        seen = Observed.all(pieces)
        time = now if watched is None else watched
        return replace(
            self.counted(known, seen),
            progress=self.stream.progress.policy.observe(known.progress, seen.batch, time),
            last_arrival=max(known.last_arrival, now),
            also={
                name: policy.observe(known.also[name], Batch(seen.also.get(name, ())), time)
                for name, policy in self.stream.also
            },
        )

    def counted(self, known: Known, seen: Observed) -> Known:
        """The same, with more rows accepted."""
        return replace(known, accepted=known.accepted + seen.accepted)

    def tick(self, known: Known, now: int) -> Known:
        """Wall-clock time passed without rows: idle sources may be left out."""
        progress = self.stream.progress.policy.observe(known.progress, Batch(wattr=()), now)
        return replace(known, progress=progress)

    def promise(self, known: Known, progress: Instant, where: Mapping[str, Any] | None, now: int) -> Known:
        """A promise from outside: no more rows (with this value in this column) below `progress`."""
        if progress != attributes.FARTHEST + 1:  # no more rows at all
            attributes.check_instant(progress, f"punctuation of stream `{self.stream.name}`")
        if where is None:
            return replace(known, progress=known.progress.with_progress(progress))
        if len(where) != 1 or known.per not in (None, *where):
            raise DataError(
                f"punctuation of stream `{self.stream.name}` can be on the values of one column only",
                code="bad-punctuation",
                hint=f"use `{known.per or next(iter(where), '…')}` throughout",
            )
        ((column, value),) = where.items()
        source = canonical(value, self.stream.schema.column(column).type, column)
        promised = replace(known, per=column, progress=known.progress.with_progress_of(source, progress))
        return self.tick(promised, now)

    def _moments(self, known: Known, batch: pl.DataFrame, only: pl.Series, now: int) -> pl.Series:
        """The windowing attribute of each row."""
        if self.stream.wattr == ARRIVAL_TS:
            return pl.Series([now], dtype=pl.Int64).new_from_index(0, batch.height)
        if self.stream.wattr == ROW_NUM:
            return (~only).cast(pl.Int64).cum_sum() + known.accepted
        return ticks_of(batch[self.stream.wattr], self.stream.domain)

    def _refuse_null(self, moments: pl.Series, rows: pl.DataFrame) -> None:
        if not moments.null_count():
            return
        stray = moments.is_null() & rows[self.stream.wattr].is_not_null()
        if stray.any():
            raise off_grid(self.stream, rows[self.stream.wattr].filter(stray)[0])
        row = rows.row(moments.is_null().arg_max() or 0, named=True)
        others = [name for name in self.stream.schema.names if name != self.stream.wattr][:4]
        told = ", ".join(f"{name} {str(row[name])[:40]}" for name in others)
        raise self.no_moment(f"the row with {told}" if told else "a row")

    def no_moment(self, who: str) -> DataError:
        """A row without a windowing attribute is in no window, and must not vanish silently."""
        return DataError(
            f"stream `{self.stream.name}`: {who} has no `{self.stream.wattr}`",
            code="null-wattr",
            hint="the windowing attribute cannot be NULL; filter such rows out before",
        )

    def _late(self, known: Known, batch: pl.DataFrame, moments: pl.Series) -> pl.Series:
        """Whether each row comes too late, by what its source had promised before the batch."""
        progress: attributes.Ints | int = _finite(known.progress.progress)
        if known.per is not None and known.progress.sources:
            source, sources = batch[known.per].alias("source"), list(known.progress.sources)
            told = pl.Series("p", [_finite(known.progress.progress_of(each)) for each in sources])
            promised = pl.DataFrame([pl.Series("source", sources, dtype=source.dtype), told])
            progress = columns.looked_up(source.to_frame(), promised, "p").fill_null(progress).to_numpy()
        return pl.Series(moments.fill_null(_LIMIT).to_numpy() < progress)

    def _stamped(self, known: Known, rows: pl.DataFrame, now: int) -> pl.DataFrame:
        first = known.accepted + 1
        numbers = pl.int_range(first, first + rows.height, eager=True).alias(f"#{ROW_NUM}")
        stamps = pl.Series(f"#{ARRIVAL_TS}", [now], dtype=pl.Int64).new_from_index(0, rows.height)
        wattr, marks = self.stream.wattr, []
        if self.stream.domain.resolution is not None:
            marks.append(ticks_of(rows[wattr], self.stream.domain).alias(ALSO + wattr))
        for name in known.also:
            moments = rows[name].cast(pl.Int64)
            check_instants(moments, f"`{name}` of stream `{self.stream.name}`")
            late = self._late_on(known, rows, name)
            marks.append(pl.select(pl.when(~late).then(moments)).to_series().alias(ALSO + name))
        return rows.with_columns(numbers, stamps, *marks)

    def _late_on(self, known: Known, rows: pl.DataFrame, name: str) -> pl.Series:
        """Whether rows are late for windows on an attribute of ALSO."""
        return (rows[name].cast(pl.Int64) < _finite(known.also[name].progress)).fill_null(False)

    def _greatest(self, values: pl.Series, policy: Policy) -> tuple[int, ...]:
        most = policy.rows + 1 if isinstance(policy, SlackRows) else 1
        return tuple(values.cast(pl.Int64).drop_nulls().top_k(most).to_list())

    def _shown(
        self, known: Known, batch: pl.DataFrame, moments: pl.Series, only: pl.Series, late: pl.Series
    ) -> Batch:
        policy, per = self.stream.progress.policy, known.per
        by_rows = policy.rows + 1 if isinstance(policy, SlackRows) else None
        values = pl.DataFrame({"t": moments}).with_columns(_source(batch, per))
        values = values.filter(~only & ~late if by_rows else ~only)
        shown = values.group_by("source").agg(pl.col("t").top_k(by_rows or 1)).explode("t")
        marked = self._marked(batch, per)
        sources = [columns.plain(each) for each in shown["source"].to_list() + marked["source"].to_list()]
        return Batch(
            wattr=shown["t"].to_list() + [None] * marked.height,
            sources=sources if per else None,
            marks=[None] * shown.height + marked["mark"].to_list() if self.mark else None,
            only_mark=[False] * shown.height + [True] * marked.height,
        )

    def _marked(self, batch: pl.DataFrame, per: str | None) -> pl.DataFrame:
        """The greatest mark of each source that has rows; NULL where it sent none."""
        if self.mark is None:
            return pl.DataFrame({"source": [], "mark": []})
        marks = pl.DataFrame({"mark": self.mark(batch)}).with_columns(_source(batch, per))
        check_instants(marks["mark"].cast(pl.Int64), f"punctuation of stream `{self.stream.name}`")
        return marks.group_by("source").agg(pl.col("mark").max())


def off_grid(stream: Stream, value: Any) -> DataError:
    """The error about a value that is no multiple of the attribute's RESOLUTION."""
    return DataError(
        f"`{stream.wattr}` of stream `{stream.name}` is {value}, which is no multiple of its RESOLUTION"
        f" {stream.domain.at(1)}, or out of reach",
        code="malformed-row",
        hint="declare a finer RESOLUTION, or round the values before",
    )


def check_instants(instants: pl.Series, whose: str) -> None:
    """Refuse instants that windows cannot be told about (`windrow.windows.domain.FARTHEST`)."""
    outside = (instants > attributes.FARTHEST) | (instants < -attributes.FARTHEST)
    if outside.any():
        raise attributes.too_far(int(instants.filter(outside)[0]), whose)


def _joined(batches: Sequence[Batch]) -> Batch:
    """The rows of several pieces, in any order. A piece without rows has no columns either."""
    told = [batch for batch in batches if batch.wattr]
    if len(told) <= 1:
        return told[0] if told else Batch()

    def column(name: str) -> list[Any] | None:
        parts = [getattr(batch, name) for batch in told]
        return list(chain.from_iterable(parts)) if parts[0] is not None else None

    return Batch(column("wattr") or (), column("sources"), column("marks"), column("only_mark"))


def _source(batch: pl.DataFrame, per: str | None) -> pl.Series:
    source = batch[per] if per else pl.Series([None]).new_from_index(0, batch.height)
    return source.alias("source")


def _finite(instant: Instant) -> int:
    """An instant as a 64-bit integer."""
    return int(max(-_LIMIT, min(_LIMIT, instant)))
