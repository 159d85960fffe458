"""No call of the public API ends in an error about our code: a wrong argument is told by its name."""

from __future__ import annotations

import inspect
from itertools import product
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.support.history import BATCHES, COLUMNS, OPTIONS, SUMS, table_of
from tests.support.life import Life

import windrow as wr
from windrow.engine.show import ArchiveView
from windrow.engine.views import Query, StreamView, TableView
from windrow.errors import QueryError, WindrowError
from windrow.session import Windrow
from windrow.spark.sources import Bounded
from windrow.windows.progress import Slack

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ROWS = pa.table({"k": [1], "v": [2], "t": [3]})
ONCE = "SELECT COUNT(*) AS n FROM s [RANGE 20]"
#: what is wrong for most arguments; what is right for one is no error there
WRONG = (5, -1, 1.5, "typo", "`;--", None, [], ["typo"], {"typo": 1}, (), object(), b"x")
#: arguments that each public method takes
CALLS: dict[str, dict[str, Any]] = {
    "sql": {"text": "SHOW QUERIES"},
    "declare": {"text": "SHOW STREAMS"},
    "check": {"text": "SHOW STREAMS"},
    "select": {
        "query": ONCE,
        "isolation": "latest",
        "timeout": 9.0,
        "max_rows": 9,
        "max_bytes": 1 << 20,
        "priority": 1,
    },
    "ask": {
        "query": ONCE,
        "isolation": "window",
        "timeout": 9.0,
        "max_rows": 9,
        "max_bytes": 1 << 20,
        "priority": 1,
    },
    "stream": {
        "name": "r",
        "data": ROWS,
        "wattr": "t",
        "slack": "3",
        "ordered": False,
        "ordered_per": None,
        "idle": None,
        "punctuated_by": None,
        "per": None,
        "when": None,
        "late": "keep",
        "sheddable": False,
        "keep": "9",
    },
    "table": {"name": "r", "data": ROWS, "kind": "nrr", "key": ["k"], "every": "1 second"},
    "update": {"table": "names", "insert": [(7, 7)], "delete": [], "at": None},
    "from_": {"source": "s", "alias": "x"},
    "query": {"name": "p", "text": SUMS, "sink": None, "priority": 0, "max_gap": None},
    "archive": {"name": "old", "on": "s", "key": "k", "keep": 9, "partitions": (2, 2), "rebuild": False},
    "drop": {"name": "q"},
    "run": {"trigger": "1 second", "once": True, "flush": True, "watch": lambda: None},
    "start": {"trigger": "1 second"},
    "stop": {},
    "wait": {"timeout": 9.0},
    "quicken": {"stream": "s", "times": 3.0},
    "shed": {"p": 0.5},
    "push": {"stream": "pushed", "rows": [(1, 2, 3)], "key": "one", "timeout": 60.0},
    "punctuate": {"stream": "s", "progress": 999, "where": None},
    "close": {},
}
QUERY_CALLS: dict[str, dict[str, Any]] = {
    "results": {"gaps": False},
    "explain": {"analyze": True},
    "plot": {"y": "total", "by": ["k"], "ax": None},
    "stop": {},
    "to_pandas": {},
    "to_polars": {},
    "to_spark": {},
    "watch": {"seconds": 0.0, "rows": 3},
}
ARCHIVE_CALLS: dict[str, dict[str, Any]] = {
    "probe": {"key": 1, "at": None, "columns": ["k"]},
    "range": {"low": 1, "high": 2, "at": None, "columns": ["k"]},
    "scan": {"at": None, "columns": ["k"]},
}


def public(view: type) -> set[str]:
    return {name for name, found in inspect.getmembers(view, inspect.isfunction) if not name.startswith("_")}


def test_all_public_methods_are_called() -> None:
    assert public(Windrow) == set(CALLS)
    assert public(Query) == set(QUERY_CALLS)
    assert public(ArchiveView) == set(ARCHIVE_CALLS)
    assert public(StreamView) == set()
    assert public(TableView) == {"rows"}  # without arguments


def made(folder: Path) -> Life:
    w = Life(folder / "state")
    w.sql(f"CREATE STREAM s ({COLUMNS}) {OPTIONS} KEEP 1000; CREATE TABLE names (k BIGINT, v BIGINT) NRR")
    w.sql("CREATE ARCHIVE old_s ON s KEY k KEEP 100")
    w.sql(f"CREATE STREAM pushed ({COLUMNS}) {OPTIONS} FROM 'push:'")
    w.query("q", SUMS)
    table: Any = table_of(BATCHES[0])
    w._sources["s"] = Bounded(table, "script")
    return w


