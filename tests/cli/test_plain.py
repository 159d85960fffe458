"""A run in a pipe: progress on standard error now and then, answers on standard output."""

from __future__ import annotations

import pyarrow as pa
import pytest

from windrow.cli.answers import INSTANTS, Answers, AnswersByQuery
from windrow.cli.plain import PlainView
from windrow.cli.snapshots import QueryNow, RunSnapshot, StreamNow
from windrow.errors import SinkError
from windrow.sinks import Delivery


def at(rows: int, answers: Answers | None = None) -> RunSnapshot:
    stream = StreamNow("s", rows, 100.0, 0, 70, 75, is_time=False)
    return RunSnapshot(3, (stream,), (QueryNow("q", "running", 2, answers=answers),))


def test_a_line_every_few_seconds_if_rows_come(capsys: pytest.CaptureFixture[str]) -> None:
    with PlainView() as view:
        for second, rows in enumerate([0, 0, 10, 20, 30, 40, 50, 50, 50, 50, 50, 50, 60]):
            view.show(at(rows), float(second))
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.splitlines() == [
        "5 s  commit 3  s: 40 rows, 100/s, clock 70, lag 5, late 0  2 answers",
        "10 s  commit 3  s: 50 rows, 100/s, clock 70, lag 5, late 0  2 answers",
    ]


def test_new_answers_once(capsys: pytest.CaptureFixture[str]) -> None:
    answers = Answers(60, ("k", "n"), (("a", 1), ("b", None), ("c", 3)), 3, 1)
    with PlainView(answers=2) as view:
        view.show(at(1, answers), 0.0)
        view.show(at(1, answers), 0.2)
    assert capsys.readouterr().out.splitlines() == [
        "q at 60: 3 rows",
        "  k     n",
        "  a     1",
        "  b  NULL",
        "  … 1 more",
    ]


def test_a_problem_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    PlainView().tell(SinkError("the disk is full", hint="make room"))
    assert capsys.readouterr().err == "error[sink]: the disk is full\n  = make room\n"


def test_answers_are_kept_within_bounds() -> None:
    sink = AnswersByQuery().sink("q")
    table = pa.table({"at": [n // 3 for n in range(3000)], "v": list(range(3000))})
    sink.deliver(Delivery("q", 1, table.schema, lambda: iter([table.slice(0, 1000), table.slice(1000)])))
    assert len(sink.since(0)) == INSTANTS
    assert sink.last is not None
    assert (sink.last.at, sink.last.rows) == (999, ((2997,), (2998,), (2999,)))


def test_an_instant_that_comes_in_pieces_is_one() -> None:
    sink = AnswersByQuery().sink("q")
    table = pa.table({"at": [5] * 300, "v": list(range(300))})
    sink.deliver(Delivery("q", 1, table.schema, lambda: iter([table.slice(0, 150), table.slice(150)])))
    (kept,) = sink.since(0)
    assert (kept.total, len(kept.rows), kept.number) == (300, 100, 1)
