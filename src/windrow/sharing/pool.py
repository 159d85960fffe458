"""The pool: the synopses of a sharing plan, kept up to date and asked by their queries.

Rows come in any order above the stream's progress; as progress passes the end of an interval, the synopses
are updated and the queries that have a window ending there are answered, all those of one synopsis in one
probe. Queries come and go between. One that comes late uses what is there: its answers begin with the first
window whose rows are all in the synopses it shares.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import polars as pl

from windrow.algebra.expressions import Expression
from windrow.kernels.expressions import compile_expression, holds
from windrow.kernels.layout import PANE
from windrow.sharing.answering import answer
from windrow.sharing.data import Datum
from windrow.sharing.planner import Planner
from windrow.sharing.questions import answers_of
from windrow.sharing.rules.ss4 import MOST_PROBED
from windrow.sharing.synopses.choose import converted, make
from windrow.windows.domain import INFINITY, Instant

if TYPE_CHECKING:
    import pyarrow as pa

    from windrow.algebra.plan import Emit
    from windrow.kernels.answers import Answers
    from windrow.sharing.answering import Window
    from windrow.sharing.held import Held
    from windrow.sharing.plans import SharingPlan
    from windrow.sharing.questions import Need, Question
    from windrow.sharing.synopses.synopsis import Synopsis

_BEFORE_ALL = -(1 << 62)
#: so many windows of a query are answered at a time
_WINDOWS = 256


@dataclass(frozen=True)
class Answer:
    """Answers of a query: its rows, with the ends of their windows as `#at`."""

    query: str
    table: pa.Table


@dataclass
class Kept:
    """A synopsis, the intervals that are still open, and the first interval of which all rows were seen."""

    held: Held
    datum: Datum
    synopsis: Synopsis
    since: int | None
    open: dict[int, list[pl.DataFrame]] = field(default_factory=lambda: defaultdict(list))

    @property
    def next_end(self) -> int | None:
        """Where the next interval ends that changes anything."""
        if not self.synopsis.is_empty:
            return self.held.grid.begin(self.synopsis.end + 1)
        return self.held.grid.begin(min(self.open) + 1) if self.open else None

    def take(self, rows: pl.DataFrame) -> None:
        """Rows with their instants (`#t`), of which those count that satisfy the condition."""
        chosen = rows.filter(holds(compile_expression(self.held.predicate.expression), rows))
        if not chosen.height:
            return
        grid = self.held.grid
        placed = chosen.with_columns(((pl.col("#t") - grid.phase) // grid.width).alias("#pane"))
        keys = [key for key in self.held.family.keys if isinstance(key, Expression)]
        table = self.datum.tables(placed, keys)
        for (pane,), part in table.partition_by(PANE, as_dict=True).items():
            self.open[pane].append(part)

    def close(self, instant: int) -> None:
        """Insert all intervals that end by an instant."""
        stop = self.held.grid.index(instant)
        for index in sorted(index for index in self.open if index < stop):
            self.synopsis.skip_to(index)
            states = self.synopsis.states
            self.synopsis.update(states.layout.closed(states.merged(self.open.pop(index))))
        self.synopsis.skip_to(stop)


class Pool:
    """Queries over streams, answered from the synopses they share."""

    def __init__(self, most_probed: int = MOST_PROBED) -> None:
        self._planner = Planner(most_probed)
        self._kept: dict[str, Kept] = {}
        self._clocks: dict[str, Instant] = {}
        self._greatest: dict[str, int] = {}
        self._answers: dict[str, Answers] = {}
        self._complete: dict[str, int | None] = {}
        self.plan: SharingPlan = self._planner.plan()

    def add(self, queries: Mapping[str, Emit]) -> None:
        """Queries come."""
        self._planner.add(queries)
        self._rearrange()
        for name in queries:
            if name in self._questions:
                self._answers[name] = answers_of(self._questions[name])
                self._complete[name] = self._complete_from(name)

    def drop(self, query: str) -> None:
        """A query goes."""
        self._planner.drop(query)
        self._answers.pop(query, None)
        self._complete.pop(query, None)
        self._rearrange()

    def complete_from(self, query: str) -> int | None:
        """Windows of a query that begin earlier are not answered; None if all are."""
        return self._complete[query]

    def push(self, stream: str, rows: pl.DataFrame, wattr: str) -> None:
        """Rows of a stream, none of them below its progress."""
        if not rows.height:
            return
        moments = rows[wattr].cast(pl.Int64)
        greatest = moments.max()
        assert isinstance(greatest, int)
        self._greatest[stream] = max(greatest, self._greatest.get(stream, greatest))
        placed = rows.with_columns(moments.alias("#t"))
        for kept in self._of(stream):
            kept.take(placed)

    def advance(self, stream: str, progress: Instant) -> Iterator[Answer]:
        """No more rows of a stream below `progress`: answer what is final now."""
        self._clocks[stream] = max(progress, self._clocks.get(stream, -INFINITY))
        kept = self._of(stream)
        waiting: defaultdict[str, list[Window]] = defaultdict(list)
        while (at := _first_end(kept)) is not None and at <= progress:
            for each in kept:
                each.close(at)
            for name, window in self._due(stream, at):
                waiting[name].append(window)
                if len(waiting[name]) == _WINDOWS:
                    yield from self._answered(name, waiting.pop(name))
        for name, windows in waiting.items():
            yield from self._answered(name, windows)

    # ------------------------------------------------------------ what is kept

    @property
    def _questions(self) -> Mapping[str, Question]:
        """The questions that are answered here: those over single streams."""
        return {name: each for name, each in self.plan.questions.items() if len(each.lengths) == 1}

    def _of(self, stream: str) -> list[Kept]:
        return [kept for kept in self._kept.values() if kept.held.family.source == stream]

    def _rearrange(self) -> None:
        self.plan = self._planner.plan()
        held = {name: each for name, each in self.plan.synopses.items() if not each.kind.is_join}
        self._kept = {name: self._arranged(self._kept.get(name), each) for name, each in held.items()}

    def _arranged(self, kept: Kept | None, held: Held) -> Kept:
        datum = held.family.datum
        assert isinstance(datum, Datum)
        if kept is None:
            states = datum.states(len(held.family.keys))
            greatest = self._greatest.get(str(held.family.source))
            since = None if greatest is None else held.grid.index(greatest) + 1
            return Kept(held, datum, make(held.kind, states, held.b, _BEFORE_ALL), since)
        if held.b > kept.synopsis.b:
            kept.since = _latest(kept.since, self._forgotten(kept))
        kept.synopsis = converted(kept.synopsis, held.kind, held.b)
        kept.held = held
        return kept

    def _forgotten(self, kept: Kept) -> int | None:
        """The first interval that a synopsis still holds."""
        clock = self._clocks.get(str(kept.held.family.source), -INFINITY)
        if abs(clock) == INFINITY:
            return None
        return kept.held.grid.index(int(clock)) - kept.synopsis.b

    def _complete_from(self, query: str) -> int | None:
        names = {name for each in self.plan.shares[query].recipes.values() for name in each.all}
        kept = [self._kept[name] for name in names]
        begins = [each.held.grid.begin(each.since) for each in kept if each.since is not None]
        return max(begins, default=None)

    # ------------------------------------------------------------ answers

    def _due(self, stream: str, at: int) -> Iterator[tuple[str, Window]]:
        """The states of what the queries need that have a window ending here."""
        due = [each for each in self._questions.values() if each.source == stream and self._is_due(each, at)]
        lengths: defaultdict[str, set[int]] = defaultdict(set)
        for question in due:
            for relevant in self.plan.shares[question.name].recipes.values():
                for name in relevant.all:
                    lengths[name].add(question.lengths[0] // self._kept[name].held.grid.width)
        probed = {name: self._kept[name].synopsis.probe(sorted(each)) for name, each in lengths.items()}
        for question in due:
            yield question.name, (at, self._gathered(question, probed))

    def _answered(self, name: str, windows: Sequence[Window]) -> Iterator[Answer]:
        found = answer(self._questions[name], self._answers[name], windows)
        if found is not None:
            yield Answer(name, found)

    def _gathered(
        self, question: Question, probed: Mapping[str, Mapping[int, pl.DataFrame]]
    ) -> Mapping[Need, pl.DataFrame]:
        """The states of each need, combined from the synopses it is taken from."""
        found: dict[Need, pl.DataFrame] = {}
        for need, relevant in self.plan.shares[question.name].recipes.items():
            states = need.datum.states(len(question.keys))

            def tables(names: Sequence[str]) -> list[pl.DataFrame]:
                width = [question.lengths[0] // self._kept[name].held.grid.width for name in names]
                return [probed[name][n] for name, n in zip(names, width, strict=True)]

            added = tables(relevant.added)
            whole = added[0] if len(added) == 1 else states.merged(added)
            if relevant.subtracted:
                whole = states.subtracted(whole, states.merged(tables(relevant.subtracted)))
            found[need] = whole
        return found

    def _is_due(self, question: Question, at: int) -> bool:
        if (at - question.origin) % question.slide:
            return False
        complete = self._complete[question.name]
        return complete is None or at - question.lengths[0] >= complete


def _first_end(kept: Sequence[Kept]) -> int | None:
    """Where the next interval ends that changes anything; None if none does."""
    return min((end for each in kept if (end := each.next_end) is not None), default=None)


def _latest(one: int | None, other: int | None) -> int | None:
    known = [each for each in (one, other) if each is not None]
    return max(known, default=None)
