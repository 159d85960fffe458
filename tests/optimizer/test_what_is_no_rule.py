"""Rewritings that look like rules and are none: the optimiser leaves them alone, and here is why.

Each test writes down the tempting plan and a history on which the oracle answers differently.
"""

from __future__ import annotations

import pytest
from tests.optimizer.checking import answers
from tests.support.plans import STREAMS

from windrow.algebra.expressions import ColumnRef, Expression, Literal
from windrow.algebra.functions import call
from windrow.algebra.operators import Aggregate, AggregateCall, Distinct, Filter, Join, Project, Union
from windrow.algebra.plan import Emit, Plan, Scan, StreamWord, Subquery, Window
from windrow.algebra.types import BIGINT
from windrow.optimizer.optimizer import alternatives, normalise
from windrow.optimizer.prune_columns import prune_columns
from windrow.reference.rows import AcceptedRow, World
from windrow.windows.landmark import LandmarkWindow
from windrow.windows.lifetime import LifetimeWindow
from windrow.windows.ranges import RangeWindow, UnboundedWindow
from windrow.windows.rows import RowsWindow
from windrow.windows.session import SessionWindow
from windrow.windows.slide_by_tuple import SlideByTupleWindow
from windrow.windows.spec import WindowSpec

A, B = (Scan(stream, alias) for stream, alias in zip(STREAMS, "ab", strict=True))
K, V = A.schema.column("a.k"), A.schema.column("a.v")


def history(*rows: tuple[int, int, int], second: tuple[tuple[int, int, int], ...] = ()) -> World:
    """Rows (k, v, ts) of both streams; every row lives for one instant, where it may say so."""
    arrivals = [
        [AcceptedRow((k, v, 1, ts), n) for n, (k, v, ts) in enumerate(part, 1)] for part in (rows, second)
    ]
    return World({"s1": tuple(arrivals[0]), "s2": tuple(arrivals[1])})


def equals(column: ColumnRef, value: int) -> Expression:
    return call("=", [column, Literal(value, BIGINT)])


def filters_below_windows(plan: Plan) -> bool:
    windows = [node for node in plan.walk() if isinstance(node, Window)]
    return any(isinstance(node, Filter) for window in windows for node in window.input.walk())


@pytest.mark.parametrize(
    "spec",
    [RowsWindow(2), RowsWindow(2, slide_rows=1), SessionWindow(3), SlideByTupleWindow(3)],
    ids=["ROWS", "ROWS SLIDE", "SESSION", "slide-by-tuple"],
)
def test_a_condition_stays_above_a_window_that_counts_or_links_rows(spec: WindowSpec) -> None:
    above = Emit(Filter(Window(A, spec), equals(K, 1)))
    below = Emit(Window(Filter(A, equals(K, 1)), spec))
    world = history((1, 1, 0), (2, 2, 2), (2, 3, 4), (1, 4, 6))
    assert answers(above, world) != answers(below, world)
    assert not filters_below_windows(normalise(above).plan)


@pytest.mark.parametrize("spec", [RowsWindow(2, partition_by=("k",)), SessionWindow(3, ("k",))])
def test_but_a_condition_on_partitions_drops_whole_ones(spec: WindowSpec) -> None:
    above = Emit(Filter(Window(A, spec), equals(K, 1)))
    pushed = normalise(above).plan
    world = history((1, 1, 0), (2, 2, 2), (2, 3, 4), (1, 4, 6))
    assert filters_below_windows(pushed)
    assert answers(above, world) == answers(pushed, world)
    assert not filters_below_windows(normalise(Emit(Filter(Window(A, spec), equals(V, 1)))).plan)


def test_windows_of_counted_rows_are_not_merged() -> None:
    """The last row of each stream is two rows, the last row of their union one."""
    apart = Emit(Union((Window(A, RowsWindow(1)), Window(B, RowsWindow(1)))), StreamWord.DSTREAM)
    merged = Emit(Window(Union((A, B)), RowsWindow(1)), StreamWord.DSTREAM)
    world = history((1, 1, 0), second=((1, 1, 5),))
    assert answers(apart, world) == []
    assert [change.at for change in answers(merged, world) or ()] == [5]
    assert normalise(apart).plan == apart


def test_windows_that_differ_are_not_merged() -> None:
    plan = Emit(Union((Window(A, RangeWindow(5)), Window(B, RangeWindow(6)))))
    assert normalise(plan).plan == plan


@pytest.mark.parametrize("spec", [RowsWindow(2), RangeWindow(3)], ids=["ROWS", "RANGE"])
def test_duplicates_are_not_dropped_below_a_window(spec: WindowSpec) -> None:
    """With counted rows duplicates take places; in time, the first of two duplicates expires first."""
    picked = Project(Window(A, spec), (("k", K),))
    above = Emit(Distinct(picked))
    all_rows = Project(Window(A, UnboundedWindow()), (("k", K),))
    stream = Subquery(Emit(Distinct(all_rows), StreamWord.ISTREAM), "d")
    below = Emit(Window(stream, spec))
    world = history((1, 1, 0), (2, 2, 1), (1, 3, 2), (3, 4, 9))
    assert answers(above, world) != answers(below, world)
    assert not [name for name, _ in alternatives(above)]


