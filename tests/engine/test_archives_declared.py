"""Archives as statements and in Python: made, shown, dropped, refused; read by others while they grow."""

from __future__ import annotations

from datetime import UTC, datetime
from statistics import fmean, pvariance
from threading import Thread
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa
import pytest
from tests.engine.archived import values_of
from tests.support.history import STREAM
from tests.support.life import Life

from windrow.archive import read_archive
from windrow.archive.declaration import DoublyPartitioned, Upkeep
from windrow.engine.engine import Arrival
from windrow.errors import QueryError, StateError

if TYPE_CHECKING:
    from pathlib import Path

ARCHIVE = "CREATE ARCHIVE a ON s KEY k KEEP 100"


def folders(w: Life) -> list[str]:
    return list(w.engine.store.nests("archives"))


def test_made_from_python_it_is_the_same(tmp_path: Path) -> None:
    with Life(tmp_path) as w:
        w.sql(STREAM)
        made = w.archive("a", "s", "K", 100, partitions=(3, 2), rebuild=True)
        assert (made.source, made.key, made.keep, made.expires) == ("s", "k", 100, "valid_to")
        w.push((1, 5, 0), (2, 6, 9))
        shown = w.sql("SHOW ARCHIVES")[0].to_pylist()
        assert [(row["name"], row["source"], row["key"], row["rows"]) for row in shown] == [
            ("a", "s", "k", 2)
        ]
    with Life(tmp_path) as w:
        w.sql(f"{STREAM}; CREATE ARCHIVE a ON s KEY k PARTITIONS 3 x 2 REBUILD KEEP 100")
        assert sorted(w.archives["a"].scan()["v"].to_pylist()) == [5, 6]


def test_dropped_it_is_gone_from_the_disk(tmp_path: Path) -> None:
    with Life(tmp_path) as w:
        w.sql(f"{STREAM}; {ARCHIVE}")
        w.push((1, 5, 0))
        view = w.archives["a"]
        w.sql("DROP ARCHIVE a")
        assert not folders(w)
        assert not w.archives
        with pytest.raises(QueryError, match="was dropped"):
            view.scan()
        w.push((1, 5, 9))
        assert not w.engine.last.outbox
        w.sql(ARCHIVE)
        assert not len(w.archives["a"])
        w.drop("a")
        w.sql("DROP STREAM s")


def test_dropped_and_made_again_in_one_script_it_is_a_new_one(tmp_path: Path) -> None:
    with Life(tmp_path) as w:
        w.sql(f"{STREAM}; {ARCHIVE}")
        w.push((1, 5, 0))
        w.sql("DROP ARCHIVE a; CREATE ARCHIVE a ON s KEY v KEEP 7")
        assert len(folders(w)) == 1
        assert not len(w.archives["a"])
        w.push((2, 8, 1))
        assert w.archives["a"].probe(8)["k"].to_pylist() == [2]


def test_if_a_script_fails_archives_are_as_before(tmp_path: Path) -> None:
    with Life(tmp_path) as w:
        w.sql(f"{STREAM}; {ARCHIVE}")
        w.push((1, 5, 0))
        before = folders(w)
        for script in ("CREATE ARCHIVE b ON s KEY k KEEP 9", "DROP ARCHIVE a", f"DROP ARCHIVE a; {ARCHIVE}"):
            with pytest.raises(QueryError):
                w.sql(f"{script}; CREATE STREAM late (t BIGINT) FROM 'nowhere:at-all'")
            assert folders(w) == before
            assert list(w.archives) == ["a"]
        w.push((2, 6, 1))
        assert sorted(w.archives["a"].scan()["k"].to_pylist()) == [1, 2]


@pytest.mark.parametrize(
    ("declared", "what"),
    [
        ("KEY v KEEP 100", "key was k and is now v"),
        ("KEY k KEEP 101", "keep was 100 and is now 101"),
        ("KEY k PARTITIONS 4 x 4 KEEP 100", "partitions was"),
        ("KEY k REBUILD KEEP 100", "rebuild was"),
    ],
)
def test_declared_otherwise_over_the_same_state_it_is_refused(
    tmp_path: Path, declared: str, what: str
) -> None:
    with Life(tmp_path) as w:
        w.sql(f"{STREAM}; {ARCHIVE}")
    with Life(tmp_path) as w:
        w.sql(STREAM)
        with pytest.raises(StateError, match=what) as refused:
            w.sql(f"CREATE ARCHIVE a ON s {declared}")
        assert refused.value.code == "archive-changed"
        assert "w.drop('a')" in str(refused.value.hint)
        w.drop("a")
        w.sql(f"CREATE ARCHIVE a ON s {declared}")
        assert len(folders(w)) == 1


