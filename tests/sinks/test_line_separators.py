"""Values with every kind of line break in them, through every sink and back: none is cut anywhere."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from confluent_kafka import Producer
from hypothesis import given, settings, strategies as st
from tests.sinks.support import delivery_of, delta_rows
from tests.sinks.test_kafka import messages
from tests.support.patience import PATIENCE

import windrow
from windrow.sinks import Callback, MemorySink, open_sink

#: everything at which `str.splitlines`, a reader of lines in text mode or a terminal might cut
BREAKS = ("\n", "\r", "\r\n", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029")
TEXTS = st.lists(st.sampled_from([*BREAKS, "a", '"', ",", "\\", "{", "}", "é", ""]), max_size=8).map("".join)
ROWS = st.lists(st.none() | TEXTS, min_size=1, max_size=12)
#: a name of a column and of a query, too
NAME, QUERY = "k\u2028\x85", "top\u2029\u2028"

Row = tuple[int, str | None]


def table_of(values: list[str | None]) -> pa.Table:
    return pa.table({"at": pa.array(range(len(values))), NAME: pa.array(values, pa.string())})


def rows_of(table: pa.Table) -> list[Row]:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def of_lines(text: str) -> Iterator[dict[str, Any]]:
    """JSON lines, read by the reader that cuts at most places."""
    return (json.loads(line) for line in text.splitlines())


def through(url: str, table: pa.Table) -> None:
    """The first commit, the next, which sees what the first has left, and the next again."""
    for commit in (1, 2, 2):
        sink = open_sink(url, QUERY)
        sink.deliver(delivery_of(table, commit, QUERY))
        sink.close()


def written(folder: Path, form: str, table: pa.Table) -> list[bytes]:
    through(f"files://{folder}?format={form}", table)
    return [path.read_bytes() for path in sorted(folder.iterdir())]


@given(ROWS)
@settings(max_examples=15)
def test_files_memory_callbacks_and_the_console(values: list[str | None]) -> None:
    table = table_of(values)
    expected = rows_of(table)
    with TemporaryDirectory() as folder:
        for data in written(Path(folder) / "parquet", "parquet", table):
            assert rows_of(pq.read_table(pa.BufferReader(data))) == expected
        for data in written(Path(folder) / "json", "json", table):
            assert [tuple(row.values()) for row in of_lines(data.decode())] == expected
        for data in written(Path(folder) / "csv", "csv", table):
            names, *rows = csv.reader(io.StringIO(data.decode(), newline=""), strict=True)
            assert names == ["at", NAME]
            assert [(int(at), text) for at, text in rows] == [(at, text or "") for at, text in expected]
    memory, heard = MemorySink(), list[pa.Table]()
    memory.deliver(delivery_of(table, 1))
    Callback("top", lambda rows, commit: heard.append(rows)).deliver(delivery_of(table, 1))
    assert rows_of(memory.table()) == rows_of(heard[0]) == expected
    with redirect_stdout(io.StringIO()) as printed:
        open_sink("console:", QUERY).deliver(delivery_of(table, 1, QUERY))
    assert [tuple(line["values"].values()) for line in of_lines(printed.getvalue())] == expected


@given(ROWS)
@settings(max_examples=5)
def test_line_separators_come_through_a_delta_table(values: list[str | None]) -> None:
    """The log of a table holds the least and greatest values of its files, and is read at each commit."""
    table = table_of([*values, *BREAKS])
    with TemporaryDirectory() as folder:
        through(f"delta://{folder}/t", table)
        assert sorted(map(repr, rows_of(delta_rows(Path(folder) / "t")))) == sorted(
            map(repr, rows_of(table) * 2)
        )


@pytest.fixture
def broker() -> Iterator[str]:
    """The address of a broker that lives as long as its producer."""
    cluster = Producer({"bootstrap.servers": "mock", "test.mock.num.brokers": 1, "log_level": 2})
    (found,) = cluster.list_topics(timeout=PATIENCE).brokers.values()
    yield f"{found.host}:{found.port}"
    cluster.flush(1)


def test_line_separators_come_through_kafka(broker: str) -> None:
    table = table_of([*BREAKS, "".join(BREAKS), None])
    sink = open_sink(f"kafka://{broker}/breaks", QUERY)
    sink.deliver(delivery_of(table, 1, QUERY))
    sink.close()
    found = [json.loads(message.value()) for message in messages(broker, "breaks", table.num_rows)]
    assert sorted(tuple(row.values()) for row in found if row["at"] >= 0) == rows_of(table)


def test_nothing_but_messages_is_cut_into_lines_of_unicode() -> None:
    """Whoever adds a `splitlines` says here why no value of a user can be in what it cuts."""
    root = Path(windrow.__file__).parent
    found = {
        str(path.relative_to(root)) for path in root.rglob("*.py") if ".splitlines()" in path.read_text()
    }
    assert found == {
        "cli/main.py",  # the first line of an error of another library
        "spark/failures.py",  # the first line of a Java trace, or of an error of Spark
    }
