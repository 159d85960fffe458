"""House rules, counted: files, lines, folders, importers, names.

    python -m tools.house [--list]     one line for each figure; with --list what is behind it

Imports under TYPE_CHECKING and inside functions count. A module that only its package's registry imports has
one importer, too: one file for each rule, sink, command or family of functions is meant to.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "windrow"
#: nouns of the field that end like gerunds
NOUNS = {"hashing", "numbering", "lowering", "partitioning", "sharing", "shedding", "testing", "listing"}
#: packages that are meant to have a file for each aggregate, or function family
LARGE = {"windrow.algebra.aggregates", "windrow.algebra.functions"}


def modules() -> dict[str, ast.Module]:
    """All modules of the package, by their names."""
    found = {}
    for path in sorted((ROOT / "src" / PACKAGE).rglob("*.py")):
        name = ".".join(path.relative_to(ROOT / "src").with_suffix("").parts)
        found[name.removesuffix(".__init__")] = ast.parse(path.read_text(encoding="utf-8"))
    return found


def importers(trees: dict[str, ast.Module]) -> dict[str, set[str]]:
    """Who imports each module."""
    found: dict[str, set[str]] = {name: set() for name in trees}
    for name, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module in trees:
                for alias in node.names:
                    whole = f"{node.module}.{alias.name}"
                    found[whole if whole in trees else node.module].add(name)
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    found.get(alias.name, set()).add(name)
    return found


def import_lines(tree: ast.Module) -> int:
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    return len({line for node in nodes for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)})


def lines_of(name: str) -> int:
    path = ROOT / "src" / Path(*name.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return len(file.read_text(encoding="utf-8").splitlines())


def main() -> None:
    """Print the figures."""
    trees = modules()
    lines = sum(lines_of(name) for name in trees)
    folders: defaultdict[str, list[str]] = defaultdict(list)
    classes: defaultdict[str, list[str]] = defaultdict(list)
    for name, tree in trees.items():
        if not (ROOT / "src" / Path(*name.split("."))).is_dir():
            folders[name.rpartition(".")[0]].append(name)
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                classes[node.name].append(name)
    largest = max((folder for folder in folders if folder not in LARGE), key=lambda each: len(folders[each]))
    single = [name for name, users in importers(trees).items() if len(users) == 1]
    gerunds = [name for name in trees if name.endswith("ing") and re.split(r"[._]", name)[-1] not in NOUNS]
    double = {name: homes for name, homes in classes.items() if len(homes) > 1}
    share = sum(import_lines(tree) for tree in trees.values()) / lines
    print(f"files                          {len(trees)}")
    print(f"lines                          {lines}")
    print(f"largest folder                 {largest}, {len(folders[largest])} modules")
    print(f"modules with one importer      {len(single)}")
    print(f"share of import lines          {share:.1%}")
    print(f"modules called by gerunds      {len(gerunds)}")
    print(f"public classes of equal names  {len(double)}")
    if "--list" in sys.argv:
        print(*(f"one importer: {name}" for name in single), sep="\n")
        print(*(f"gerund: {name}" for name in gerunds), sep="\n")
        print(*(f"class {name}: {', '.join(homes)}" for name, homes in sorted(double.items())), sep="\n")


if __name__ == "__main__":
    main()
