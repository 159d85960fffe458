"""A function as a sink: called once per commit, and its failures are the query's, not the engine's."""

from __future__ import annotations

import traceback
from typing import NoReturn

import pyarrow as pa
import pytest
from tests.sinks.support import delivery_of, nothing, numbers

from windrow.errors import SinkError
from windrow.sinks import Callback


def test_called_once_per_commit_with_all_rows() -> None:
    calls: list[tuple[int, pa.Table]] = []
    sink = Callback("top", lambda table, commit: calls.append((commit, table)))
    for commit in (1, 2, 2):
        sink.deliver(delivery_of(numbers(commit), commit))
    sink.deliver(nothing(3))
    sink.close()
    assert [(commit, table.equals(numbers(commit))) for commit, table in calls] == [
        (1, True),
        (2, True),
        (2, True),
    ]


@pytest.mark.parametrize("error", [ValueError("no such host"), SystemExit(2), GeneratorExit()])
def test_failures_become_sink_errors(error: BaseException) -> None:
    def send(table: pa.Table, commit: int) -> NoReturn:
        raise error

    with pytest.raises(SinkError) as caught:
        Callback("top", send).deliver(delivery_of(numbers(1)))
    assert "sink of query `top`, failed at commit 42" in caught.value.message
    assert type(error).__name__ in caught.value.message
    assert "send" in caught.value.message
    assert caught.value.__cause__ is error
    assert "in send" in "".join(traceback.format_exception(caught.value))


def test_an_interrupt_from_the_keyboard_passes() -> None:
    def interrupted(table: pa.Table, commit: int) -> NoReturn:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Callback("top", interrupted).deliver(delivery_of(numbers(1)))
