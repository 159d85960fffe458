"""Queries come and go between epochs, and after a restart one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.support.history import BATCHES, COUNTS, STREAM, SUMS, as_rows
from tests.support.life import Life
from tests.support.oracle import oracle

from windrow.engine import engine as core
from windrow.errors import QueryError, StateError
from windrow.state.names import ChunkName

if TYPE_CHECKING:
    from pathlib import Path

SLOW = "SELECT SUM(v) AS total FROM s [RANGE 100 SLIDE 100]"


def test_a_query_declared_last_after_a_restart_still_has_the_rows_that_waited_for_it(tmp_path: Path) -> None:
    with Life(tmp_path / "state") as w:
        w.sql(STREAM)
        w.query("counts", COUNTS)
        w.query("slow", SLOW)
        for batch in BATCHES:
            w.push(*batch)
    with Life(tmp_path / "state") as w:
        w.sql(STREAM)
        w.query("counts", COUNTS)  # each declaration is a commit, which must not let go of what `slow` needs
        w.query("slow", SLOW)
        w.end()
        assert w.rows("slow") == as_rows(oracle(SLOW))


def test_no_promise_is_taken_while_a_query_of_the_state_is_not_declared(tmp_path: Path) -> None:
    with Life(tmp_path / "state") as w:
        w.sql(STREAM)
        w.query("slow", SLOW)
        w.push(*BATCHES[0])
    with Life(tmp_path / "state") as w:
        w.sql(STREAM)
        with pytest.raises(StateError) as refused:
            w.punctuate("s", 1000)
        assert refused.value.code == "query-missing"
        w.query("slow", SLOW)
        w.punctuate("s", 1000)
        assert w.rows("slow") == as_rows(oracle(SLOW, BATCHES[:1]))


def test_the_state_of_a_query_that_is_not_declared_is_kept_until_it_is_dropped(tmp_path: Path) -> None:
    with Life(tmp_path / "state") as w:
        w.sql(STREAM)
        w.query("gone", SUMS)
        w.push(*BATCHES[0])
    with Life(tmp_path / "state") as w:
        w.sql(STREAM)
        with pytest.raises(StateError) as refused:
            w.run(once=True)
        assert refused.value.code == "query-missing"
        assert "`gone`, which is not declared" in refused.value.message
        assert "w.drop('gone')" in str(refused.value.hint)
        w.drop("gone")
        assert w.engine.last.queries == {}
        with pytest.raises(QueryError, match="no source"):  # the next thing that is missing
            w.run(once=True)


def test_a_late_query_answers_only_windows_it_has_seen_whole(tmp_path: Path) -> None:
    with Life(tmp_path / "state") as w:
        w.sql(STREAM)
        w.engine.shares = False
        w.query("early", SUMS)
        for batch in BATCHES[:2]:
            w.push(*batch)
        late = w.query("late", SUMS)
        seen = max(t for batch in BATCHES[:2] for _, _, t in batch)
        assert late.progress.complete_from == seen + 1
        for batch in BATCHES[2:]:
            w.push(*batch)
        w.end()
        whole = [row for row in as_rows(oracle(SUMS)) if row[0] - 20 > seen]
        assert whole
        assert w.rows("late") == whole
        assert w.rows("early") == as_rows(oracle(SUMS))


def test_what_a_late_query_has_not_seen_is_remembered_by_the_state(tmp_path: Path) -> None:
    with Life(tmp_path / "state") as w:
        w.sql(STREAM)
        w.push(*BATCHES[0])
        w.query("late", SUMS)
        known = w.queries["late"].progress.complete_from
    with Life(tmp_path / "state") as w:
        w.sql(STREAM)
        assert w.query("late", SUMS).progress.complete_from == known


def test_after_a_drop_nothing_of_the_query_is_left_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(core, "SWEEP_EVERY", 1)
    monkeypatch.setattr(core, "PATIENCE", 0)
    monkeypatch.setattr(core, "KEEP", 1)
    with Life(tmp_path / "state") as w:
        w.sql(STREAM)
        w.query("kept", COUNTS)
        w.query("gone", SUMS)
        gone = w.engine.queries["gone"].id
        for batch in BATCHES[:3]:
            w.push(*batch)
        w.drop("gone")
        for batch in BATCHES[3:]:
            w.push(*batch)
        named, last = set(w.engine.last.files), w.engine.last.number
        files = {*w.engine.store.list("chunks"), *w.engine.store.list("outbox")}
        assert {ChunkName.parse(name).commit for name in files - named} <= {last}  # gone with the next sweep
        assert gone.encode() not in b"".join(w.engine.store.read(name) for name in named)
        w.end()
        assert w.rows("kept") == as_rows(oracle(COUNTS))


def test_when_the_last_query_is_dropped_its_state_goes_too(tmp_path: Path) -> None:
    with Life(tmp_path / "state") as w:
        w.sql(STREAM)
        w.query("only", SUMS)
        for batch in BATCHES:
            w.push(*batch)
        assert w.engine.last.files
        w.drop("only")
        assert w.engine.last.files == {}


def test_answers_that_wait_for_a_sink_go_with_their_query(tmp_path: Path) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("nobody home")

    with Life(tmp_path / "state") as w:
        w.sql(STREAM)
        w.query("q", SUMS, sink=broken)
        w.push(*BATCHES[1])
        assert w.engine.last.outbox
        w.drop("q")
        assert w.engine.last.outbox == ()


def test_a_query_created_again_begins_anew(tmp_path: Path) -> None:
    with Life(tmp_path / "state") as w:
        w.sql(STREAM)
        w.sql(f"CREATE QUERY q AS {SUMS}")
        w.push(*BATCHES[0])
        w.sql(f"DROP QUERY q; CREATE QUERY q AS {COUNTS}")
        seen = max(t for _, _, t in BATCHES[0])
        for batch in BATCHES[1:]:
            w.push(*batch)
        w.end()
        assert w.rows("q") == [row for row in as_rows(oracle(COUNTS)) if row[0] - 10 > seen]


def test_a_script_that_fails_after_a_drop_drops_nothing(tmp_path: Path) -> None:
    taken = f"files://{tmp_path}/taken"
    (tmp_path / "taken").write_text("a file where a directory should be")
    with Life(tmp_path / "state") as w:
        w.sql(STREAM)
        w.sql(f"CREATE QUERY q AS {SLOW}")
        w.push(*BATCHES[0])
        with pytest.raises(Exception, match="taken"):
            w.sql(f"DROP QUERY q; CREATE QUERY other AS {SUMS} INTO '{taken}'")
        assert list(w.queries) == ["q"]
        for batch in BATCHES[1:]:
            w.push(*batch)
        w.end()
        assert w.rows("q") == as_rows(oracle(SLOW))


def test_answers_of_a_query_that_was_not_dropped_after_all_still_wait(tmp_path: Path) -> None:
    calls = 0

    def reluctant(*_: object) -> None:
        nonlocal calls
        calls += 1
        if calls < 3:
            raise RuntimeError("not yet")

    (tmp_path / "taken").write_text("a file where a directory should be")
    with Life(tmp_path / "state") as w:
        w.sql(STREAM)
        w.query("q", SUMS, sink=reluctant)
        w.push(*BATCHES[1])
        waiting = w.engine.last.outbox
        assert waiting
        with pytest.raises(Exception, match="taken"):
            w.sql(f"DROP QUERY q; CREATE QUERY other AS {SUMS} INTO 'files://{tmp_path}/taken'")
        w.query("another", COUNTS)  # the next commit
        assert w.engine.last.outbox == waiting


def test_a_dropped_stream_may_be_declared_in_another_way(tmp_path: Path) -> None:
    with Life(tmp_path / "state") as w:
        w.sql(STREAM)
        w.push(*BATCHES[0])
        w.sql("DROP STREAM s; CREATE STREAM s (k BIGINT, v BIGINT, t BIGINT) WATTR t ORDERED")
        assert w.streams["s"].progress.accepted == 0
    with Life(tmp_path / "state") as w:
        w.sql("CREATE STREAM s (k BIGINT, v BIGINT, t BIGINT) WATTR t ORDERED")
        w.sql("DROP STREAM s")
        assert w.engine.last.streams == {}