def test_a_condition_stays_above_a_landmark_that_repeats_its_answer() -> None:
    """The end of the input is the last endpoint of any row, also of one the condition drops."""
    spec = LandmarkWindow(start=0, slide=2)
    above = Emit(Filter(Window(A, spec), equals(K, 1)), StreamWord.RSTREAM)
    below = Emit(Window(Filter(A, equals(K, 1)), spec), StreamWord.RSTREAM)
    world = history((1, 1, 0), (2, 2, 7))
    assert [change.at for change in answers(above, world) or ()] == [2, 4, 6, 8]
    assert [change.at for change in answers(below, world) or ()] == [2]
    assert not filters_below_windows(normalise(above).plan)
    changes = Emit(above.input, StreamWord.ISTREAM)
    assert filters_below_windows(normalise(changes).plan)


def test_a_condition_that_can_fail_stays_where_it_is() -> None:
    """RANGE 1 SLIDE 4 never looks at the row that would divide by zero."""
    ratio = call(">", [call("div", [V, K]), Literal(0, BIGINT)])
    spec = RangeWindow(1, 4)
    above, below = Emit(Filter(Window(A, spec), ratio)), Emit(Window(Filter(A, ratio), spec))
    world = history((0, 1, 0), (1, 1, 3))
    assert answers(above, world)
    assert answers(below, world) is None
    assert normalise(above).plan == above


def test_a_guard_stays_below_what_it_guards() -> None:
    """AND goes on to its right side where the left is NULL; a condition above another never sees the row."""
    guard = call(">", [A.schema.column("a.e"), Literal(0, BIGINT)])
    ratio = call(">", [call("div", [V, K]), Literal(0, BIGINT)])
    window = Window(A, RangeWindow(4))
    apart = Emit(Filter(Filter(window, guard), ratio))
    together = Emit(Filter(window, call("and", [guard, ratio])))
    world = World({"s1": (AcceptedRow((0, 1, None, 0), 1), AcceptedRow((1, 1, 1, 2), 2))})
    assert answers(together, world) is None
    assert answers(normalise(apart).plan, world) == answers(apart, world) != []


def test_columns_stay_that_settle_ties_of_first() -> None:
    """Of two rows of one instant, the one with the smaller k is first."""
    first = AggregateCall("first", (V,), BIGINT)
    plan = Emit(Aggregate(Window(A, RangeWindow(4)), (), (("v", first),)))
    dropped = Project(Window(A, RangeWindow(4)), (("a.v", V),))
    wrong = Emit(Aggregate(dropped, (), (("v", first),)))
    world = history((1, 9, 0), (2, 3, 0))
    assert answers(plan, world) != answers(wrong, world)
    assert normalise(plan).plan == plan


def test_a_lifetime_keeps_the_column_it_reads() -> None:
    spec = LifetimeWindow(A.schema.column("a.e"))
    pruned = normalise(Emit(Project(Window(A, spec), (("v", V),)))).plan
    assert pruned.leaves[0].schema.names == ("a.v", "a.e")


def test_columns_are_not_dropped_inside_a_stream_of_changes() -> None:
    """ISTREAM tells that (1, 2) followed (1, 1); without the second column nothing has changed."""
    inner = Project(Window(A, RowsWindow(1)), (("k", K), ("v", V)))
    stream = Subquery(Emit(inner, StreamWord.ISTREAM), "q")
    plan = Emit(Project(Window(stream, RangeWindow(9)), (("k", stream.schema.column("q.k")),)))
    narrow = Subquery(Emit(Project(Window(A, RowsWindow(1)), (("k", K),)), StreamWord.ISTREAM), "q")
    wrong = Emit(Project(Window(narrow, RangeWindow(9)), (("k", narrow.schema.column("q.k")),)))
    world = history((1, 1, 0), (1, 2, 1))
    assert answers(plan, world) != answers(wrong, world)
    assert answers(normalise(plan).plan, world) == answers(plan, world)


def test_columns_of_distinct_rows_may_go_under_restore() -> None:
    """Results that no row of a stream stands for are told apart by what is reported, copy by copy."""
    pairs = Distinct(Project(Window(A, RangeWindow(2, 1)), (("a.k", K), ("a.v", V))))
    others = Project(Window(B, RangeWindow(3, 1)), (("b.k", B.schema.column("b.k")),))
    joined = Join((pairs, others), call("=", [K, B.schema.column("b.k")]))
    plan = Emit(Project(joined, (("k", K),)), StreamWord.ISTREAM_RESTORE)
    world = history((1, 1, 0), (1, 2, 2), second=((1, 1, 0), (1, 1, 1)))
    assert answers(prune_columns(plan), world) == answers(plan, world)
    assert answers(normalise(plan).plan, world) == answers(plan, world)


def test_a_projection_does_commute_with_counted_rows() -> None:
    """Equal instants are counted in the order of the rows as declared, whatever is dropped."""
    plan = Emit(Project(Window(A, RowsWindow(1)), (("v", V),)))
    pruned = normalise(plan).plan
    world = history((2, 1, 0), (1, 2, 0))
    assert pruned.leaves[0].schema.names == ("a.v",)
    assert answers(plan, world) == answers(pruned, world)


def test_a_join_of_streams_is_commutative_and_associative() -> None:
    windows = [Window(Scan(STREAMS[0], alias), RangeWindow(4)) for alias in "xyz"]
    x, y, z = windows
    nested = Emit(Join((Join((x, y)), z)))
    world = history((1, 1, 0), (2, 2, 3))
    assert answers(nested, world) == answers(normalise(nested).plan, world)
    assert len(normalise(nested).plan.input.children) == 3
