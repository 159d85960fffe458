"""Shedding in the engine: answers are exact but for whole windows, the same after every crash."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random
from shutil import copytree
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from tests.support.crashes import Crash, crashing_at
from tests.support.history import COLUMNS, table_of
from tests.support.life import Life
from tests.support.oracle import oracle

from windrow.engine.engine import Arrival
from windrow.engine.load_shedding import WARM_UP, Effort
from windrow.errors import QueryError
from windrow.execution.delta_file import Gathering

pytestmark = pytest.mark.deep

OPTIONS = "WATTR t SLACK 3 SHEDDABLE"
STREAM = f"CREATE STREAM s ({COLUMNS}) {OPTIONS}"
TUMBLING = "SELECT COUNT(*) AS n, SUM(v) AS v FROM s [RANGE 10 SLIDE 10]"
SLIDING = "SELECT k, SUM(v) AS total FROM s [RANGE 25 SLIDE 5] GROUP BY k"
NESTED = (
    "SELECT MAX(total) AS top FROM (SELECT k, SUM(v) AS total FROM s [RANGE 10 SLIDE 5] GROUP BY k)"
    " [RANGE 20 SLIDE 10]"
)
GENERAL = "SELECT DISTINCT k FROM s [RANGE 10 SLIDE 10]"


def batches(seed: int, count: int = 8, per: int = 12) -> list[list[tuple[int, int, int]]]:
    """Disordered by up to four ticks, so that some rows are late."""
    chance, found, now = Random(seed), [], 0
    for _ in range(count):
        rows = []
        for _ in range(per):
            now += chance.choice([0, 1, 1, 2, 3])
            rows.append((chance.randint(0, 2), chance.randint(0, 5), max(0, now - chance.randint(0, 4))))
        found.append(rows)
    return found


def paced(seed: int, sizes: list[int]) -> list[list[tuple[int, int, int]]]:
    """Batches of these sizes, each of 18 ticks."""
    chance = Random(seed)

    def moments(number: int, size: int) -> list[int]:
        return sorted(chance.randrange(18 * number, 18 * number + 18) for _ in range(size))

    return [
        [(chance.randint(0, 2), chance.randint(0, 5), t) for t in moments(number, size)]
        for number, size in enumerate(sizes)
    ]


def connected(
    folder: Path, queries: dict[str, tuple[str, int | None]], p: float | None, *, shares: bool = True
) -> Life:
    w = Life(folder)
    w.engine.shares = shares
    if not w.engine.last.decisions:  # chance differs between new states; here it must not
        w.engine.shedding = replace(w.engine.shedding, seed=5)
    w.sql(STREAM)
    for name, (text, gap) in queries.items():
        w.query(name, text, max_gap=gap)
    if p is not None:
        w.shed(p)
    return w


def missing(w: Life, name: str, slide: int) -> set[int]:
    rows = w.queries[name].gaps.to_pylist()
    return {end for row in rows for end in range(row["first"], row["last"] + 1, slide)}


def check(w: Life, queries: dict[str, tuple[str, int | None]], script: list[Any]) -> None:
    """Each query has exactly the exact answers outside of its gaps, and no gap is too long."""
    for name, (text, gap) in queries.items():
        plan = w.engine.queries[name].query.plan
        slide = plan.leaves[0].spec.slide
        lost = missing(w, name, slide)
        exact = oracle(text, script, {"s": (COLUMNS, OPTIONS)})
        assert Counter(w.rows(name)) == Counter(row for row in exact.elements() if row[0] not in lost)
        longest = max(w.queries[name].gaps["windows"].to_pylist(), default=0)
        assert longest <= (gap or 0)


QUERIES = {
    "tumbling": (TUMBLING, 4),
    "sliding": (SLIDING, 9),
    "nested": (NESTED, 4),
    "general": (GENERAL, 6),
}


@pytest.mark.part(2)
@pytest.mark.parametrize(
    ("name", "p"), [*((name, 1.0) for name in QUERIES), ("tumbling", 0.0), ("sliding", 0.5)]
)
def test_a_query_that_is_shed_answers_exactly_outside_of_its_gaps(tmp_path: Path, name: str, p: float):
    queries, script = {name: QUERIES[name]}, batches(1, count=12)
    w = connected(tmp_path, queries, p)
    for batch in script:
        w.push(*batch)
    w.end()
    check(w, queries, script)
    shed = w.streams["s"].progress.shed
    assert (shed > 0) == (p > 0)
    assert bool(w.queries[name].gaps.num_rows) == (p > 0)


#: a final window depends on too much of the stream for a gap to leave needless rows, but not of level 1
MIDDLE = (
    "SELECT MAX(total) AS top FROM (SELECT k, SUM(v) AS total FROM s [RANGE 40 SLIDE 5] GROUP BY k)"
    " [RANGE 20 SLIDE 10]"
)


def test_answers_in_the_middle_that_nobody_needs_are_not_computed(tmp_path: Path):
    script, given_on = batches(1, count=12), {}
    for p in (0.0, 1.0):
        w = connected(tmp_path / str(p), {"q": (MIDDLE, 4)}, p)
        for batch in script:
            w.push(*batch)
        work = {level: each for (_, level), each in w.engine.costs.work.items()}
        given_on[p] = work[0].rows_out
        assert any(
            "save most by answers of level 1" in line
            for line in w.queries["q"].explain(analyze=True).observed
        )
        w.end()
        check(w, {"q": (MIDDLE, 4)}, script)
        assert w.streams["s"].progress.shed == 0
    assert given_on[1.0] < 0.8 * given_on[0.0], "two in five are in gaps"
    told = " ".join(" ".join(w.queries["q"].explain().runs).split())
    assert "makes no row needless, and 30 of the answers of level 1" in told


@given(
    st.lists(st.tuples(st.integers(1, 12), st.integers(1, 4)), min_size=2, max_size=3),
    st.integers(1, 6),
    st.floats(0, 1),
    st.integers(0, 99),
)
@settings(max_examples=12, deadline=None)
def test_any_levels_lose_what_nobody_needs(
    tmp_path_factory: Any, levels: list[tuple[int, int]], gap: int, p: float, seed: int
):
    text = "s"
    for length, slide in levels:
        text = f"(SELECT k, SUM(v) AS v FROM {text} [RANGE {length * slide} SLIDE {slide}] GROUP BY k)"
    queries, script = {"q": (text.removeprefix("(").removesuffix(")"), gap)}, batches(seed)
    w = connected(tmp_path_factory.mktemp("levels"), queries, p)
    for batch in script:
        w.push(*batch)
    w.end()
    check(w, queries, script)


@given(
    st.dictionaries(st.sampled_from(sorted(QUERIES)), st.booleans(), min_size=1),
    st.floats(0, 1),
    st.integers(0, 99),
)
@settings(max_examples=6, deadline=None)
def test_many_queries_are_shed_only_if_all_agree(
    tmp_path_factory: Any, chosen: dict[str, bool], p: float, seed: int
):
    queries = {
        name: (QUERIES[name][0], QUERIES[name][1] if agrees else None) for name, agrees in chosen.items()
    }
    script = batches(seed)
    w = connected(tmp_path_factory.mktemp("many"), queries, p)
    for batch in script:
        w.push(*batch)
    w.end()
    check(w, queries, script)
    if not all(chosen.values()):
        assert w.streams["s"].progress.shed == 0


@pytest.mark.thorough
def test_p_may_change_at_any_time(tmp_path: Path):
    script = batches(3, count=15)
    w = connected(tmp_path, QUERIES, None)
    for number, batch in enumerate(script):
        w.shed([None, 0.9, 0.2, 0.0, 1.0][number % 5])
        w.push(*batch)
    w.end()
    check(w, QUERIES, script)
    assert w.streams["s"].progress.shed > 0


def test_queries_may_come_and_go_under_shedding(tmp_path: Path):
    script = batches(5, count=20)
    w = connected(tmp_path, {"tumbling": QUERIES["tumbling"]}, 0.8)
    for batch in script[:8]:
        w.push(*batch)
    w.query("late", GENERAL)
    before = w.streams["s"].progress.shed
    for batch in script[8:12]:
        w.push(*batch)
    assert w.streams["s"].progress.shed == before  # the new one has not agreed
    exact = oracle(GENERAL, script[:12], {"s": (COLUMNS, OPTIONS)}, ended=False)
    first = w.queries["late"].progress.complete_from + 10
    assert Counter(w.rows("late")) == Counter(row for row in exact.elements() if row[0] >= first)
    w.drop("late")
    w.query("sliding", SLIDING, max_gap=9)
    for batch in script[12:]:
        w.push(*batch)
    w.end()
    check(w, {"tumbling": QUERIES["tumbling"]}, script)
    assert w.streams["s"].progress.shed > before


def test_a_query_does_not_take_in_what_only_others_need(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Another one keeps all rows; the panes of this one are only those of its kept windows."""
    queries = {"tumbling": QUERIES["tumbling"], "kept": (GENERAL, None)}
    taken: dict[str, list[int]] = {}
    plain = Gathering.take

    def take(self: Any, accepted: Any) -> None:
        taken.setdefault(self.names[0].partition("@")[0], []).extend(accepted["t"].to_list())
        plain(self, accepted)

    monkeypatch.setattr(Gathering, "take", take)
    script = batches(1, count=12)
    w = connected(tmp_path, queries, 1.0, shares=False)
    for batch in script:
        w.push(*batch)
    w.end()
    check(w, queries, script)
    progress = w.streams["s"].progress
    assert progress.shed == 0
    assert len(taken["kept"]) == progress.accepted
    assert len(taken["tumbling"]) < progress.accepted / 2
    gone = missing(w, "tumbling", 10)
    assert {t // 10 * 10 + 10 for t in taken["tumbling"]}.isdisjoint(gone)


def go_on(folder: Path, script: list[Any], heard: dict[int, Any]) -> Life:
    """A life: from where the state is to the end."""
    w = Life(folder)
    w.sql(STREAM)
    w.query("q", TUMBLING, max_gap=4, sink=lambda table, commit: heard.update({commit: table.to_pylist()}))
    last = w.engine.streams["s"].read.offsets.get("batch")
    for number in range(0 if last is None else last + 1, len(script)):
        w.push(*script[number], number=number)
    if not w.engine.streams["s"].known.sealed:
        w.end()
    return w


def test_the_same_is_shed_after_every_crash(tmp_path: Path):
    script = batches(7, count=8)
    begun = Life(tmp_path / "begun")
    begun.engine.shedding = replace(begun.engine.shedding, seed=5)
    begun.sql(STREAM)
    begun.query("q", TUMBLING, max_gap=4, sink=lambda *_: None)
    begun.shed(0.7)
    begun.close()
    copytree(tmp_path / "begun", tmp_path / "whole")
    expected: dict[int, Any] = {}
    whole = go_on(tmp_path / "whole", script, expected)
    assert whole.streams["s"].progress.shed > 0
    for point in ("before-commit", "after-commit"):
        for passage in (2, 4, 6):
            first, second = tmp_path / f"{point}{passage}", tmp_path / f"{point}{passage}-again"
            copytree(tmp_path / "begun", first)
            heard: dict[int, Any] = {}
            copy = partial(copytree, first, second)
            with crashing_at(point, passage, copy) as crash, suppress(Crash):
                go_on(first, script, heard)
            assert crash.happened
            again = go_on(second, script, heard)
            assert again.queries["q"].gaps.equals(whole.queries["q"].gaps)
            assert again.streams["s"].progress == whole.streams["s"].progress
            assert _rows(heard) == _rows(expected)


def _rows(heard: dict[int, Any]) -> list[Any]:
    return sorted(tuple(row.values()) for rows in heard.values() for row in rows)


def test_what_is_decided_is_in_the_commit(tmp_path: Path):
    w = connected(tmp_path, {"tumbling": QUERIES["tumbling"]}, 0.8)
    for batch in batches(9)[:4]:
        w.push(*batch)
    before = w.engine.shedding
    w.close()
    again = connected(tmp_path, {"tumbling": QUERIES["tumbling"]}, None)
    after = again.engine.shedding
    assert (after.phases, after.gaps, after.told, after.seed, after.forced) == (
        *(before.phases, before.gaps, before.told, before.seed),
        0.8,
    )


def test_gaps_are_shown(tmp_path: Path):
    w = connected(tmp_path, {"tumbling": QUERIES["tumbling"], "kept": (GENERAL, None)}, 1.0)
    for batch in batches(2):
        w.push(*batch)
    (shown,) = w.sql("SHOW GAPS")
    assert set(shown["query"].to_pylist()) == {"tumbling"}
    assert shown["windows"].to_pylist() == w.queries["tumbling"].gaps["windows"].to_pylist()
    assert w.queries["tumbling"].losing == 0.8
    assert w.queries["tumbling"].keeps_all is None
    assert "MAX GAP" in str(w.queries["kept"].keeps_all)
    (streams,) = w.sql("SHOW STREAMS")
    assert streams["shed"].to_pylist() == [w.streams["s"].progress.shed]


def test_gaps_may_stand_among_the_answers(tmp_path: Path):
    script = batches(2)
    w = connected(tmp_path, {"tumbling": QUERIES["tumbling"]}, 1.0)
    assert w.queries["tumbling"].results(gaps=True).num_rows == 0
    for batch in script:
        w.push(*batch)
    w.end()
    plain, marked = w.queries["tumbling"].results(), w.queries["tumbling"].results(gaps=True)
    assert marked.column_names == ["at", "op", "n", "v"]
    assert marked["at"].to_pylist() == sorted(marked["at"].to_pylist())
    given = [row for row in marked.to_pylist() if row["op"] == "+"]
    assert [{name: row[name] for name in plain.column_names} for row in given] == plain.to_pylist()
    empty = [row for row in marked.to_pylist() if row["op"] == "gap"]
    assert {row["at"] for row in empty} == missing(w, "tumbling", 10)
    assert empty
    assert all(row["n"] is row["v"] is None for row in empty)


def test_gaps_are_filled_when_they_are_read_and_never_for_sinks(tmp_path: Path):
    delivered: list[Any] = []
    w = connected(tmp_path, {"sliding": QUERIES["sliding"]}, 1.0)
    w.query(
        "told",
        QUERIES["sliding"][0],
        max_gap=QUERIES["sliding"][1],
        sink=lambda rows, _: delivered.append(rows),
    )
    for batch in batches(2):
        w.push(*batch)
    w.end()
    plain, gone = w.queries["sliding"].results(), missing(w, "sliding", 5)
    assert plain.column_names == ["at", "k", "total"]
    for fill in ("linear", "last"):
        found = w.queries["sliding"].results(fill=fill)
        assert found.column_names == ["at", "filled", "k", "total"]
        guesses = [row for row in found.to_pylist() if row["filled"]]
        assert guesses
        assert {row["at"] for row in guesses} <= gone
        kept = [row for row in found.to_pylist() if not row.pop("filled")]
        assert kept == plain.to_pylist()
    assert not {row["at"] for rows in delivered for row in rows.to_pylist()} & missing(w, "told", 5)


def test_a_column_called_op_steps_aside(tmp_path: Path):
    w = connected(tmp_path, {"q": ("SELECT COUNT(*) AS op FROM s [RANGE 10 SLIDE 10]", 4)}, 1.0)
    assert w.queries["q"].results(gaps=True).column_names == ["at", "op", "op_"]


def test_explain_tells_what_may_be_left_out(tmp_path: Path):
    w = connected(
        tmp_path, {**QUERIES, "kept": (GENERAL, None), "rows": ("SELECT k FROM s [ROWS 3]", 2)}, None
    )
    lines = {name: " ".join(" ".join(w.queries[name].explain().runs).split()) for name in w.queries}
    assert "WinDrop(window 10, slide 10, B 4): each answer given is exact, at most 4" in lines["tumbling"]
    assert "WinDrop(window 25, slide 5, B 9)" in lines["sliding"]
    for other in ("RDrop, which drops answers", "RowDrop, which drops rows at random: answers may be wrong"):
        assert other in lines["tumbling"]
        assert other not in lines["rows"]
    assert "shed" not in lines["kept"]
    assert "no window is left out: one of its windows is moved by rows" in lines["rows"]


def test_a_share_is_between_nothing_and_all(tmp_path: Path):
    w = connected(tmp_path, {}, None)
    with pytest.raises(QueryError):
        w.shed(1.5)


# ---------------------------------------------------------------- by load


def drive(
    w: Life, script: list[Any], seconds: Any, fixed: float = 0.01, waiting: int = 0, since: float = 0.0
) -> None:
    """Epochs that seem to take as long as `seconds` says, of one each; `waiting` rows are in the source, and
    those that came did so in `since` seconds.
    """
    w.engine.limit = 1.0
    w.engine._since = lambda _: since
    draft_class = type(w.engine.draft())
    plain = draft_class.effort
    try:
        for number, batch in enumerate(script):
            took = seconds(number)

            def effort(self: Any, _: float, __: float, took: float = took) -> Effort:
                found = plain(self, 0.0, 0.0)
                share = 1 - found.shed / found.rows if found.rows else 1.0
                return replace(found, on_rows=took * share + fixed, on_answers=0.0)

            draft_class.effort = effort
            w.engine.epoch([Arrival("s", table_of(batch), waiting=waiting)])
    finally:
        draft_class.effort = plain


def test_overload_makes_it_shed_and_calm_makes_it_stop(tmp_path: Path):
    queries, script = {"tumbling": QUERIES["tumbling"]}, paced(4, [4] * 10 + [30] * 20 + [4] * 30)
    w = connected(tmp_path, queries, None)
    drive(w, script[:10], lambda _: 0.3)
    assert w.queries["tumbling"].losing == 0.0
    drive(w, script[10:30], lambda _: 2.0)
    assert 0.4 <= w.queries["tumbling"].losing <= 0.8
    shed = w.streams["s"].progress.shed
    assert shed > 0
    drive(w, script[30:], lambda _: 0.3)
    assert w.queries["tumbling"].losing == 0.0
    w.end()
    check(w, queries, script)


def test_nothing_is_shed_at_the_start_or_without_hurry(tmp_path: Path):
    w = connected(tmp_path, {"tumbling": QUERIES["tumbling"]}, None)
    drive(w, batches(4, count=WARM_UP), lambda _: 50.0)
    assert w.queries["tumbling"].losing == 0.0
    w.engine.limit = None
    for batch in batches(6):
        w.push(*batch)
    assert w.queries["tumbling"].losing == 0.0


@pytest.mark.parametrize("waiting", [0, 1000])
def test_rows_that_wait_in_the_source_are_load(tmp_path: Path, waiting: int):
    """Batches of bounded size take no longer, however far behind they are."""
    w = connected(tmp_path, {"tumbling": QUERIES["tumbling"]}, None)
    drive(w, batches(4, count=20), lambda _: 0.5, waiting=waiting)
    assert (w.queries["tumbling"].losing > 0) == (waiting > 0)


def test_rows_of_a_long_time_are_no_greater_load(tmp_path: Path):
    w, script = connected(tmp_path, {"tumbling": QUERIES["tumbling"]}, None), batches(4, count=40)
    drive(w, script[:20], lambda _: 5.0, since=10.0)
    assert w.queries["tumbling"].losing == 0.0
    drive(w, script[20:], lambda _: 20.0, since=10.0)
    assert 0.4 <= w.queries["tumbling"].losing <= 0.8
    assert w.queries["tumbling"].progress.status == "running"


def test_windows_are_not_given_up_for_nothing(tmp_path: Path):
    """A MAX GAP shorter than the overlap makes no row needless."""
    w = connected(tmp_path, {"sliding": (SLIDING, 2)}, None)
    drive(w, batches(4, count=30), lambda _: 5.0)
    assert w.queries["sliding"].losing == 0.0
    assert w.queries["sliding"].gaps.num_rows == 0


def test_fixed_costs_are_no_reason_to_shed(tmp_path: Path):
    """Epochs take long whatever comes: once that is known, nothing is dropped any more."""
    w = connected(tmp_path, {"tumbling": QUERIES["tumbling"]}, None)
    drive(w, batches(4, count=40), lambda _: 0.02, fixed=3.0)
    assert w.queries["tumbling"].losing == 0.0
    assert w.queries["tumbling"].progress.status == "running"


@pytest.mark.thorough
def test_where_epochs_are_long_anyway_a_burst_is_survived_and_forgotten(tmp_path: Path):
    """Fixed costs of three times the limit: no reason to shed before or after, nor to stay suspended."""
    queries, script = {"tumbling": QUERIES["tumbling"]}, paced(4, [2] * 5 + [90] * 25 + [2] * 60)
    w = connected(tmp_path, queries, None)
    drive(w, script[:5], lambda _: 0.9, fixed=3.0, since=4.0)
    drive(w, script[5:30], lambda _: 40.0, fixed=3.0, since=4.0)
    assert w.streams["s"].progress.shed > 0
    drive(w, script[30:], lambda _: 0.9, fixed=3.0, since=4.0)
    assert w.queries["tumbling"].losing == 0.0
    assert w.queries["tumbling"].progress.status == "running"
    w.end()
    lost = missing(w, "tumbling", 10)
    exact = oracle(TUMBLING, script, {"s": (COLUMNS, OPTIONS)})
    assert Counter(w.rows("tumbling")) == Counter(row for row in exact.elements() if row[0] not in lost)
    assert max(lost) < script[60][0][2]


def test_what_cannot_be_saved_is_suspended_and_comes_back(tmp_path: Path):
    script = batches(4, count=25) + [
        [(k, v, t + 500) for k, v, t in batch] for batch in batches(8, count=40, per=2)
    ]
    w = connected(tmp_path, {"tumbling": (TUMBLING, 1)}, None)
    drive(w, script[:25], lambda _: 6.0)
    assert w.queries["tumbling"].progress.status == "suspended"
    assert w.queries["tumbling"].losing == 1.0
    drive(w, script[25:], lambda _: 0.2)
    assert w.queries["tumbling"].progress.status == "running"
    w.end()
    lost = missing(w, "tumbling", 10)
    assert any(row["suspended"] for row in w.queries["tumbling"].gaps.to_pylist())
    exact = oracle(TUMBLING, script, {"s": (COLUMNS, OPTIONS)})
    assert Counter(w.rows("tumbling")) == Counter(row for row in exact.elements() if row[0] not in lost)
