"""The answers of one query as they come, printed under each other."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from windrow.cli.plain import answer_lines

if TYPE_CHECKING:
    from windrow.cli.answers import LastAnswers

_PAUSE = 0.2


def watch(
    name: str, kept: LastAnswers, seconds: float | None, goes_on: Callable[[], bool], *, most_rows: int
) -> None:
    """Print the last answers and all that follow, for so long, or until the run or the user ends it."""
    began = time.monotonic()
    last = kept.last
    seen = last.number - 1 if last is not None else 0
    try:
        while True:
            for answers in kept.since(seen):
                print("\n".join(answer_lines(name, answers, most_rows)), flush=True)
                seen = answers.number
            if not goes_on() or (seconds is not None and time.monotonic() - began >= seconds):
                return
            time.sleep(_PAUSE)
    except KeyboardInterrupt:
        print()
