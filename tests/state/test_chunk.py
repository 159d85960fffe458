"""Tables come back from a chunk as they were, one without the others, and nothing else passes for a chunk."""

from __future__ import annotations

from contextlib import suppress
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import example, given, strategies as st
from tests.state.memory_store import MemoryStore
from tests.state.support import numbers, overwrite, verify, write_chunk

from windrow.errors import StateError
from windrow.state.chunk import chunk_writer, open_chunk
from windrow.state.manifest import ChunkRef, Facts
from windrow.state.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable

NAMES = pa.table(
    {
        "name": pa.array(["a", None, "c"]),
        "price": pa.array([Decimal("1.50"), None, Decimal("-2.25")], pa.decimal128(20, 2)),
        "tags": pa.array([["x"], [], None], pa.list_(pa.string())),
        "kind": pa.array(["p", "q", "p"]).dictionary_encode(),
        "at": pa.array([1, 2, None], pa.timestamp("us")),
    }
)


def write_two(store: Store) -> ChunkRef:
    with chunk_writer(store, "chunks/two", {"epoch": 4}) as writer:
        writer.add(("sum", 0), numbers(range(1000)), 10, 19)
        writer.add(("sum", 1), numbers(range(5)), 20, 29)
        writer.add("join", NAMES)
    return writer.ref


def test_each_table_comes_back_with_its_own_schema(store: Store) -> None:
    chunk = open_chunk(store, write_two(store))
    assert chunk.keys == (("sum", 0), ("sum", 1), ("join",))
    assert chunk.read("join").equals(NAMES)
    assert chunk.read(("sum", 1)).equals(numbers(range(5)))
    assert chunk.metadata == {"epoch": 4}
    verify(chunk)


NESTED: dict[str, list[Any]] = {
    "lists": [[1], [], None, [2, 3]],
    "lists of texts": [["a"], [], None, ["b", ""]],
    "lists of lists": [[[1]], [], None, [[], [2]]],
    "lists of structs": [[{"value": 1, "times": [2]}], [], None, [{"value": 3, "times": []}]],
    "structs of lists": [{"a": [1], "b": "x"}, {"a": [], "b": None}, None, {"a": [2, 3], "b": "y"}],
}
FRAMES: dict[str, Callable[[pl.DataFrame, list[int]], pl.DataFrame]] = {
    "slice": lambda frame, places: frame.slice(places[0], 2),
    "twice": lambda frame, places: pl.concat([frame, frame]),
    "join": lambda frame, places: frame.join(pl.DataFrame({"n": places}), on="n"),
    "filter": lambda frame, places: frame.filter(pl.col("n").is_in(places)),
    "sort": lambda frame, places: frame.sort("n", descending=True),
    "left join": lambda frame, places: pl.DataFrame({"n": places}).join(frame, on="n", how="left"),
}


@pytest.mark.parametrize("kind", NESTED)
@example(steps=["twice", "join"], places=[1, 2])
@given(steps=st.lists(st.sampled_from(list(FRAMES)), max_size=4), places=st.permutations(range(4)))
def test_frames_with_nested_columns_come_back(kind: str, steps: list[str], places: list[int]) -> None:
    """However Polars has made them: its lists that are all empty may begin behind the end of a buffer."""
    store = MemoryStore()
    frame = pl.DataFrame({"n": range(4), "nested": NESTED[kind], "after": range(4)})
    for step in steps:
        frame = FRAMES[step](frame, places[:2]).select("n", "nested", "after")
    with chunk_writer(store, "chunks/nested") as writer:
        writer.add("rows", frame.to_arrow())
    assert open_chunk(store, writer.ref).read("rows").to_pylist() == frame.to_dicts()


def test_the_ref_tells_what_a_manifest_wants_to_know(store: Store) -> None:
    ref = write_two(store)
    chunk = open_chunk(store, ref)
    first, second, join = (section.facts for section in chunk.sections)
    assert ref.operators == {"sum": first.merged(second), "join": join}
    assert (ref.operators["sum"].lowest, ref.operators["sum"].highest) == (10, 29)
    assert (ref.rows, ref.bytes) == (1008, store.size(ref.name))
    assert ChunkRef.from_json(ref.to_json()) == ref


def test_reading_copies_nothing_and_outlives_the_file(store: Store) -> None:
    before = pa.total_allocated_bytes()
    with chunk_writer(store, "chunks/big") as writer:
        writer.add("sum", numbers(range(200_000)))
    table = open_chunk(store, writer.ref).read("sum")
    assert pa.total_allocated_bytes() - before < 100_000
    store.remove("chunks/big")
    assert table["n"][199_999].as_py() == 199_999


def test_sections_are_aligned_for_vector_instructions(store: Store) -> None:
    sections = open_chunk(store, write_two(store)).sections
    assert all(section.offset % 64 == section.facts.bytes % 64 == 0 for section in sections)


def test_one_section_is_read_though_another_is_damaged(store: Store) -> None:
    ref = write_two(store)
    data = bytearray(store.read(ref.name))
    second = open_chunk(store, ref).sections[1]
    data[second.offset + 5] ^= 1
    overwrite(store, ref.name, bytes(data))
    chunk = open_chunk(store, ref)
    assert chunk.read("join").equals(NAMES)
    with pytest.raises(StateError, match=r"chunks/two is damaged: section \('sum', 1\)"):
        chunk.read(("sum", 1))
    with pytest.raises(StateError, match="chunks/two"):
        verify(chunk)


def test_a_key_may_come_in_pieces_of_one_schema(store: Store) -> None:
    with chunk_writer(store, "chunks/a") as writer:
        for start in (0, 10, 20):
            writer.add("out", numbers(range(start, start + 10)), start, start + 9)
        with pytest.raises(ValueError, match="two schemas"):
            writer.add("out", NAMES)
    chunk = open_chunk(store, writer.ref)
    assert chunk.keys == (("out",),)
    assert chunk.read("out")["n"].to_pylist() == list(range(30))


