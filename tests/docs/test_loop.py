"""The loop that the documents print is the loop that runs."""

from __future__ import annotations

import inspect
from pathlib import Path
from textwrap import dedent

from windrow.engine.loop import Loop

DOCUMENT = Path(__file__).parents[2] / "docs" / "architecture.md"


def test_the_loop_is_printed_as_it_is() -> None:
    _, _, rest = DOCUMENT.read_text(encoding="utf-8").partition(
        "as it stands in `engine/loop.py`:\n\n```text\n"
    )
    printed, _, _ = rest.partition("```")
    lines = inspect.getsource(Loop.run).splitlines()
    first = next(number for number, line in enumerate(lines) if line.strip().startswith("while "))
    assert printed == dedent("\n".join(lines[first : first + len(printed.splitlines())])) + "\n"
