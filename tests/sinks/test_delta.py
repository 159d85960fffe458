"""`delta:`: a commit is a transaction, and the table itself knows which ones it has."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from tests.sinks.support import HOOKS, delivery_of, delta_rows, every_type, nothing, numbers, rows_of
from tests.sinks.victim import COMMITS, ROWS, deliver, deliver_without_room
from tests.state.processes import run

from windrow.errors import SinkError, StateError
from windrow.sinks import Delivery, open_sink


def version(table: Path) -> int:
    return DeltaTable(str(table)).version()


def test_a_repetition_is_left_out(tmp_path: Path) -> None:
    url = f"delta://{tmp_path}/t"
    sink = open_sink(url, "top")
    for commit in (1, 2, 2, 1, 7):
        sink.deliver(delivery_of(numbers(commit), commit))
    sink.close()
    open_sink(url, "top").deliver(delivery_of(numbers(7), 7))
    assert delta_rows(tmp_path / "t").equals(pa.concat_tables([numbers(1), numbers(2), numbers(7)]))
    assert version(tmp_path / "t") == 2


def test_the_place_may_be_written_in_several_ways(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for url in ("delta:t", "delta://./t", f"delta://{tmp_path}/t", f"delta://{tmp_path}/x/../t"):
        (tmp_path / "x").mkdir(exist_ok=True)
        open_sink(url, "top").deliver(delivery_of(numbers(1), 1))
    assert delta_rows(tmp_path / "t").equals(numbers(1))


def test_every_type(tmp_path: Path) -> None:
    sink = open_sink(f"delta://{tmp_path}/t", "top")
    for commit in (1, 2):  # the second meets the schema that the first has made
        sink.deliver(delivery_of(every_type(), commit))
    found = delta_rows(tmp_path / "t")
    assert found.column_names == every_type().column_names
    assert sorted(rows_of(found)) == sorted(rows_of(every_type()) * 2)


def test_several_queries_in_one_table(tmp_path: Path) -> None:
    for query, first in (("a", 1), ("b", 2), ("a", 1), ("b", 2)):
        sink = open_sink(f"delta://{tmp_path}", query)
        sink.deliver(delivery_of(numbers(first), 1, query))
    assert delta_rows(tmp_path).equals(pa.concat_tables([numbers(1), numbers(2)]))


def test_another_state_counts_anew(tmp_path: Path) -> None:
    for state, first in (("one", 1), ("two", 2), ("one", 1)):
        sink = open_sink(f"delta://{tmp_path}", "top", state=state)
        sink.deliver(delivery_of(numbers(first), 1))
    assert delta_rows(tmp_path).equals(pa.concat_tables([numbers(1), numbers(2)]))


@pytest.mark.parametrize("first", [1, 2])
@pytest.mark.parametrize("theirs", ["top", "another"])
def test_an_engine_that_was_overtaken_in_the_middle(tmp_path: Path, first: int, theirs: str) -> None:
    """It has looked which commits the table has, and falls asleep; the next owner delivers meanwhile."""
    url = f"delta://{tmp_path}"
    asleep = []

    def overtaken(point: str) -> None:
        if point == "sink-before-write" and not asleep:
            asleep.append(point)
            new = open_sink(url, theirs)
            for commit in (first, 7):
                new.deliver(delivery_of(numbers(commit), commit, theirs))

    if first == 2:
        open_sink(url, "top").deliver(delivery_of(numbers(1), 1))
    open_sink(url, "top", hook=overtaken).deliver(delivery_of(numbers(first), first))
    assert asleep
    found = [numbers(commit) for commit in range(1, first + 1)]
    found += [numbers(first)] if theirs != "top" else []
    assert delta_rows(tmp_path).equals(pa.concat_tables([*found, numbers(7)]).sort_by("at"))


def test_nothing_makes_no_version(tmp_path: Path) -> None:
    sink = open_sink(f"delta://{tmp_path}", "top")
    sink.deliver(nothing(1))
    assert list(tmp_path.iterdir()) == []
    sink.deliver(delivery_of(numbers(2), 2))
    sink.deliver(nothing(3))
    assert version(tmp_path) == 0


def test_numbers_are_remembered_beyond_a_checkpoint(tmp_path: Path) -> None:
    sink = open_sink(f"delta://{tmp_path}", "top")
    sink.deliver(delivery_of(numbers(1), 5))
    DeltaTable(str(tmp_path)).create_checkpoint()
    (tmp_path / "_delta_log" / f"{0:020d}.json").unlink()
    sink.deliver(delivery_of(numbers(1), 5))
    assert delta_rows(tmp_path).equals(numbers(1))


@pytest.mark.part(7)
@pytest.mark.parametrize("killed", [1, 2])
@pytest.mark.parametrize("point", [*HOOKS, "among-rows"])
def test_killed_at_any_point_and_repeated(tmp_path: Path, point: str, killed: int) -> None:
    url = f"delta://{tmp_path}/t"
    if point == "among-rows":
        if killed == 2:
            sink = open_sink(url, "top")
            sink.deliver(delivery_of(numbers(1, ROWS), 1))
        assert run(deliver, url, killed, point) == -signal.SIGKILL
    else:
        assert run(deliver, url, 1, point, killed) == -signal.SIGKILL
    assert run(deliver, url, killed) == 0
    assert run(deliver, url) == 0
    expected = pa.concat_tables([numbers(commit, ROWS) for commit in COMMITS])
    assert delta_rows(tmp_path / "t").equals(expected)
    assert version(tmp_path / "t") == len(COMMITS) - 1


# ------------------------------------------------------------------ what goes wrong


def failure(url: str, delivery: Delivery) -> SinkError:
    with pytest.raises(SinkError) as caught:
        open_sink(url, "top").deliver(delivery)
    assert caught.value.hint
    assert "\n" not in caught.value.message
    return caught.value


@pytest.mark.parametrize(
    ("existing", "difference"),
    [
        (numbers(1).append_column("extra", [[1, 2, 3]]), "it has `extra`, the query has not"),
        (numbers(1).select(["at"]), "it has no `k`"),
        (pa.table({"at": ["x"], "k": ["y"]}), "its `at` is string, the query's is int64"),
    ],
)
def test_a_table_with_other_columns(tmp_path: Path, existing: pa.Table, difference: str) -> None:
    write_deltalake(str(tmp_path), existing)
    error = failure(f"delta://{tmp_path}", delivery_of(numbers(1)))
    assert error.code == "other-columns"
    assert difference in error.message
    assert str(tmp_path) in error.message
    assert version(tmp_path) == 0


def test_columns_are_matched_by_name(tmp_path: Path) -> None:
    write_deltalake(str(tmp_path), numbers(1).select(["k", "at"]))
    open_sink(f"delta://{tmp_path}", "top").deliver(delivery_of(numbers(2)))
    assert delta_rows(tmp_path).select(["at", "k"]).equals(pa.concat_tables([numbers(1), numbers(2)]))


@pytest.mark.parametrize(
    "kind",
    [
        pa.duration("us"),
        pa.null(),
        pa.uint64(),
        pa.time64("us"),
        pa.timestamp("ns", "UTC"),
        pa.decimal256(50, 2),
        pa.list_(pa.duration("us")),
        pa.struct([("inner", pa.null())]),
    ],
    ids=str,
)
def test_types_that_delta_has_not(tmp_path: Path, kind: pa.DataType) -> None:
    table = pa.table({"at": [1], "x": pa.array([None], kind)})
    error = failure(f"delta://{tmp_path}", delivery_of(table))
    assert f"Delta has no type for {kind}" in error.message
    assert "CAST" in (error.hint or "")
    assert list(tmp_path.iterdir()) == []


def test_names_that_delta_has_not(tmp_path: Path) -> None:
    error = failure(f"delta://{tmp_path}", delivery_of(pa.table({"at": [1], "count(*)": [2]})))
    assert "cannot have a column `count(*)`" in error.message
    assert error.hint == "rename it with AS"


def test_a_directory_of_something_else(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    error = failure(f"delta://{tmp_path}", delivery_of(numbers(1)))
    assert "is not a Delta table: it holds `thesis.tex`" in error.message


def test_a_file_where_the_table_should_be(tmp_path: Path) -> None:
    (tmp_path / "t").touch()
    assert failure(f"delta://{tmp_path}/t", nothing()).code == "place-taken"


def test_a_damaged_log(tmp_path: Path) -> None:
    open_sink(f"delta://{tmp_path}", "top").deliver(delivery_of(numbers(1), 1))
    (tmp_path / "_delta_log" / f"{0:020d}.json").write_text("{ not JSON\n")
    error = failure(f"delta://{tmp_path}", delivery_of(numbers(2), 2))
    assert f"cannot read the Delta table {tmp_path}" in error.message


def test_no_room_for_the_table(tmp_path: Path) -> None:
    out = tmp_path / "top"
    assert run(deliver_without_room, f"delta://{out}") == 7
    assert delta_rows(out).equals(numbers(1))


def test_an_error_of_the_rows_is_not_taken_for_one_of_the_sink(tmp_path: Path) -> None:
    error = StateError("a chunk is damaged")

    def tables():  # type: ignore[no-untyped-def]
        yield numbers(1)
        raise error

    with pytest.raises(StateError) as caught:
        open_sink(f"delta://{tmp_path}", "top").deliver(Delivery("top", 1, numbers(1).schema, tables))
    assert caught.value is error
    open_sink(f"delta://{tmp_path}", "top").deliver(delivery_of(numbers(1), 1))
    assert delta_rows(tmp_path).equals(numbers(1))


def test_the_package_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "deltalake", None)
    with pytest.raises(SinkError, match=r"pip install 'windrow\[delta\]'"):
        open_sink(f"delta://{tmp_path}", "top")
