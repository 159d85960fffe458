"""What queries share is decided for all of them, recorded in their plans, and printed from there."""

from __future__ import annotations

import re
from pathlib import Path

from tests.support.history import STREAM
from tests.support.life import Life

from windrow.algebra.explain import Explanation
from windrow.engine.explain import explain_script
from windrow.language.catalog import Catalog
from windrow.physical.identity import RecordedPlan
from windrow.physical.planner import DROPS, Shared, Sharing

TOPS = "SELECT k, MAX(v) AS top FROM s [RANGE {} SLIDE 10] GROUP BY k"
PAIRS = "SELECT {} FROM s [RANGE 20] x, s [RANGE 20] y WHERE x.k = y.k"


def recorded(w: Life, name: str) -> Sharing:
    """What the last commit knows."""
    return RecordedPlan.from_json(w.engine.last.queries[name].options["plan"]).sharing


def test_the_manifest_has_what_each_query_shares_and_by_which_rules(tmp_path: Path) -> None:
    with Life(tmp_path) as w:
        w.sql(STREAM)
        for name, length in {"short": 20, "long": 40}.items():
            w.sql(f"CREATE QUERY {name} AS {TOPS.format(length)}")
        w.sql("CREATE QUERY land AS SELECT MAX(v) AS m FROM s [LANDMARK SLIDE 10]")
        w.push((1, 5, 1))
        for name in ("short", "long"):
            assert recorded(w, name).queries == 2
            assert {(each.others, each.rules[0]) for each in recorded(w, name).synopses} == {(1, "SS1")}
        assert recorded(w, "land").alone.startswith("a landmark window")
        shown = {row["name"]: row["shares"] for row in w.sql("SHOW QUERIES")[0].to_pylist()}
        assert shown == {name: recorded(w, name).brief for name in shown}
        for name in shown:
            text = str(w.queries[name].explain())
            assert all(f"share   {line}" in text for line in recorded(w, name).lines)
            assert recorded(w, name).lines


def test_one_that_comes_later_joins_what_fits_and_is_counted(tmp_path: Path) -> None:
    with Life(tmp_path) as w:
        w.sql(STREAM)
        w.sql(f"CREATE QUERY one AS {TOPS.format(20)}")
        w.push((1, 5, 1), (2, 3, 14))
        assert recorded(w, "one").queries == 1
        w.sql(f"CREATE QUERY two AS {TOPS.format(20)}")
        assert w.queries["one"].progress.shares == "p1 with 1 by SS1, CS1, CS8; p2 with 1 by SS1, CS2, CS8"
        w.push((1, 5, 15))
        assert recorded(w, "one").queries == recorded(w, "two").queries == 2
        w.sql("DROP QUERY one")
        w.push((1, 5, 16))
        assert recorded(w, "two").queries == 1
        assert {each.others for each in recorded(w, "two").synopses} == {0}


def test_common_subplans_are_recorded_too(tmp_path: Path) -> None:
    with Life(tmp_path) as w:
        w.sql(STREAM)
        w.sql(f"CREATE QUERY one AS {PAIRS.format('x.v')}")
        w.sql(f"CREATE QUERY two AS {PAIRS.format('y.v')}")
        w.push((1, 5, 1), (1, 3, 14))
        found = recorded(w, "one")
        assert Shared("⋈", 1) in found.parts
        assert found == recorded(w, "two")
    with Life(tmp_path) as w:
        w.sql(STREAM)
        w.sql(f"CREATE QUERY one AS {PAIRS.format('x.v')}")
        w.sql(f"CREATE QUERY two AS {PAIRS.format('y.v')}")
        assert recorded(w, "one") == found == w.engine.queries["one"].physical.sharing


