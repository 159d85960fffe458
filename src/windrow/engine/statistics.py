"""What was seen of streams while they ran: the statistics that plans are chosen by, kept with the commits;
and, since this process runs, what the levels of queries and whole epochs took.

Rates follow from how many rows came while a stream's attribute moved on. Distinct values are counted in the
rows that joins and negations hold, when a query is planned anew. How many rows of a window they hold tells
which share of them passes the condition below; it is known to all queries that have the same condition on
that stream. A level is one γ over a window; ingesting is no part of it: Spark does that for many queries at
once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import polars as pl

from windrow.algebra import canonical, catalog, expressions, operators as ops, types
from windrow.algebra.plan import Emit, Plan, Scan, Window
from windrow.engine.records import QueryRecord, StreamRecord
from windrow.execution.relational import OF, states_of
from windrow.kernels.relational.state_transfer import held_rows
from windrow.optimizer import flows, optimizer
from windrow.physical.units import GeneralUnit, UnionUnit
from windrow.shedding.load import OperatorWork
from windrow.state.manifest import Manifest
from windrow.state.shard import Shard
from windrow.state.store import Store
from windrow.windows.ranges import RangeWindow

#: seconds and rows given, by query and level
Took: TypeAlias = Mapping[tuple[str, int], tuple[float, int]]


@dataclass
class MeasuredWork:
    """The work of all levels of all queries.

    >>> costs = MeasuredWork()
    >>> costs.add({("q", 0): (0.25, 100), ("q", 1): (0.125, 4)}, rows=100_000)
    >>> list(costs.lines("q"))
    ['level 1: 2.5 µs per row, gives 0.001 of them', 'level 2: 1250.0 µs per row, gives 0.04 of them']
    """

    work: dict[tuple[str, int], OperatorWork] = field(default_factory=dict)

    def add(self, took: Took, rows: int) -> None:
        """One more epoch, in which so many rows came."""
        for (query, level), (seconds, given) in took.items():
            known = self.work.get((query, level), OperatorWork())
            taken = rows if level == 0 else took.get((query, level - 1), (0.0, 0))[1]
            sums = known.seconds + seconds, known.rows_in + taken, known.rows_out + given
            self.work[query, level] = OperatorWork(*sums)

    def drop(self, query: str) -> None:
        self.work = {key: work for key, work in self.work.items() if key[0] != query}

    def seconds(self, query: str) -> list[float]:
        """What the levels of a query took, from the lowest."""
        return [work.seconds for (name, _), work in sorted(self.work.items()) if name == query]

    def lines(self, query: str) -> Iterator[str]:
        """For EXPLAIN ANALYZE."""
        mine = sorted((level, work) for (name, level), work in self.work.items() if name == query)
        for level, work in mine:
            if work.rows_in:
                name = f"level {level + 1}" if len(mine) > 1 else "windows"
                cost = f"{name}: {work.cost * 1e6:.1f} µs per row"
                yield f"{cost}, gives {work.selectivity:.2g} of them"


#: of so many epochs it is known what they took
MOST_EPOCHS = 512


@dataclass(frozen=True, slots=True)
class EpochTimes:
    """One epoch: `read` are seconds for new rows, `close` for windows and answers."""

    #: counts the epochs of this process, from 1
    number: int
    #: the last commit when it was over
    commit: int
    #: when it began: microseconds since 1970
    began: int
    rows: int
    shed: int
    #: rows that were left waiting in the sources, as far as those tell
    backlog: int
    read: float
    close: float
    commit_seconds: float
    deliver: float

    @property
    def seconds(self) -> float:
        """All of it."""
        return self.read + self.close + self.commit_seconds + self.deliver


@dataclass(frozen=True, slots=True)
class Footprint:
    """What a commit holds."""

    commit: int
    files: int
    state_bytes: int
    #: of each query or shared state, by id
    bytes_by_owner: dict[str, int]
    outbox_bytes: int
    #: the oldest commit with answers that a sink does not have yet; None if there are none
    outbox_since: int | None


def footprint_of(manifest: Manifest) -> Footprint:
    refs = [ref for chunks in manifest.chunks.values() for ref in chunks]
    owners: dict[str, int] = {}
    for ref in refs:
        for operator, facts in ref.operators.items():
            owner = operator.partition(OF)[0]
            owners[owner] = owners.get(owner, 0) + facts.bytes
    waiting = [entry for entry in manifest.outbox if entry.pending]
    size, outbox = sum(ref.bytes for ref in refs), sum(entry.ref.bytes for entry in waiting)
    since = min((entry.commit for entry in waiting), default=None)
    return Footprint(manifest.number, len(refs), size, owners, outbox, since)


#: nothing is concluded from fewer rows; after so many, the rate is that of the rows since
FEWEST_ROWS, MOST_ROWS = 100, 1_000_000
#: of each window, so many rows of a shard are looked at
LOOKED_AT = 100_000
#: a query that keeps more rows than these is not looked at
MOST_KEPT = 2_000_000
_MICROSECONDS = 1_000_000


@dataclass(frozen=True)
class ObservedStatistics:
    """Rows per unit of time of each stream, distinct values of columns, shares of rows that pass conditions,
    and where counting began."""

    rates: Mapping[str, float] = field(default_factory=dict)
    distinct: Mapping[str, float] = field(default_factory=dict)
    #: by stream and condition, in canonical text
    passing: Mapping[str, float] = field(default_factory=dict)
    #: of each stream, the greatest value of its attribute and how many rows there were at that time
    marks: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    @classmethod
    def of(cls, decisions: Mapping[str, Any]) -> ObservedStatistics:
        stored = decisions.get("statistics", {})
        marks = {name: (at, rows) for name, (at, rows) in stored.get("marks", {}).items()}
        return cls(stored.get("rates", {}), stored.get("distinct", {}), stored.get("passing", {}), marks)

    @property
    def decisions(self) -> dict[str, Any]:
        if not self.marks:
            return {}
        marks = {name: list(mark) for name, mark in self.marks.items()}
        known = {"rates": dict(self.rates), "distinct": dict(self.distinct), "passing": dict(self.passing)}
        return {"statistics": {**known, "marks": marks}}

    def after(self, streams: Mapping[str, StreamRecord]) -> ObservedStatistics:
        """The same after an epoch; of streams that are gone nothing is known."""
        rates, marks = dict(self.rates), dict(self.marks)
        for name, record in streams.items():
            if record.greatest is None:
                continue
            at, rows = marks.setdefault(name, (record.greatest, record.known.accepted))
            came, passed = record.known.accepted - rows, record.greatest - at
            if came >= FEWEST_ROWS and passed > 0:
                rates[name] = came / _units(record.stream, passed)
            if came >= MOST_ROWS:
                marks[name] = record.greatest, record.known.accepted
        known = {name: rate for name, rate in rates.items() if name in streams}
        here = {name: mark for name, mark in marks.items() if name in streams}
        return replace(self, rates=known, marks=here)

    def looking_at(self, store: Store, last: Manifest, record: QueryRecord) -> ObservedStatistics:
        """The same, with the distinct values among the rows that a query holds, and the shares of rows that
        pass its conditions. So many rows that it would take long are not looked at."""
        unit = record.bundle.unit
        if not isinstance(unit, GeneralUnit) or isinstance(unit, UnionUnit):
            return self
        held = (facts for files in last.chunks.values() for file in files for facts in file.operators.items())
        if sum(f.rows for name, f in held if name.partition(OF)[0] in record.bundle.places) > MOST_KEPT:
            return self
        seen: dict[str, list[pl.Series]] = {}
        kept: Counter[Plan] = Counter()
        for shard in (Shard(store, files) for number, files in last.chunks.items() if number >= 0):
            for node, rows in held_rows(unit.program, states_of(record.bundle, shard)):
                kept[node] += rows.height
                streams = {s.alias: s.stream.name for s in node.walk() if isinstance(s, Scan)}
                for column in rows.columns:
                    alias, dot, name = column.partition(".")
                    if dot and alias in streams:
                        seen.setdefault(f"{streams[alias]}.{name}", []).append(rows[column].head(LOOKED_AT))
        found = {name: float(pl.concat(parts).n_unique()) for name, parts in seen.items() if parts}
        greatest = {name: state.options["greatest"] for name, state in last.streams.items()}
        shares = dict(share for node, rows in kept.items() for share in self._shares(node, rows, greatest))
        return replace(self, distinct={**self.distinct, **found}, passing={**self.passing, **shares})

    def _shares(
        self, node: Plan, rows: int, greatest: Mapping[str, int | None]
    ) -> Iterator[tuple[str, float]]:
        """Which share of its rows the condition on a window lets pass: of those that it would hold, so
        many are held. A window that is not full yet tells nothing."""
        condition = _condition(node)
        if condition is None:
            return
        predicate, window, scan = condition
        name = scan.stream.name
        rate, now = self.rates.get(name), greatest.get(name)
        if rate and now is not None and now - self.marks[name][0] >= window.range:
            expected = rate * _units(scan.stream, window.range)
            yield _key(predicate, scan), min(1.0, max(rows, 1) / max(expected, 1.0))

    def statistics(self, tables: Mapping[str, int], plan: Emit | None = None) -> flows.Statistics:
        """For the planner: of streams and tables, and of the conditions of a query."""
        found = {}
        nodes = () if plan is None or not self.passing else optimizer.normalise(plan).plan.walk()
        for condition in filter(None, map(_condition, nodes)):
            predicate, _, scan = condition
            if (key := _key(predicate, scan)) in self.passing:
                found[predicate] = self.passing[key]
        sizes = {name: float(rows) for name, rows in tables.items()}
        known = dict(self.rates), dict(self.distinct)
        return flows.Statistics(*known, selectivities=found, table_rows=sizes)


def _condition(node: Plan) -> tuple[expressions.Expression, RangeWindow, Scan] | None:
    """The one condition on the rows of a window, the window, and its stream; None if there is none, or there
    are several."""
    found: list[expressions.Expression] = []
    window: RangeWindow | None = None
    while isinstance(node, ops.Filter | ops.Project | Window):
        found += [node.predicate] if isinstance(node, ops.Filter) else []
        if isinstance(node, Window):
            window = node.spec if isinstance(node.spec, RangeWindow) else None
        node = node.input
    if window is None or len(found) != 1 or not isinstance(node, Scan):
        return None
    return found[0], window, node


def _key(predicate: expressions.Expression, scan: Scan) -> str:
    """A condition on a stream, whatever the stream is called in a query."""
    stream, names = scan.stream.name, {}
    for column in scan.schema:
        name = stream + column.name.removeprefix(scan.alias)
        names[column.name] = expressions.ColumnRef(name, column.type)
    return canonical.canonical_text([stream, expressions.substituted(predicate, names)])


def _units(stream: catalog.Stream, ticks: int) -> float:
    """A span of a stream's attribute in units of time: seconds, or its own."""
    is_time = stream.schema.column(stream.wattr).type.kind is types.Kind.TIMESTAMP
    return ticks / _MICROSECONDS if is_time else float(ticks)
