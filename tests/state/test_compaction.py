"""Merging changes where rows are, never which; and it is done rarely enough."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st
from tests.state.memory_store import MemoryStore
from tests.state.support import merge_chunks, numbers, verify

from windrow.state.chunk import chunk_writer, open_chunk
from windrow.state.manifest import ChunkRef, Facts
from windrow.state.shard import plan_compaction


def files(sizes: list[int]) -> list[ChunkRef]:
    return [ChunkRef(f"chunks/{i}", size, "", 1) for i, size in enumerate(sizes)]


@given(sizes=st.lists(st.integers(1, 10_000), max_size=100), most=st.integers(1, 70))
def test_a_plan_merges_neighbours_until_few_enough_are_left(sizes: list[int], most: int) -> None:
    chunks = files(sizes)
    plan = plan_compaction(chunks, most)
    assert (plan == []) == (len(chunks) <= most)
    merged = [ref for group in plan for ref in group]
    assert len(set(merged)) == len(merged) if not merged else len({r.name for r in merged}) == len(merged)
    assert len(chunks) - len(merged) + len(plan) <= most
    for group in plan:
        first = chunks.index(group[0])
        assert len(group) > 1
        assert tuple(chunks[first : first + len(group)]) == group


def test_there_is_at_least_one_file() -> None:
    with pytest.raises(ValueError, match="at least one"):
        plan_compaction([], 0)


def test_what_counts_is_what_is_still_live() -> None:
    dead = ChunkRef("chunks/dead", 10_000, "", 1, {"sum": Facts(1, 64)})
    plan = plan_compaction([dead, *files([100, 1000, 1000, 1000])], most_files=4)
    assert [ref.name for ref in plan[0]][:2] == ["chunks/dead", "chunks/0"]


def test_a_row_is_rewritten_seldom_however_long_the_engine_runs() -> None:
    live, written, epochs = [], 0, 2000
    for epoch in range(epochs):
        live.append(ChunkRef(f"chunks/{epoch}", 100, "", 1))
        for group in plan_compaction(live):
            size = sum(ref.bytes for ref in group)
            first, written = live.index(group[0]), written + size
            live[first : first + len(group)] = [ChunkRef(group[0].name, size, "", 1)]
        assert len(live) <= 64
    assert written / (100 * epochs) < 5


batches = st.lists(
    st.dictionaries(st.sampled_from(["sum", "join", "gone"]), st.lists(st.integers(0, 99), max_size=4)),
    min_size=1,
    max_size=5,
)


@given(batches=batches)
def test_merged_chunks_hold_the_same_rows_in_the_same_order(batches: list[dict[str, list[int]]]) -> None:
    store, refs = MemoryStore(), []
    for number, batch in enumerate(batches):
        with chunk_writer(store, f"chunks/{number}") as writer:
            for operator, rows in batch.items():
                writer.add((operator, 0), numbers(rows), min(rows, default=0), max(rows, default=0))
        refs.append(writer.ref.without({"gone"}) or writer.ref)
    merged = merge_chunks(store, refs, "chunks/merged", keep=lambda section: section.key[0] != "gone")
    chunk = open_chunk(store, merged)
    verify(chunk)
    for operator in ("sum", "join"):
        rows = [row for batch in batches for row in batch.get(operator, [])]
        assert (operator in merged.operators) == any(operator in batch for batch in batches)
        if operator in merged.operators:
            facts = merged.operators[operator]
            assert chunk.read((operator, 0))["n"].to_pylist() == rows
            assert facts.rows == len(rows)
            assert facts.lowest <= min(rows, default=99)
            assert max(rows, default=0) <= facts.highest
    assert "gone" not in merged.operators


def test_dictionaries_that_differ_are_merged_too() -> None:
    store, refs = MemoryStore(), []
    for number, words in enumerate([["a", "b"], ["b", "c"]]):
        table = pa.table({"w": pa.array(words).dictionary_encode()})
        with chunk_writer(store, f"chunks/{number}") as writer:
            writer.add("sum", table)
        refs.append(writer.ref)
    chunk = open_chunk(store, merge_chunks(store, refs, "chunks/merged"))
    assert chunk.read("sum")["w"].to_pylist() == ["a", "b", "b", "c"]
