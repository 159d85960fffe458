"""What of `src/windrow` only tests and benchmarks reach: modules, public names, public methods.

    python tools/unreached.py          0: nothing; 1: a list of what is not reached
    python tools/unreached.py --all    private names too

The source is read, not run. It starts at what users start from (`ROOTS`, `HANDLES`, imports in documents) and
follows names: what a reached function, class or statement of a module mentions is reached, through imports,
those inside functions too. A method is reached if its class is, and some reached code or document mentions
its name as an attribute, a keyword or a string; so are names that Python calls by itself (`__len__`), and all
methods of a class with a base of another package, which may call them. It errs on the side of reached: two
methods of one name keep each other alive.

What has to stay although nothing reaches it stands in `ALLOWED`, with the reason.
"""

from __future__ import annotations

import argparse
import ast
import builtins
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src"
PACKAGE = "windrow"

#: where users begin: `import windrow`, the command line, the test kit
ROOTS = ("windrow", "windrow.__main__", "windrow.testing")
#: classes of what users are given: they may call every public method
HANDLES = (
    "windrow.session.Windrow",
    "windrow.engine.views.Query",
    "windrow.engine.adhoc.select.Asked",
    "windrow.testing.harness.Harness",
)
#: documents whose code shows users what they may call
DOCUMENTS = ("README.md", "docs")

#: "module.name" or "module.Class.method": why it stays
ALLOWED: dict[str, str] = {
    **dict.fromkeys(
        (),
        "what a plan costs, for the planner that is to choose by it",
    ),
    **dict.fromkeys(
        (
            "windrow.language.compile.parse_columns",
            "windrow.language.compile.parse_quantity",
            "windrow.language.compile.parse_stream_options",
        ),
        "parts of statements by themselves: where random text reaches deepest",
    ),
}

_WORD = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
_CODE = re.compile(r"```.*?```|`[^`\n]+`", re.DOTALL)
_IMPORT = re.compile(rf"from ({PACKAGE}[\w.]*) import ([\w, ]+)")
_LONGEST_NAME = 80
#: decorators that leave a definition as it is; with any other it may be registered somewhere
_PLAIN = {"dataclass", "cache", "lru_cache", "contextmanager", "runtime_checkable", "total_ordering", "roomy"}
#: packages whose classes call no methods of those that derive from them
_PASSIVE = {"typing", "abc", "collections", "enum", "dataclasses"}


@dataclass
class Definition:
    """A function, a class or a constant of a module, or (name "") the rest of its statements."""

    name: str
    line: int = 0
    nodes: list[ast.AST] = field(default_factory=list)
    bases: list[ast.expr] = field(default_factory=list)
    methods: dict[str, list[ast.FunctionDef | ast.AsyncFunctionDef]] = field(default_factory=dict)


@dataclass
class Module:
    """A module's definitions, and what its names stand for."""

    path: Path
    definitions: dict[str, Definition]
    #: name in the module, or in one of its functions -> dotted names that it is imported from
    imports: dict[str, set[str]]
    #: whether `python -m` runs it
    is_run: bool


# ------------------------------------------------------------ reading


def read_modules(source: Path = SOURCE, package: str = PACKAGE) -> dict[str, Module]:
    """Every module of the package, by its dotted name."""
    found = {}
    for path in sorted((source / package).rglob("*.py")):
        parts = path.relative_to(source).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = _read(name, path)
    return found


def _read(name: str, path: Path) -> Module:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    rest = Definition("")
    definitions, is_run = {"": rest}, False
    for statement in _statements(tree.body):
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            _define(definitions, statement)
            if not all(_is_plain(each) for each in statement.decorator_list):
                rest.nodes.append(ast.Name(statement.name))
        elif names := _assigned(statement):
            for each in names:
                definitions.setdefault(each, Definition(each, statement.lineno)).nodes.append(statement)
        elif not isinstance(statement, ast.Import | ast.ImportFrom):
            is_run |= isinstance(statement, ast.If) and "__main__" in ast.dump(statement.test)
            rest.nodes.append(statement)
    return Module(path, definitions, _imports(tree, name, path), is_run)


