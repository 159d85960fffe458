"""Join costs and join orders, against the published examples and against loops that are run and counted.

The examples are those of Golab, Sliding Window Query Processing over Data Streams, section 5.3. Table 5.5
prints a rate of 100 for its first stream; all costs in the text hold with 10.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations

import pytest
from hypothesis import given, strategies as st

from windrow.kernels.relational.join.order import (
    JoinOrder,
    WindowStats,
    arrival_cost,
    augmented_order,
    candidate_orders,
    fast_windows,
    join_size,
    order_cost,
    selectivity_order,
)


def streams(*parameters: tuple[float, float, float]) -> JoinOrder:
    return tuple(WindowStats(str(number), *row) for number, row in enumerate(parameters, start=1))


TABLE_5_3 = streams((10, 100, 500), (1, 100, 50), (1, 200, 40), (3, 100, 5))
TABLE_5_5 = streams((10, 100, 40), (1, 100, 100), (1, 100, 8), (1, 100, 5))
TABLE_5_5_AS_PRINTED = streams((100, 100, 40), (1, 100, 100), (1, 100, 8), (1, 100, 5))
TABLE_5_6 = streams((11, 100, 200), (10, 100, 100), (1, 100, 65), (1, 100, 20))


def pick(windows: JoinOrder, numbers: str) -> JoinOrder:
    return tuple(windows[int(number) - 1] for number in numbers)


def numbers(order: JoinOrder) -> str:
    return "".join(window.name for window in order)


def survey(windows: Sequence[WindowStats]) -> dict[JoinOrder, float]:
    """What all orders cost."""
    return {order: order_cost(order) for order in permutations(windows)}


def mean(costs: dict[JoinOrder, float]) -> float:
    return math.fsum(costs.values()) / len(costs)


def least(costs: dict[JoinOrder, float]) -> set[str]:
    """Every order that ties for the least cost."""
    best = min(costs.values())
    return {numbers(order) for order, cost in costs.items() if math.isclose(cost, best)}


def probing_order(order: JoinOrder, arriving: WindowStats) -> JoinOrder:
    """The windows that a new tuple scans, outermost loop first (Table 5.2)."""
    return tuple(window for window in order if window != arriving)


# The published figures.


def test_join_sizes_are_those_of_table_5_4() -> None:
    table = {"12": 200, "13": 400, "14": 600, "23": 400, "24": 600, "34": 1500, "123": 800, "124": 1200}
    assert {joined: join_size(pick(TABLE_5_3, joined)) for joined in table} == table


def test_arrival_costs_are_the_published_x1_to_x4() -> None:
    assert [arrival_cost(TABLE_5_3, window) for window in TABLE_5_3] == [3800, 3800, 2400, 6000]


@pytest.mark.parametrize(
    ("windows", "order", "cost"),
    [
        (TABLE_5_3, "1234", 16000),
        (TABLE_5_5, "2134", 16200),
        (TABLE_5_5, "2341", 42600),
        (TABLE_5_5, "1234", 21000),
        (TABLE_5_6, "3142", 47976.9),
        (TABLE_5_6, "3412", 49542.3),
        (TABLE_5_6, "3124", 51953.8),
        (TABLE_5_6, "1234", 68200),
        (TABLE_5_6, "2134", 79000),
    ],
)
def test_orders_cost_what_is_published(windows: JoinOrder, order: str, cost: float) -> None:
    assert order_cost(pick(windows, order)) == pytest.approx(cost, abs=0.05)


@pytest.mark.parametrize(
    ("windows", "best", "best_orders", "average", "worst"),
    [
        (TABLE_5_3, 16000, {"1234"}, 45325, 86850),
        (TABLE_5_5, 16200, {"2134", "2143"}, 60266.7, 135150),
        (TABLE_5_6, 47976.9, {"3142", "4132"}, 63361.5, 79000),
    ],
)
def test_survey_of_all_orders(
    windows: JoinOrder, best: float, best_orders: set[str], average: float, worst: float
) -> None:
    costs = survey(windows)
    assert min(costs.values()) == pytest.approx(best, abs=0.05)
    assert least(costs) == best_orders
    assert mean(costs) == pytest.approx(average, abs=0.05)
    assert max(costs.values()) == pytest.approx(worst, abs=0.05)


def test_printed_rate_of_table_5_5_contradicts_its_text() -> None:
    assert order_cost(pick(TABLE_5_5_AS_PRINTED, "2134")) == 160200  # the text: 16200


@pytest.mark.parametrize(
    ("windows", "initial", "fast", "chosen", "examined"),
    [
        (TABLE_5_3, "1234", "1", "1234", 1),
        (TABLE_5_5, "2341", "1", "2134", 3),
        (TABLE_5_6, "3412", "12", "3142", 6),
    ],
)
def test_heuristics_on_the_published_examples(
    windows: JoinOrder, initial: str, fast: str, chosen: str, examined: int
) -> None:
    assert numbers(selectivity_order(windows)) == initial
    assert numbers(fast_windows(windows)) == fast
    assert (numbers(augmented_order(windows)), len(candidate_orders(windows))) == (chosen, examined)
    assert chosen in least(survey(windows))


def test_candidates_of_table_5_5_are_the_three_of_section_5_4_2() -> None:
    assert {numbers(order) for order in candidate_orders(TABLE_5_5)} == {"2341", "2134", "1234"}


def test_candidates_of_table_5_6_below_the_top_are_the_published_three_and_beat_the_mean() -> None:
    below_top = [order for order in candidate_orders(TABLE_5_6) if order[0] not in fast_windows(TABLE_5_6)]
    assert {numbers(order) for order in below_top} == {"3412", "3142", "3124"}
    assert max(map(order_cost, below_top)) < mean(survey(TABLE_5_6))


@pytest.mark.parametrize("rate", [1, 0.1])
def test_equally_fast_streams_are_not_fast(rate: float) -> None:
    assert fast_windows(streams((rate, 300, 9), (rate, 100, 9), (rate, 200, 9))) == ()


# Oracles and laws, on random joins.


@st.composite
def joins(draw: st.DrawFn, most: int = 5) -> JoinOrder:
    parameters = st.tuples(st.integers(1, 20), st.integers(1, 200), st.integers(1, 500))
    return streams(*draw(st.lists(parameters, min_size=2, max_size=most)))


@st.composite
def whole_joins(draw: st.DrawFn) -> JoinOrder:
    """Joins small enough to run, where each value occurs equally often in a window."""
    rows = draw(st.lists(st.tuples(*[st.integers(1, 3)] * 3), min_size=2, max_size=4))
    return streams(*((rate, values * copies / rate, values) for rate, values, copies in rows))


def contents(window: WindowStats) -> list[int]:
    return list(range(int(window.distinct))) * round(window.tuples / window.distinct)


def counted_comparisons(value: int, loops: Sequence[list[int]]) -> int:
    """Algorithm 2's nested loops for one new tuple, counting the comparisons they make."""
    if not loops:
        return 0
    return sum(1 + (counted_comparisons(value, loops[1:]) if other == value else 0) for other in loops[0])


