"""Random queries: over `[RANGE r]` a database says the same at every instant, and over windows of all kinds
every executor what the oracle says.

A longer search by hand: make search PATHS=tests/everyday/test_random_queries.py
"""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import duckdb
import pytest
from hypothesis import assume, given, note, strategies as st
from tests.everyday.random_queries import (
    FORMS,
    SPRING,
    STEP,
    STREAM_NAMES,
    QueryDrawer,
    RandomQuery,
    WindowDrawer,
)

from windrow.errors import QueryError
from windrow.testing import Harness

pytestmark = pytest.mark.deep

NUMBERS = dict.fromkeys(STREAM_NAMES, ("k BIGINT, v BIGINT, n BIGINT", "WATTR n"))
TIMES = dict.fromkeys(STREAM_NAMES, ("k BIGINT, v BIGINT, n TIMESTAMP", "WATTR n"))
LAST = 9
seeds = st.integers(0, 1 << 48)
Row = tuple[Any, ...]
Batch = dict[str, list[Row]]


def drawn_rows(random: Random, most: int, last: int = LAST) -> Batch:
    """Rows in any order, with ties and NULLs."""
    values = [None, 0, 1, 1, 2]
    return {
        name: [
            (random.choice(values), random.choice(values), random.randint(0, last))
            for _ in range(random.randint(0, most))
        ]
        for name in STREAM_NAMES
    }


def compiled(query: str, streams: dict[str, tuple[str, str]], executor: str = "reference") -> Harness:
    """What is refused is drawn again: more windows than a query may have, or OVER all rows that ever came."""
    note(query)
    try:
        return Harness(query, streams, executor=executor)
    except QueryError as error:
        assume(error.code not in ("too-many-sources", "bad-over"))
        raise


def read_by(harness: Harness) -> list[str]:
    return sorted({node.stream.name for node in harness.plan.walk() if hasattr(node, "stream")})


def by_duckdb(query: RandomQuery, held: Batch) -> Counter[Row]:
    """The answer over tables of what each occurrence holds."""
    with duckdb.connect() as database:
        database.execute("SET default_null_order = 'nulls_first_on_asc_last_on_desc'")
        for name, content in held.items():
            database.execute(f"CREATE TABLE {name} (k BIGINT, v BIGINT, n BIGINT)")
            if content:
                database.executemany(f"INSERT INTO {name} VALUES (?, ?, ?)", content)
        return Counter(database.execute(query.over_tables).fetchall())


@given(seeds)
def test_at_every_instant_the_answer_is_that_of_a_database(seed: int) -> None:
    random = Random(seed)
    query = QueryDrawer(random).query()
    sizes = {each.alias: random.randint(2, 9) for each in query.occurrences}
    windows = {
        each.alias: f"{each.stream} [RANGE {sizes[each.alias]}] AS {each.alias}" for each in query.occurrences
    }
    harness = compiled(query.over(windows), NUMBERS)
    rows = drawn_rows(random, 11)
    for name in read_by(harness):
        harness.push(name, rows[name])
    harness.finish()
    for instant in random.sample(range(1, LAST + 9), 3):
        held = {
            each.alias: [row for row in rows[each.stream] if instant - sizes[each.alias] < row[2] <= instant]
            for each in query.occurrences
        }
        assert harness.relation(instant) == by_duckdb(query, held), instant


@pytest.mark.thorough
@pytest.mark.parametrize("executor", ["kernels", "engine"])
@pytest.mark.parametrize("times", [False, True], ids=["numbers", "times"])
@given(seed=seeds)
def test_every_executor_says_what_the_oracle_says(times: bool, executor: str, seed: int) -> None:
    random = Random(seed)
    query = QueryDrawer(random).query()
    drawer = WindowDrawer(random, times=times)
    streams = TIMES if times else NUMBERS
    text = query.over({each.alias: drawer.source(each) for each in query.occurrences})
    both = [compiled(text, streams), compiled(text, streams, executor)]
    begin, step = (SPRING, STEP) if times else (0, 1)
    for batch in range(random.randint(1, 3)):
        rows = drawn_rows(random, 6)
        for name in read_by(both[0]):
            for harness in both:
                harness.push(name, [(k, v, begin + step * n) for k, v, n in rows[name]])
                harness.punctuate(name, begin + step * 4 * batch)
        told = [harness.take() for harness in both]
        assert told[1] == told[0]
    for harness in both:
        harness.finish()
    assert both[1].take() == both[0].take()


def test_all_forms_are_drawn() -> None:
    drawn = [QueryDrawer(Random(seed)).query() for seed in range(300)]
    counted = Counter(form for query in drawn for form in query.forms)
    assert counted.keys() == FORMS
    assert min(counted.values()) >= 4, counted
