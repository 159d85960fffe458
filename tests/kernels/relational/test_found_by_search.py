"""What searches over random plans have found, as small as it became: each is run for ever.

`make search` draws plans and histories; whatever it finds is put here as text and rows, and then mended.
"""

from __future__ import annotations

from operator import itemgetter
from random import Random
from typing import Any

import pytest
from tests.kernels.relational.scripts import assert_agree
from tests.spark.test_relational import assert_executor_agrees

from windrow.algebra.values import Change
from windrow.engine.explain import declared
from windrow.errors import DataError
from windrow.kernels.executor import GeneralExecutor
from windrow.kernels.relational.expiry_layouts import Evaluation, Options, Strategy
from windrow.language.compile import compile_query
from windrow.testing import Harness
from windrow.testing.spark_executor import SparkExecutor
from windrow.windows.domain import FARTHEST

STREAMS = dict.fromkeys(("s1", "s2"), "k BIGINT, v BIGINT, x DOUBLE, ts BIGINT")

#: what went wrong, the query, and the rows of each stream
FOUND: dict[str, tuple[str, dict[str, list[tuple[Any, ...]]]]] = {
    "three windows gave the join a column of the same name": (
        "SELECT COUNT(*) AS n, MEDIAN(a.v) AS middle FROM s1 [ROWS 4 SLIDE 2 ROWS] a,"
        " s2 [ROWS 3 SLIDE 2 ROWS] b, s1 [ROWS 3 SLIDE 3 ROWS] c WHERE a.k = b.k AND b.k = c.k",
        {name: [(n % 2, n, 0.5, n) for n in range(9)] for name in STREAMS},
    ),
    "-0.0 and 0.0, which are equal, had different places in an order": (
        "SELECT k, COUNT(*) AS n, MAX(v) AS most FROM (SELECT k, v, x FROM s1 [RANGE 8 SLIDE 4]"
        " ORDER BY x, v DESC LIMIT 3) q GROUP BY k",
        {"s1": [(2, 0, -0.0, 1), (1, 1, 0.0, 1), (1, 0, -0.0, 1), (1, 0, 0.0, 1)]},
    ),
}


@pytest.mark.parametrize("strategy", list(Strategy))
@pytest.mark.parametrize("what", list(FOUND))
def test_what_a_search_found_stays_mended(what: str, strategy: Strategy) -> None:
    text, rows = FOUND[what]
    script: list[Any] = [("push", (name, each)) for name, each in rows.items()]
    script += [("promise", (name, 4)) for name in rows] + [("take", ()), ("finish", ()), ("take", ())]
    plan = compile_query(text, declared(STREAMS, {}))
    assert assert_agree(plan, script, lambda emit: GeneralExecutor(emit, Options(strategy))) > 0


def test_the_last_report_of_an_internal_window_counts_rows_that_do_not_qualify() -> None:
    """A condition was moved below a window whose every extent adds results: the last extents were missing."""
    text = "SELECT v, COUNT(*) AS n FROM s1 [LANDMARK SLIDE 5 INTERNAL] WHERE x > 0 GROUP BY v"
    for executor in ("reference", "kernels", "engine"):
        harness = Harness(text, STREAMS, executor=executor)
        harness.push("s1", [(0, 1, 1.0, 2), (0, 1, 0.0, 12)])
        harness.finish()
        assert harness.take() == [Change("+", (1, 1), at) for at in (5, 10, 15)]


def test_lists_that_are_all_empty_are_there_after_a_restart() -> None:
    """Arrow wrote them so that other columns were read out of the file, or none."""
    text = (
        "SELECT ISTREAM(a.k, g.n, g.tops) FROM s2 [RANGE 9 INTERNAL] a,"
        " (SELECT COUNT(*) AS n, TOP_K(v, 2) AS tops FROM s1 [RANGE 2 SLIDE 3]) g WHERE a.k = g.n"
    )
    script: list[Any] = [
        ("push", ("s2", [(1, 1, 0.5, 1)])),
        ("push", ("s1", [(0, 1, 0.5, 5)])),
        ("push", ("s2", [(1, None, 0.5, 6)])),
        ("push", ("s1", [(1, None, 0.5, 11)])),
        *(("promise", each) for each in [("s1", 9), ("s2", 13), ("s1", 17), ("s2", 17)]),
        ("take", ()),
        ("finish", ()),
        ("take", ()),
    ]
    executor = SparkExecutor(compile_query(text, declared(STREAMS, {})), spark=False, shards=1)
    assert assert_executor_agrees(executor, script, restart_always()) > 0