@given(whole_joins())
def test_cost_is_what_the_loops_do_when_they_are_run(order: JoinOrder) -> None:
    counted = 0.0
    for arriving in order:
        loops = [contents(window) for window in probing_order(order, arriving)]
        values = range(int(arriving.distinct))
        counted += arriving.rate * sum(counted_comparisons(value, loops) for value in values) / len(values)
    assert order_cost(order) == pytest.approx(counted)


@given(joins())
def test_join_size_is_symmetric_in_its_windows(windows: JoinOrder) -> None:
    values = [window.distinct for window in windows]
    closed_form = math.prod(window.tuples for window in windows) / math.prod(sorted(values)[1:])
    assert join_size(windows) == pytest.approx(closed_form)


@given(joins())
def test_arrival_cost_has_the_second_form_of_the_section(order: JoinOrder) -> None:
    """X_i = lambda_i C_first + (1 / T_i) (phi C_next + ...), phi growing by one window per loop."""
    for arriving in order:
        first, *rest = probing_order(order, arriving)
        joined, inner = [arriving, first], 0.0
        for window in rest:
            inner += join_size(joined) * window.tuples
            joined.append(window)
        second_form = arriving.rate * first.tuples + inner / arriving.length
        assert arrival_cost(order, arriving) == pytest.approx(second_form)


@given(joins())
def test_heuristic_lies_between_the_best_order_and_the_initial_one(windows: JoinOrder) -> None:
    costs, choice, initial = survey(windows), augmented_order(windows), selectivity_order(windows)
    assert set(choice) == set(initial) == set(windows)
    best, worst = min(costs.values()), max(costs.values())
    assert best <= order_cost(choice) <= order_cost(initial) <= worst
    assert best <= mean(costs) * (1 + 1e-12)
    assert mean(costs) <= worst * (1 + 1e-12)


@given(joins(most=9))
def test_candidates_differ_and_are_at_most_n_to_the_number_of_fast(windows: JoinOrder) -> None:
    candidates = candidate_orders(windows)
    assert candidates[0] == selectivity_order(windows)
    assert len(candidates) == len(set(candidates)) <= len(windows) ** len(fast_windows(windows))
    assert all(set(order) == set(windows) for order in candidates)


@given(joins(), st.data())
def test_renaming_and_relisting_streams_changes_no_cost(windows: JoinOrder, data: st.DataObject) -> None:
    new_names = data.draw(st.permutations([window.name for window in windows]))
    renamed = tuple(replace(window, name=name) for window, name in zip(windows, new_names, strict=True))
    assert order_cost(renamed) == order_cost(windows)
    assert order_cost(augmented_order(renamed)) == order_cost(augmented_order(windows))
    relisted, costs = survey(data.draw(st.permutations(renamed))), survey(windows)
    assert min(relisted.values()) == min(costs.values())
    assert max(relisted.values()) == max(costs.values())
    assert mean(relisted) == pytest.approx(mean(costs))


@given(joins(), st.sampled_from([2.0, 8.0]))
def test_another_unit_of_time_scales_all_costs_alike(windows: JoinOrder, factor: float) -> None:
    rescaled = tuple(replace(w, rate=w.rate * factor, length=w.length / factor) for w in windows)
    assert order_cost(rescaled) == pytest.approx(factor * order_cost(windows))
    assert numbers(augmented_order(rescaled)) == numbers(augmented_order(windows))
