"""An engine that delivers three commits, for tests that end it early. Runs in a process of its own."""

from __future__ import annotations

import os
import resource
import signal
from typing import TYPE_CHECKING

import pyarrow as pa
from tests.sinks.support import delivery_of, numbers

from windrow.errors import SinkError
from windrow.sinks import Delivery, open_sink

if TYPE_CHECKING:
    from collections.abc import Iterator

COMMITS = (1, 2, 3)
ROWS = 5


def deliver(url: str, first: int = 1, kill_at: str = "", passage: int = 1) -> None:
    """Deliver the commits from one on; be killed at a point, the first or a later time it is passed."""
    passed = 0

    def hook(point: str) -> None:
        nonlocal passed
        passed += point == kill_at
        if point == kill_at and passed == passage:
            os.kill(os.getpid(), signal.SIGKILL)

    sink = open_sink(url, "top", hook=hook)
    for commit in COMMITS[first - 1 :]:
        delivery = delivery_of(numbers(commit, ROWS), commit)
        sink.deliver(delivery_killed_among_rows(delivery) if kill_at == "among-rows" else delivery)
    sink.close()


def delivery_killed_among_rows(delivery: Delivery) -> Delivery:
    """Its second reading, which is the one that is written, is never finished."""
    readings = 0

    def tables() -> Iterator[pa.Table]:
        nonlocal readings
        readings += 1
        for number, table in enumerate(delivery.tables()):
            if readings == 2 and number == 2:
                os.kill(os.getpid(), signal.SIGKILL)
            yield table

    return Delivery(delivery.query, delivery.commit, delivery.schema, tables)


def deliver_without_room(url: str) -> None:
    """Deliver with files limited to a few bytes; the exit status says how it failed."""
    sink = open_sink(url, "top")
    sink.deliver(delivery_of(numbers(1), 1))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300))
    try:
        sink.deliver(delivery_of(numbers(2, 5000), 2, cut=5000))
    except SinkError as error:
        os._exit(7 if error.code == "disk-full" and "top" in error.message else 8)
    os._exit(9)