def restart_always() -> Random:
    """Chance that lets an executor restart before each step."""
    chance = Random(0)
    chance.random = lambda: 0.0  # type: ignore[method-assign]
    return chance


@pytest.mark.parametrize("of", ["q.p", "q.p + q.other"])
def test_ranks_of_rows_that_are_not_expected(of: str) -> None:
    """The cost of a membership test divided by the number of different ranks, of which none are expected."""
    both = "RANK() OVER (ORDER BY v) AS p, RANK() OVER (ORDER BY k) AS other"
    ranks = f"SELECT {both} FROM s2 [RANGE 5] WHERE FALSE"
    text = f"SELECT k FROM s1 [RANGE 5] WHERE k NOT IN (SELECT {of} FROM ({ranks}) q WHERE q.p = q.other)"
    for executor in ("reference", "kernels", "engine"):
        harness = Harness(text, STREAMS, executor=executor)
        harness.push("s1", [(1, 1, 0.5, 2)])
        harness.finish()
        assert harness.take() == [Change("+", (1,), 2), Change("-", (1,), 7)]


def test_bounds_of_windows_are_not_known_before_their_reports() -> None:
    """Rows that were joined as they came, ahead of their report, had bounds of too many windows."""
    text = (
        "SELECT DSTREAM(k) FROM (SELECT DISTINCT a.k FROM s1 [LANDMARK SLIDE 2] AS a"
        " JOIN (SELECT k, window_start AS began FROM s1 [RANGE 4 SLIDE 2 ORIGIN 3]) AS b"
        " ON a.ts <> b.began) AS c"
    )
    plan = compile_query(text, declared(STREAMS, {}))
    script: list[Any] = [("push", ("s1", [(2, 2, 0.0, 2)])), ("finish", ()), ("take", ())]
    eager = Options(evaluation=Evaluation.EAGER)
    assert assert_agree(plan, script, lambda emit: GeneralExecutor(emit, eager), instants=range(0)) > 0


@pytest.mark.parametrize("word", ["ISTREAM_RESTORE", "RSTREAM_RESTORE"])
def test_a_selection_tells_of_ends_as_what_is_below_it(word: str) -> None:
    """δ under RESTORE tells of ends by negative rows; γ above a selection of it took them for rows."""
    text = (
        f"SELECT {word}(k, COUNT(*) AS n, SUM(x) AS total)"
        " FROM (SELECT DISTINCT k, x FROM s1 [RANGE 6 SLIDE 4]) AS q WHERE k > 0 GROUP BY k"
    )
    for executor in ("reference", "kernels", "engine"):
        harness = Harness(text, STREAMS, executor=executor)
        harness.push("s1", [(2, 1, 0.5, 28)])
        harness.finish()
        assert harness.take() == [Change("+", (2, 1, 0.5), 32)]


@pytest.mark.parametrize("told", ["a change", "a punctuation"])
def test_what_a_table_was_told_is_known_after_a_restart_though_no_row_came(told: str) -> None:
    tables = {"names": ("k BIGINT, name STRING", "NRR")}
    text = "SELECT a.k, n.name FROM s1 [NOW] a, names n WHERE a.k = n.k"
    executor = SparkExecutor(compile_query(text, declared(STREAMS, tables)), spark=False)
    if told == "a change":
        executor.update("names", 9, [(2, "b")], [])
    else:
        executor.punctuate("names", 9)
    executor.restart()
    with pytest.raises(DataError) as refused:
        executor.update("names", 8, [(1, "a")], [])
    assert refused.value.code == "late-update"


