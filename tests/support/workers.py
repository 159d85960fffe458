"""Which worker runs which tests: those of a file stay together, and so do all files that use Spark.

A Spark session takes seconds to start and a gigabyte to keep: one of the workers has one, for all tests.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from xdist.scheduler import LoadFileScheduling

ROOT = Path(__file__).parents[2]
#: how a test asks for Spark: by the fixture, or by starting it itself
_ASKS = re.compile(r"\bspark: SparkSession\b|\bpytest\.mark\.jvm\b")


class OneSpark(LoadFileScheduling):
    """As `--dist loadfile`, with all tests that use Spark in one place."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return "spark" if uses_spark(ROOT / file) else file


@cache
def uses_spark(file: Path) -> bool:
    """Whether tests of a file ask for Spark.

    >>> [uses_spark(ROOT / "tests" / name) for name in ("spark/test_session.py", "windows/test_panes.py")]
    [True, False]
    """
    return _ASKS.search(file.read_text(encoding="utf-8")) is not None