def call(target: Any, name: str, arguments: dict[str, Any]) -> str | None:
    """What is raw about a call; None if it is done or refused."""
    try:
        kind = Windrow if isinstance(target, Windrow) else type(target)  # not what a test makes of it
        found = getattr(kind, name)(target, **arguments)
        if name == "ask":
            found.result(9.0)
    except WindrowError:
        return None
    except Exception as error:  # noqa: BLE001  that is what is looked for
        return f"{name}({arguments}): {type(error).__name__}: {error}"
    return None


def spoilt(arguments: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Each argument in turn as it should not be. What is made has a new name each time."""
    for number, (name, wrong) in enumerate(product(arguments, WRONG)):
        fresh = {"name": f"{arguments['name']}{number}"} if "name" in arguments else {}
        yield {**arguments, **fresh, name: wrong}


@pytest.mark.parametrize("name", sorted(CALLS))
def test_a_wrong_argument_of_an_engine_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("windrow.session.open_data", lambda *_: None)
    w, found = made(tmp_path), []
    assert call(w, name, CALLS[name]) is None
    for arguments in spoilt(CALLS[name]):
        found.append(call(w, name, arguments))
        if w._thread is not None:
            w.stop()
    w.close()
    assert [each for each in found if each] == []


def test_a_wrong_argument_of_a_view_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib").use("agg")
    with made(tmp_path) as w:
        w.run(once=True)
        views = ((w.queries["q"], QUERY_CALLS), (w.archives["old_s"], ARCHIVE_CALLS))
        calls = [
            (view, name, how) for view, table in views for name, good in table.items() for how in spoilt(good)
        ]
        found = [call(*each) for each in calls]
    assert [each for each in found if each] == []


def test_a_wrong_argument_of_connect_is_refused(tmp_path: Path) -> None:
    for how in (
        {"state": 5},
        {"state": tmp_path / "s", "takeover": "yes"},
        {"spark": 5, "state": tmp_path / "s"},
    ):
        with pytest.raises(WindrowError) as told:
            wr.connect(**how)
        assert told.value.hint


def test_a_view_of_what_is_dropped_says_so(tmp_path: Path) -> None:
    with made(tmp_path) as w:
        views = [w.queries["q"], w.tables["names"], w.archives["old_s"], w.streams["s"]]
        w.sql("DROP QUERY q; DROP ARCHIVE old_s; DROP STREAM s; DROP TABLE names")
        for view in views:
            with pytest.raises(QueryError, match="was dropped"):
                repr(view)


@pytest.mark.parametrize(
    ("how", "message", "hint"),
    [
        ({"slack": [5]}, "`slack` of stream() is a text or a number, not a list", "it is given: [5]"),
        ({"slak": "5"}, "stream() has no argument `slak`", "did you mean `slack`?"),
        ({"slack": "5", "ordered": True}, "`slack` and `ordered` both say how far a stream is", "give one"),
    ],
)
def test_what_is_wrong_with_a_stream(how: dict[str, Any], message: str, hint: str, tmp_path: Path) -> None:
    with Life(tmp_path / "state") as w:
        with pytest.raises(QueryError) as told:
            w.stream("r", ROWS, wattr="t", **how)
        assert told.value.message == message
        assert str(told.value.hint).startswith(hint)
        assert "r" not in w.streams


def test_an_argument_that_is_not_known_is_told_with_the_nearest(tmp_path: Path) -> None:
    with made(tmp_path) as w:
        with pytest.raises(QueryError) as told:
            w.query("again", SUMS, snk="files:/nowhere")  # type: ignore[call-arg]
        assert told.value.message == "query() has no argument `snk`"
        assert told.value.hint == "did you mean `sink`?"


def test_a_number_is_as_good_as_its_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("windrow.session.open_data", lambda *_: None)
    with Life(tmp_path / "state") as w:
        for name, slack in (("five", 5), ("none", 0)):
            w.stream(name, ROWS, wattr="t", slack=slack)
            assert w._catalog.streams[name].progress.policy == Slack(slack)
        times = pa.table({"k": [1], "t": pa.array([0], pa.timestamp("us"))})
        with pytest.raises(QueryError) as told:
            w.stream("timed", times, wattr="t", slack=5)
        assert told.value.hint