@pytest.mark.parametrize(
    "inner",
    [
        "SELECT DISTINCT v, x FROM s1 [RANGE 8 SLIDE 2]",
        "SELECT v, x FROM s1 [RANGE 8 SLIDE 2] EXCEPT ALL SELECT v, x FROM s1 [RANGE 2 SLIDE 2] WHERE v > 5",
        "SELECT v, x FROM s1 [RANGE 8 SLIDE 2] ORDER BY v LIMIT 3",
    ],
)
def test_results_over_internal_windows_stay_apart_when_a_projection_leaves_out_their_difference(
    inner: str,
) -> None:
    text = f"SELECT RSTREAM(q.v) FROM ({inner}) AS q, s2 [RANGE 8 SLIDE 2 INTERNAL] AS b WHERE q.v = b.k"
    for executor in ("reference", "kernels", "engine"):
        harness = Harness(text, STREAMS, executor=executor)
        harness.push("s1", [(1, 2, 0.5, 23), (1, 2, 1.5, 23)])
        harness.push("s2", [(2, 0, 0.0, 23)])
        for stream in STREAMS:
            harness.punctuate(stream, 24)
        assert harness.take() == [Change("+", (2,), 24)] * 2


def test_a_row_that_has_a_match_keeps_its_place_in_the_order_under_restore() -> None:
    text = (
        "SELECT RSTREAM_RESTORE(COUNT(*) AS n, FIRST(a.ts) AS earliest) FROM s1 [RANGE 8 SLIDE 6] AS a"
        " WHERE EXISTS (SELECT * FROM s2 [RANGE 8 SLIDE 6] AS b WHERE a.ts <> b.k)"
    )
    for executor in ("reference", "kernels", "engine"):
        harness = Harness(text, STREAMS, executor=executor)
        harness.push("s1", [(1, 9, 0.5, 16), (1, 0, 0.5, 17)])
        harness.push("s2", [(0, 0, 0.0, 21)])
        for stream in STREAMS:
            harness.punctuate(stream, 24)
        assert harness.take() == [Change("+", (2, 16), 24)]


def test_of_equal_rows_limit_keeps_the_oldest() -> None:
    """Which one it keeps is seen where a window is INTERNAL: results of a group stay as long as its row."""
    text = (
        "SELECT RSTREAM(k, COUNT(*) AS n) FROM (SELECT k, v FROM (SELECT k, v, ts FROM s1 UNION ALL"
        " SELECT k, v, ts FROM s2) AS both [LANDMARK SLIDE 3 INTERNAL] ORDER BY v LIMIT 1) AS q GROUP BY k"
    )
    for executor in ("reference", "kernels", "engine"):
        harness = Harness(text, STREAMS, executor=executor)
        harness.push("s2", [(0, 0, 0.5, 1)])
        harness.push("s1", [(0, 0, 0.5, 7)])
        for stream in STREAMS:
            harness.punctuate(stream, 9)
        assert harness.take() == [Change("+", (0, 1), at) for at in (3, 6, 6, 9, 9, 9)]


def test_equal_rows_of_different_windows_are_rows_of_their_own_to_limit() -> None:
    text = (
        "SELECT RSTREAM(k, v) FROM (SELECT k, v FROM (SELECT k, v FROM s1 [RANGE 2 SLIDE 2] UNION ALL"
        " SELECT k, v FROM s1 [RANGE 7 SLIDE 2 INTERNAL]) AS both ORDER BY k LIMIT 3) AS q"
    )
    for executor in ("reference", "kernels", "engine"):
        harness = Harness(text, STREAMS, executor=executor)
        harness.push("s1", [(1, 1, 0.5, 7)])
        harness.punctuate("s1", 12)
        assert harness.take() == [Change("+", (1, 1), at) for at in (8, 8, 10, 12)]


def test_an_answer_with_the_bounds_of_its_window_comes_up_to_the_last_row() -> None:
    """Also where that row does not qualify: it says how far the reports go."""
    text = (
        "SELECT ISTREAM(k, COUNT(*) AS n, window_end) FROM s1 [LANDMARK SLIDE 2] WHERE v > 0"
        " GROUP BY k, window_start, window_end"
    )
    for executor in ("reference", "kernels", "engine"):
        harness = Harness(text, STREAMS, executor=executor)
        harness.push("s1", [(1, 1, 0.5, 1), (1, 0, 0.5, 5)])
        harness.finish()
        assert harness.take() == [Change("+", (1, 1, at), at) for at in (2, 4, 6)], executor


