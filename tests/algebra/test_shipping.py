"""Nothing that is read from a disk or a store can run: where pickles are read, and who sends them there."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import windrow

ROOT = Path(windrow.__file__).parent
#: modules that make code, or objects of any class, of bytes
LOADERS = {
    "pickle",
    "_pickle",
    "cPickle",
    "cloudpickle",
    "dill",
    "joblib",
    "marshal",
    "shelve",
    "yaml",
    "jsonpickle",
}
#: functions that run text
RUNNERS = {"eval", "exec", "compile", "__import__", "literal_eval"}
#: who ships between the processes of a job, and what
SHIPPERS = {
    "engine/sharing/common_subplans.py": "plans for the next job, which it makes itself",
    "kernels/shared/kernel.py": "plans that came with the task",
    "execution/bundle.py": "plans that came with the task",
    "execution/reports.py": "rows that the tasks of a job give to its driver, or to each other",
}


@cache
def modules() -> list[tuple[str, ast.Module]]:
    paths = sorted(ROOT.rglob("*.py"))
    return [(str(path.relative_to(ROOT)), ast.parse(path.read_text(encoding="utf-8"))) for path in paths]


def imports(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def calls(tree: ast.Module) -> Iterator[ast.Call]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.Call))


@pytest.mark.thorough
def test_pickles_are_read_in_one_place() -> None:
    found = [
        (path, name)
        for path, tree in modules()
        for name in imports(tree)
        if not LOADERS.isdisjoint(name.split("."))
    ]
    assert found == [("algebra/shipments.py", "pickle")]


def test_only_jobs_ship() -> None:
    found = {path for path, tree in modules() if "windrow.algebra.shipments" in imports(tree)}
    assert found == {*SHIPPERS}


def test_no_text_is_run_and_no_array_of_objects_is_loaded() -> None:
    found = []
    for path, tree in modules():
        for call in calls(tree):
            called = call.func
            name = called.id if isinstance(called, ast.Name) else getattr(called, "attr", "")
            of_re = (
                isinstance(called, ast.Attribute)
                and isinstance(called.value, ast.Name)
                and called.value.id == "re"
            )
            # `column.list.eval` of polars takes an expression, never a text
            of_lists = isinstance(called, ast.Attribute) and getattr(called.value, "attr", "") == "list"
            if (name in RUNNERS and not of_re and not of_lists) or any(
                each.arg == "allow_pickle" for each in call.keywords
            ):
                found.append((path, call.lineno, name))
    assert found == []
