"""The public testing kit: one script, every executor."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from windrow.errors import DataError, QueryError
from windrow.testing import Change, Harness
from windrow.testing.harness import EXECUTORS

SECOND = 1_000_000
CASES = [pytest.param(name, marks=[pytest.mark.jvm] if name == "spark" else []) for name in EXECUTORS]
STREAMS = {"s": ("k STRING, v BIGINT, ts TIMESTAMP", "WATTR ts SLACK 2 SECONDS LATE DROP")}
QUERY = "SELECT k, SUM(v), MIN(v) FROM s [RANGE 10 SECONDS SLIDE 5 SECONDS] GROUP BY k"


@pytest.mark.parametrize("executor", CASES)
def test_a_script_gives_the_same_changes_on_every_executor(executor: str) -> None:
    h = Harness(QUERY, STREAMS, executor=executor)
    h.push("s", [("a", 1, 1 * SECOND), ("b", 2, 4 * SECOND)])
    assert h.take() == []
    h.push("s", [("a", 3, datetime(1970, 1, 1, 0, 0, 8, tzinfo=UTC)), ("a", 4, 3 * SECOND)])
    assert h.take() == [Change("+", ("a", 5, 1), 5 * SECOND), Change("+", ("b", 2, 2), 5 * SECOND)]
    h.push("s", [("a", 9, 1 * SECOND)])
    assert h.late("s") == [("a", 9, 1 * SECOND)]
    h.punctuate("s", 10 * SECOND)
    assert h.relation(10 * SECOND) == {("a", 8, 1): 1, ("b", 2, 2): 1}
    h.finish()
    assert h.take() == [
        Change("+", ("a", 8, 1), 10 * SECOND),
        Change("+", ("b", 2, 2), 10 * SECOND),
        Change("+", ("a", 3, 3), 15 * SECOND),
    ]


@pytest.mark.parametrize("executor", CASES)
def test_an_answer_that_is_not_final_is_not_told(executor: str) -> None:
    h = Harness(QUERY, STREAMS, executor=executor)
    h.push("s", [("a", 1, 1 * SECOND)])
    with pytest.raises(DataError, match="not final yet"):
        h.relation(5 * SECOND)


@pytest.mark.parametrize("executor", CASES)
def test_tables_change_on_every_executor(executor: str) -> None:
    tables = {"items": ("k STRING, name STRING", "KEY (k)"), "owners": ("k STRING, owner STRING", "RELATION")}
    query = (
        "SELECT s.k, name, owner FROM s [RANGE 10 SECONDS], items, owners"
        " WHERE s.k = items.k AND s.k = owners.k"
    )
    h = Harness(query, STREAMS, tables, executor=executor)
    h.update("items", 0, insert=[("a", "axe"), ("b", "box")])
    h.update("owners", 0, insert=[("a", "ann")])
    h.push("s", [("a", 1, 1 * SECOND), ("b", 2, 2 * SECOND), ("c", 3, 2 * SECOND)])
    h.update("owners", 5 * SECOND, insert=[("b", "bob")], delete=[("a", "ann")])
    h.update("items", 6 * SECOND, insert=[("c", "cup")])  # too late for the row that is there
    h.push("s", [("b", 4, 20 * SECOND)])
    assert h.take() == [
        Change("+", ("a", "axe", "ann"), 1 * SECOND),
        Change("+", ("b", "box", "bob"), 5 * SECOND),
        Change("-", ("a", "axe", "ann"), 5 * SECOND),
        Change("-", ("b", "box", "bob"), 12 * SECOND),
    ]
    codes = []
    for table, at, insert, delete in [
        ("owners", 17 * SECOND, [("c", "cyd")], []),  # answered already
        ("items", 20 * SECOND, [("a", "ark")], []),  # a key for the second time
        ("owners", 20 * SECOND, [], [("c", "cyd")]),  # not there
    ]:
        with pytest.raises(DataError) as refused:
            h.update(table, at, insert, delete)
        codes.append(refused.value.code)
    assert codes == ["late-update", "key-reused", "no-such-row"]
    h.finish()
    assert h.take() == [
        Change("+", ("b", "box", "bob"), 20 * SECOND),
        Change("-", ("b", "box", "bob"), 30 * SECOND),
    ]


def test_dates_are_instants_too() -> None:
    h = Harness("SELECT v FROM s [NOW]", {"s": "v INT, d DATE"})
    h.push("s", [(1, date(1970, 1, 2))])
    h.punctuate("s", date(1970, 1, 3))
    assert [change.at for change in h.take()] == [86_400 * SECOND, 86_400 * SECOND + 1]


def test_kernels_run_what_outlives_its_windows() -> None:
    query = "SELECT RSTREAM(k) FROM s [RANGE 5 SECONDS SLIDE 5 SECONDS INTERNAL] ORDER BY k LIMIT 1"
    both = [Harness(query, STREAMS, executor=name) for name in ("kernels", "reference")]
    for h in both:
        h.push("s", [("b", 1, 0), ("a", 2, 6 * SECOND), ("c", 3, 7 * SECOND)])
        h.finish()
    assert both[0].take() == both[1].take() != []


def test_an_unknown_executor_is_named() -> None:
    with pytest.raises(QueryError, match="no executor `karnels`") as refused:
        Harness(QUERY, STREAMS, executor="karnels")
    assert refused.value.hint == "did you mean `kernels`?"


@pytest.mark.parametrize(
    "mistake",
    [
        lambda h: h.push("s", 5),
        lambda h: h.push("s", [5]),
        lambda h: h.push("s", [("a", 1)]),
        lambda h: h.push("s", [("a", "one", 0)]),
        lambda h: h.push("s", [("a", 2**63, 0)]),
        lambda h: h.push("r", []),
        lambda h: h.punctuate("s", "soon"),
        lambda h: h.punctuate("s", 1, where={"k": 1, "v": 2}),
        lambda h: h.update("t", 1, insert=[(1,)]),
        lambda h: h.advance(-1),
        lambda h: h.relation(None),
    ],
)
@pytest.mark.parametrize("executor", CASES)
def test_mistakes_are_data_errors(executor: str, mistake: object) -> None:
    with pytest.raises(DataError):
        mistake(Harness(QUERY, STREAMS, executor=executor))  # type: ignore[operator]