def test_a_chunk_of_nothing_and_a_table_of_no_rows_are_chunks_too(store: Store) -> None:
    assert open_chunk(store, write_chunk(store, "chunks/none", [])).keys == ()
    empty = open_chunk(store, write_chunk(store, "chunks/empty", [("sum", NAMES.slice(0, 0))]))
    assert empty.read("sum").equals(NAMES.slice(0, 0))
    with pytest.raises(KeyError):
        empty.read("join")


def test_a_name_is_used_once(store: Store) -> None:
    write_chunk(store, "chunks/a", [])
    with pytest.raises(StateError, match=r"chunks/a exists already.*new_chunk_name"):
        write_chunk(store, "chunks/a", [("sum", NAMES)])


def test_an_unfinished_chunk_is_not_there(store: Store) -> None:
    with suppress(RuntimeError), chunk_writer(store, "chunks/a") as writer:
        writer.add("sum", numbers([1]))
        raise RuntimeError("the task fails")
    assert store.list("chunks") == {}
    with pytest.raises(ValueError, match="not finished"):
        _ = writer.ref


@pytest.mark.parametrize(
    ("contents", "says"),
    [
        (b"", "is damaged: it is cut off after 0 bytes"),
        (b"windrow chunk 1\n", "is damaged: it is cut off after 16 bytes"),
        (b"PAR1" + bytes(500), "does not begin as a chunk does"),
        (b"windrow chunk 7\n".ljust(500, b"\0"), "has format 7, .* reads formats up to 1"),
    ],
)
def test_foreign_files_are_named(store: Store, contents: bytes, says: str) -> None:
    store.create("chunks/odd", contents, "manifest")
    with pytest.raises(StateError, match=f"chunks/odd .*{says}"):
        open_chunk(store, "chunks/odd")


def test_a_missing_or_exchanged_chunk_is_named(store: Store) -> None:
    one = write_chunk(store, "chunks/one", [("sum", numbers([1]))])
    two = write_chunk(store, "chunks/two", [("sum", numbers([2]))])
    overwrite(store, "chunks/one", store.read("chunks/two"))
    overwrite(store, "chunks/two", None)
    with pytest.raises(StateError, match="chunks/one is damaged: it is not the file that was committed"):
        open_chunk(store, one)
    with pytest.raises(StateError, match=r"chunks/two is missing, .*restore") as caught:
        open_chunk(store, two)
    assert caught.value.code == "chunk-missing"


tables = st.lists(st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1)), max_size=20).map(
    lambda values: pa.table({"n": pa.array(values, pa.int64()), "t": [str(value) for value in values]})
)
keys = st.tuples(st.text(max_size=5), st.integers())
instants = st.one_of(st.integers(-(2**63), 2**63), st.sampled_from([float("inf"), float("-inf")]))


@given(sections=st.dictionaries(keys, st.tuples(tables, instants, instants), max_size=5))
def test_any_tables_under_any_keys_come_back(sections: Any) -> None:
    store = MemoryStore()
    with chunk_writer(store, "chunks/a") as writer:
        for key, (table, lowest, highest) in sections.items():
            writer.add(key, table, lowest, highest)
    chunk = open_chunk(store, ChunkRef.from_json(writer.ref.to_json()))
    assert {key: chunk.read(key) for key in chunk.keys} == {
        key: table for key, (table, *_) in sections.items()
    }
    found = {s.key: (s.facts.lowest, s.facts.highest) for s in chunk.sections}
    assert found == {key: ends for key, (_, *rest) in sections.items() for ends in [tuple(rest)]}


def test_facts_of_many_are_facts_of_each() -> None:
    assert Facts(1, 64).merged(Facts(2, 64, 5, 6)) == Facts(3, 128)


@given(sizes=st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 5)), max_size=8))
def test_each_key_of_a_pack_has_its_own_rows(sizes: list[tuple[str, int]]) -> None:
    store = MemoryStore()
    table = numbers(range(sum(rows for _, rows in sizes)))
    with chunk_writer(store, "outbox/a") as writer:
        writer.add("alone", NAMES)
        writer.add_pack(table, sizes)
        writer.add_pack(table, sizes)
    chunk = open_chunk(store, writer.ref)
    assert {*chunk.keys} == {("alone",), *((key,) for key, _ in sizes)}
    expected: dict[str, list[int]] = {}
    first = 0
    for key, rows in sizes:
        expected.setdefault(key, []).extend(range(first, first + rows))
        first += rows
    for key, rows in expected.items():
        assert chunk.read(key).equals(numbers(rows + rows).cast(table.schema))
        assert writer.ref.operators[key].rows == 2 * len(rows)
        assert chunk.pack_of(key) is None  # it is in two
    assert chunk.pack_of("alone") is None
    verify(chunk)


def test_every_row_of_a_pack_is_someones(store: Store) -> None:
    with pytest.raises(ValueError, match="2 of 3 rows"), chunk_writer(store, "outbox/a") as writer:
        writer.add_pack(NAMES, [("a", 2)])


def test_a_changed_byte_of_a_pack_is_noticed(store: Store) -> None:
    with chunk_writer(store, "outbox/a") as writer:
        writer.add_pack(numbers(range(50)), [("a", 20), ("b", 30)])
    data = bytearray(store.read("outbox/a"))
    pack = open_chunk(store, writer.ref).sections[0]
    data[pack.offset + pack.facts.bytes // 2] ^= 1
    overwrite(store, "outbox/a", bytes(data))
    with pytest.raises(StateError, match="checksum"):
        open_chunk(store, writer.ref).read("b")
