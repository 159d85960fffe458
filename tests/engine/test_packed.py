"""Answers in packs come to sinks as those that lie alone do."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given, strategies as st
from tests.state.memory_store import MemoryStore

from windrow.engine.output.outbox import Outgoing
from windrow.state.chunk import chunk_writer
from windrow.state.manifest import OutboxEntry

KERNEL = pa.schema([("#at", pa.int64()), ("k", pa.large_string()), ("n", pa.int64()), ("x", pa.float64())])
SHOWN = pa.schema(
    [("at", pa.timestamp("us", tz="UTC")), ("key", pa.string()), ("n", pa.int64()), ("x", pa.float64())]
)
ROWS = st.tuples(
    st.integers(0, 3),
    st.sampled_from([None, "", "a", "b"]),
    st.one_of(st.none(), st.integers(-2, 2)),
    st.sampled_from([None, float("nan"), -1.5, 0.0]),
)
QUERIES = ("p", "q", "r")
FILES = st.lists(st.fixed_dictionaries({name: st.lists(ROWS, max_size=6) for name in QUERIES}), max_size=3)


def outgoing(files: list[dict[str, list[Any]]], *, packed: bool) -> Outgoing:
    store, entries = MemoryStore(), []
    for number, file in enumerate(files):
        some = {name: rows for name, rows in file.items() if rows}
        with chunk_writer(store, f"outbox/{number}") as writer:
            if packed:
                rows = [row for rows in some.values() for row in rows]
                writer.add_pack(_table(rows), [(name, len(rows)) for name, rows in some.items()])
            else:
                for name, rows in some.items():
                    writer.add(name, _table(rows))
        entries.append(OutboxEntry(1, writer.ref, tuple(some)))
    return Outgoing(store, entries, {})


def _table(rows: list[Any]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) if rows else [[]] * len(KERNEL)
    return pa.table(
        [pa.array(column, kind) for column, kind in zip(columns, KERNEL.types, strict=True)], KERNEL
    )


@given(files=FILES)
def test_packs_give_the_same_rows_in_the_same_order(files: list[dict[str, list[Any]]]) -> None:
    alone, packed = outgoing(files, packed=False), outgoing(files, packed=True)
    for query in QUERIES:
        one, other = alone.pending(query), packed.pending(query)
        assert len(one) == len(other)
        for (commit, entries), (_, others) in zip(one, other, strict=True):
            expected = list(alone.delivery(query, query, commit, entries, SHOWN).pieces())
            found = list(packed.delivery(query, query, commit, others, SHOWN).pieces())
            assert [repr(t.to_pylist()) for t in found] == [repr(t.to_pylist()) for t in expected]
            assert all(table.schema == SHOWN for table in found)
