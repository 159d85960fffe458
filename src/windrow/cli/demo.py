"""`windrow demo`: standing queries over a bundled stream, with their answers as they become final."""

from __future__ import annotations

import sys
import time
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from windrow.algebra.changes import Change

QUERY = """\
SELECT segment, MAX(speed) AS fastest, MIN(speed) AS slowest, COUNT(*) AS readings
FROM traffic [RANGE 5 MINUTES SLIDE 1 MINUTE]
GROUP BY segment"""
NOON = 1_700_049_600  # 2023-11-15 12:00:00 UTC
_BATCH_SECONDS = 10
_REFRESH_SECONDS = 0.08


class Source(StrEnum):
    """The bundled streams."""

    traffic = "traffic"


def demo(
    source: Annotated[Source, typer.Argument(help="Which bundled stream.")] = Source.traffic,
    seconds: Annotated[
        int, typer.Option(min=60, max=3600, help="How much of the stream, in its own time.")
    ] = 600,
    rate: Annotated[int, typer.Option(min=1, max=20, help="Rows per second of stream time.")] = 2,
) -> None:
    """Run the main job on a bundled stream and print answers as they become final."""
    from windrow.testing import Harness, traffic

    harness = Harness(QUERY, {"traffic": (traffic.COLUMNS, "WATTR ts SLACK 5 SECONDS")})
    rows = traffic.readings(seconds, rate, NOON * traffic.SECOND)
    print(f"{QUERY}\n\n{len(rows)} readings of {len(traffic.SEGMENTS)} sensors, up to 5 s out of order\n")
    print(f"{'window':<22}{'segment':<9}{'fastest':>8}{'slowest':>9}{'readings':>10}")
    began, answers = time.monotonic(), 0
    for batch in traffic.batches(rows, _BATCH_SECONDS * rate):
        harness.push("traffic", batch)
        answers += _show(harness.take())
        if sys.stdout.isatty():
            time.sleep(_REFRESH_SECONDS)
    harness.finish()
    answers += _show(harness.take())
    print(f"\n{len(rows)} rows in, {answers} answers out, {time.monotonic() - began:.1f} s")


def _show(changes: list[Change]) -> int:
    """One block of lines per extent; a jam is marked."""
    last = None
    for change in changes:
        segment, fastest, slowest, readings = change.row
        window = f"{_clock(change.at - 300_000_000)} to {_clock(change.at)}" if change.at != last else ""
        jam = "  slow" if slowest < 30 else ""
        print(f"{window:<22}{segment:<9}{fastest:>8.1f}{slowest:>9.1f}{readings:>10}{jam}", flush=True)
        last = change.at
    return len(changes)


def _clock(micros: int) -> str:
    return time.strftime("%H:%M:%S", time.gmtime(micros // 1_000_000))