def test_sharing_is_no_part_of_what_a_state_is_recognised_by(tmp_path: Path) -> None:
    with Life(tmp_path) as w:
        w.sql(STREAM)
        w.sql(f"CREATE QUERY one AS {TOPS.format(20)}")
        w.push((1, 5, 1))
        plan = w.engine.queries["one"].plan
        w.sql(f"CREATE QUERY two AS {TOPS.format(40)}")
        w.push((1, 5, 2))
        after = w.engine.queries["one"].plan
        assert after.sharing != plan.sharing
        assert after.operators == plan.operators


SCRIPT = {
    "short": TOPS.format(20),
    "long": TOPS.format(60),
    "odd": "SELECT k, MAX(v) AS top, AVG(v) AS m FROM s [RANGE 30 SLIDE 15] WHERE v > 1 GROUP BY k",
    "middle": "SELECT k, MEDIAN(v) AS m FROM s [RANGE 30 SLIDE 15] GROUP BY k",
    "land": "SELECT MAX(v) AS m FROM s [LANDMARK SLIDE 10]",
    "one": PAIRS.format("x.v"),
    "two": PAIRS.format("y.v"),
    "three": "SELECT DISTINCT k FROM s [RANGE 20]",
}


def test_a_script_is_explained_as_its_queries_will_run(tmp_path: Path) -> None:
    queries = [f"CREATE QUERY {name} AS {text}" for name, text in SCRIPT.items()]
    told = {each.name: each for each in explain_script(";\n".join([STREAM, *queries]), Catalog())}
    with Life(tmp_path) as w:
        w.sql(STREAM)
        for each in queries:
            w.sql(each)
        w.push((1, 5, 1))
        for name in SCRIPT:
            assert set(_shared(w.queries[name].explain())) == set(_shared(told[name])), name
            assert told[name].plan == w.queries[name].explain().plan, name
            assert recorded(w, name).lines


def test_a_query_by_itself_is_explained_as_it_will_run(tmp_path: Path) -> None:
    text = f"CREATE QUERY one AS {TOPS.format(20)}"
    (told,) = explain_script(f"{STREAM}; {text}", Catalog())
    with Life(tmp_path) as w:
        w.sql(f"{STREAM}; {text}")
        w.push((1, 5, 1))
        found = w.queries["one"].explain()
        assert (told.plan, told.runs) == (found.plan, found.runs)
        assert any("keeps synopsis" in line for line in told.runs)


def _shared(found: Explanation) -> list[str]:
    """What is shared; who reads whose answers is known only while it runs, and labels are the engine's."""
    lines = [line for line in found.runs if line.startswith("share   ") and "reads the answers" not in line]
    return [re.sub(r"synopsis p\d+", "synopsis", line) for line in lines]


def test_the_manifest_has_where_shedding_drops_and_explain_prints_it(tmp_path: Path) -> None:
    places = {
        "panes": "SELECT k, SUM(v) AS v FROM s [RANGE 20 SLIDE 10] GROUP BY k",
        "workers": "SELECT k, MEDIAN(v) AS v FROM s [RANGE 20 SLIDE 10] GROUP BY k",
    }
    with Life(tmp_path) as w:
        w.sql("CREATE STREAM s (k BIGINT, v BIGINT, t BIGINT) WATTR t ORDERED SHEDDABLE")
        w.sql("CREATE STREAM whole (k BIGINT, v BIGINT, t BIGINT) WATTR t ORDERED")
        w.sql("CREATE QUERY all_of_it AS SELECT SUM(v) AS v FROM whole [RANGE 20 SLIDE 10]")
        for name, text in places.items():
            w.sql(f"CREATE QUERY {name} AS {text} MAX GAP 9")
        w.push((1, 5, 1))
        plans = {name: w.engine.last.queries[name].options["plan"] for name in (*places, "all_of_it")}
        assert "drops" not in plans["all_of_it"]
        for name in places:
            assert RecordedPlan.from_json(plans[name]).drops == w.engine.queries[name].running.drops == name
            assert DROPS[name] in " ".join(str(w.queries[name].explain()).split())
