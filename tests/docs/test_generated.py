"""Tables in the documents that come from the code are what the code says now.

`WINDROW_UPDATE_SNAPSHOTS=1 make test` writes them anew.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tools import function_tables, implementation_table, pattern_table

ROOT = Path(__file__).parents[2]
GENERATED = {
    "pattern-table": (ROOT / "docs" / "semantics.md", pattern_table.markdown),
    "implementation-table": (ROOT / "docs" / "semantics.md", implementation_table.markdown),
    "functions": (ROOT / "docs" / "language.md", function_tables.functions_markdown),
    "aggregates": (ROOT / "docs" / "language.md", function_tables.aggregates_markdown),
}


@pytest.mark.parametrize("name", GENERATED)
def test_a_generated_table_is_up_to_date(name: str) -> None:
    page, generate = GENERATED[name]
    text = page.read_text(encoding="utf-8")
    fresh = re.sub(
        rf"(<!-- generated: {name} -->\n).*?(<!-- end -->)",
        lambda match: f"{match[1]}{generate()}\n{match[2]}",
        text,
        flags=re.DOTALL,
    )
    if os.environ.get("WINDROW_UPDATE_SNAPSHOTS"):
        page.write_text(fresh, encoding="utf-8")
    assert f"<!-- generated: {name} -->" in text
    assert fresh == page.read_text(encoding="utf-8")
