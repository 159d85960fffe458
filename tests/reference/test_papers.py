"""The situations the papers draw, on data of our own. Time runs in ticks of an integer attribute."""

from __future__ import annotations

from itertools import pairwise

import pytest
from tests.support.observation import pieces_of

from windrow.reference.rows import AcceptedRow, World
from windrow.testing import Change, Harness

KEYED = "k STRING, t BIGINT"
NOON = 12 * 60


def plus(at: int, *row: object) -> Change:
    return Change("+", row, at)


def minus(at: int, *row: object) -> Change:
    return Change("-", row, at)


def run(query: str, **streams: list[tuple[object, ...]]) -> list[Change]:
    """All changes of a query over streams of (k, t) rows."""
    harness = Harness(query, dict.fromkeys(streams, KEYED))
    for name, rows in streams.items():
        harness.push(name, rows)
    harness.finish()
    return harness.take()


class TestWindowIds:
    """Li et al., section 2: speeds per segment over the past 5 minutes, every minute, since 12:00."""

    QUERY = """
        SELECT segment, MAX(speed), MIN(speed), window_start, window_end
        FROM traffic [RANGE 5 SLIDE 1 ORIGIN 720] GROUP BY segment
    """

    @pytest.fixture
    def harness(self) -> Harness:
        return Harness(self.QUERY, {"traffic": ("segment STRING, speed INT, t BIGINT", "WATTR t")})

    def test_a_reading_is_in_five_extents(self, harness: Harness) -> None:
        """12:10 is in the extents that end from 12:11 (number 10) to 12:15 (number 14)."""
        harness.push("traffic", [("s6", 50, NOON + 10)])
        harness.finish()
        extents = range(10, 15)
        ends = [NOON + w + 1 for w in extents]
        assert harness.take() == [plus(end, "s6", 50, 50, end - 5, end) for end in ends]

    def test_a_segment_that_is_done_is_reported_while_others_wait(self, harness: Harness) -> None:
        harness.push("traffic", [("s6", 50, NOON + 10), ("s7", 40, NOON + 10), ("s6", 65, NOON + 6)])
        harness.punctuate("traffic", NOON + 11, where={"segment": "s6"})
        done = harness.take()
        assert [change.row[0] for change in done] == ["s6"] * 5
        assert done[-1] == plus(NOON + 11, "s6", 65, 50, NOON + 6, NOON + 11)
        harness.punctuate("traffic", NOON + 11)
        assert harness.take() == [plus(NOON + 11, "s7", 40, 40, NOON + 6, NOON + 11)]


class TestSlideByTuple:
    """Li et al., section 6.1.1: an extent per row, five rows, the last one out of order."""

    QUERY = "SELECT COUNT(*) FROM s [RANGE 10 RATTR t SLIDE 1 ROW SATTR row_num]"

    def test_counts_include_the_row_that_came_late(self) -> None:
        """t1=0, t2=4, t3=6 overlap; t4=12 is out of t1's reach; t5=2 comes last, between t1 and t2.

        t:   0 . 2 . 4 . 6 . . . . . 12
        row: 1   5   2   3           4
        """
        rows = [("a", 0), ("b", 4), ("c", 6), ("d", 12), ("e", 2)]
        assert run(self.QUERY, s=rows) == [plus(0, 1), plus(2, 2), plus(4, 3), plus(6, 4), plus(12, 3)]

    def test_only_extents_below_the_punctuation_are_emitted(self) -> None:
        harness = Harness(self.QUERY, {"s": KEYED})
        harness.push("s", [("a", 0), ("b", 4), ("c", 6), ("d", 12), ("e", 2)])
        harness.punctuate("s", 5)
        assert harness.take() == [plus(0, 1), plus(2, 2), plus(4, 3)]


