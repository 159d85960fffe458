"""`memory:`: repetitions are replaced, order is that of the commits."""

from __future__ import annotations

import pyarrow as pa
from tests.sinks.support import delivery_of, every_type, nothing, numbers, rows_of

from windrow.sinks import MemorySink, open_sink


def opened() -> MemorySink:
    sink = open_sink("memory:", "top")
    assert isinstance(sink, MemorySink)
    return sink


def test_a_repetition_is_replaced() -> None:
    sink = opened()
    for commit in (1, 2, 2, 5):
        sink.deliver(delivery_of(numbers(commit), commit))
    assert sink.table().equals(pa.concat_tables([numbers(1), numbers(2), numbers(5)]))


def test_what_is_new_since_a_look() -> None:
    sink = opened()
    sink.deliver(delivery_of(numbers(3), 3))
    seen = sink.last
    assert sink.since(seen).num_rows == 0
    assert sink.since(seen).schema == numbers(3).schema
    sink.deliver(delivery_of(numbers(4), 4))
    assert sink.since(seen).equals(numbers(4))
    assert sink.since(0).equals(sink.table())


def test_nothing_has_columns_as_soon_as_they_are_known() -> None:
    sink = opened()
    assert sink.table().num_rows == 0
    sink.deliver(nothing(7))
    assert sink.table().column_names == ["at", "k"]
    assert sink.last == 7


def test_every_type_is_kept_and_outlives_closing() -> None:
    sink = opened()
    sink.deliver(delivery_of(every_type()))
    sink.close()
    assert sink.table().schema == every_type().schema
    assert rows_of(sink.table()) == rows_of(every_type())


def test_pieces_get_the_types_that_were_declared() -> None:
    sink, declared = opened(), numbers(1)
    wide = declared.select(["k", "at"]).cast(pa.schema([("k", pa.large_string()), ("at", pa.int64())]))
    delivery = delivery_of(declared, 1)
    sink.deliver(type(delivery)("top", 1, declared.schema, lambda: iter([wide])))
    assert sink.table().equals(declared)
