"""What nothing reaches is found, and what something reaches is not."""

from __future__ import annotations

from pathlib import Path

from tools.unreached import Reach, read_modules

FILES = {
    "__init__.py": "from kit.front import start\n__all__ = ['start']\n",
    "front.py": """\
from functools import singledispatch
from typing import TYPE_CHECKING
from kit import parts
from kit.shapes import Shape
if TYPE_CHECKING:
    from kit.names import Name

def start(name: "Name"):
    from kit.late import tell
    return [tell(each.BUILT) for each in (parts,)], Shape().area(), area_of(name)

@singledispatch
def area_of(thing): ...

@area_of.register
def _(thing: int):
    return helped()

def helped(): ...
def forgotten(): return only_by_forgotten()
def only_by_forgotten(): ...
""",
    "late.py": "def tell(text): ...\n",
    "names.py": "Name = str\nOther = int\n",
    "parts.py": "BUILT = 1\nUNUSED = 2\n",
    "shapes.py": """\
class Shape:
    def area(self): return self._side()
    def _side(self): ...
    def volume(self): ...
    def __len__(self): ...
class Lonely: ...
""",
    "nobody.py": "from kit.front import forgotten\nforgotten()\n",
}


def reached(folder: Path) -> Reach:
    (folder / "kit").mkdir()
    for name, text in FILES.items():
        (folder / "kit" / name).write_text(text)
    reach = Reach(read_modules(folder, "kit"))
    reach.follow(["kit"], [], [])
    return reach


def test_modules_that_others_import_are_reached(tmp_path: Path) -> None:
    assert reached(tmp_path).modules == {
        "kit",
        "kit.front",
        "kit.late",
        "kit.names",
        "kit.parts",
        "kit.shapes",
    }


def test_names_and_methods_that_are_named_are_reached(tmp_path: Path) -> None:
    reach = reached(tmp_path)
    assert {f"{module}.{name}" for module, name in reach.names if name} == {
        "kit.__all__",
        "kit.front.start",
        "kit.front.area_of",
        "kit.front._",
        "kit.front.helped",
        "kit.late.tell",
        "kit.names.Name",
        "kit.parts.BUILT",
        "kit.shapes.Shape",
    }
    assert {method for _, _, method in reach.methods} == {"area", "_side", "__len__"}


def test_documents_reach_what_they_import(tmp_path: Path) -> None:
    (tmp_path / "windrow").mkdir()
    (tmp_path / "windrow" / "__init__.py").write_text("")
    (tmp_path / "windrow" / "more.py").write_text("def shown(): ...\ndef hidden(): ...\n")
    reach = Reach(read_modules(tmp_path, "windrow"))
    reach.follow([], [], ["from windrow.more import shown"])
    assert reach.names == {("windrow", ""), ("windrow.more", ""), ("windrow.more", "shown")}