class TestExpiry:
    """Patroumpas and Sellis, section 4: what expiry does to each operator."""

    def test_a_distinct_value_is_replaced_by_its_youngest_duplicate(self) -> None:
        """`a` at 0, 1 and 3 under RANGE 4: the first copy stays until 4, then the youngest takes over."""
        plan = Harness("SELECT DISTINCT k FROM s [RANGE 4]", {"s": KEYED}).plan
        arrivals = tuple(AcceptedRow(("a", t), n) for n, t in enumerate((0, 1, 3), start=1))
        pieces = pieces_of(plan, plan.input, World({"s": arrivals}))
        assert [(piece.fact.values, piece.vs, piece.ve) for piece in pieces] == [
            (("a",), 0, 4),
            (("a",), 4, 7),
        ]
        changes = run("SELECT DISTINCT k FROM s [RANGE 4]", s=[("a", 0), ("a", 1), ("a", 3)])
        assert changes == [plus(0, "a"), minus(7, "a")]

    def test_a_maximum_is_replaced_when_it_expires(self) -> None:
        assert run("SELECT MAX(k) FROM s [ROWS 2]", s=[("9", 0), ("4", 1), ("7", 2)]) == [
            plus(0, "9"),
            plus(2, "7"),
            minus(2, "9"),
        ]

    def test_a_join_result_expires_before_an_older_one(self) -> None:
        """`old` pairs fresh rows; `new` pairs a fresh row with one about to leave its window."""
        query = "SELECT a.k FROM a [RANGE 6], b [RANGE 6] WHERE a.k = b.k"
        changes = run(query, a=[("new", 0), ("old", 3)], b=[("old", 3), ("new", 5)])
        assert changes == [plus(3, "old"), plus(5, "new"), minus(6, "new"), minus(9, "old")]

    def test_a_result_of_a_difference_is_retracted(self) -> None:
        """`c` outlives `m`, until it is seen on the right as well."""
        query = "SELECT k FROM p [LANDMARK] EXCEPT ALL SELECT k FROM s [LANDMARK]"
        changes = run(query, p=[("c", 0), ("m", 1)], s=[("m", 2), ("c", 4)])
        assert changes == [plus(0, "c"), plus(1, "m"), minus(2, "m"), minus(4, "c")]


class TestUnboundedStreams:
    """Golab, section 2.2.1: five operators over unbounded streams."""

    def test_a_selection_appends_what_passes(self) -> None:
        changes = run("SELECT k FROM s WHERE k <> 'b'", s=[("a", 0), ("b", 1), ("c", 2)])
        assert changes == [plus(0, "a"), plus(2, "c")]

    def test_a_join_appends_its_results(self) -> None:
        query = "SELECT a.t, b.t FROM a, b WHERE a.k = b.k"
        assert run(query, a=[("x", 0), ("x", 2)], b=[("y", 1), ("x", 3)]) == [plus(3, 0, 3), plus(3, 2, 3)]

    def test_distinct_appends_new_values_only(self) -> None:
        changes = run("SELECT DISTINCT k FROM s", s=[("a", 0), ("b", 1), ("b", 2)])
        assert changes == [plus(0, "a"), plus(1, "b")]

    def test_aggregation_appends_a_value_only_when_it_has_changed(self) -> None:
        changes = run("SELECT ISTREAM(MAX(k)) FROM s", s=[("a", 0), ("b", 1), ("a", 2), ("c", 3)])
        assert changes == [plus(0, "a"), plus(1, "b"), plus(3, "c")]

    def test_negation_takes_back_what_is_matched_later(self) -> None:
        query = "SELECT k FROM a WHERE NOT EXISTS (SELECT * FROM b WHERE b.k = a.k)"
        assert run(query, a=[("c", 0), ("d", 1)], b=[("e", 2), ("d", 3)]) == [
            plus(0, "c"),
            plus(1, "d"),
            minus(3, "d"),
        ]


class TestFourKindsOfAggregateWindows:
    """Golab, section 3.3.2: only external windows take an earlier sum back; only sliding ones forget rows."""

    ROWS = ((5, 1), (1, 2), (2, 3), (4, 4))

    def sums(self, window: str) -> list[tuple[str, int, int]]:
        harness = Harness(f"SELECT SUM(v) FROM s [{window}]", {"s": "v BIGINT, t BIGINT"})
        harness.push("s", self.ROWS)
        harness.finish()
        return [(change.op, change.row[0], change.at) for change in harness.take()]

    def test_a_sliding_sum_within_retracts_nothing(self) -> None:
        assert self.sums("ROWS 2 INTERNAL") == [("+", 5, 1), ("+", 6, 2), ("+", 3, 3), ("+", 6, 4)]

    def test_a_sliding_sum_retracts_what_it_told(self) -> None:
        assert self.sums("ROWS 2") == [
            ("+", 5, 1),
            ("+", 6, 2),
            ("-", 5, 2),
            ("+", 3, 3),
            ("-", 6, 3),
            ("+", 6, 4),
            ("-", 3, 4),
        ]

    def test_a_sum_of_all_rows_within_retracts_nothing(self) -> None:
        assert self.sums("UNBOUNDED INTERNAL") == [("+", 5, 1), ("+", 6, 2), ("+", 8, 3), ("+", 12, 4)]

    def test_a_sum_of_all_rows_retracts_what_it_told(self) -> None:
        assert self.sums("UNBOUNDED") == [
            ("+", 5, 1),
            ("+", 6, 2),
            ("-", 5, 2),
            ("+", 8, 3),
            ("-", 6, 3),
            ("+", 12, 4),
            ("-", 8, 4),
        ]


