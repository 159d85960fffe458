"""Which state a sink's rows are from: not where the directory lies, but which one it is."""

from __future__ import annotations

import shutil
from collections import Counter
from typing import TYPE_CHECKING

from deltalake import DeltaTable
from tests.engine.driven import STREAM, Driven
from tests.engine.world import BATCHES, SUMS, oracle, rows_of

if TYPE_CHECKING:
    from pathlib import Path


def declare(w: Driven, table: Path) -> None:
    w.sql(STREAM)
    w.sql(f"CREATE QUERY q AS {SUMS} INTO 'delta://{table}'")


def test_a_moved_state_directory_delivers_nothing_twice(tmp_path: Path) -> None:
    w = Driven(tmp_path / "here")
    declare(w, tmp_path / "out")
    for batch in BATCHES[:2]:
        w.push(*batch)
    w.vanish()  # what was delivered is not written down
    shutil.move(tmp_path / "here", tmp_path / "there")
    with Driven(tmp_path / "there") as w:
        declare(w, tmp_path / "out")
        for batch in BATCHES[2:]:
            w.push(*batch)
        w.end()
    assert Counter(rows_of(DeltaTable(str(tmp_path / "out")).to_pyarrow_table())) == oracle(SUMS)


def test_a_new_state_at_an_old_place_is_not_taken_for_the_old_one(tmp_path: Path) -> None:
    for _ in range(2):
        with Driven(tmp_path / "state") as w:
            declare(w, tmp_path / "out")
            for batch in BATCHES:
                w.push(*batch)
            w.end()
        shutil.rmtree(tmp_path / "state")
    twice = oracle(SUMS) + oracle(SUMS)
    assert Counter(rows_of(DeltaTable(str(tmp_path / "out")).to_pyarrow_table())) == twice
