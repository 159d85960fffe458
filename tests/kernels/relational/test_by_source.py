"""Sources that are done at different times, joined with rows and tables that go by a clock of their own."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from tests.kernels.agreement import assert_same
from tests.kernels.relational.scripts import ordered
from tests.kernels.relational.test_random_plans import reload_state

from windrow.algebra.finality import is_final_by_group
from windrow.kernels.executor import GeneralExecutor
from windrow.language.catalog import Catalog
from windrow.language.compile import compile_query, compile_script
from windrow.reference.executor import ReferenceExecutor

COLUMNS = "k BIGINT, v BIGINT, ts BIGINT"
CATALOG = Catalog()
compile_script(
    f"CREATE STREAM s ({COLUMNS}) WATTR ts; CREATE STREAM r ({COLUMNS}) WATTR ts;"
    "CREATE TABLE past (k BIGINT, v BIGINT) RELATION; CREATE TABLE asked (k BIGINT, v BIGINT) NRR",
    CATALOG,
)
OWN = ("RANGE 6", "RANGE 6 SLIDE 9", "RANGE 7 SLIDE 2", "PARTITION BY k ROWS 2")
OTHERS = ("r [RANGE 9]", "r [RANGE 12 SLIDE 3]", "r [ROWS 3]", "r [SESSION 3]", "past r", "asked r")
VALUES = ("MIN(s.v) AS a", "COUNT(*) AS a, SUM(s.v) AS b", "MAX(r.v) AS a, SUM(s.v) AS b", "MEDIAN(r.v) AS a")
WORDS = ("", "", "ISTREAM", "RSTREAM", "DSTREAM")
Steps = list[tuple[Any, ...]]


def query(random: Random, other: str) -> str:
    values, word = f"s.k, {random.choice(VALUES)}", random.choice(WORDS)
    values = f"{word}({values})" if word else values
    own = random.choice(
        OWN if other.startswith("r ") else OWN[:-1]
    )  # tables take no rows that leave unforeseen
    return f"SELECT {values} FROM s [{own}], {other} WHERE s.k = r.k GROUP BY s.k"


def history(random: Random, other: str) -> Steps:
    """Rows of both, in some disorder, promises about everybody and about single sources, and changes."""
    name, now = other.split()[0], 0
    steps: Steps = []
    present: list[tuple[int, int]] = []
    for _ in range(random.randint(3, 9)):
        for each in random.sample(["s", name], 2):
            if each in ("s", "r"):
                rows = []
                for _ in range(random.randint(0, 3)):
                    now += random.choice([0, 0, 1, 2, 3])
                    values = random.choice([None, 0, 1]), random.choice([None, 0, 1, 2])
                    rows.append((*values, max(0, now - random.choice([0, 0, 1, 2]))))
                steps.append(("push", each, rows))
            elif random.random() < 0.4:
                new = [(random.choice([0, 1]), random.choice([0, 0, 1])) for _ in range(random.randint(0, 2))]
                steps.append(("update", each, now + random.randint(0, 3), new, present[:1]))
                present = [*present[1:], *new]
                now += 4
        if random.random() < 0.6:
            streams = [each for each in ("s", name) if each in ("s", "r")]
            where = [None, {"k": 0}, {"k": 1}]
            steps += [("punctuate", each, now - 1, random.choice(where)) for each in streams]
        steps.append(("take",))
    return [*steps, ("finish",), ("take",)]


def assert_both_say_the_same(text: str, steps: Steps) -> int:
    emit = compile_query(text, CATALOG)
    oracle, mine = ReferenceExecutor(emit), GeneralExecutor(emit)
    compared = 0
    for verb, *values in steps:
        expected, found = (getattr(each, verb)(*values) for each in (oracle, mine))
        if verb == "take":
            assert_same(ordered(found), ordered(expected))
            compared += len(found)
        reload_state(mine)
    return compared


@pytest.mark.part(6)
@pytest.mark.parametrize("other", OTHERS)
def test_groups_are_answered_by_their_own_clocks(other: str) -> None:
    random = Random(other)
    compared = 0
    for _ in range(12):
        compared += assert_both_say_the_same(query(random, other), history(random, other))
    assert compared > 10


def test_a_row_that_was_there_before_may_begin_later() -> None:
    """The row of `r` begins at 18, when the one of `s`, which is behind, has left."""
    windows = "s [RANGE 6 SLIDE 9], r [RANGE 12 SLIDE 3]"
    text = f"SELECT s.k, COUNT(*) AS n FROM {windows} WHERE s.k = r.k GROUP BY s.k"
    steps: Steps = [
        ("push", "s", [(1, 0, 4)]),
        ("push", "r", [(1, 0, 15)]),
        ("punctuate", "s", 19, {"k": 0}),
        ("punctuate", "r", 19),
        ("take",),
        ("finish",),
        ("take",),
    ]
    assert assert_both_say_the_same(text, steps) == 0


def test_copies_of_a_row_leave_together() -> None:
    """A table with the same row twice: the group is gone with its only row of the stream."""
    text = "SELECT RSTREAM(s.k, MIN(s.v) AS a) FROM s [RANGE 6], asked r WHERE s.k = r.k GROUP BY s.k"
    steps: Steps = [("update", "asked", 3, [(1, 2), (1, 2)], []), ("push", "s", [(1, 0, 6)]), ("finish",)]
    assert assert_both_say_the_same(text, [*steps, ("take",)]) == 1


@pytest.mark.parametrize(
    ("source", "by_group"),
    [
        ("s [RANGE 6]", True),
        ("s [PARTITION BY k ROWS 3]", True),
        ("s [RANGE 6], r [RANGE 9] WHERE s.k = r.k", True),
        ("s [RANGE 6], r [ROWS 9] WHERE s.k = r.k", False),
        ("s [PARTITION BY k ROWS 3], r [RANGE 9] WHERE s.k = r.k", False),
        ("s [RANGE 6], asked r WHERE s.k = r.k", True),
        ("s [RANGE 6], past r WHERE s.k = r.k", False),
    ],
)
def test_what_leaves_unforeseen_waits_for_all_sources(source: str, by_group: bool) -> None:
    emit = compile_query(f"SELECT s.k, COUNT(*) AS n FROM {source} GROUP BY s.k", CATALOG)
    assert is_final_by_group(emit, CATALOG.streams["s"], "k") == by_group
