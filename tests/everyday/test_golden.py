"""Everyday SQL, as readable triples: what is written, what it means in canonical form, what it answers.

The answers are the oracle's; the kernels and the engine say the same. The canonical form is the same plan.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.everyday.corpus import EXECUTORS, answers, market, plan_of, shown
from tests.support.snapshots import Pair, read_pairs

from windrow.language.compile import compile_query
from windrow.language.printer import print_query


def meaning(query: str) -> str:
    canonical = "\n".join(f"| {line}" for line in print_query(plan_of(query)).splitlines())
    return f"{canonical}\n{shown(answers(query, 'reference'))}".rstrip("\n")


FILES = sorted(Path(__file__).parent.glob("*.txt"))
PAIRS = [pair for file in FILES for pair in read_pairs(file, meaning)]


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.title)
def test_what_everyday_sql_means(pair: Pair) -> None:
    assert meaning(pair.text) == pair.message


@pytest.mark.part(3)
@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.title)
def test_every_executor_says_the_same(pair: Pair, executor: str) -> None:
    assert shown(answers(pair.text, executor)) == shown(answers(pair.text, "reference"))


@pytest.mark.part(3)
@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.title)
def test_the_canonical_form_means_the_same(pair: Pair) -> None:
    """It is the same plan; of outer joins, OVER and queries over tables, nested there, the same answers."""
    plan = plan_of(pair.text)
    again = compile_query(print_query(plan), market())
    nested = ("nested" in pair.message or "whole" in pair.message) and any(
        word in pair.text
        for word in (" JOIN ", " OVER ", " ON (", "UNNEST", "explode", "FROM owners", "FROM items")
    )
    assert again == plan or nested
    assert shown(answers(again, "reference")) == shown(answers(pair.text, "reference"))


def test_titles_are_different_and_most_queries_answer_something() -> None:
    assert len({pair.title for pair in PAIRS}) == len(PAIRS)
    assert sum("@" in pair.message for pair in PAIRS) > 0.9 * len(PAIRS)