class TestPeriodicEvaluation:
    """Golab, section 3.3.4: a result that lives shorter than the period is lost, unless it is restored."""

    QUERY = "SELECT {}(a.k) FROM a [RANGE 4 SLIDE 5], b [RANGE 4 SLIDE 5] WHERE a.k = b.k"

    def changes(self, word: str) -> list[Change]:
        """`x` meets in [3, 4), between refreshes; `y` in [8, 12), over the refresh at 10."""
        return run(self.QUERY.format(word), a=[("x", 0), ("y", 8)], b=[("x", 3), ("y", 8)])

    def test_lost_without_restore(self) -> None:
        assert self.changes("RSTREAM") == [plus(10, "y")]

    def test_with_restore_rows_that_come_back_are_no_news(self) -> None:
        assert self.changes("ISTREAM_RESTORE") == [plus(5, "x"), plus(10, "y")]
        assert self.changes("RSTREAM_RESTORE") == [plus(5, "x"), plus(10, "y")]


class TestThreeWindows:
    """Golab, section 3.3.2: a third window must not meet pairs whose parts have expired."""

    THREE = """
        SELECT a.t, b.t, c.t FROM a [RANGE 5 {0}], b [RANGE 5 {0}], c [RANGE 5 {0}]
        WHERE a.k = b.k AND b.k = c.k
    """
    PAIR_FIRST = """
        SELECT p.at, p.bt, c.t
        FROM (SELECT a.k AS k, a.t AS at, b.t AS bt FROM a [RANGE 5 {0}], b [RANGE 5 {0}] WHERE a.k = b.k) p,
             c [RANGE 5 {0}]
        WHERE p.k = c.k
    """

    def changes(self, query: str) -> list[Change]:
        return run(query, a=[("x", 0)], b=[("x", 1)], c=[("x", 2), ("x", 9)])

    @pytest.mark.parametrize("query", [THREE, PAIR_FIRST], ids=["three at once", "a pair first"])
    def test_internal_results_stay_but_their_parts_expire(self, query: str) -> None:
        assert self.changes(query.format("INTERNAL")) == [plus(2, 0, 1, 2)]

    @pytest.mark.parametrize("query", [THREE, PAIR_FIRST], ids=["three at once", "a pair first"])
    def test_external_results_expire_with_their_first_part(self, query: str) -> None:
        assert self.changes(query.format("")) == [plus(2, 0, 1, 2), minus(5, 0, 1, 2)]


class TestStatesOfWindows:
    """Propositions 1 to 5 of the paper on diverse windows, seen from outside: what an engine answers."""

    ROWS = tuple(enumerate([0, 1, 1, 4, 5, 9, 10, 12, 19, 20]))

    def changes(self, text: str) -> list[Change]:
        harness = Harness(text, {"s": ("n BIGINT, ts BIGINT", "WATTR ts ORDERED")}, executor="engine")
        harness.push("s", self.ROWS[:4])
        harness.push("s", self.ROWS[4:])
        harness.finish()
        return harness.take()

    def states(self, window: str) -> dict[int, set[int]]:
        found: dict[int, set[int]] = {}
        for change in self.changes(f"SELECT RSTREAM(n) FROM s [{window}]"):
            found.setdefault(change.at, set()).add(change.row[0])
        return found

    def test_successive_states_of_a_sliding_window_overlap_and_those_of_a_tumbling_one_do_not(self) -> None:
        sliding, tumbling = self.states("RANGE 8 SLIDE 4"), self.states("RANGE 4 SLIDE 4")
        for before, after in pairwise(sliding):
            if after == before + 4:
                shared = {number for number, at in self.ROWS if after - 8 <= at < before}
                assert sliding[before] & sliding[after] == shared
        assert all(tumbling[a].isdisjoint(tumbling[b]) for a, b in pairwise(tumbling))
        assert set().union(*tumbling.values()) == {number for number, _ in self.ROWS}

    @pytest.mark.parametrize("window", ["RANGE 6", "ROWS 3"])
    def test_rows_leave_as_they_came(self, window: str) -> None:
        changes = self.changes(f"SELECT n FROM s [{window}]")
        came = [change.row[0] for change in changes if change.op == "+"]
        left = [change.row[0] for change in changes if change.op == "-"]
        assert came == sorted(came)
        assert left == came[: len(left)] != []

    def test_a_landmark_only_grows(self) -> None:
        states = list(self.states("LANDMARK SLIDE 4").values())
        assert all(before <= after for before, after in pairwise(states))
        assert {change.op for change in self.changes("SELECT n FROM s [LANDMARK]")} == {"+"}
