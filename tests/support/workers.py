"""Which worker runs which tests: those of a file stay together, and so do all tests that use Spark.

A Spark session takes seconds to start and a gigabyte to keep: one of the workers has one, for all tests that
ask for it. What else is in their files any worker runs.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

from xdist.scheduler import LoadFileScheduling

ROOT = Path(__file__).parents[2]
_MARK = "pytest.mark.jvm"


class OneSpark(LoadFileScheduling):
    """As `--dist loadfile`, with all tests that use Spark in one place."""

    def _split_scope(self, nodeid: str) -> str:
        file, _, test = nodeid.partition("::")
        return "spark" if uses_spark(ROOT / file, test) else file


def uses_spark(file: Path, test: str) -> bool:
    """Whether a test asks for Spark: by the fixture, by another that asks for it, or by its mark.

    >>> here = ROOT / "tests" / "spark" / "test_agreement.py"
    >>> uses_spark(here, "test_every_policy_on_spark[Slack]")
    True
    >>> uses_spark(here, "test_every_aggregate_over_many_kinds_of_windows[sum]")
    False
    """
    names = _asking(file)
    return names is None or test.partition("[")[0] in names


@cache
def _asking(file: Path) -> frozenset[str] | None:
    """The functions of a test file that ask for Spark; None if a mark may be that of any."""
    if not file.name.startswith("test_"):
        return frozenset()  # the examples of a module
    text = file.read_text(encoding="utf-8")
    if "spark" not in text and _MARK not in text:
        return frozenset()
    functions = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    marked = {each.name for each in functions if any(_MARK in ast.unparse(by) for by in each.decorator_list)}
    if text.count(_MARK) > len(marked):
        return None
    found = {"spark", *marked}
    while more := {each.name for each in functions if found & _arguments(each)} - found:
        found |= more
    return frozenset(found)


def _arguments(function: ast.FunctionDef) -> set[str]:
    given = function.args
    return {each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)}