def _statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a module, with those that only type checkers read."""
    for statement in body:
        if isinstance(statement, ast.If) and "TYPE_CHECKING" in ast.dump(statement.test):
            yield from _statements(statement.body)
            yield from _statements(statement.orelse)
        else:
            yield statement


def _define(
    definitions: dict[str, Definition], node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
) -> None:
    made = definitions.setdefault(node.name, Definition(node.name, node.lineno))
    if not isinstance(node, ast.ClassDef):
        made.nodes.append(node)
        return
    made.bases += node.bases
    made.nodes += [*node.bases, *node.keywords, *node.decorator_list]
    for each in node.body:
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
            made.methods.setdefault(each.name, []).append(each)
        else:
            made.nodes.append(each)


def _is_plain(decorator: ast.expr) -> bool:
    while isinstance(decorator, ast.Call):
        decorator = decorator.func
    name = decorator.attr if isinstance(decorator, ast.Attribute) else getattr(decorator, "id", "")
    return name in _PLAIN


def _assigned(statement: ast.stmt) -> list[str]:
    """The names of an assignment to nothing but names: it is reached by them."""
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, ast.AnnAssign):
        targets = [statement.target]
    else:
        return []
    flat = [
        each for target in targets for each in (target.elts if isinstance(target, ast.Tuple) else [target])
    ]
    names = [each.id for each in flat if isinstance(each, ast.Name)]
    return names if len(names) == len(flat) else []


def _imports(tree: ast.Module, name: str, path: Path) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for each in node.names:
                bound = each.asname or each.name.partition(".")[0]
                found.setdefault(bound, set()).add(each.name if each.asname else bound)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = name.split(".")
                parts = parts[: len(parts) - node.level + (path.name == "__init__.py")]
                base = ".".join([*parts, *([base] if base else [])])
            for each in node.names:
                found.setdefault(each.asname or each.name, set()).add(f"{base}.{each.name}")
    return found


def documents(paths: Iterable[str] = DOCUMENTS) -> Iterator[str]:
    """The code of the documents."""
    for each in paths:
        path = ROOT / each
        for page in [path] if path.is_file() else sorted(path.rglob("*.md")):
            yield from _CODE.findall(page.read_text(encoding="utf-8"))


# ------------------------------------------------------------ following names


class Reach:
    """What is reached from the roots."""

    def __init__(self, modules: dict[str, Module]) -> None:
        self._all = modules
        self.modules: set[str] = set()
        self.names: set[tuple[str, str]] = set()
        self.methods: set[tuple[str, str, str]] = set()
        #: attributes, keywords and strings that something mentions
        self._words: set[str] = set()
        #: modules that are used as values
        self._values: set[str] = set()
        self._waiting: list[tuple[str, str]] = []

    def follow(self, roots: Iterable[str], handles: Iterable[str], code: Iterable[str]) -> None:
        """Everything that these lead to."""
        for root in roots:
            self._enter(root)
            self._waiting += [(root, name) for name in self._all[root].definitions]
            for targets in self._all[root].imports.values():
                for target in targets:
                    self._hand_out(target)
        for handle in handles:
            self._hand_out(handle)
        for text in code:
            self._words.update(_WORD.findall(text))
            for module, names in _IMPORT.findall(text):
                for name in names.split(","):
                    self._mention_dotted(f"{module}.{name.strip()}")
        while self._waiting or self._grow():
            while self._waiting:
                self._reach(*self._waiting.pop())

    def _hand_out(self, dotted: str) -> None:
        """Something that users get: all its methods are theirs to call."""
        self._mention_dotted(dotted)
        if home := self._home(dotted):
            self._words.update(self._all[home[0]].definitions[home[1]].methods)

    def _enter(self, module: str) -> None:
        """A module, and the packages it is in: their statements run."""
        parts = module.split(".")
        for count in range(1, len(parts) + 1):
            each = ".".join(parts[:count])
            if each in self._all and each not in self.modules:
                self.modules.add(each)
                known = self._all[each].definitions
                self._waiting += [(each, name) for name in ("", "__getattr__", "__dir__") if name in known]

    def _reach(self, module: str, name: str) -> None:
        if (module, name) not in self.names:
            self.names.add((module, name))
            self._enter(module)
            for node in self._all[module].definitions[name].nodes:
                self._mention(module, node)

    def _grow(self) -> bool:
        """What is reached because its name is mentioned by now; whether there was anything new."""
        for module in self._values:
            known = self._all[module].definitions
            self._waiting += [
                (module, name) for name in known if name in self._words and (module, name) not in self.names
            ]
        grown = bool(self._waiting)
        for module, name in list(self.names):
            for method, nodes in self._all[module].definitions[name].methods.items():
                key = (module, name, method)
                if key not in self.methods and self._is_called(module, name, method):
                    grown = True
                    self.methods.add(key)
                    for node in nodes:
                        self._mention(module, node)
        return grown

    def _is_called(self, module: str, name: str, method: str) -> bool:
        if method.startswith("__") or method in self._words:
            return True
        decorators = [
            each
            for node in self._all[module].definitions[name].methods[method]
            for each in node.decorator_list
        ]
        registered = any(isinstance(each, ast.Attribute) and each.attr == "register" for each in decorators)
        return registered or self._has_active_base(module, name, set())

    def _has_active_base(self, module: str, name: str, seen: set[tuple[str, str]]) -> bool:
        """Whether a class derives from one of another package, which may call any of its methods."""
        seen.add((module, name))
        for base in self._all[module].definitions[name].bases:
            for target in self._targets(module, base):
                home = self._home(target)
                if home is None and target.partition(".")[0] not in _PASSIVE:
                    return True
                if home is not None and home not in seen and self._has_active_base(*home, seen):
                    return True
        return False

    def _mention(self, module: str, node: ast.AST) -> None:
        """All that a piece of code mentions."""
        for each in ast.walk(node):
            match each:
                case ast.Attribute(attr=word) | ast.keyword(arg=str(word)):
                    self._words.add(word)
                case ast.MatchClass(kwd_attrs=words):
                    self._words.update(words)
                case ast.Constant(value=str(text)) if len(text) < _LONGEST_NAME:
                    self._mention_string(module, text)
                case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                    for alias in aliases:
                        for target in self._all[module].imports.get(alias.asname or alias.name, ()):
                            self._enter(target)
            if isinstance(each, ast.Name | ast.Attribute):
                for target in self._targets(module, each):
                    self._mention_dotted(target)

    def _mention_string(self, module: str, text: str) -> None:
        """A string may be an annotation, a name of the module, or a module that is imported later."""
        words = _WORD.findall(text)
        self._words.update(words)
        for word in words:
            if word in self._all[module].definitions:
                self._waiting.append((module, word))
            for target in self._all[module].imports.get(word, ()):
                self._mention_dotted(target)
        if text in self._all:
            self._values.add(text)
            self._enter(text)

    def _mention_dotted(self, dotted: str) -> None:
        self._enter(dotted.rpartition(".")[0])
        if home := self._home(dotted):
            self._waiting.append(home)
        elif dotted in self._all:
            self._enter(dotted)
            self._values.add(dotted)

    def _targets(self, module: str, node: ast.AST) -> list[str]:
        """The dotted names that an expression may stand for."""
        attributes: list[str] = []
        while isinstance(node, ast.Attribute | ast.Subscript):
            if isinstance(node, ast.Attribute):
                attributes.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return []
        tail = "".join(f".{each}" for each in reversed(attributes))
        here = self._all[module]
        found = [f"{target}{tail}" for target in here.imports.get(node.id, ())]
        if node.id in here.definitions:
            found.append(f"{module}.{node.id}{tail}")
        return found if found or hasattr(builtins, node.id) else []

    def _home(self, dotted: str) -> tuple[str, str] | None:
        """Where a dotted name is defined, through the modules that only pass it on."""
        seen: set[str] = set()
        while dotted not in seen:
            seen.add(dotted)
            module, _, name = dotted.rpartition(".")
            while module and module not in self._all:
                module, _, name = module.rpartition(".")
            if not module:
                return None
            if name in self._all[module].definitions:
                return module, name
            dotted = min(self._all[module].imports.get(name, {dotted}))
        return None


# ------------------------------------------------------------ telling


def unreached(modules: dict[str, Module], *, private: bool = False) -> Iterator[tuple[str, str]]:
    """Dotted name and place of everything that is not reached."""
    reach = Reach(modules)
    run = (name for name, module in modules.items() if module.is_run)
    reach.follow([*ROOTS, *run], HANDLES, documents())
    for name, module in modules.items():
        place = module.path.relative_to(ROOT)
        if name not in reach.modules:
            yield name, f"{place}:1"
            continue
        for dotted, line in _names(reach, name, module, private=private):
            yield f"{name}.{dotted}", f"{place}:{line}"


def _names(reach: Reach, name: str, module: Module, *, private: bool) -> Iterator[tuple[str, int]]:
    for made in module.definitions.values():
        if (name, made.name) not in reach.names:
            if made.name not in ("", "__all__") and (private or not made.name.startswith("_")):
                yield made.name, made.line
            continue
        for method, nodes in made.methods.items():
            is_told = private or not method.startswith("_")
            if is_told and (name, made.name, method) not in reach.methods:
                yield f"{made.name}.{method}", nodes[0].lineno


def main() -> int:
    """Print what is not reached and not allowed, and what is allowed without need."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--all", action="store_true", help="private names too")
    found = dict(unreached(read_modules(), private=parser.parse_args().all))
    problems = [
        f"{place}: {name} is reached from tests or benchmarks only"
        for name, place in found.items()
        if name not in ALLOWED
    ]
    problems += [f"{name} stands in ALLOWED, and is reached" for name in ALLOWED if name not in found]
    print("\n".join(problems) or "everything is reached")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
