"""docs/papers.md stays true: its statements run on an engine, its commands and its tests exist."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from tests.support.life import Life
from tests.support.sample_rows import run_on_samples, sample

from benchmarks.registry import all_benchmarks
from benchmarks.studies.on_engine import STUDIES
from windrow.cli.main import COMMANDS
from windrow.engine.engine import Arrival
from windrow.engine.views import Query
from windrow.kernels.columnar.columns import rows_schema
from windrow.language.catalog import Catalog
from windrow.language.compile import compile_query, compile_script
from windrow.session import Windrow

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "papers.md"
_CODE = re.compile(r"`([^`]+)`")
#: each is a word that statements begin with
STATEMENTS = ("SELECT", "CREATE", "ALTER", "EXPLAIN", "REFRESH", "SHOW")


@dataclass(frozen=True)
class Line:
    """A row of a table: what of a paper it is about, what runs it, and what holds it."""

    paper: str
    section: str
    what: str
    runs: tuple[str, ...]
    held_by: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.paper} {self.section}: {self.what}"


def lines() -> Iterator[Line]:
    paper = ""
    for text in PAGE.read_text().splitlines():
        if text.startswith("## "):
            paper = text.removeprefix("## ")
        cells = [cell.strip() for cell in text.strip("|").split(" | ")] if text.startswith("| ") else []
        if len(cells) == 4 and cells[0] != "section":
            runs, held_by = (tuple(_CODE.findall(cell)) for cell in cells[2:])
            yield Line(paper, cells[0], cells[1], runs, held_by)


LINES = list(lines())


def declarations() -> str:
    """The statements that the page begins with."""
    found = re.search(r"```sql\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert found
    return found[1]


def test_every_line_has_what_runs_it_and_what_holds_it() -> None:
    assert len(LINES) > 90
    assert {line.paper.partition(":")[0].partition(",")[0] for line in LINES} >= {
        "WID",
        "Panes",
        "Diverse windows",
        "Thesis",
        "Shedding",
    }
    for line in LINES:
        assert line.runs, line
        assert line.held_by, line
    assert len(set(LINES)) == len(LINES)


def test_every_statement_runs_on_an_engine(tmp_path: Path) -> None:
    """All at once, as they may be: every query is registered, gets rows, and does not fail."""
    told = [each for line in LINES for each in line.runs if each.startswith(STATEMENTS)]
    asked = []
    with Life(tmp_path) as w:
        w.sql(declarations())
        for number, statement in enumerate(dict.fromkeys(told)):
            if "WITH ISOLATION" in statement:
                asked.append(statement)
            elif statement.startswith("SELECT"):
                w.sql(f"CREATE QUERY line_{number} AS {statement}")
            else:
                w.sql(statement)
        for name, stream in w._catalog.streams.items():
            names = stream.schema.names
            rows = [dict(zip(names, row, strict=True)) for row in sample(stream.schema)]
            table: object = pa.Table.from_pylist(rows, schema=rows_schema(stream.schema))
            w.engine.epoch([Arrival(name, table)])
        for statement in asked:
            assert w.sql(statement)[-1].num_rows >= 0, statement
        w.engine.epoch(seals=list(w._catalog.streams))
        failed = {name: query.progress.error for name, query in w.queries.items() if query.progress.error}
        assert not failed
    assert len(told) > 80


SELECTS = sorted(
    {e for line in LINES for e in line.runs if e.startswith("SELECT") and "WITH ISOLATION" not in e}
)


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    """All that is declared on the page, there or in its lines."""
    found = Catalog()
    told = [each for line in LINES for each in line.runs if each.startswith("CREATE STREAM")]
    compile_script(";".join([declarations().rstrip().rstrip(";"), *told]), found)
    return found


@pytest.mark.part(4)
@pytest.mark.parametrize("query", SELECTS)
def test_every_query_answers_on_an_engine_as_the_oracle_does(catalog: Catalog, query: str) -> None:
    plan = compile_query(query, catalog)
    engine = run_on_samples(plan, "engine")
    assert engine.take() == run_on_samples(plan).take()


@cache
def _defined(path: Path) -> frozenset[str]:
    """The tests of a file, those of classes as Class::name."""
    found = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.ClassDef):
            found |= {f"{node.name}::{each.name}" for each in node.body if isinstance(each, ast.FunctionDef)}
    return frozenset(found)


def test_every_test_that_is_named_exists() -> None:
    for line in LINES:
        for name in line.held_by:
            file, _, test = name.partition("::")
            assert (ROOT / file).is_file(), name
            assert test in _defined(ROOT / file), name


@pytest.mark.parametrize(
    "told", sorted({e for line in LINES for e in line.runs if not e.startswith(STATEMENTS)})
)
def test_every_command_and_call_exists(told: str) -> None:
    if call := re.match(r"(w|q)\.(\w+)\(", told):
        assert hasattr(Windrow if call[1] == "w" else Query, call[2])
        return
    program, command, *rest = told.split()
    assert program == "windrow"
    if command != "bench":
        assert command in {each.__name__ for each in COMMANDS}
        return
    benchmark = all_benchmarks()[rest[0]]
    options = {f"--{name.replace('_', '-')}" for name in benchmark.options.__dataclass_fields__}
    given = [each for each in rest[1:] if each.startswith("--")]
    assert set(given) <= options | {"--with"}
    assert "--with" not in given or (rest[0] in STUDIES and "engine" in rest)