DIFFERENT = "(SELECT DISTINCT k FROM s1 [RANGE 8 SLIDE 4]) AS q"
RESTORED = "SELECT RSTREAM_RESTORE({key}, COUNT(*) AS n, MIN({key}) AS least, MAX({key}) AS most)"
EARLIER = "s1 [RANGE 3 SLIDE 4] AS q"
LATER = "s2 [RANGE 5 SLIDE 4] AS r"


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("r.v", f"FROM {DIFFERENT}, {LATER} WHERE q.k = r.v"),
        ("r.v", f"FROM {LATER} WHERE EXISTS (SELECT * FROM {EARLIER} WHERE q.k = r.v)"),
        ("r.v", f"FROM {LATER} WHERE EXISTS (SELECT * FROM {EARLIER} WHERE q.k < r.v)"),
        ("r.v", f"FROM {LATER} WHERE EXISTS (SELECT * FROM {DIFFERENT} WHERE q.k = r.v)"),
        ("q.k", f"FROM {DIFFERENT} WHERE EXISTS (SELECT * FROM {LATER} WHERE q.k = r.v)"),
    ],
)
def test_groups_above_rows_whose_ends_are_told_under_restore(key: str, text: str) -> None:
    """A key that is gone takes rows away before they end."""
    for seed in range(8):
        random = Random(seed)
        drawn = [(random.randrange(3), random.randrange(3), 0.5, random.randint(1, 25)) for _ in range(24)]
        drawn.sort(key=itemgetter(3))
        answers: dict[str, list[list[str]]] = {"reference": [], "kernels": []}
        for executor, found in answers.items():
            harness = Harness(f"{RESTORED.format(key=key)} {text} GROUP BY {key}", STREAMS, executor=executor)
            for stop in (8, 16, 24, 32):
                rows = [row for row in drawn if stop - 8 < row[3] <= stop]
                for name, part in (("s1", rows[::2]), ("s2", rows[1::2])):
                    harness.push(name, part)
                    harness.punctuate(name, stop)
                found.append(sorted(map(str, harness.take())))
        assert answers["kernels"] == answers["reference"]
        assert any(answers["reference"])


@pytest.mark.parametrize("window", ["RANGE 2 SLIDE 1 INTERNAL", "LANDMARK SLIDE 1"])
def test_a_change_of_no_rows_is_no_change_of_a_table(window: str) -> None:
    """At the end of input, answers are given up to the last change of a RELATION."""
    text = f"SELECT RSTREAM(s.k, t.v) FROM s [{window}], t WHERE s.k = t.k"
    for executor in ("reference", "kernels", "engine"):
        found = []
        for changes in (), (30,):
            harness = Harness(
                text,
                {"s": "k BIGINT, ts BIGINT"},
                {"t": ("k BIGINT, v BIGINT", "RELATION")},
                executor=executor,
            )
            harness.update("t", 18, [(0, 2)])
            harness.push("s", [(0, 21)])
            for at in changes:
                harness.update("t", at)
            harness.finish()
            found.append(harness.take())
        assert found[0] == found[1], executor
        assert found[0][0] == Change("+", (0, 2), 22)


def test_between_rows_that_are_far_apart_nothing_is_reported() -> None:
    """The oracle listed all reports there could be, until there was no memory left."""
    for executor in ("reference", "kernels", "engine"):
        harness = Harness(
            "SELECT k, COUNT(*) AS n FROM s1 [RANGE 10 SLIDE 5] GROUP BY k", STREAMS, executor=executor
        )
        harness.push("s1", [(1, 0, 0.5, -FARTHEST + 1), (1, 0, 0.5, 11), (1, 0, 0.5, FARTHEST - 20)])
        harness.finish()
        reports = [change.at for change in harness.take()]
        assert len(reports) == 6
        assert reports[2:4] == [15, 20]
