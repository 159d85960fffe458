"""A windowing attribute with a RESOLUTION: a stream of the values k·q answers as one of the integers k."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings, strategies as st

from windrow.engine.explain import explain
from windrow.errors import DataError, QueryError
from windrow.kernels.intake import ticks_of
from windrow.language.compile import declare_stream
from windrow.testing import Harness
from windrow.windows.domain import EXACT, Domain

if TYPE_CHECKING:
    from windrow.algebra.values import Change

EXECUTORS = ["reference", "kernels", "engine"]
#: each `{n}` is a number of ticks
QUERIES = [
    "SELECT a, COUNT(*) AS n, window_start, window_end FROM s [RANGE {5} SLIDE {2}] GROUP BY a",
    "SELECT window_end, a FROM s [RANGE {4} SLIDE {3} ORIGIN {1}]",
    "SELECT window_start, COUNT(*) AS n FROM s [RANGE {4} SLIDE {2} LAG {3}]",
    "SELECT a FROM s [RANGE {3}]",
    "SELECT DISTINCT a FROM s [RANGE {3}]",
    "SELECT COUNT(*) AS n FROM s [LANDMARK FROM {2} UNTIL {9} SLIDE {3}]",
    "SELECT a, COUNT(*) AS n FROM s [CUMULATE {6} SLIDE {2}] GROUP BY a",
    "SELECT a, COUNT(*) AS n FROM s [SESSION {2} PARTITION BY a] GROUP BY a",
    "SELECT a FROM s [ROWS 2]",
    "SELECT COUNT(*) AS n, window_end FROM s [ROWS 3 SLIDE 2 ROWS]",
    "SELECT SUM(a) AS total FROM s [ROWS 3 SLIDE {4}]",
    "SELECT MAX(a) AS m FROM s [RANGE {3} SLIDE 2 ROWS]",
    "SELECT SUM(n) AS total FROM (SELECT COUNT(*) AS n FROM s [RANGE {2} SLIDE {2}]) [RANGE {4} SLIDE {2}]",
    "SELECT b.a FROM s [RANGE {3}] b, s [RANGE {2}] c WHERE b.a = c.a",
    "SELECT a, SUM(a) OVER (ORDER BY x RANGE {2} PRECEDING) AS total FROM s",
    "SELECT a FROM s [NOW]",
]
#: type, RESOLUTION as written, and what it is
STEPS = [
    ("DOUBLE", " RESOLUTION 0.1", "0.1"),
    ("DOUBLE", " RESOLUTION 0.25", "0.25"),
    ("DOUBLE", " RESOLUTION 2.5", "2.5"),
    ("DOUBLE", " RESOLUTION 0.001", "0.001"),
    ("DOUBLE", " RESOLUTION 3", "3"),
    ("DECIMAL(10,2)", "", "0.01"),
    ("DECIMAL(10,2)", " RESOLUTION 0.25", "0.25"),
    ("DECIMAL(12,0)", " RESOLUTION 10", "10"),
]
POLICIES = ["", " ORDERED", " SLACK {2}", " SLACK 2 ROWS", " ORDERED LATE KEEP"]
batches = st.lists(
    st.lists(st.tuples(st.integers(0, 2), st.integers(-6, 14)), min_size=1, max_size=4), max_size=4
)


def written(text: str, step: str) -> str:
    """The numbers of ticks in a text, as numbers of the attribute."""
    for ticks in range(12):
        text = text.replace(f"{{{ticks}}}", f"{ticks * Decimal(step):f}")
    return text


def value(kind: str, ticks: int, step: str) -> Any:
    if kind == "BIGINT":
        return ticks
    return float(ticks * Fraction(step)) if kind == "DOUBLE" else ticks * Decimal(step)


def outcome(executor: str, query: str, policy: str, rows: Any, case: tuple[str, str, str]) -> Any:
    kind, resolution, step = case
    declared = (f"a BIGINT, x {kind}", written(f"WATTR x{resolution}{policy}", step))
    try:
        harness = Harness(written(query, step), {"s": declared}, executor=executor)
    except QueryError as error:
        return error.code
    for batch in rows:
        harness.push("s", [(a, value(kind, t, step)) for a, t in batch])
    harness.finish()
    return harness.take()


def scaled(changes: list[Change] | str, query: str, case: tuple[str, str, str]) -> Any:
    """What the stream of integers answers, as that with a RESOLUTION should."""
    if isinstance(changes, str):
        return changes
    kind, _, step = case
    head = query.partition("FROM")[0].split(",") if "SLIDE 2 ROWS" not in query else ["no bounds"]
    bounds = {place for place, part in enumerate(head) if "window_" in part}
    return [
        (
            each.op,
            tuple(value(kind, v, step) if i in bounds else v for i, v in enumerate(each.row)),
            value(kind, int(each.at), step),
        )
        for each in changes
    ]


@pytest.mark.part(5)
@pytest.mark.cases
@pytest.mark.parametrize("query", QUERIES)
@given(case=st.sampled_from(STEPS), policy=st.sampled_from(POLICIES), rows=batches)
@settings(max_examples=40)
def test_a_stream_of_multiples_answers_as_one_of_integers(
    query: str, case: tuple[str, str, str], policy: str, rows: Any
) -> None:
    plain = scaled(outcome("reference", query, policy, rows, ("BIGINT", "", "1")), query, case)
    for executor in EXECUTORS:
        found = outcome(executor, query, policy, rows, case)
        told = found if isinstance(found, str) else [(each.op, each.row, each.at) for each in found]
        assert told == plain, executor


@given(
    step=st.builds(lambda n, s: Fraction(n, 10**s), st.integers(1, 10**4), st.integers(0, 18)),
    ticks=st.integers(-EXACT, EXACT),
    nudge=st.sampled_from([0, 0, -1, 1]),
)
@settings(max_examples=300)
def test_ticks_of_doubles_are_those_of_exact_arithmetic(step: Fraction, ticks: int, nudge: int) -> None:
    domain = Domain("number", step)
    x = float(ticks * step)
    x = math.nextafter(x, math.copysign(math.inf, nudge)) if nudge else x
    found = ticks_of(pl.Series([x]), domain).to_list()
    assert found == [domain.tick(x)]
    if not nudge:
        assert found == [ticks if abs(ticks) <= domain.reach else None]


def test_a_tick_of_a_decimal_is_exact() -> None:
    values = pl.Series(["0.25", "0.75", "0.3", None, "-1.50"]).cast(pl.Decimal(30, 2))
    assert ticks_of(values, Domain("number", Fraction(1, 4), 2)).to_list() == [1, 3, None, None, -6]


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("bad", [0.05, math.nan, math.inf, -math.inf, 0.1 + 0.2, 1e300])
def test_a_value_that_is_no_multiple_is_refused(executor: str, bad: float) -> None:
    harness = Harness(
        "SELECT COUNT(*) FROM s [RANGE 1 SLIDE 1]",
        {"s": ("x DOUBLE", "WATTR x RESOLUTION 0.1 ORDERED")},
        executor=executor,
    )
    with pytest.raises(DataError) as caught:
        harness.push("s", [(0.1,), (bad,)])
    assert caught.value.code == "malformed-row"


def test_negative_zero_is_zero() -> None:
    assert ticks_of(pl.Series(np.array([-0.0])), Domain("number", Fraction(1, 10))).to_list() == [0]


@pytest.mark.parametrize(
    ("columns", "options", "code"),
    [
        ("x DOUBLE", "WATTR x", "bad-wattr"),
        ("x FLOAT", "WATTR x RESOLUTION 0.5", "bad-resolution"),
        ("x BIGINT", "WATTR x RESOLUTION 2", "bad-resolution"),
        ("x DOUBLE", "WATTR x RESOLUTION 0", "bad-resolution"),
        ("x DOUBLE", "WATTR x RESOLUTION 5 SECONDS", "bad-resolution"),
        ("x DOUBLE", "WATTR x RESOLUTION 0.0000000000000000001", "bad-resolution"),
        ("x DECIMAL(9,1)", "WATTR x RESOLUTION 0.25", "bad-resolution"),
        ("x DOUBLE", "WATTR x RESOLUTION 0.5 KEEP 10", "bad-resolution"),
        ("x DOUBLE", "WATTR x RESOLUTION 0.5 PUNCTUATED BY x", "bad-resolution"),
        ("x DOUBLE", "WATTR x RESOLUTION 0.5 SLACK 0.3", "window-size"),
    ],
)
def test_declarations_that_have_no_meaning_are_refused(columns: str, options: str, code: str) -> None:
    with pytest.raises(QueryError) as caught:
        declare_stream("s", columns, options)
    assert caught.value.code == code
    assert caught.value.hint


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("SELECT a FROM s [RANGE 0.3]", "window-size"),
        ("SELECT a FROM s [RANGE 1 SLIDE 1 ORIGIN 0.1]", "window-size"),
        ("SELECT a FROM s [RANGE 5 SECONDS]", "window-unit"),
        ("SELECT a FROM s [LIFETIME a]", "bad-resolution"),
        ("SELECT s.a FROM s [RANGE 1], r [RANGE 1] WHERE s.a = r.a", "mixed-domains"),
        ("SELECT s.a FROM s [RANGE 1], n [RANGE 1] WHERE s.a = n.a", "mixed-domains"),
    ],
)
def test_windows_that_have_no_meaning_are_refused(query: str, code: str) -> None:
    streams = {
        "s": ("a BIGINT, x DOUBLE", "WATTR x RESOLUTION 0.25"),
        "r": ("a BIGINT, x DOUBLE", "WATTR x RESOLUTION 0.5"),
        "n": ("a BIGINT, x BIGINT", "WATTR x"),
    }
    with pytest.raises(QueryError) as caught:
        Harness(query, streams)
    assert caught.value.code == code
    assert caught.value.hint


def test_explain_tells_lengths_in_the_attribute() -> None:
    found = explain(
        "SELECT COUNT(*) FROM s [RANGE 0.5 SLIDE 0.25 ORIGIN 1.25]",
        {"s": ("x DOUBLE", "WATTR x RESOLUTION 0.25 SLACK 0.75")},
    )
    assert "[RANGE 0.5 SLIDE 0.25 ORIGIN 1.25]" in str(found)
    assert "row by row" in str(found)


def test_punctuation_is_a_value_of_the_attribute() -> None:
    harness = Harness("SELECT x FROM s [NOW]", {"s": ("x DOUBLE", "WATTR x RESOLUTION 0.5")})
    harness.push("s", [(0.5,), (1.0,)])
    harness.punctuate("s", 1.0)
    assert [change.at for change in harness.take() if change.op == "+"] == [0.5]
    with pytest.raises(DataError, match="RESOLUTION"):
        harness.punctuate("s", 1.2)
