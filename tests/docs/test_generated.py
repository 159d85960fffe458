"""Tables in the documents that come from the code are what the code says now.

`WINDROW_UPDATE_SNAPSHOTS=1 make test` writes them anew.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tools import error_table, function_tables, implementation_table, pattern_table, window_picture

ROOT = Path(__file__).parents[2]
GENERATED = {
    "pattern-table": (ROOT / "docs" / "semantics.md", pattern_table.markdown),
    "implementation-table": (ROOT / "docs" / "semantics.md", implementation_table.markdown),
    "errors": (ROOT / "docs" / "errors.md", error_table.errors_markdown),
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


@pytest.mark.parametrize("theme", window_picture.COLOURS)
def test_the_picture_of_a_window_is_what_the_oracle_answers(theme: str) -> None:
    picture = ROOT / "docs" / "images" / f"window-{theme}.svg"
    if os.environ.get("WINDROW_UPDATE_SNAPSHOTS"):
        picture.write_text(window_picture.svg(theme), encoding="utf-8")
    assert picture.read_text(encoding="utf-8") == window_picture.svg(theme)


def test_every_page_is_in_the_index() -> None:
    docs = ROOT / "docs"
    pages = {str(page.relative_to(docs)) for page in docs.rglob("*.md")} - {"index.md"}
    named = [(docs / index).read_text(encoding="utf-8") for index in ("index.md", "benchmarks.md")]
    found = {name for text in named for name in re.findall(r"\]\(([\w/-]+\.md)", text)}
    assert pages == found