def layout_on_disk(w: Life) -> tuple[int, int, str, bool]:
    """How the files of archive `a` are cut, as its own manifest says."""
    told = read_archive(w.archives["a"].folder).declaration
    cut = told.partitioning
    assert isinstance(cut, DoublyPartitioned)
    return cut.insertions, cut.expiries, cut.allocation, told.upkeep == Upkeep.rebuilding()


def test_altered_it_has_the_same_rows_and_stays_so_under_the_old_declaration(tmp_path: Path) -> None:
    script = f"{STREAM}; CREATE ARCHIVE a ON s KEY k LAYOUT 2 BY 2 KEEP 100"
    with Life(tmp_path) as w:
        w.sql(script)
        w.push((1, 5, 0), (2, 6, 9), (1, 7, 20))
        before = values_of(w.archives["a"].scan())
        w.sql("ALTER ARCHIVE A LAYOUT 4 BY 3 ALLOCATION SHUFFLED")
        assert layout_on_disk(w) == (4, 3, "shuffled", False)
        w.sql("ALTER ARCHIVE a REBUILD")
        assert layout_on_disk(w) == (4, 3, "shuffled", True)
        assert values_of(w.archives["a"].scan()) == before
        assert w.sql("SHOW ARCHIVES")[0]["layout"].to_pylist() == [
            "LAYOUT 4 BY 3 REBUILD ALLOCATION SHUFFLED"
        ]
    altered = script.replace("2 BY 2", "4 BY 3 REBUILD")
    for text in (script, f"{STREAM}; {ARCHIVE}", altered):
        with Life(tmp_path) as w:
            w.sql(text)
            assert layout_on_disk(w) == (4, 3, "shuffled", True)
            assert values_of(w.archives["a"].scan()) == before
    with Life(tmp_path) as w, pytest.raises(StateError, match="partitions was") as refused:
        w.sql(f"{STREAM}; CREATE ARCHIVE a ON s KEY k LAYOUT 5 BY 5 KEEP 100")
    assert "then ALTER ARCHIVE a" in str(refused.value.hint)


def test_if_a_script_fails_the_layout_is_as_before(tmp_path: Path) -> None:
    with Life(tmp_path) as w:
        w.sql(f"{STREAM}; {ARCHIVE}")
        w.push((1, 5, 0), (2, 6, 9))
        with pytest.raises(QueryError):
            w.sql("ALTER ARCHIVE a LAYOUT 4 BY 4; CREATE STREAM late (t BIGINT) FROM 'nowhere:at-all'")
        w.push((3, 6, 12))
        assert layout_on_disk(w) == (2, 2, "round-robin", False)
        assert w.archives["a"].layout == "LAYOUT 2 BY 2 NOREBUILD"


def explained(w: Life, name: str) -> dict[str, str]:
    rows = w.sql(f"EXPLAIN ARCHIVE {name}")[-1].to_pylist()
    return {row["about"]: row["what"] for row in reversed(rows)}


