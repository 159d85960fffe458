"""The papers' queries run on the general kernels, with and without negative rows, as the oracle says."""

from __future__ import annotations

import pytest
from tests.language.corpus import market, queries
from tests.language.paper_queries import PAPER_QUERIES, PaperQuery
from tests.support.sample_rows import run_on_samples, sample

from windrow.algebra.plan import Emit, StreamUnion
from windrow.algebra.values import Change
from windrow.engine.explain import declared
from windrow.kernels.executor import GeneralExecutor
from windrow.kernels.relational.expiry_layouts import Options, Strategy
from windrow.language.compile import compile_query


def answers(plan: Emit, options: Options | None = None) -> list[Change]:
    """The same rows as the oracle gets, in two batches."""
    executor = GeneralExecutor(plan, options)
    for name, table in executor.tables.items():
        executor.update(name, 0, sample(table.table.schema, count=2), [])
    for name, intake in executor.intakes.items():
        rows = sample(intake.stream.schema)
        executor.push(name, rows[:2])
        executor.push(name, rows[2:])
    executor.finish()
    return executor.take()


@pytest.mark.part(6)
@pytest.mark.parametrize("query", PAPER_QUERIES, ids=lambda query: query.name)
def test_queries_of_the_papers(query: PaperQuery) -> None:
    plan = compile_query(query.sql, declared(query.streams, query.tables))
    expected = run_on_samples(plan).take()
    assert answers(plan) == expected
    assert answers(plan, Options(Strategy.NT)) == expected


@pytest.mark.part(10)
@pytest.mark.parametrize("query", queries())
def test_queries_of_the_corpus(query: str) -> None:
    plan = compile_query(query, market())
    is_union = any(isinstance(node, StreamUnion) for node in plan.walk())  # of programs, one for each branch
    found = run_on_samples(plan, "kernels").take() if is_union else answers(plan)
    assert found == run_on_samples(plan).take()
