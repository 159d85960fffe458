"""What a query's state is while it runs: rows and bytes of each operator, as the last commit names them.

The manifest knows the size of every live part of every chunk. Only what kernels have seen of values, and how
they keep them for that, is read: a few numbers in the index of each shard.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from windrow.algebra.explain.operators import Spelling
from windrow.kernels.panes.subtract_on_evict import CELLS, DISTINCT, Differences, is_buffered
from windrow.kernels.shared.value_counts import seen_of
from windrow.physical.units import GeneralUnit
from windrow.state.shard import Shard

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from windrow.engine.records import QueryRecord
    from windrow.kernels.panes.program import Level
    from windrow.physical.units import Unit
    from windrow.state.manifest import Manifest
    from windrow.state.refs import Facts
    from windrow.state.store import Store

#: between the name of a query and that of its operator, in the names that chunks have for parts
_OF = "\0"


def observed(
    store: Store,
    last: Manifest,
    query: QueryRecord,
    ledger: str | None = None,
    tallied: Mapping[str, tuple[str, int]] | None = None,
) -> tuple[str, ...]:
    """The size of each operator's state, the largest first, what was seen of values, and how much was
    answered. A query that shares has the state of its ledger; `tallied` tells where its values are there."""
    names = _names(query.bundle.unit) if ledger is None else {"0": "γ, panes, shared"}
    found = _sizes(last, query.bundle.places if ledger is None else {ledger: ""})
    largest = sorted(found.items(), key=lambda part: (-part[1].bytes, part[0]))
    lines = [f"{names.get(part, part)}: {_size(facts)}" for part, facts in largest if facts.rows]
    if len(lines) > 1:
        total = sum(facts.rows for facts in found.values()), sum(facts.bytes for facts in found.values())
        lines.append(f"together: {_counted(total[0])} rows, {_bytes(total[1])}")
    if ledger is None:
        lines += _values(store, last, query)
    else:
        lines += _shared(store, last, query, ledger, tallied or {})
    return (*(lines or ["no state"]), f"answered: {_counted(query.rows)} rows, up to commit {last.number}")


def _values(store: Store, last: Manifest, query: QueryRecord) -> Iterator[str]:
    """Of each argument whose values are counted: how many differ, and what follows from it."""
    unit = query.bundle.unit
    if isinstance(unit, GeneralUnit):
        return
    for stage, level in enumerate(unit.program.levels):
        if isinstance(level.kernel, Differences):
            operator = f"{query.id}{_OF}{stage}"
            shards = [Shard(store, files) for shard, files in last.chunks.items() if shard >= 0]
            metas = [shard.state(operator).meta for shard in shards if operator in shard.operators]
            yield from _values_of(level, metas)


def _shared(
    store: Store, last: Manifest, query: QueryRecord, ledger: str, tallied: Mapping[str, tuple[str, int]]
) -> Iterator[str]:
    """The same of values that are counted for several queries."""
    unit, operator = query.bundle.unit, f"{ledger}{_OF}0"
    assert not isinstance(unit, GeneralUnit)
    metas: list[Mapping[str, int]] = []
    for shard in (Shard(store, files) for number, files in last.chunks.items() if number >= 0):
        meta = shard.state(operator).meta if operator in shard.operators else {}
        seen = [seen_of(meta, *where, table) for table, where in tallied.items()]
        metas.append({name: value for each in seen for name, value in each.items()})
    yield from _values_of(unit.program.bottom, metas)


def _values_of(level: Level, metas: list[Mapping[str, int]]) -> Iterator[str]:
    measures = level.answers.measures
    for table in measures.layouts:
        seen = [meta for meta in metas if f"{CELLS}{table}" in meta]
        if not seen:
            continue
        spelling = Spelling.of(level.query.emit)
        arguments = ", ".join(spelling.sql(argument) for argument in measures.cells_in(table)[1])
        distinct, cells = (sum(meta[f"{what}{table}"] for meta in seen) for what in (DISTINCT, CELLS))
        buffers = sum(is_buffered(meta, table) for meta in seen)
        kept = "their sum is kept beside them" if not buffers else "hardly any recur, so they are a buffer"
        some = f" in {buffers} of {len(seen)} shards" if 0 < buffers < len(seen) else ""
        yield f"values of {arguments}: {_counted(distinct)} in {_counted(cells)} cells of panes; {kept}{some}"


def _sizes(last: Manifest, places: Mapping[str, str]) -> dict[str, Facts]:
    """The facts of each operator of a query, over all chunks and shards; what it has in common with others is
    kept under names of its own."""
    found: dict[str, Facts] = {}
    for chunks in last.chunks.values():
        for chunk in chunks:
            for operator, facts in chunk.operators.items():
                name, of, path = operator.partition(_OF)
                if of and name in places:
                    part = f"{places[name]}{path}"
                    found[part] = found[part].merged(facts) if part in found else facts
    return found


def _names(unit: Unit) -> Mapping[str, str]:
    if isinstance(unit, GeneralUnit):
        return {path: operator.name or type(operator).__name__ for path, operator in unit.program.operators()}
    levels = range(len(unit.program.levels))
    return {
        str(level): "γ, panes" + (f" of level {level + 1}" if len(levels) > 1 else "") for level in levels
    }


def _size(facts: Facts) -> str:
    return f"{_counted(facts.rows)} {'row' if facts.rows == 1 else 'rows'}, {_bytes(facts.bytes)}"


def _counted(number: int) -> str:
    return f"{number:,}".replace(",", " ")


def _bytes(number: float) -> str:
    """A size for people.

    >>> _bytes(512), _bytes(20_480), _bytes(3_500_000)
    ('512 bytes', '20.0 KB', '3.3 MB')
    """
    if number < 1024:
        return f"{number} bytes"
    return f"{number / 1024:.1f} KB" if number < 1024**2 else f"{number / 1024**2:.1f} MB"
