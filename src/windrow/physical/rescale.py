"""States of one number of shards as those of another: every row goes where its key is routed from now on.

What is kept in panes, by queries and by what they share, has its keys as columns. What relational operators
keep has the routed column of their input or output; that it is the right one is seen by where its rows are
today. A table that every shard holds whole is copied. Where rows cannot be kept apart, all is in shard 0 and
stays there. From several shards into one, operators put together what has no key in common.

>>> frame = pl.DataFrame({"pane": [0, 0], "k0": [1, 2], "rows.0": [5, 7]})
>>> states = {0: State({"groups": chunked([frame])})}
>>> moved = by_keys(states, {"k0": BIGINT}, Shards(1, 2), lambda parts: parts[0])
>>> sum(chunk.table.num_rows for state in moved.values() for chunk in state.of("groups"))
2
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from windrow.algebra.expressions import ColumnRef
from windrow.algebra.operators import Aggregate, TableJoin
from windrow.algebra.types import BIGINT, DataType
from windrow.errors import StateError
from windrow.kernels.columnar.columns import to_frame
from windrow.kernels.columnar.hashing import shards_of, split
from windrow.kernels.relational.emit.evaluation import WAITING
from windrow.kernels.relational.exists import Matched
from windrow.kernels.relational.implementations import placed
from windrow.kernels.relational.internal.build import Outliving
from windrow.kernels.relational.internal.runs import WindowRuns
from windrow.kernels.relational.signed_rows import ID
from windrow.kernels.relational.windows.leaf import WHO
from windrow.kernels.state import Chunk, State, chunked, joined
from windrow.physical.partitioning import routed_outputs
from windrow.physical.units import GeneralUnit, UnionUnit

if TYPE_CHECKING:
    from windrow.algebra.plan import Plan
    from windrow.kernels.relational.operator import Operator
    from windrow.kernels.relational.program import RelationalProgram

__all__ = ["BIGINT", "RowStates", "Shards", "by_keys", "cannot_rescale"]

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
    return {shard: _put_together(found, unite) for shard, found in parts.items() if found}


def _put_together(parts: Sequence[State], unite: Callable[[Sequence[State]], State]) -> State:
    some = [part for part in parts if part.chunks] or parts[:1]
    return some[0] if len(some) == 1 else unite(some)


class RowStates:
    """How the states of a query over rows are routed."""

    def __init__(self, query: str, unit: GeneralUnit, shards: Shards) -> None:
        self.query, self.unit, self.shards = query, unit, shards
        branches = unit.branches if isinstance(unit, UnionUnit) else [unit]
        prefixes = [f"{n}:" for n in range(len(branches))] if isinstance(unit, UnionUnit) else [""]
        self._known: dict[str, tuple[Operator, list[str]]] = {}
        self._whole: list[set[str]] = []
        for prefix, branch in zip(prefixes, branches, strict=True):
            if unit.placement:
                names = _candidates(branch.program, unit)
                self._known |= {prefix + place: found for place, found in names.items()}
                self._whole += _whole_tables(branch.program, unit)
        streams = ((unit.streams[name], columns[0]) for name, columns in unit.placement.items())
        self._kind = next((stream.schema.column(name).type for stream, name in streams), None)

    def routed(self, stream: str) -> dict[str, DataType]:
        """The columns by which the rows of a stream are routed."""
        schema = self.unit.streams[stream].schema
        return {name: schema.column(name).type for name in self.unit.placement.get(stream, ())}

    def moved(self, place: str, states: ByShard) -> dict[int, State]:
        """The states of the operator at a place."""
        if not self.unit.placement:
            return {shard: _copied(state) for shard, state in states.items() if shard < self.shards.new}
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
        return {shard: self._united(place, found) for shard, found in parts.items() if found}

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
            assert self._kind is not None
            told = self._told_apart(place, frame, old)
            yield from split(told, {column: self._kind}, self.shards.new)

    def _column(self, place: str, name: str, frame: pl.DataFrame, old: int) -> str:
        """The column that holds the routed value: by its name, and by where the rows are."""
        assert self._kind is not None
        operator, names = self._known.get(place, (None, []))
        if place.rpartition(":")[2] == WAITING:
            names = list(self.unit.placement[name])
        for column in names:
            if column in frame.columns:
                shards = shards_of(frame.select(column), {column: self._kind}, self.shards.old)
                if (shards == old).all():
                    return column
        what = f"`{operator.name}` keeps {name}" if operator is not None else f"{place} keeps {name}"
        raise cannot_rescale(self.query, f"{what} without the column that its rows are routed by")

    def _told_apart(self, place: str, frame: pl.DataFrame, old: int) -> pl.DataFrame:
        """Numbers that rows of several shards have in common become different ones, in the same order; zero
        is no row. Where plans are computed again, results are known by values and instants too: these stay.
        """
        ids = [name for name in frame.columns if name == WHO or name.startswith(ID)]
        operator, _ = self._known.get(place, (None, []))
        if isinstance(operator, Outliving):
            windows = [source for source in operator.sources if isinstance(source, WindowRuns)]
            ids = [name for name in ids if any(name in (each.id, each.numbered) for each in windows)]
        if not self.shards.unites or not ids:
            return frame
        if max(frame.select(pl.max_horizontal(ids).max()).item() or 0, 0) > _MOST // self.shards.old:
            raise cannot_rescale(self.query, "the numbers of its rows would become too large")
        return frame.with_columns(
            pl.when(pl.col(name) == 0).then(0).otherwise(pl.col(name) * self.shards.old + old).alias(name)
            for name in ids
        )

    def _united(self, place: str, parts: Sequence[State]) -> State:
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


def _copied(state: State) -> State:
    """The same, to be written to another file."""
    return State(
        {
            name: tuple(Chunk(c.first, c.last, c.table) for c in chunks)
            for name, chunks in state.chunks.items()
        },
        state.meta,
    )


def _candidates(program: RelationalProgram, unit: GeneralUnit) -> dict[str, tuple[Operator, list[str]]]:
    """For each place of an operator, the columns that may hold the routed value in what it keeps."""
    outputs = routed_outputs(program.emit, unit.placement)
    nodes: dict[str, Plan] = {place: node for _, node, place, _ in placed(program) if place is not None}
    tables = [
        f"{node.table.alias}.{column}"
        for node in program.emit.walk()
        if isinstance(node, TableJoin) and (column := unit.table_places[node.table.table.name]) is not None
    ]
    # operators of plans that are computed again have other places: what is qualified is known everywhere
    anywhere = [*(name for name in outputs.values() if name is not None and "." in name), *tables]
    grouped = [
        set(_routed_keys(node, outputs)) for node in program.emit.walk() if isinstance(node, Aggregate)
    ]
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
        if isinstance(operator, Matched):
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


def _whole_tables(program: RelationalProgram, unit: GeneralUnit) -> list[set[str]]:
    """The columns of each table that every shard holds whole."""
    joins = [node.table for node in program.emit.walk() if isinstance(node, TableJoin)]
    return [set(scan.schema.names) for scan in joins if unit.table_places[scan.table.name] is None]


def cannot_rescale(query: str, why: str) -> StateError:
    """A state that cannot be routed anew."""
    return StateError(
        f"the state of query `{query}` cannot be routed to another number of shards: {why}",
        code="cannot-rescale",
        hint=f"go on with as many shards as before; or DROP QUERY {query} first, and create it again, which"
        " begins with the rows that come then",
    )