def test_what_is_not_said_is_chosen_for_the_mix_that_is_expected(tmp_path: Path) -> None:
    expected = STREAM.replace("WATTR t", "WATTR t EXPECT 4000 ROWS")
    with Life(tmp_path) as w:
        w.sql(f"{expected}; CREATE QUERY q AS SELECT k FROM s [LIFETIME v]")
        w.sql("CREATE ARCHIVE a ON s KEY k EXPECT 1 PROBE PER UPDATE KEEP 100")
        w.sql("CREATE ARCHIVE b ON q KEY k EXPECT 90 PROBES PER UPDATE KEEP 100")
        w.sql("CREATE ARCHIVE c ON q KEY k KEEP 100")
        found = {name: explained(w, name) for name in "abc"}
        assert [found[name]["layout"] for name in "abc"] == [
            "LAYOUT 1 BY 4 NOREBUILD",
            "LAYOUT 2 BY 2 REBUILD",
            "LAYOUT 2 BY 2 NOREBUILD",
        ]
        assert found["a"]["why"] == "the least work for EXPECT 1 PROBE PER UPDATE and 400,000 rows"
        assert "assumed" in found["b"]["why"]
        assert "nothing is said" in found["c"]["why"]
        assert "touches 3 of 4 sub-indices" in found["b"]["update"]
        assert "LAYOUT 3 BY 3 REBUILD" in found["b"]["instead"]
        w.push((1, 5, 0), (2, 6, 9))
        w.sql("ALTER ARCHIVE c EXPECT 90 PROBES PER UPDATE NOREBUILD")
        assert explained(w, "c")["layout"] == "LAYOUT 2 BY 2 NOREBUILD"
        w.sql("ALTER ARCHIVE c LAYOUT 3 BY 3")
        assert explained(w, "c")["why"] == "as declared"
        assert "work" in explained(w, "c")


@pytest.mark.thorough
def test_by_turns_the_sub_indices_of_a_running_archive_are_more_even(tmp_path: Path) -> None:
    """Theorem 4.1 on the engine: rows come at one rate, and live up to 32 periods, each as often."""
    span = 32
    with Life(tmp_path) as w:
        w.sql(f"{STREAM}; CREATE QUERY q AS SELECT k FROM s [LIFETIME v]")
        for name, allocation in {"turns": "ROUND_ROBIN", "pieces": "CHRONOLOGICAL"}.items():
            w.sql(
                f"CREATE ARCHIVE {name} ON q KEY k LAYOUT 2 BY 2 REBUILD ALLOCATION {allocation}"
                f" KEEP {10 * span}"
            )
        found: dict[str, list[float]] = {"turns": [], "pieces": []}
        for period in range(2 * span):
            w.push(*((life, 10 * life, 10 * period + 1) for life in range(1, span + 1)))
            for name, varied in found.items() if period >= span else ():
                varied.append(pvariance(w.archives[name].sizes))
                told = explained(w, name)["rows"]
                assert told.endswith(f"variance {varied[-1]:,.1f}")
        assert fmean(found["turns"]) < fmean(found["pieces"]) / 2


def test_an_archive_that_is_not_declared_any_more_is_not_left_behind_silently(tmp_path: Path) -> None:
    with Life(tmp_path) as w:
        w.sql(f"{STREAM}; {ARCHIVE}")
    with Life(tmp_path) as w:
        w.sql(STREAM)
        with pytest.raises(StateError, match="holds archive `a`, which is not declared"):
            w.punctuate("s", 5)
        assert len(folders(w)) == 1
        w.drop("a")
        w.punctuate("s", 5)
        assert not folders(w)


def test_what_an_interrupted_statement_left_is_removed(tmp_path: Path) -> None:
    with Life(tmp_path) as w:
        w.sql(f"{STREAM}; {ARCHIVE}")
        w.engine.store.nested("archives", "b-0123").prepare()
    with Life(tmp_path) as w:
        assert [name.partition("-")[0] for name in folders(w)] == ["a"]


def test_two_archives_of_one_stream_each_get_all(tmp_path: Path) -> None:
    with Life(tmp_path) as w:
        w.sql(f"{STREAM}; {ARCHIVE}; CREATE ARCHIVE `b/../c` ON s KEY v KEEP 3200")
        for number in range(5):
            w.push((number, number, number))
        w.engine.deliver()
        w.engine.commit()
        assert [len(archive) for archive in w.archives.values()] == [5, 5]
        assert not w.engine.last.outbox
        assert len(folders(w)) == 2


