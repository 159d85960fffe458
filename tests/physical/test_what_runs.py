"""What is drawn is what runs: operators are asked while they run, and compared with EXPLAIN's steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from tests.algebra.explain.cases import STREAMS, TABLES
from tests.everyday import corpus as everyday, test_nexmark
from tests.language.corpus import market, queries
from tests.language.paper_queries import PAPER_QUERIES
from tests.support.sample_rows import sample

from tools import golden_states
from windrow.algebra.explain import ExplainStep
from windrow.algebra.plan import Emit
from windrow.engine.explain import declared, described
from windrow.engine.sharing.arrangement import Arranging
from windrow.errors import WindrowError
from windrow.kernels.relational.expiry_layouts import count_of
from windrow.kernels.relational.implementations import KERNELS, kind_of
from windrow.kernels.relational.program import RelationalProgram, UnionProgram
from windrow.kernels.state import State
from windrow.language.catalog import Catalog
from windrow.language.compile import compile_query
from windrow.physical.planner import SHARED
from windrow.testing.spark_executor import QUERY, SparkExecutor

GOLDEN = Path(__file__).parents[1] / "algebra" / "explain" / "golden"
EVERYDAY = Path(__file__).parents[1] / "everyday"
NAMED = {
    "Figure 3.5": (
        "SELECT b.item, s.price FROM bids [RANGE 1 MINUTE] b, sales [RANGE 1 MINUTE] s WHERE b.item = s.item"
        " AND NOT EXISTS (SELECT * FROM sensors [RANGE 1 MINUTE] z WHERE z.value = b.item)"
    ),
    "three-way join": (
        "SELECT b.item FROM bids [RANGE 1 MINUTE] b, sales [RANGE 2 MINUTES] s, sensors [RANGE 1 MINUTE] z"
        " WHERE b.item = s.item AND s.item = z.value"
    ),
    "DISTINCT over a join": (
        "SELECT DISTINCT b.item FROM bids [RANGE 1 MINUTE] b, sales [RANGE 1 MINUTE] s WHERE b.item = s.item"
    ),
    "nested aggregate": (
        "SELECT MAX(n) AS most FROM (SELECT item, COUNT(*) AS n FROM bids [RANGE 1 MINUTE SLIDE 1 MINUTE]"
        " GROUP BY item) [RANGE 2 MINUTES SLIDE 1 MINUTE]"
    ),
}
#: the operators that were seen to keep rows
KEEPING: set[str] = set()


def corpus() -> Iterator[Any]:
    """All queries there are, each with what its names mean; none is compiled before its test."""
    for name, text in NAMED.items():
        yield pytest.param(text, _golden, id=name)
    for file in sorted(GOLDEN.glob("*.txt")):
        yield pytest.param(file.read_text(encoding="utf-8").partition("\n----")[0], _golden, id=file.stem)
    for query in PAPER_QUERIES:
        yield pytest.param(query.sql, partial(declared, query.streams, query.tables), id=query.name)
    for number, text in enumerate(queries()):
        yield pytest.param(text, market, id=f"corpus {number}")
    for file in sorted(EVERYDAY.glob("*.txt")):
        for part in file.read_text(encoding="utf-8").split("-- ")[1:]:
            title, _, rest = part.partition("\n")
            yield pytest.param(rest.partition("\n=>")[0], everyday.market, id=f"{file.stem}, {title}")
    for name, text in test_nexmark.QUERIES.items():
        catalog = partial(declared, test_nexmark.STREAMS, test_nexmark.TABLES)
        yield pytest.param(text, catalog, id=f"nexmark {name}")
    for family, asked in golden_states.FAMILIES.items():
        catalog = partial(declared, golden_states.STREAMS, golden_states.TABLES)
        for name, text in asked.items():
            yield pytest.param(text, catalog, id=f"{family} {name}")


def _golden() -> Catalog:
    return declared(STREAMS, TABLES)


@dataclass
class Seen:
    """What ran: durable names of operators by their places, and those that were seen to keep rows."""

    kinds: dict[str, str] = field(default_factory=dict)
    keeping: set[str] = field(default_factory=set)
    kernels: list[str] = field(default_factory=list)


@contextmanager
def watching() -> Iterator[Seen]:
    """Every operator that is run says what it is, and its state is looked at."""
    seen = Seen()

    def of_program(kind: type) -> Any:
        known = kind.advance  # type: ignore[attr-defined]

        def advance(program: Any, states: Any, news: Any) -> Any:
            after = known(program, states, news)
            if isinstance(program, UnionProgram):  # its branches have told places of their own
                seen.kinds.clear()
                seen.keeping.clear()
            for place, operator in program.operators():
                if place in after[0]:
                    seen.kinds[place] = kind_of(operator)
                    seen.keeping |= {place} if _rows(after[0][place]) else set()
            return after

        return patch.object(kind, "advance", advance)

    def of_kernel(kind: type) -> Any:
        known = kind.advance  # type: ignore[attr-defined]

        def advance(kernel: Any, *args: Any, **options: Any) -> Any:
            seen.kernels.append(kind_of(kernel))
            return known(kernel, *args, **options)

        return patch.object(kind, "advance", advance)

    patches = [*map(of_program, (RelationalProgram, UnionProgram)), *map(of_kernel, KERNELS)]
    for each in patches:
        each.start()
    try:
        yield seen
    finally:
        for each in patches:
            each.stop()


def _rows(state: State) -> int:
    return sum(count_of(chunks) for chunks in state.chunks.values())


def ran(emit: Emit, *, shares: bool) -> tuple[ExplainStep, Seen]:
    """A query on an engine, over sample rows: what EXPLAIN draws of it, and what was seen."""
    alone = nullcontext() if shares else patch.object(Arranging, "joined", return_value=None)
    with watching() as seen, alone:
        life = SparkExecutor(emit, spark=False)
        record = life.engine.queries[QUERY]
        try:
            for name, table in record.tables.items():
                life.update(name, 0, sample(table.schema, count=2), [])
            for start in range(0, 12, 4):
                for name, stream in record.streams.items():
                    life.push(name, sample(stream.schema, count=12)[start : start + 4])
            life.finish()
        except WindrowError:
            pass  # a query that fails on its rows has run all the same
        drawn = described(life.engine.queries[QUERY].running).plan
        life.close()
    return drawn, seen


@pytest.mark.part(5)
@pytest.mark.parametrize(("text", "catalog"), [*corpus()])
def test_what_is_drawn_is_what_runs(text: str, catalog: Callable[[], Catalog]) -> None:
    drawn, seen = ran(compile_query(text, catalog()), shares=False)
    steps = [step for step in drawn.walk() if step.place is not None]
    assert steps
    if seen.kinds:
        shown = {step.place: step.kind for step in steps}
        assert shown.items() <= seen.kinds.items()
        # whatever keeps rows is drawn, or is inside of an operator that is
        assert all(_belongs(place, shown) for place in seen.keeping)
        assert seen.keeping & shown.keys() <= {step.place for step in steps if step.state}
    else:
        assert set(seen.kernels) <= {step.kind for step in steps}
        assert all(step.state for step in steps)
    KEEPING.update(seen.kinds[place] for place in seen.keeping)


def _belongs(place: str, shown: Any) -> bool:
    """Whether an operator is drawn, or in one: held results, bounds of extents, numbers of rows."""
    return place in shown or ("." in place and _belongs(place.rpartition(".")[0], shown))


def test_most_operators_were_seen_to_keep_rows() -> None:
    if len(KEEPING) < 10:  # the test before has not run in this process
        for parameters in corpus():
            test_what_is_drawn_is_what_runs(*parameters.values)
    assert len(KEEPING) >= 10


def test_a_query_that_shares_its_state_is_drawn_so() -> None:
    emit = compile_query(
        "SELECT MAX(price) AS top FROM sales [RANGE 1 MINUTE SLIDE 10 SECONDS]", declared(STREAMS, TABLES)
    )
    drawn, seen = ran(emit, shares=True)
    assert not seen.kinds
    assert not seen.kernels
    assert [step.kind for step in drawn.walk() if step.state] == [SHARED]
