"""Another number of shards: the state of a stopped engine is routed anew, and one commit switches.

A rescale is an epoch without rows. The queries are those of the last manifest, by their recorded plans, so
nothing has to be declared. The states of every operator are read from all shards and written to new files;
rows that wait in delta files are routed in the same way, and are still waiting afterwards. Until the manifest
with the new number appears, nothing has happened; files of a rescale that failed are swept.

Every row goes where its key is routed from now on. What is kept in panes has its keys as columns; what
relational operators keep has the routed column of their input or output, and that it is the right one is seen
by where its rows are today. A table that every shard holds whole is copied. Where rows cannot be kept apart,
all is in shard 0 and stays there. Results that only wait to expire, without the routed column, go to any one
shard. From several shards into one, operators put together what has no key in common.

>>> from windrow.algebra.types import BIGINT
>>> frame = pl.DataFrame({"pane": [0, 0], "k0": [1, 2], "rows.0": [5, 7]})
>>> states = {0: State({"groups": chunked([frame])})}
>>> moved = by_keys(states, {"k0": BIGINT}, Shards(1, 2), lambda parts: parts[0])
>>> sum(chunk.table.num_rows for state in moved.values() for chunk in state.of("groups"))
2
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Any

import polars as pl

from windrow.algebra import Aggregate, ColumnRef, DataType, Emit, Plan, TableJoin
from windrow.engine.query_start import recorded
from windrow.engine.records import QueryRecord, stream_of
from windrow.engine.sharing.shared_state import Common
from windrow.engine.tables import table_of
from windrow.errors import QueryError, StateError
from windrow.execution.delta_file import FEED, QUERY, WriteTarget, key_types
from windrow.execution.relational import OF
from windrow.kernels.columnar.columns import to_frame
from windrow.kernels.columnar.hashing import shards_of, split
from windrow.kernels.panes.subtract_on_evict import TOTAL
from windrow.kernels.relational import emission, implementations, negation, signed_rows
from windrow.kernels.relational.internal import build, operators
from windrow.kernels.relational.operator import Operator
from windrow.kernels.relational.program import RelationalProgram
from windrow.kernels.relational.windows.leaf import WHO
from windrow.kernels.state import PANE, Chunk, State, chunked, joined
from windrow.physical import native_sql, partitioning, units
from windrow.state import crash, history, manifest, names
from windrow.state.chunk import Key, chunk_writer, open_chunk
from windrow.state.log import CommitLog
from windrow.state.shard import Shard, change_shard
from windrow.windows.patterns import Pattern

#: the states of one operator, by shard
ByShard = Mapping[int, State]
#: numbers of which a state of several shards has the greatest, and the least; of others that of the first
_GREATEST = {"last_end", "ran", "count", "reports", "ranked", "last"}
_LEAST = {"since", "purged"}
#: numbers that cannot be told of several shards at once
_APART = {"closed", "base", "begin"}
#: ids of rows are not multiplied beyond this
_MOST = 1 << 61


@dataclass(frozen=True)
class Shards:
    """From how many shards to how many."""

    old: int
    new: int

    @property
    def unites(self) -> bool:
        """Whether a new shard has rows of several old ones."""
        return self.new % self.old != 0

    def sources(self, shard: int) -> range:
        """The old shards that rows of a new one may be in."""
        return range(self.old) if self.unites else range(shard % self.old, shard % self.old + 1)


def by_keys(
    states: ByShard, kinds: Mapping[str, DataType], shards: Shards, unite: Callable[[Sequence[State]], State]
) -> dict[int, State]:
    """States of panes, whose rows have all keys of their groups."""
    parts: dict[int, list[State]] = {shard: [] for shard in range(shards.new)}
    for old in sorted(states):
        pieces: dict[int, dict[str, list[pl.DataFrame]]] = {}
        for name, chunks in states[old].chunks.items():
            for chunk in chunks:
                for shard, rows in split(chunk.frame, kinds, shards.new):
                    pieces.setdefault(shard, {}).setdefault(name, []).append(rows)
        for shard in range(shards.new):
            found = {name: chunked(frames) for name, frames in pieces.get(shard, {}).items()}
            if found or old in shards.sources(shard):
                parts[shard].append(State(found, states[old].meta))
    filled = {shard: [each for each in some if each.chunks] or some[:1] for shard, some in parts.items()}
    return {n: some[0] if len(some) == 1 else unite(some) for n, some in filled.items() if some}


class RowStates:
    """How the states of a query over rows are routed."""

    def __init__(self, query: str, unit: units.GeneralUnit, shards: Shards) -> None:
        self.query, self.unit, self.shards = query, unit, shards
        branches = unit.branches if isinstance(unit, units.UnionUnit) else [unit]
        prefixes = [f"{n}:" for n in range(len(branches))] if isinstance(unit, units.UnionUnit) else [""]
        self._known: dict[str, tuple[Operator, list[str]]] = {}
        #: the columns of each table that every shard holds whole
        self._whole: list[set[str]] = []
        for prefix, branch in zip(prefixes, branches, strict=True) if unit.placement else ():
            names = _candidates(branch.program, unit)
            self._known |= {prefix + place: found for place, found in names.items()}
            joins = (node.table for node in branch.program.emit.walk() if isinstance(node, TableJoin))
            whole = [scan for scan in joins if unit.table_places[scan.table.name] is None]
            self._whole += [set(scan.schema.names) for scan in whole]
        streams = ((unit.streams[name], columns[0]) for name, columns in unit.placement.items())
        self._kind = next((stream.schema.column(name).type for stream, name in streams), None)

    def routed(self, stream: str) -> dict[str, DataType]:
        """The columns by which the rows of a stream are routed."""
        schema = self.unit.streams[stream].schema
        return {name: schema.column(name).type for name in self.unit.placement.get(stream, ())}

    def moved(self, place: str, states: ByShard) -> dict[int, State]:
        """The states of the operator at a place."""
        if not self.unit.placement:
            return {
                shard: State({n: tuple(map(_anew, chunks)) for n, chunks in state.chunks.items()}, state.meta)
                for shard, state in states.items()
                if shard < self.shards.new
            }
        parts: dict[int, list[State]] = {shard: [] for shard in range(self.shards.new)}
        for old in sorted(states):
            pieces: dict[int, dict[str, tuple[Chunk, ...]]] = {shard: {} for shard in parts}
            for name, chunks in states[old].chunks.items():
                for chunk in chunks:
                    for shard, rows in self._rows(place, name, to_frame(chunk.table), old, min(states)):
                        new = Chunk(chunk.first, chunk.last, rows.to_arrow())
                        pieces[shard][name] = (*pieces[shard].get(name, ()), new)
            for shard, found in pieces.items():
                if old in self.shards.sources(shard):
                    parts[shard].append(State(found, states[old].meta))
        return {shard: self._united(found) for shard, found in parts.items() if found}

    def _rows(
        self, place: str, name: str, frame: pl.DataFrame, old: int, first: int
    ) -> Iterator[tuple[int, pl.DataFrame]]:
        """The rows of a table by their new shards."""
        if not frame.height:
            return
        values = {column for column in frame.columns if not column.startswith("#")}
        if not values and frame.columns == ["#at"]:  # instants: more of them change no answer
            for shard in range(self.shards.new):
                if old in self.shards.sources(shard):
                    yield shard, frame
        elif values and any(values <= whole for whole in self._whole):
            for shard in range(self.shards.new):
                if old == (first if self.shards.unites else shard % self.shards.old):
                    yield shard, frame
        else:
            column = self._column(place, name, frame, old)
            if column is None:
                anyone = next(new for new in range(self.shards.new) if old in self.shards.sources(new))
                yield anyone, frame
                return
            assert self._kind is not None
            told = self._told_apart(place, frame, old)
            yield from split(told, {column: self._kind}, self.shards.new)

    def _column(self, place: str, name: str, frame: pl.DataFrame, old: int) -> str | None:
        """The column that holds the routed value: by its name, and by where the rows are; None if rows may be
        in any shard."""
        assert self._kind is not None
        operator, names = self._known.get(place, (None, []))
        if place.rpartition(":")[2] == emission.WAITING:
            names = list(self.unit.placement[name])
        for column in names:
            if column in frame.columns:
                shards = shards_of(frame.select(column), {column: self._kind}, self.shards.old)
                if (shards == old).all():
                    return column
        if isinstance(operator, emission.Snapshots) and _is_left_to_expire(operator.emit, frame):
            return None
        what = f"`{operator.name}` keeps {name}" if operator is not None else f"{place} keeps {name}"
        raise cannot_rescale(self.query, f"{what} without the column that its rows are routed by")

    def _told_apart(self, place: str, frame: pl.DataFrame, old: int) -> pl.DataFrame:
        """Numbers that rows of several shards have in common become different ones, in the same order; zero
        is no row. Where plans are computed again, results are known by values and instants too: these stay.
        """
        ids = [name for name in frame.columns if name == WHO or name.startswith(signed_rows.ID)]
        operator, _ = self._known.get(place, (None, []))
        if isinstance(operator, build.Outliving):
            windows = [source for source in operator.sources if isinstance(source, operators.WindowRuns)]
            ids = [name for name in ids if any(name in (each.id, each.numbered) for each in windows)]
        if not self.shards.unites or not ids:
            return frame
        if max(frame.select(pl.max_horizontal(ids).max()).item() or 0, 0) > _MOST // self.shards.old:
            raise cannot_rescale(self.query, "the numbers of its rows would become too large")
        return frame.with_columns(
            pl.when(pl.col(name) == 0).then(0).otherwise(pl.col(name) * self.shards.old + old).alias(name)
            for name in ids
        )

    def _united(self, parts: Sequence[State]) -> State:
        if not self.shards.unites:
            return parts[0]
        meta: dict[str, int] = {}
        for key in dict.fromkeys(key for part in parts for key in part.meta):
            values = [part.meta[key] for part in parts if key in part.meta]
            what = key.rpartition("/")[2]
            if what in _APART and len(set(values)) > 1:
                raise cannot_rescale(self.query, f"its shards are at different places ({what})")
            least, greatest = min(values), max(values)
            meta[key] = greatest if what in _GREATEST else least if what in _LEAST else values[0]
            if what == "count":
                meta[key] = (greatest + 1) * self.shards.old
        return State(joined(parts), meta)


def _is_left_to_expire(emit: Emit, rows: pl.DataFrame) -> bool:
    """Whether results are reported until they expire, and nothing that comes takes them back."""
    if not emit.is_periodic or emit.input.label.pattern is Pattern.STR or (rows[signed_rows.N] < 0).any():
        return False
    return emit.input.label.pattern is Pattern.MON or bool((rows[signed_rows.VE] < signed_rows.FOREVER).all())


def _anew(chunk: Chunk) -> Chunk:
    """The same, to be written to another file."""
    return Chunk(chunk.first, chunk.last, chunk.table)


def _candidates(program: RelationalProgram, unit: units.GeneralUnit) -> dict[str, tuple[Operator, list[str]]]:
    """For each place of an operator, the columns that may hold the routed value in what it keeps."""
    outputs = partitioning.routed_outputs(program.emit, unit.placement)
    placed = implementations.placed(program)
    nodes: dict[str, Plan] = {place: node for _, node, place, _ in placed if place is not None}
    tables = [
        f"{node.table.alias}.{column}"
        for node in program.emit.walk()
        if isinstance(node, TableJoin) and (column := unit.table_places[node.table.table.name]) is not None
    ]
    # operators of plans that are computed again have other places: what is qualified is known everywhere
    anywhere = [*(name for name in outputs.values() if name is not None and "." in name), *tables]
    gammas = [node for node in program.emit.walk() if isinstance(node, Aggregate)]
    grouped = [set(_routed_keys(node, outputs)) for node in gammas]
    if grouped:
        anywhere += sorted(set.intersection(*grouped))
    found: dict[str, tuple[Operator, list[str]]] = {}
    for place, operator in program.operators():
        near = [f"{place}.{n}" for n in range(len(operator.inputs))]
        around = [nodes[each] for each in (place, *near, place.rpartition(".")[0]) if each in nodes]
        names: list[str | None] = []
        for node in around:
            below = [outputs.get(id(child)) for child in node.children]
            names += [*below, outputs.get(id(node))]
            if isinstance(node, Aggregate):
                names += _routed_keys(node, outputs)
        if isinstance(operator, negation.Matched):
            keys = enumerate(operator.kept.keys)
            names += [f"#key{n}" for n, key in keys if isinstance(key, ColumnRef) and key.name in names]
        found[place] = operator, [name for name in dict.fromkeys([*names, *anywhere]) if name is not None]
    return found


def _routed_keys(node: Aggregate, outputs: Mapping[int, str | None]) -> list[str]:
    """What operators call the keys of a γ that hold the routed value."""
    below = [outputs.get(id(child)) for child in node.children]
    keys = enumerate(key for _, key in node.keys)
    routed = [n for n, key in keys if isinstance(key, ColumnRef) and key.name in below]
    return [f"{mark}k{n}" for n in routed for mark in ("", "#")]


def cannot_rescale(query: str, why: str) -> StateError:
    return StateError(
        f"the state of query `{query}` cannot be routed to another number of shards: {why}",
        code="cannot-rescale",
        hint=f"go on with as many shards as before; or DROP QUERY {query} first, and create it again, which"
        " begins with the rows that come then",
    )


def check_shards(shards: int) -> None:
    """Refuse a number of shards that there cannot be."""
    if shards < 1:
        raise StateError(
            f"there cannot be {shards} shards",
            code="bad-shards",
            hint="a state has at least one shard; about as many as Spark has cores are best",
        )


def rescale(log: CommitLog, shards: int) -> manifest.Manifest:
    """Route the state of an engine that does not run; nothing is done if it has so many shards already."""
    check_shards(shards)
    last = log.last
    if last.shards in (0, shards):
        return last
    try:
        return _Rescale(log, Shards(last.shards, shards)).run()
    except BaseException:
        if log.last is last:
            with suppress(StateError):
                history.discard(log)
        raise


class _Rescale:
    """A state on its way from one number of shards to another."""

    def __init__(self, log: CommitLog, shards: Shards) -> None:
        self.log, self.last, self.shards = log, log.last, shards
        self.files = log.store.grouped()
        self.place = WriteTarget(self.files, self.last.number + 1, log.owner.epoch, shards.new)
        self.rows: dict[str, tuple[RowStates, str]] = {}
        self.panes: dict[str, units.SlidingUnit] = {}
        #: the key columns of what waits in delta files, by query and by feed
        self.kinds: dict[str, Mapping[str, DataType]] = {}
        self.feeds: dict[str, Mapping[str, DataType]] = {}
        self.shared_states: dict[str, Mapping[str, DataType]] = {}
        records = self._records()
        for record in records:
            self._know(record)
        self._know_shared_states(records)

    def _records(self) -> list[QueryRecord]:
        """The queries that have a state."""
        streams = {name: stream_of(name, state) for name, state in self.last.streams.items()}
        tables = {name: table_of(name, state) for name, state in self.last.tables.items()}
        found = []
        for name, stored in self.last.queries.items():
            if stored.status == "failed":
                continue
            try:
                found.append(recorded(name, stored, streams, tables))
            except (QueryError, StateError) as error:
                raise cannot_rescale(name, f"its plan cannot be read ({error.message})") from error
        return found

    def _know(self, record: QueryRecord) -> None:
        unit, bundle = record.bundle.unit, record.bundle
        if isinstance(unit, units.SlidingUnit):
            self.panes[record.id] = unit
            self.kinds[record.id] = key_types(unit.program.bottom)
            native = native_sql.native_query(unit.program)
            if native is not None:
                self.feeds[native.feed] = {f"k{n}": key.type for n, key in enumerate(native.keys)}
        else:
            states = RowStates(record.query.name, unit, self.shards)
            for name, path in bundle.places.items():
                self.rows.setdefault(name, (states, path))

    def _know_shared_states(self, records: Sequence[QueryRecord]) -> None:
        common = Common.of(self.last.decisions)
        sharing = [record for record in records if record.shares]
        for record in sharing:
            common.adopt(record)
        for name in {common.shared_state_of(record.shares) for record in sharing}:
            shared_state = common.shared_state(name)
            self.kinds[name] = self.shared_states[name] = shared_state.key_types
            native = native_sql.native_shared_state(shared_state)
            if native is not None:
                self.feeds[native.feed] = shared_state.key_types
        for record in records:
            if record.seed is not None:  # the shared state that it leaves has its keys
                self.shared_states[record.seed.shared_state] = self.kinds[record.id]

    # ------------------------------------------------------------ states

    def run(self) -> manifest.Manifest:
        """Write everything, and commit it."""
        numbers = [number for number in self.last.chunks if number >= 0]
        chunks = {number: refs for number, refs in self.last.chunks.items() if number < 0}
        for stage in range(1 + max(numbers, default=-1) // self.shards.old):
            chunks |= self._stage(stage)
        deltas = map(self._delta, chunks.get(names.DRIVER, ()))
        chunks[names.DRIVER] = tuple(ref for ref in deltas if ref is not None)
        crash.crash_point("before-commit")
        self.files.settle()
        kept = {number: refs for number, refs in chunks.items() if refs}
        new = self.last.successor(shards=self.shards.new, chunks=kept, decisions=self.last.decisions)
        found = self.log.commit(new)
        crash.crash_point("after-commit")
        return found

    def _stage(self, stage: int) -> dict[int, tuple[manifest.ChunkRef, ...]]:
        chunks, first = self.last.chunks, stage * self.shards.old
        old = {n: Shard(self.files, chunks.get(first + n, ())) for n in range(self.shards.old)}
        written: dict[int, list[manifest.ChunkRef]] = {}
        with ExitStack() as stack:
            changes = {}
            for shard in range(self.shards.new):
                number = stage * self.shards.new + shard
                name, files = self.place.new_name(number), written.setdefault(number, [])
                changes[shard] = stack.enter_context(change_shard(Shard(self.files, ()), name, files))
            for operator in dict.fromkeys(name for shard in old.values() for name in shard.operators):
                states = {n: shard.state(operator) for n, shard in old.items() if operator in shard.operators}
                for shard, state in self._moved(operator, states).items():
                    changes[shard].put(operator, state)
        return {number: tuple(files) for number, files in written.items()}

    def _moved(self, operator: str, states: Mapping[int, State]) -> Mapping[int, State]:
        """The states of an operator by its new shards; none of one that no query has any more."""
        name, _, path = operator.partition(OF)
        if name in self.shared_states:
            return by_keys(states, self.shared_states[name], self.shards, _united_intervals)
        if name in self.panes:
            level = self.panes[name].program.levels[int(path)]
            return by_keys(states, key_types(level), self.shards, level.kernel.united)
        if name in self.rows:
            rows, around = self.rows[name]
            return rows.moved(f"{around}{path}", states)
        return {}

    # ------------------------------------------------------------ rows that wait

    def _delta(self, ref: manifest.ChunkRef) -> manifest.ChunkRef | None:
        """A delta file for the new shards; what belongs to a table is for all of them, and stays."""
        if "stream" not in ref.metadata:
            return ref
        file = open_chunk(self.files, ref)
        parts = dict.fromkeys(key[:-1] for key in file.keys)
        found: list[tuple[Key, pl.DataFrame]] = []
        for part in parts:
            kinds = self._kinds(part)
            if kinds is None:
                continue
            for old in range(self.shards.old):
                if (*part, old) in file.keys:
                    rows = to_frame(file.read((*part, old)))
                    found += [((*part, new), some) for new, some in split(rows, kinds, self.shards.new)]
        if not found:
            return None
        with chunk_writer(self.files, self.place.new_name(), dict(ref.metadata)) as writer:
            for key, rows in found:
                panes: tuple[Any, ...] = ()
                if PANE in rows.columns:
                    panes = rows[PANE].min(), rows[PANE].max()
                writer.add(key, rows.to_arrow(), *panes)
        return writer.ref

    def _kinds(self, part: Key) -> Mapping[str, DataType] | None:
        """By which columns the rows of a section are routed; None if nobody waits for them."""
        match part:
            case (kind, feed) if kind == FEED:
                return self.feeds.get(str(feed))
            case (kind, name, table) if kind == QUERY and name in self.rows:
                return self.rows[str(name)][0].routed(str(table))
            case (kind, name, _) if kind == QUERY:
                return self.kinds.get(str(name))
        return None


def _united_intervals(states: Sequence[State]) -> State:
    """What queries share, of several shards: sums over intervals are made again from these."""
    return State({name: chunks for name, chunks in joined(states).items() if not name.endswith(TOTAL)})