def test_times_are_times_and_files_are_plain_parquet(tmp_path: Path) -> None:
    script = """
        CREATE STREAM orders (item STRING, valid_to BIGINT, ts TIMESTAMP) WATTR ts ORDERED;
        CREATE QUERY busy AS SELECT item, COUNT(*) AS n FROM orders [RANGE 1 MINUTE SLIDE 1 MINUTE]
            GROUP BY item;
        CREATE ARCHIVE past ON orders KEY item KEEP 1 HOUR;
        CREATE ARCHIVE counts ON busy KEY at KEEP 1 DAY
    """
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    moments = [noon.replace(minute=minute) for minute in (0, 0, 1, 5)]
    rows = pa.table(
        {
            "item": ["a", "b", "a", "c"],
            "valid_to": [1, 2, 3, 4],
            "ts": pa.array(moments, pa.timestamp("us", "UTC")),
        }
    )
    with Life(tmp_path) as w:
        w.sql(script)
        w.engine.epoch([Arrival("orders", rows)])
        past, counts = w.archives["past"], w.archives["counts"]
        assert past.schema.names == ["item", "valid_to", "ts", "valid_to_"]
        assert past.expires == "valid_to_"
        assert past.probe("a", columns=["valid_to_"])["valid_to_"].to_pylist() == [
            moment.replace(hour=13) for moment in moments[::2]
        ]
        first = noon.replace(minute=1)
        assert sorted(counts.probe(first)["item"].to_pylist()) == ["a", "b"]
        assert past.scan(at=noon.replace(hour=13, minute=1)).num_rows == 1
        w.engine.deliver()
        seen = pl.scan_parquet(past.files).filter(pl.col("valid_to_").dt.epoch("us") > past.updated)
        assert sorted(seen.collect()["item"]) == ["a", "a", "b", "c"]
        assert read_archive(past.folder).find("c")["valid_to"].to_pylist() == [4]


def test_readers_see_one_commit_while_rows_come(tmp_path: Path) -> None:
    """Each batch has one number; all that is seen are whole batches, the latest at least what was there."""
    with Life(tmp_path) as w:
        w.sql(f"{STREAM}; CREATE ARCHIVE a ON s KEY k PARTITIONS 2 x 2 KEEP 1600")
        failures: list[Any] = []
        done = False

        def read() -> None:
            last = 0
            try:
                while not done:
                    numbers = values_of(w.archives["a"].scan(columns=["v"]))
                    assert all(count == 3 for count in numbers.values()), numbers
                    assert len(numbers) >= last, "went back"
                    last = len(numbers)
            except BaseException as error:  # noqa: BLE001  told by the test, not by a thread
                failures.append(error)

        reader = Thread(target=read)
        reader.start()
        for number in range(40):
            w.push((1, number, number), (2, number, number), (3, number, number))
            if number % 6 == 0:
                w.sql(f"ALTER ARCHIVE a LAYOUT {1 + number % 4} BY 3")
        done = True
        reader.join()
        assert not failures
        assert len(w.archives["a"]) == 120


JOINED = "CREATE QUERY j AS SELECT a.k, a.v, b.v AS w FROM s [RANGE 12] a, s [RANGE 5] b WHERE a.k = b.k"
OF_JOIN = "CREATE ARCHIVE of_j ON j KEY k KEEP 100"


def test_a_join_is_archived_from_its_first_row_and_after_a_restart(tmp_path: Path) -> None:
    with Life(tmp_path) as w:
        w.sql(f"{STREAM}; {JOINED}")
        w.sql(OF_JOIN)  # no rows came yet
        w.push((1, 5, 0))
    with Life(tmp_path) as w:
        w.sql(f"{STREAM}; {JOINED}; {OF_JOIN}")
        w.push((1, 6, 2), (9, 9, 7))
        found = values_of(w.archives["of_j"].scan(), "at", "valid_to")
    assert found == {(1, 5, 5): 1, (1, 5, 6): 1, (1, 6, 5): 1, (1, 6, 6): 1}


def test_the_ends_of_a_running_join_are_not_known_any_more(tmp_path: Path) -> None:
    with Life(tmp_path) as w:
        w.sql(f"{STREAM}; {JOINED}")
        w.push((1, 5, 0))
        with pytest.raises(QueryError, match="declare the archive together with the query") as error:
            w.sql(OF_JOIN)
        assert error.value.code == "archive-ends"
        w.sql(f"DROP QUERY j; {JOINED}; {OF_JOIN}")
        w.push((1, 6, 30), (1, 7, 31), (9, 9, 36))
        assert len(w.archives["of_j"].scan()) == 4
