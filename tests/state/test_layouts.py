"""Layouts against the rows themselves: nothing needed is missed, nothing dropped is needed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.state.memory_store import MemoryStore
from tests.state.support import numbers

from windrow.state.chunk import chunk_writer
from windrow.state.layouts.base import Layout, expire
from windrow.state.layouts.calendar import NEVER, Calendar
from windrow.state.layouts.fifo import Fifo
from windrow.state.layouts.hash import Hash
from windrow.state.reading import open_chunk
from windrow.state.refs import ChunkRef, Facts

instants = st.integers(-50, 50)
widths = st.integers(1, 20)
epochs = st.lists(st.lists(instants, min_size=1, max_size=6), max_size=6)


def write(store: MemoryStore, layout: Any, batches: list[list[int]]) -> list[ChunkRef]:
    """One chunk per batch, cut into sections by the layout."""
    refs = []
    for number, batch in enumerate(batches):
        with chunk_writer(store, f"chunks/{number}") as writer:
            for key in dict.fromkeys(map(layout.key_of, batch)):
                rows = [instant for instant in batch if layout.key_of(instant) == key]
                writer.add(key, numbers(rows), min(rows), max(rows))
            writer.add("other", numbers([1]))
        refs.append(writer.ref)
    return refs


def rows_between(store: MemoryStore, layout: Layout, refs: Any, low: int, high: int) -> list[int]:
    """The rows in [low, high) as a reader finds them, opening only what the layout says."""
    found: list[int] = []
    for ref in layout.needed(refs, low, high):
        chunk = open_chunk(store, ref)
        for key in layout.sections(chunk.sections, low, high):
            found += chunk.read(key)["n"].to_pylist()
    return sorted(row for row in found if low <= row < high)


@pytest.mark.parametrize("kind", [Fifo, Calendar])
@given(batches=epochs, width=widths, low=instants, length=st.integers(0, 40), bound=instants)
def test_a_reader_finds_every_row_and_expiry_drops_only_old_ones(
    kind: Any, batches: list[list[int]], width: int, low: int, length: int, bound: int
) -> None:
    store, layout = MemoryStore(), kind("sum", width)
    refs = write(store, layout, batches)
    rows = sorted(row for batch in batches for row in batch)
    assert rows_between(store, layout, refs, low, low + length) == [
        r for r in rows if low <= r < low + length
    ]
    kept = expire(refs, {"sum": bound})
    assert rows_between(store, layout, kept, bound, 1000) == [r for r in rows if r >= bound]
    assert all("other" in ref.operators for ref in kept)
    assert len(kept) == len(refs)
    gone = expire(refs, {"sum": bound, "other": float("inf")})
    assert [ref.name for ref in gone if "sum" in ref.operators] == [
        f"chunks/{i}" for i, batch in enumerate(batches) if max(batch) >= bound
    ]


@given(batches=epochs, width=widths)
def test_a_reader_opens_nothing_it_does_not_need(batches: list[list[int]], width: int) -> None:
    store, layout = MemoryStore(), Fifo("sum", width)
    refs = write(store, layout, batches)
    assert layout.needed(refs, 51, 1000) == []
    assert Fifo("absent").needed(refs, -1000, 1000) == []
    for ref in refs:
        keys = layout.sections(open_chunk(store, ref).sections, -1000, 1000)
        assert len(keys) == len(set(keys)) == len(open_chunk(store, ref).keys) - 1


@given(width=widths, expiry=instants, clocks=st.tuples(instants, instants).map(sorted))
def test_a_bucket_is_passed_once_its_last_expiry_is(width: int, expiry: int, clocks: list[int]) -> None:
    calendar, (before, now) = Calendar("join", width), clocks
    bucket = calendar.bucket_of(expiry)
    assert isinstance(bucket, int)
    first, last = calendar.span_of(bucket)
    assert first <= expiry <= last
    assert (bucket in calendar.passed(before, now)) == (before <= last < now)


@given(longest=st.integers(1, 10**12), buckets=st.integers(1, 10**6))
def test_a_calendar_has_about_the_buckets_asked_for(longest: int, buckets: int) -> None:
    calendar = Calendar.spread("join", longest, buckets)
    assert len({calendar.bucket_of(0), calendar.bucket_of(longest - 1)} - {None}) <= buckets
    assert (calendar.bucket_of(longest - 1)) < buckets  # type: ignore[operator]


def test_rows_that_never_leave_are_never_dropped() -> None:
    assert Calendar("join", 10).key_of(float("inf")) == ("join", NEVER)
    forever = ChunkRef("chunks/a", 1, "", 1, {"join": Facts(1, 64)})
    assert expire([forever], {"join": 10**18}) == (forever,)


def test_hash_needs_every_chunk_in_order_and_is_merged_when_much_is_dead() -> None:
    layout = Hash("except", 4)
    refs = [ChunkRef(f"chunks/{i}", 1, "", 1, {"except": Facts(8, 64, tombstones=i)}) for i in range(3)]
    assert layout.needed(refs, 0, 1) == refs
    assert layout.key_of(-1) == ("except", 3)
    assert not layout.worth_merging(refs[:2])
    assert not layout.worth_merging([])
    assert layout.worth_merging(refs[2:])


@pytest.mark.parametrize("make", [lambda: Fifo("a", 0), lambda: Calendar("a", 0), lambda: Hash("a", 0)])
def test_buckets_have_a_size(make: Any) -> None:
    with pytest.raises(ValueError, match="at least one"):
        make()
    with pytest.raises(ValueError, match="lifetime"):
        Calendar.spread("a", 0, 4)
