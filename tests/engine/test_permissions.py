"""Who may read what: the state directory is for its owner alone, sinks follow the umask."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pytest
from tests.support.history import BATCHES, COLUMNS, SUMS
from tests.support.life import Life

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def permissive() -> Iterator[None]:
    """A umask that forbids nothing."""
    before = os.umask(0)
    yield
    os.umask(before)


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.usefixtures("permissive")
def test_nobody_else_reads_the_state(tmp_path: Path) -> None:
    state, out = tmp_path / "new" / "state", tmp_path / "out"
    with Life(state) as w:
        w.sql(
            f"CREATE STREAM s ({COLUMNS}) WATTR t SLACK 3 LATE KEEP KEEP 1000;"
            f"CREATE QUERY q AS {SUMS} INTO 'files://{out}'; CREATE ARCHIVE a ON s KEY k KEEP 1000"
        )
        for batch in BATCHES:
            w.push(*batch)
        w.end()
    found = [state, *state.rglob("*")]
    kinds = {path.parent.name for path in found if path.is_file()}
    assert kinds >= {"commits", "chunks", "outbox", "owners"}
    assert any(path.suffix == ".parquet" and "archives" not in path.parts for path in found)
    assert any(path.suffix == ".parquet" and "archives" in path.parts for path in found)
    for path in found:
        assert _mode(path) == (0o700 if path.is_dir() else 0o600), path
    assert _mode(state.parent) == 0o777
    written = list(out.iterdir())
    assert written
    assert {_mode(path) for path in written} == {0o666}


@pytest.mark.usefixtures("permissive")
def test_a_directory_of_the_user_keeps_its_mode(tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir(0o755)
    Life(state).close()
    assert _mode(state) == 0o755
    assert {_mode(path) for path in state.iterdir()} == {0o700}
