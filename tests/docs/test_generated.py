"""Tables in the documents that come from the code are what the code says now.

`WINDROW_UPDATE_SNAPSHOTS=1 make test` writes them anew.
"""

from __future__ import annotations

import inspect
import os
import re
from pathlib import Path
from typing import Any

import pytest

import windrow
from tools import error_table, function_tables, implementation_table, pattern_table, pictures, reference
from windrow import functions, testing

ROOT = Path(__file__).parents[2]
GENERATED = {
    "pattern-table": (ROOT / "docs" / "semantics.md", pattern_table.markdown),
    "implementation-table": (ROOT / "docs" / "semantics.md", implementation_table.markdown),
    "python-api": (ROOT / "docs" / "api.md", reference.python_markdown),
    "commands": (ROOT / "docs" / "cli.md", reference.commands_markdown),
    "shell": (ROOT / "docs" / "cli.md", reference.shell_markdown),
    "metrics": (ROOT / "docs" / "server.md", reference.metrics_markdown),
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


def test_the_drawings_are_what_the_oracle_answers() -> None:
    folder = ROOT / "docs" / "images"
    drawn = pictures.files()
    if os.environ.get("WINDROW_UPDATE_SNAPSHOTS"):
        for name, picture in drawn.items():
            (folder / name).write_text(picture, encoding="utf-8")
    assert drawn == {file.name: file.read_text(encoding="utf-8") for file in folder.glob("*.svg")}


def test_every_page_is_in_the_index() -> None:
    docs = ROOT / "docs"
    pages = {str(page.relative_to(docs)) for page in docs.rglob("*.md")} - {"index.md"}
    named = [(docs / index).read_text(encoding="utf-8") for index in ("index.md", "benchmarks.md")]
    found = {name for text in named for name in re.findall(r"\]\(([\w/-]+\.md)", text)}
    assert pages == found


def anchors(page: Path) -> set[str]:
    """What a link may name in a page: its headings, as Markdown's table of contents writes them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    titles = re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE)
    plain = [re.sub(r"[^\w\s-]", "", title.replace("`", "")).strip().lower() for title in titles]
    return {re.sub(r"[-\s]+", "-", title) for title in plain}


def test_every_link_leads_somewhere() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    seen = 0
    for page in pages:
        text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
        for target in re.findall(r"\]\((?!https?:)([^)\s]+)\)", text):
            path, _, anchor = target.partition("#")
            found = (page.parent / path).resolve() if path else page
            assert found.exists(), f"{page.name}: {target}"
            if anchor and found.suffix == ".md":
                assert anchor in anchors(found), f"{page.name}: {target}"
            seen += 1
    assert seen > 200


def public_calls() -> list[tuple[str, Any]]:
    """What the reference of Python describes: functions, classes, and their methods and properties."""
    names = [each for chapter in reference.API.values() for each in chapter]
    inner = [
        (f"{kind.__name__}.{name}", member.fget if isinstance(member, property) else member)
        for kind in names
        if isinstance(kind, type)
        for name, member in reference.members(kind)
    ]
    return [*((each.__name__, each) for each in names), *inner]


def test_all_that_is_public_is_in_the_reference_of_python() -> None:
    described = {each.__name__ for chapter in reference.API.values() for each in chapter}
    assert {*windrow.__all__, *testing.__all__} <= described


def test_all_that_is_public_has_a_docstring_and_types() -> None:
    calls = public_calls()
    assert len(calls) > 100
    for name, call in calls:
        assert (call.__doc__ or "").strip(), name
        if inspect.isfunction(call):
            given = [each for each in inspect.signature(call).parameters if each != "self"]
            assert {*given, "return"} <= {*call.__annotations__}, name


def test_every_function_of_the_language_is_a_described_function_of_python() -> None:
    for name in dir(functions):
        assert (getattr(functions, name).__doc__ or "").strip(), name
