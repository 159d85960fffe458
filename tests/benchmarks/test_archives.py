"""The archives that are measured: all layouts find the same rows, and write what the theory says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from tests.archive.conftest import MEMORY

from benchmarks.archives import Rows, layouts, run_archive, wave


@pytest.fixture
def folder() -> Iterator[Path]:
    """In memory, where there is such a thing."""
    with TemporaryDirectory(dir=MEMORY, prefix="windrow-") as made:
        yield Path(made)


ROWS = Rows(per_update=60, span=12, keys=10, width=4, seed=5)


@pytest.mark.thorough
def test_all_layouts_find_the_same(folder: Path) -> None:
    for rows in (ROWS, Rows(60, 12, 10, 4, 5, is_fluctuating=True)):
        found = {
            layout.name: run_archive(folder / f"{rows.is_fluctuating}-{layout.name}", layout, rows, 2, 2)
            for layout in layouts(2)
        }
        assert len({times.found for times in found.values()}) == 1
        assert found["R-ins4"].found[1] > 0


def test_names_are_those_of_the_literature() -> None:
    assert [layout.name for layout in layouts(4)] == [
        "R-ins16",
        "R-exp16",
        "Rebuild4x4",
        "Rebuild4x4-chr",
        "D-ins16",
        "NoRebuild4x4",
        "D-ins16-lazy",
        "NoRebuild4x4-lazy",
    ]


def test_a_grid_writes_part_of_what_a_row_of_sub_indices_writes(folder: Path) -> None:
    """By insertion alone, everything is written again; on a grid of 4 × 4, about 7 of 16."""
    wanted = {layout.name: layout for layout in layouts(4)}
    written = {
        name: run_archive(folder / name, wanted[name], ROWS, 6, 1).rows_written
        for name in ("R-ins16", "Rebuild4x4")
    }
    assert written["Rebuild4x4"] / written["R-ins16"] == pytest.approx(7 / 16, rel=0.2)


def test_a_wave_of_equal_lives_writes_one_file(folder: Path) -> None:
    equal = Rows(60, 12, 10, 4, 5, is_equal=True)
    assert run_archive(folder / "a", wave(4), equal, 4, 1).files_written == 1
