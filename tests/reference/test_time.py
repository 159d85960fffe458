"""Progress, lateness, finality and the end of input: what is emitted is never revised."""

from __future__ import annotations

import pytest

from windrow.errors import DataError
from windrow.testing import Change, Harness

TABLE = {"t": "k BIGINT, v BIGINT"}


def harness(query: str, options: str = "WATTR ts", tables: dict[str, str] | None = None) -> Harness:
    return Harness(query, {"s": ("a BIGINT, ts BIGINT", options)}, tables)


def shown(changes: list[Change]) -> list[tuple[str, tuple[object, ...], int]]:
    return [(change.op, change.row, change.at) for change in changes]


class TestTheEndOfInput:
    def test_the_last_report_is_the_first_at_or_after_the_last_endpoint(self) -> None:
        h = harness("SELECT COUNT(*) FROM s [LANDMARK SLIDE 10]")
        h.push("s", [(1, 3), (1, 27)])
        h.finish()
        assert shown(h.take()) == [("+", (1,), 10), ("+", (1,), 20), ("+", (2,), 30)]

    @pytest.mark.parametrize("early", [True, False], ids=["taken before", "taken once"])
    def test_reports_the_clock_had_reached_stay(self, early: bool) -> None:
        h = harness("SELECT COUNT(*) FROM s [LANDMARK SLIDE 10]")
        h.push("s", [(1, 3)])
        h.punctuate("s", 45)
        changes = h.take() if early else []
        h.finish()
        assert shown(changes + h.take()) == [("+", (1,), end) for end in (10, 20, 30, 40)]

    def test_tables_end_as_well(self) -> None:
        h = harness("SELECT ISTREAM(a, v) FROM s [RANGE 10], t WHERE a = k", tables=TABLE)
        h.update("t", 0, insert=[(1, 7)])
        h.punctuate("t", 5)
        h.push("s", [(1, 3), (1, 8)])
        h.finish()
        assert shown(h.take()) == [("+", (1, 7), 3), ("+", (1, 7), 8)]

    def test_a_sealed_stream_refuses_rows(self) -> None:
        h = harness("SELECT a FROM s")
        h.finish()
        with pytest.raises(DataError, match="sealed"):
            h.push("s", [(1, 1)])


class TestGroupsThatAreFinalOneByOne:
    QUERIES = (
        "SELECT RSTREAM(a, COUNT(*)) FROM s [RANGE 10] GROUP BY a",
        "SELECT a, COUNT(*) FROM s [LANDMARK SLIDE 10] GROUP BY a",
        "SELECT ISTREAM(COUNT(*)) FROM s [RANGE 5] GROUP BY a",
        "SELECT COUNT(*) FROM s [RANGE 5] GROUP BY a",
        "SELECT a, SUM(ts) FROM s [RANGE 5] GROUP BY a",
    )

    @pytest.mark.parametrize("query", QUERIES)
    def test_the_policy_changes_when_answers_come_but_not_the_answers(self, query: str) -> None:
        answers = []
        for options in ("WATTR ts", "WATTR ts ORDERED PER a"):
            h = harness(query, options)
            h.push("s", [(1, 0), (2, 5), (1, 6), (2, 26)])
            h.finish()
            answers.append(h.take())
        assert answers[0] == answers[1]

    def test_a_late_row_is_kept_from_where_its_group_is(self) -> None:
        h = harness("SELECT a, COUNT(*) FROM s [RANGE 10 SLIDE 10] GROUP BY a", "WATTR ts LATE KEEP")
        h.push("s", [(1, 5)])
        h.punctuate("s", 10, where={"a": 1})
        assert shown(h.take()) == [("+", (1, 1), 10)]
        h.push("s", [(1, 6)])
        h.finish()
        assert h.take() == []

    def test_a_table_cannot_change_below_any_groups_clock(self) -> None:
        h = harness("SELECT a, COUNT(*) FROM s [RANGE 10 SLIDE 10], t WHERE a = k GROUP BY a", tables=TABLE)
        h.update("t", 0, insert=[(1, 7)])
        h.push("s", [(1, 5)])
        h.punctuate("s", 10, where={"a": 1})
        with pytest.raises(DataError, match="answers up to 10 are given"):
            h.update("t", 3, insert=[(1, 8)])


