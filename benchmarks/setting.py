"""Where a benchmark runs: its directories, its Spark, how many rounds, and who listens."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from windrow.spark.frames import SparkSession


@dataclass
class Setting:
    """What all benchmarks share. Spark is started when it is first asked for."""

    #: rows that were made once, and environments of contestants
    data: Path
    #: what runs write; it is removed at the end
    scratch: Path
    rounds: int
    cores: str = "*"
    memory: str = "4g"
    #: contestants that are installed on demand
    extras: frozenset[str] = frozenset()
    #: seconds after which another contestant's run is stopped
    patience: float = 1200.0
    say: Callable[[str], None] = field(default=lambda text: None)
    given_spark: SparkSession | None = None

    @cached_property
    def spark(self) -> SparkSession:
        """The one session of all contestants that need it."""
        from windrow.spark.session import start_session

        if self.given_spark is not None:
            return self.given_spark
        self.say(f"starting Spark on {self.cores} cores")
        session = start_session(
            "windrow-bench", f"local[{self.cores}]", settings={"spark.driver.memory": self.memory}
        )
        session.sparkContext.setLogLevel("OFF")  # what fails is raised
        return session

    def awake(self) -> SparkSession:
        """The session with its Python workers, of which Spark ends those that were idle for a minute."""
        from windrow.spark.session import warm

        warm(self.spark).join()
        return self.spark

    def fresh(self, name: str) -> Path:
        """A directory of this name that is not there yet."""
        path = self.scratch / name
        shutil.rmtree(path, ignore_errors=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        return path
