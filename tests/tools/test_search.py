"""A pass of a search is done in pieces: what was tried adds up, and what lacks examples comes next."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tools import search
from tools.search import Piece, Searched, add_up, keep, next_pieces


def line(test: str, examples: int, *, exhausted: bool = False, failed: str | None = None) -> dict[str, Any]:
    """What a piece leaves in the record of one case."""
    return {"test": test, "examples": examples, "seconds": 1, "exhausted": exhausted, "failed": failed}


def test_cases_share_the_examples_of_a_test_and_searches_add_up() -> None:
    tests = {"t.py::cases": Searched(deep=False, cases=2, target=300)}
    lines = [line("t.py::cases[a]", 100), line("t.py::cases[b]", 60), line("t.py::gone", 7)]
    add_up(tests, [*lines, line("t.py::cases[a]", 40)])
    assert (tests["t.py::cases"].examples, tests["t.py::cases"].lacks) == (200, 50)


def test_what_has_no_more_examples_lacks_none() -> None:
    tests = {"t.py::few": Searched(deep=False, cases=2, target=300)}
    add_up(tests, [line("t.py::few[a]", 3, exhausted=True), line("t.py::few[b]", 9)])
    assert tests["t.py::few"].lacks == 144
    add_up(tests, [line("t.py::few[a]", 3, exhausted=True), line("t.py::few[b]", 0, exhausted=True)])
    assert tests["t.py::few"].lacks == 0


def test_what_holds_is_kept_for_later_searches_and_what_fails_is_searched_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "TALLY", tmp_path / "searched.json")
    tests = {
        name: Searched(deep=False, cases=1, target=300, before=before, exhausted_before=before == 0)
        for name, before in [("t.py::few", 0), ("t.py::holds", 100), ("t.py::fails", 200), ("t.py::new", 5)]
    }
    add_up(tests, [line("t.py::holds", 50), line("t.py::fails", 9, failed="wrong")])
    keep(tests, {"t.py::fails": 200, "u.py::elsewhere": 300})
    known = json.loads((tmp_path / "searched.json").read_text())
    assert known == {"t.py::few": "all", "t.py::holds": 150, "t.py::new": 5, "u.py::elsewhere": 300}
    assert tests["t.py::holds"].lacks == 150


def test_deep_tests_come_first_and_a_piece_has_tests_of_one_file() -> None:
    tests = {
        "a.py::one": Searched(deep=True, cases=1, target=500),
        "a.py::two": Searched(deep=True, cases=1, target=900),
        "a.py::three": Searched(deep=True, cases=100, target=500),
        "b.py::four": Searched(deep=True, cases=1, target=500),
        "c.py::five": Searched(deep=False, cases=1, target=20),
    }
    deep = {Piece(("a.py::one", "a.py::two"), 200), Piece(("a.py::three",), 5), Piece(("b.py::four",), 200)}
    assert set(next_pieces(tests, set(), 200)) == deep
    given_up = {name for name, test in tests.items() if test.deep}
    assert next_pieces(tests, given_up, 200) == [Piece(("c.py::five",), 20)]