class TestLateRows:
    def test_a_row_is_late_by_what_was_known_before_its_batch(self) -> None:
        h = harness("SELECT a FROM s", "WATTR ts ORDERED")
        h.push("s", [(1, 9), (2, 3)])
        assert h.late("s") == []
        h.push("s", [(3, 8), (4, 9)])
        assert h.late("s") == [(3, 8)]

    def test_kept_in_a_continuous_query_it_is_seen_from_the_clock_on(self) -> None:
        h = harness("SELECT a FROM s [RANGE 10]", "WATTR ts ORDERED LATE KEEP")
        h.push("s", [(1, 5)])
        h.push("s", [(2, 1)])
        h.finish()
        assert shown(h.take()) == [("+", (1,), 5), ("+", (2,), 5), ("-", (2,), 11), ("-", (1,), 15)]

    def test_kept_in_a_periodic_query_it_misses_extents_that_are_out(self) -> None:
        h = harness("SELECT COUNT(*) FROM s [RANGE 10 SLIDE 5]", "WATTR ts ORDERED LATE KEEP")
        h.push("s", [(1, 4), (1, 5)])
        assert shown(h.take()) == [("+", (1,), 5)]
        h.push("s", [(1, 3)])
        h.finish()
        assert shown(h.take()) == [("+", (3,), 10), ("+", (1,), 15)]

    def test_kept_under_a_nested_periodic_query_it_revises_nothing(self) -> None:
        nested = "SELECT n FROM (SELECT COUNT(*) AS n FROM s [RANGE 10 SLIDE 10]) AS q [RANGE 5]"
        h = harness(nested, "WATTR ts ORDERED LATE KEEP")
        h.push("s", [(1, 5), (2, 10)])
        assert shown(h.take()) == [("+", (1,), 9)]
        h.push("s", [(3, 7)])
        h.finish()
        assert shown(h.take()) == [("-", (1,), 14), ("+", (1,), 19), ("-", (1,), 24)]

    def test_a_batch_with_a_bad_row_is_refused_whole(self) -> None:
        h = harness("SELECT a FROM s")
        with pytest.raises(DataError, match="row 2 of the batch has no `ts`"):
            h.push("s", [(1, 1), (2, None)])
        h.finish()
        assert h.take() == []


class TestTables:
    QUERY = "SELECT ISTREAM(a, v) FROM s [RANGE 10], t WHERE a = k"

    def test_a_table_cannot_take_the_clock_back(self) -> None:
        h = harness(self.QUERY, tables=TABLE)
        h.punctuate("s", 50)
        with pytest.raises(DataError, match="cannot hold the clock at 5"):
            h.punctuate("t", 5)

    def test_a_table_keeps_its_own_promise(self) -> None:
        h = harness(self.QUERY, tables=TABLE)
        h.punctuate("t", 50)
        with pytest.raises(DataError, match="known up to 50"):
            h.update("t", 30, insert=[(1, 1)])

    def test_an_nrr_table_is_read_strictly_before_the_youngest_row(self) -> None:
        h = Harness(
            "SELECT ISTREAM(a.k, v) FROM a [RANGE 10], b [RANGE 10], t WHERE a.k = b.k AND a.k = t.k",
            {"a": "k BIGINT, ts BIGINT", "b": "k BIGINT, ts BIGINT"},
            TABLE,
        )
        h.update("t", 5, insert=[(1, 5)])
        h.update("t", 6, insert=[(1, 6)])
        h.push("a", [(1, 4)])
        h.push("b", [(1, 6)])
        h.finish()
        assert shown(h.take()) == [("+", (1, 5), 6)]


class TestSources:
    def test_a_silent_source_is_left_out_after_its_timeout(self) -> None:
        h = harness("SELECT COUNT(*) FROM s [RANGE 5 SLIDE 5]", "WATTR ts ORDERED PER a IDLE 30 SECONDS")
        h.push("s", [(1, 2), (2, 9)])
        assert h.take() == []
        h.advance(30_000_000)
        h.push("s", [(2, 11)])
        assert shown(h.take()) == [("+", (1,), 5), ("+", (1,), 10)]

    def test_promises_about_every_source_move_the_stream(self) -> None:
        h = harness("SELECT COUNT(*) FROM s [RANGE 5 SLIDE 5]", "WATTR ts ORDERED PER a")
        h.push("s", [(1, 2), (2, 3)])
        for source in (1, 2):
            h.punctuate("s", 5, where={"a": source})
        assert shown(h.take()) == [("+", (2,), 5)]

    def test_rows_can_be_punctuation_only(self) -> None:
        h = harness("SELECT COUNT(*) FROM s [RANGE 5 SLIDE 5]", "WATTR ts PUNCTUATED BY a WHEN ts IS NULL")
        h.push("s", [(1, 2), (10, None)])
        assert shown(h.take()) == [("+", (1,), 5)]
