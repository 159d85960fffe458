"""An answer from the synopses that standing queries share: no row has to be kept for it.

A manifest says which synopses each query uses, in the order of its needs; and of each in which shared state
it is, how its intervals are cut, how many are kept and since when it has all rows. They fit a SELECT that
aggregates one window of one stream if their shared state is grouped by what is asked, or finer: states of
several groups combine, and a condition on what is grouped by chooses among them. All other conditions have to
be those of the synopses. The window has to begin where an interval does, and to end where one does, unless no
row is known beyond its end: then what the last interval has is in the window.

What is read is a part for each shard, and one for each delta file not taken in yet. A part becomes a table of
what is asked for, by interval and by the shared state's groups:

    #begin | k0 … (the shared state's keys) | rows.0 | p0.0 p0.1 … (as the SELECT would keep it)

Files never change, and which intervals are in the window is looked at last, so that parts which were read for
one commit do for the next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from hashlib import blake2b
from typing import TypeAlias

import polars as pl

from windrow.algebra.explain.operators import quantity
from windrow.algebra.expressions import TRUE, ColumnRef, Expression, conjunction, conjuncts
from windrow.algebra.functions.sql_text import to_sql
from windrow.algebra.operators import Limit
from windrow.algebra.plan import Emit, StreamWord, Window
from windrow.engine.adhoc import access_paths, snapshot
from windrow.engine.output.outbox import in_order
from windrow.engine.records import StreamRecord
from windrow.engine.sharing.shared_state import KeptSynopsis, entry_of
from windrow.errors import QueryError
from windrow.execution import delta_file, shared
from windrow.kernels.aggregates.measures import GROUPS
from windrow.kernels.clock import Clock
from windrow.kernels.columnar.columns import polars_type, value_order, without_negative_zero
from windrow.kernels.columnar.expressions import compile_expression, holds
from windrow.kernels.panes.pane_tables import PaneAnswers
from windrow.kernels.relational.program import News, RelationalProgram
from windrow.kernels.relational.signed_rows import FOREVER, KEPT, NEVER_LATE, VE, VS, N
from windrow.kernels.relational.windows.leaf import NUMBER
from windrow.kernels.shared.shared_state import CLOSED, OPEN, Entry, PaneGrid, SharedState
from windrow.kernels.state import PANE
from windrow.physical import plan_query
from windrow.sharing.predicates import Predicate, predicate_of
from windrow.sharing.questions import Datum, Need, QueryNeeds, answers_of, question_of
from windrow.state.manifest import ChunkRef, Manifest
from windrow.state.names import DRIVER
from windrow.state.shard import Shard
from windrow.state.store import Store
from windrow.windows import INFINITY, RangeWindow

#: what a column of a group's key is called where conditions and keys are computed from it
KEY = "#k"


@dataclass(frozen=True)
class SynopsisRequest:
    """A SELECT that synopses may answer: what it needs, over windows of some length; then its first rows."""

    question: QueryNeeds
    range: int
    #: whether its windows end at certain instants only
    slides: bool
    order: tuple[tuple[str, bool], ...] = ()
    count: int | None = None


@dataclass(frozen=True)
class Fit:
    """Synopses of one shared state that have all that is asked of a window."""

    shelf: SynopsisShelf
    #: the values of the attribute
    span: range
    chosen: dict[Need, Synopsis]
    #: what groups have to satisfy, and the keys that are asked for, both over the shared state's keys
    condition: Expression
    keys: tuple[Expression, ...]


@dataclass(frozen=True)
class NearMiss:
    """Synopses that have what is asked for, but not of this window; and what could be asked instead."""

    query: str
    why: str
    instead: str | None = None


Found: TypeAlias = "Fit | NearMiss | None"


def asked_of(emit: Emit) -> SynopsisRequest | None:
    """What a SELECT asks of synopses; None if there are none for its like."""
    top, order = snapshot.without_order(emit)
    limit = top.input if isinstance(top.input, Limit) else None
    if limit is not None and not all(isinstance(key, ColumnRef) for key, _ in limit.order):
        return None
    plan = Emit(limit.input if limit is not None else top.input, StreamWord.RSTREAM)
    windows = [node for node in plan.walk() if isinstance(node, Window)]
    spec = windows[0].spec if len(windows) == 1 else None
    if not isinstance(spec, RangeWindow) or spec.internal or emit.reads_window_bounds:
        return None
    plain = replace(spec, slide=spec.range, origin=0)  # windows that follow each other have the needs of any
    tumbling = plan.rewrite(lambda node: Window(node.input, plain) if isinstance(node, Window) else node)
    assert isinstance(tumbling, Emit)
    try:
        question = question_of("", plan_query(tumbling).emit)
    except QueryError:
        return None
    if any(need.datum.is_complex for need in question.needs):
        return None
    count = None if limit is None or limit.count == snapshot.NO_LIMIT else limit.count
    return SynopsisRequest(question, spec.range, spec.slide is not None, order, count)


def fit(asked: SynopsisRequest, shelves: Sequence[SynopsisShelf], record: StreamRecord, span: range) -> Found:
    """Synopses for a window; else those that nearly fit, if there are any."""
    if record.shed:
        return None  # what was shed is in no synopsis, and nobody knows when it was
    missed: NearMiss | None = None
    for shelf, condition, keys, found in _candidates(asked, shelves):
        chosen: dict[Need, Synopsis] = {}
        reasons: list[str] = []
        for need, synopses in found.items():
            why = {each.label: _why_not(each, record, span) for each in synopses}
            fitting = next((each for each in synopses if why[each.label] is None), None)
            if fitting is not None:
                chosen[need] = fitting
            else:
                reasons.append(str(why[synopses[0].label]))
        if not reasons:
            return Fit(shelf, span, chosen, condition, keys)
        missed = missed or _near_miss(asked, shelf, found, reasons[0])
    return missed


def earlier(
    asked: SynopsisRequest, shelves: Sequence[SynopsisShelf], record: StreamRecord, span: range
) -> Fit | None:
    """Synopses for the last window that ended with an interval: a state that was true before this one."""
    if asked.slides:
        return None
    ends = {
        grid.begin(grid.index(span.stop))
        for _, _, _, found in _candidates(asked, shelves)
        for synopses in found.values()
        for grid in (synopsis.kept.grid for synopsis in synopses)
    }
    for end in sorted(ends, reverse=True):
        found = fit(asked, shelves, record, range(end - asked.range, end))
        if isinstance(found, Fit):
            return found
    return None


def _candidates(
    asked: SynopsisRequest, shelves: Sequence[SynopsisShelf]
) -> Iterator[tuple[SynopsisShelf, Expression, tuple[Expression, ...], dict[Need, list[Synopsis]]]]:
    """Shared states with all data that are asked for: the condition on groups, the keys, and the synopses."""
    question = asked.question
    for shelf in shelves:
        keys = tuple(_over_keys(key, shelf.keys) for key in question.keys)
        if not all(keys):
            continue
        where = conjuncts(question.existence.predicate.expression)
        over = {part: changed for part in where if (changed := _over_keys(part, shelf.keys)) is not None}
        for left_out in ({}, over) if over else ({},):
            found = {need: shelf.of(need.datum, _without(need, left_out)) for need in question.needs}
            if all(found.values()):
                yield shelf, conjunction(tuple(left_out.values())), keys, found  # type: ignore[misc]
                break


def _over_keys(expression: Expression, keys: Sequence[Expression]) -> Expression | None:
    """An expression over a shared state's keys instead of the stream's columns; None if it reads anything
    else.

    Keys do not tell -0.0 from 0.0, so nothing but themselves is computed from those that are fractional.
    """
    names = {key: ColumnRef(f"{KEY}{place}", key.type) for place, key in enumerate(keys)}
    if expression in names:
        return names[expression]
    exact = {key: name for key, name in names.items() if not key.type.is_fractional}
    changed = expression.rewrite(lambda node: exact.get(node, node))
    return changed if changed.columns <= {name.name for name in exact.values()} else None


def _without(need: Need, left_out: Mapping[Expression, Expression]) -> Predicate:
    if not left_out:
        return need.predicate
    parts = conjuncts(need.predicate.expression)
    return predicate_of(conjunction(tuple(part for part in parts if part not in left_out)))


def _why_not(synopsis: Synopsis, record: StreamRecord, span: range) -> str | None:
    kept, grid = synopsis.kept, synopsis.kept.grid
    each = quantity(grid.width, record.stream.domain)
    known = record.greatest is not None and record.greatest >= span.stop
    if grid.begin(grid.index(span.start)) != span.start:
        return f"its intervals of {each} do not begin with this window"
    if known and grid.begin(grid.index(span.stop)) != span.stop:
        return f"its intervals of {each} do not end with this window"
    if kept.since is not None and span.start < kept.since:
        return "it has not been there for so long"
    # the interval before which it counts those that it keeps; after the end, behind the last row
    clock, reached = record.known.progress_on(record.stream, record.stream.wattr), -INFINITY
    if abs(clock) != INFINITY:
        reached = grid.index(int(clock))
    elif record.greatest is not None:
        reached = grid.index(record.greatest) + 1
    return f"it has {kept.length} × {each}" if grid.index(span.start) < reached - kept.length else None


def _near_miss(
    asked: SynopsisRequest, shelf: SynopsisShelf, found: dict[Need, list[Synopsis]], reason: str
) -> NearMiss:
    widths = {synopses[0].kept.grid.width for synopses in found.values()}
    instead = None
    if not asked.slides and all(asked.range % width == 0 for width in widths) and "do not" in reason:
        slide = quantity(max(widths), asked.question.emit.leaves[0].domain)
        instead = f"ask WITH ISOLATION WINDOW, or with SLIDE {slide}"
    return NearMiss(shelf.query, reason, instead)


def relation(
    plan: Emit, rows: Mapping[str, pl.DataFrame], changes: Mapping[str, pl.DataFrame], clock: int, at: int
) -> pl.DataFrame:
    """The relation at an instant, given all rows below the clock: one step of kernels from nothing to now."""
    program = RelationalProgram(plan, as_relation=True)
    # as an intake would have given them; nobody asks for their numbers
    given = {
        name: frame.with_columns(
            pl.int_range(1, frame.height + 1, dtype=pl.Int64, eager=True).alias(NUMBER),
            pl.lit(NEVER_LATE, pl.Int64).alias(KEPT),
        )
        for name, frame in rows.items()
    }
    news = News(Clock(-FOREVER, clock), given, changes)
    _, _, pieces = program.advance({}, news)
    inside = pieces.filter((pl.col(VS) <= at) & (pl.col(VE) > at))
    return copies(inside, list(plan.schema.names))


def in_row_order(frame: pl.DataFrame, order: Sequence[tuple[str, bool]]) -> pl.DataFrame:
    """Sorted by the columns that were asked for, then by all: NULL first, NaN last."""
    if frame.height < 2:
        return frame
    frame = pl.concat(list(in_order([frame.to_arrow()])))
    if not order:
        return frame
    keys = [value_order(frame[name]).alias(str(place)) for place, (name, _) in enumerate(order)]
    down = [descending for _, descending in order]
    by = [pl.col(str(place)) for place in range(len(keys))]
    places = pl.DataFrame(keys).select(
        pl.arg_sort_by(by, descending=down, nulls_last=down, maintain_order=True)
    )
    return frame.select(pl.all().gather(places.to_series()))


def copies(pieces: pl.DataFrame, names: list[str]) -> pl.DataFrame:
    """Each row as often as it is there."""
    rows = pieces.select(*names, N)
    if (rows[N] != 1).any():
        nested = [name for name in names if rows[name].dtype.is_nested()]
        # lists cannot be grouped by: their text can
        texts = [rows[n].map_elements(repr, pl.String, skip_nulls=True).alias(f"#{n}") for n in nested]
        by = [f"#{name}" if name in nested else name for name in names]
        firsts = [pl.col(name).first() for name in nested]
        rows = rows.with_columns(texts).group_by(by).agg(*firsts, pl.col(N).sum()).filter(pl.col(N) > 0)
        places = pl.int_range(rows.height, eager=True).repeat_by(rows[N]).explode().drop_nulls()
        rows = rows.select(pl.all().gather(places))
    return rows.select(names)


#: what a standing query asks of its stream, by the query's id; None if it shares nothing
Standing: TypeAlias = Callable[[str], "QueryNeeds | None"]


@dataclass(frozen=True)
class Synopsis:
    """A synopsis as a commit has it, and what it is of."""

    label: str
    kept: KeptSynopsis
    need: Need

    @property
    def entry(self) -> Entry:
        """Its columns in the tables of its shared state."""
        return entry_of(self.label, self.need.datum, self.need.predicate)


@dataclass
class SynopsisShelf:
    """The synopses of one shared state, found by what they are of."""

    shared_state: str
    keys: tuple[Expression, ...]
    #: one of the queries that use it, for people
    query: str
    #: up to which commit it has taken delta files in
    absorbed: int
    _found: dict[tuple[Datum, Predicate], dict[str, Synopsis]] = field(default_factory=dict)

    def put(self, synopsis: Synopsis) -> None:
        need = synopsis.need
        self._found.setdefault((need.datum, need.predicate), {})[synopsis.label] = synopsis

    def of(self, datum: Datum, predicate: Predicate) -> list[Synopsis]:
        """All that have a datum of the rows that satisfy a condition, those of long intervals first."""
        found = self._found.get((datum, predicate), {}).values()
        return sorted(found, key=lambda each: -each.kept.grid.width)


def shelves_of(manifest: Manifest, stream: str, standing: Standing) -> list[SynopsisShelf]:
    """The shared states of a stream, as a commit has them; those of few keys first."""
    stored = manifest.decisions.get("synopses", {})
    kept = {label: KeptSynopsis.from_json(each) for label, each in stored.get("kept", {}).items()}
    shelves: dict[str, SynopsisShelf] = {}
    for name, state in manifest.queries.items():
        shares = state.options.get("shares", ())
        question = standing(state.options["id"]) if shares and state.status == "running" else None
        if question is None or len(question.needs) != len(shares):
            continue
        if {each.name for each in question.emit.leaves[0].streams} != {stream}:
            continue
        for need, label in zip(question.needs, shares, strict=True):
            if label in kept:
                shared_state = kept[label].shared_state
                absorbed = stored["shared_states"].get(shared_state, -1)
                new = SynopsisShelf(shared_state, question.keys, name, absorbed)
                shelves.setdefault(shared_state, new).put(Synopsis(label, kept[label], need))
    return sorted(shelves.values(), key=lambda shelf: len(shelf.keys))


BEGIN = "#begin"


@dataclass(frozen=True)
class FromSynopses:
    """One SELECT at one commit, read from synopses that fit."""

    asked: SynopsisRequest
    fit: Fit
    manifest: Manifest
    store: Store

    # ------------------------------------------------------------ what is read

    @property
    def way(self) -> access_paths.AccessPath:
        labels = ", ".join(dict.fromkeys(each.label for each in self.fit.chosen.values()))
        what = f"synopsis {labels} of query `{self.fit.shelf.query}`"
        return access_paths.AccessPath(what, tuple(self._parts()))

    def _parts(self) -> Iterator[access_paths.SubWindow]:
        operator, ends = shared.operator_of(self._shared_state.name), self.fit.span.stop
        for number, refs in sorted(self.manifest.chunks.items()):
            mine = [ref for ref in refs if operator in ref.operators]
            if number >= 0 and mine:
                size = sum(ref.operators[operator].bytes for ref in mine)
                fetch = partial(self._of_shard, refs, operator)
                yield access_paths.SubWindow(f"{refs[-1].name} {self._digest}", ends, size, fetch)
        for ref in self.manifest.chunks.get(DRIVER, ()):
            is_new = int(ref.metadata.get("commit", 0)) > self.fit.shelf.absorbed
            if is_new and ref.metadata.get("stream") == self._shared_state.stream.name:
                fetch = partial(self._of_delta, ref)
                yield access_paths.SubWindow(f"{ref.name} {self._digest}", ends, ref.bytes, fetch)

    def _of_shard(self, refs: Sequence[ChunkRef], operator: str) -> pl.DataFrame:
        state = Shard(self.store, refs).state(operator)
        tables = [
            self._table(pane_grid, chunk.frame)
            for pane_grid in self._shared_state.pane_grids
            for chunk in (*state.of(pane_grid.name + CLOSED), *state.of(pane_grid.name + OPEN))
        ]
        return pl.concat([self._nothing, *tables])

    def _of_delta(self, ref: ChunkRef) -> pl.DataFrame:
        files = delta_file.open_files(self.store, [ref])
        pane_grids = {pane_grid.name: pane_grid for pane_grid in self._shared_state.pane_grids}
        tables = [
            self._table(pane_grids[name], frame)
            for shard in range(self.manifest.shards)
            for name, frame in shared.pane_grids_of(files, self._shared_state, shard).items()
        ]
        return pl.concat([self._nothing, *tables])

    def _table(self, pane_grid: PaneGrid, frame: pl.DataFrame) -> pl.DataFrame:
        """States of a pane grid as the SELECT would keep them, one row for each interval and group."""
        taken = {name: column for name, column in self._columns.items() if column in frame.columns}
        keys = [frame[name] for name in self._shared_state.key_types]
        columns = [frame[PANE], *keys, *(frame[column].alias(name) for name, column in taken.items())]
        fitted = self._own.fitted(pl.DataFrame(columns), tuple(self._shared_state.key_types))
        begins = pl.Series(BEGIN, pane_grid.phase + frame[PANE].to_numpy() * pane_grid.width)
        return fitted.drop(PANE).insert_column(0, begins)

    # ------------------------------------------------------------ what it says

    def rows(self, frames: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
        """The answer, given all parts."""
        span, answers = self.fit.span, self._answers
        found = pl.concat([self._nothing, *(frames[part.name] for part in self.way.parts)])
        inside = found.filter((pl.col(BEGIN) >= span.start) & (pl.col(BEGIN) < span.stop))
        groups = self._grouped(inside)
        layout = answers.measures.layouts[GROUPS]
        states = layout.merge(groups, [PANE, *layout.keys]).filter(pl.col("rows.0") > 0)
        states = states.with_columns(pl.int_range(pl.len(), dtype=pl.Int64).alias("g"))
        known = states.select(*layout.keys, "g")
        at = pl.Series("#at", [span.stop], dtype=pl.Int64).new_from_index(0, states.height)
        rows = answers.rows(known, {GROUPS: states.drop(layout.keys)}, [at]).drop("#at")
        if self.asked.count is None:
            return rows
        return in_row_order(rows, self.asked.order).head(self.asked.count)

    def _grouped(self, inside: pl.DataFrame) -> pl.DataFrame:
        """States of the shared state's groups that satisfy the condition, with the keys that are asked
        for."""
        names = self._shared_state.key_types
        over = inside.select(pl.col(name).alias(f"{KEY}{place}") for place, name in enumerate(names))
        keys = [
            without_negative_zero(compile_expression(key)(over))
            .cast(polars_type(key.type))
            .alias(f"k{place}")
            for place, key in enumerate(self.fit.keys)
        ]
        states = inside.drop(BEGIN, *names)
        panes = pl.Series(PANE, [0], dtype=pl.Int64).new_from_index(0, inside.height)
        groups = pl.DataFrame([panes, *keys, *states.get_columns()])
        if self.fit.condition == TRUE:
            return groups
        return groups.filter(holds(compile_expression(self.fit.condition), over))

    # ------------------------------------------------------------ how states are found

    @cached_property
    def _answers(self) -> PaneAnswers:
        return answers_of(self.asked.question)

    @cached_property
    def _own(self) -> PaneGrid:
        return shared.pane_grid_of(self._answers.measures)

    @cached_property
    def _shared_state(self) -> SharedState:
        (stream,) = self.asked.question.emit.leaves[0].streams
        chosen = {each.label: each for each in self.fit.chosen.values()}
        grids = dict.fromkeys(each.kept.grid for each in chosen.values())
        pane_grids = tuple(
            PaneGrid(
                grid.width,
                grid.phase,
                0,
                tuple(each.entry for each in chosen.values() if each.kept.grid == grid),
            )
            for grid in grids
        )
        return SharedState(self.fit.shelf.shared_state, stream, self.fit.shelf.keys, pane_grids)

    @cached_property
    def _columns(self) -> dict[str, str]:
        """The column of the shared state for each of the SELECT's own."""
        question, chosen = self.asked.question, self.fit.chosen
        names = {need: [column.name for column in each.entry.nothing()] for need, each in chosen.items()}
        found = {"rows.0": names[question.existence][0]}
        for label, needs in question.measured.items():
            parts = [column for need in needs for column in names[need]]
            found |= {f"{label}.{place}": column for place, column in enumerate(parts)}
        return found

    @cached_property
    def _nothing(self) -> pl.DataFrame:
        keys = {
            name: pl.Series([None], dtype=polars_type(kind))
            for name, kind in self._shared_state.key_types.items()
        }
        columns = {BEGIN: pl.Series([0], dtype=pl.Int64), **keys, **self._own.nothing}
        return pl.DataFrame(columns).clear()

    @cached_property
    def _digest(self) -> str:
        """What tells tables of these columns from others of the same file."""
        texts = [
            self._shared_state.name,
            repr(sorted(self._columns.items())),
            repr(self.asked.question.measured),
        ]
        texts += [to_sql(key, str) for key in self._shared_state.keys]
        return blake2b("\0".join(texts).encode(), digest_size=8).hexdigest()
