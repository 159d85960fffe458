"""Which state a sink's rows are from: not where the directory lies, but which one it is."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pytest
from deltalake import DeltaTable
from tests.support.history import BATCHES, STREAM, SUMS, as_rows, rows_of
from tests.support.life import Life
from tests.support.oracle import oracle


def declare(w: Life, table: Path) -> None:
    w.sql(STREAM)
    w.sql(f"CREATE QUERY q AS {SUMS} INTO 'delta://{table}'")


def test_a_moved_state_directory_delivers_nothing_twice(tmp_path: Path) -> None:
    w = Life(tmp_path / "here")
    declare(w, tmp_path / "out")
    for batch in BATCHES[:2]:
        w.push(*batch)
    w.vanish()  # what was delivered is not written down
    shutil.move(tmp_path / "here", tmp_path / "there")
    with Life(tmp_path / "there") as w:
        declare(w, tmp_path / "out")
        for batch in BATCHES[2:]:
            w.push(*batch)
        w.end()
    assert Counter(rows_of(DeltaTable(str(tmp_path / "out")).to_pyarrow_table())) == oracle(SUMS)


def test_a_new_state_at_an_old_place_is_not_taken_for_the_old_one(tmp_path: Path) -> None:
    for _ in range(2):
        with Life(tmp_path / "state") as w:
            declare(w, tmp_path / "out")
            for batch in BATCHES:
                w.push(*batch)
            w.end()
        shutil.rmtree(tmp_path / "state")
    twice = oracle(SUMS) + oracle(SUMS)
    assert Counter(rows_of(DeltaTable(str(tmp_path / "out")).to_pyarrow_table())) == twice


def test_a_relative_state_directory_is_where_it_was_when_the_engine_was_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with Life(Path("state")) as w:
        w.sql(STREAM)
        w.query("q", SUMS)
        (tmp_path / "elsewhere").mkdir()
        monkeypatch.chdir(tmp_path / "elsewhere")
        for batch in BATCHES:
            w.push(*batch)
        w.end()
        assert w.rows("q") == as_rows(oracle(SUMS))
    assert list((tmp_path / "elsewhere").iterdir()) == []
