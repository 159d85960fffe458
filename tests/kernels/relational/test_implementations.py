"""What EXPLAIN is told of the general kernels is what runs."""

from __future__ import annotations

import pytest
from tests.kernels.relational.more_plans import Drawer
from tests.kernels.relational.test_choices import join, negated

from windrow.algebra.plan import Emit, Plan, Window
from windrow.errors import QueryError
from windrow.kernels.relational.expiry_layouts import (
    Counted,
    Ends,
    Evaluation,
    Negation,
    Options,
    Strategy,
    Tables,
)
from windrow.kernels.relational.implementations import Implementation, placed, report
from windrow.kernels.relational.program import RelationalProgram
from windrow.windows.ranges import RangeWindow
from windrow.windows.rows import RowsWindow

CONTINUOUS = join(RangeWindow(60), RangeWindow(30), RangeWindow(30))
PERIODIC = join(RangeWindow(60, 10), RangeWindow(30, 10))
SINGLE = next(node for node in CONTINUOUS.walk() if isinstance(node, Window))
COUNTED = join(RowsWindow(5), RowsWindow(5))


def implementations_of(program: RelationalProgram) -> dict[tuple[int, ...], Implementation]:
    """How each operator of a query runs, by its place in the plan."""
    return {
        path: report(program, node, operator)
        for path, node, _, operator in placed(program)
        if operator is not None
    }


def implementation_of(plan: Plan, options: Options | None = None) -> Implementation:
    """How one operator runs, if it is what a query asks for."""
    return implementations_of(RelationalProgram(Emit(plan), options))[0,]


@pytest.mark.parametrize(
    ("emit", "options", "words"),
    [
        (CONTINUOUS, Options(), ["hash tables per window, eager, probing order a → b → c", "FIFO chunks"]),
        (CONTINUOUS, Options(), ["results WK, their ends told when they come"]),
        (CONTINUOUS, Options(ends=Ends.CARRIED, buckets=4), ["results WK, for a calendar of 4 buckets"]),
        (CONTINUOUS, Options(tables=Tables.LOOPS), ["nested loops, eager", "results WK, for a calendar"]),
        (PERIODIC, Options(), ["results WK, for a calendar"]),
        (CONTINUOUS, Options(expire_every=0), ["expired rows leave at once"]),
        (CONTINUOUS, Options(expire_every=9), ["expired rows leave every 9 instants"]),
        (CONTINUOUS, Options(Strategy.NT), ["inputs in a hash with negative rows"]),
        (CONTINUOUS, Options(Strategy.DIRECT), ["inputs in a list that is looked through"]),
        (PERIODIC, Options(), ["hash tables per window, lazy"]),
        (PERIODIC, Options(evaluation=Evaluation.EAGER), ["eager", "results are held until they begin"]),
        (COUNTED, Options(), ["inputs in a hash with negative rows", "results STR"]),
        (COUNTED, Options(counted=Counted.CATALOGUES), ["results in a catalogue per window"]),
    ],
)
def test_joins_say_what_was_chosen(emit: Emit, options: Options, words: list[str]) -> None:
    text = str(implementation_of(emit.input, options))
    assert all(word in text for word in words), text


@pytest.mark.parametrize(
    ("emit", "options", "words"),
    [
        (Emit(SINGLE), Options(), "in FIFO chunks"),
        (Emit(SINGLE), Options(Strategy.DIRECT), "in a list that is looked through"),
        (CONTINUOUS, Options(ends=Ends.CARRIED, buckets=4), "in a calendar of 4 buckets"),
        (CONTINUOUS, Options(Strategy.DIRECT, buckets=4), "in a list that is looked through"),
    ],
)
def test_the_root_keeps_what_is_to_end_as_strategy_and_pattern_say(
    emit: Emit, options: Options, words: str
) -> None:
    assert implementations_of(RelationalProgram(emit, options))[()].reason.endswith(f"known times {words}")


def test_the_root_keeps_nothing_where_ends_are_told() -> None:
    assert "nothing is kept" in implementations_of(RelationalProgram(CONTINUOUS))[()].reason


@pytest.mark.parametrize("kind", ["NOT EXISTS", "EXCEPT"])
def test_negations_say_how_results_leave(kind: str) -> None:
    plan = negated(kind)
    carried = Options(ends=Ends.CARRIED)
    assert "as the share of early ones says" in str(implementation_of(plan, carried))
    told = "their ends told when they come" in str(implementation_of(plan))
    assert told == (kind == "NOT EXISTS")
    for form in Negation:
        found = implementation_of(plan, Options(negation=form))
        assert found.reason.startswith(f"results leave by {form.value}")
    assert "since rows below do" in str(implementation_of(plan, Options(Strategy.NT)))


def test_every_operator_of_random_plans_is_described() -> None:
    described = 0
    for seed in range(120):
        try:
            program = RelationalProgram(Drawer(seed).query())
        except QueryError:
            continue
        found = implementations_of(program)
        assert () in found
        assert len(found) == 1 + len(program.builder.built | program.builder.sources_built)
        stateful = [each for path, each in found.items() if path and each.state]
        assert all(each.name and each.reason for each in stateful), found
        assert all(each.kind for each in found.values())
        described += len(found)
    assert described > 200
