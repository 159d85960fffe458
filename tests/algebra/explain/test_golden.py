"""Golden plans: each file of `golden/` is a query, a line of dashes, and its physical plan, explained.

`WINDROW_UPDATE_SNAPSHOTS=1` writes the lower halves anew; read them before you keep them.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.algebra.explain.cases import planned

from windrow.engine.explain import described
from windrow.physical import plan_query

FILES = sorted((Path(__file__).parent / "golden").glob("*.txt"))
LINE = "-" * 40


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_query_is_explained_as_its_file_says(file: Path) -> None:
    query, _, expected = file.read_text(encoding="utf-8").partition(f"\n{LINE}\n")
    shown = f"{described(plan_query(planned(query)))}\n"
    if os.environ.get("WINDROW_UPDATE_SNAPSHOTS"):
        file.write_text(f"{query.strip()}\n\n{LINE}\n{shown}", encoding="utf-8")
        return
    assert shown == expected


def test_there_are_golden_files() -> None:
    assert len(FILES) > 15
