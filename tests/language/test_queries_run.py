"""The papers' queries and the corpus run on the oracle; rewritten by the rules, they say the same."""

from __future__ import annotations

import pytest
from tests.language.corpus import market, queries
from tests.language.paper_queries import PAPER_QUERIES, PaperQuery
from tests.support.optimised import optimise
from tests.support.sample_rows import run_on_samples

from windrow.engine.explain import declared
from windrow.language.compile import compile_query


@pytest.mark.parametrize("query", PAPER_QUERIES, ids=lambda query: query.name)
def test_queries_of_the_papers_run(query: PaperQuery) -> None:
    plan = compile_query(query.sql, declared(query.streams, query.tables))
    changes = run_on_samples(plan).take()
    assert run_on_samples(optimise(plan).plan).take() == changes
    assert all(len(change.row) == len(plan.schema) for change in changes)


@pytest.mark.parametrize("query", queries())
def test_queries_of_the_corpus_run(query: str) -> None:
    plan = compile_query(query, market())
    assert run_on_samples(optimise(plan).plan).take() == run_on_samples(plan).take()


def test_most_queries_of_the_papers_answer_something_on_samples() -> None:
    answered = [
        query.name
        for query in PAPER_QUERIES
        if run_on_samples(compile_query(query.sql, declared(query.streams, query.tables))).take()
    ]
    assert len(answered) > 0.6 * len(PAPER_QUERIES)
