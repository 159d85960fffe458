"""What a contestant gives back for one run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from windrow.errors import WindrowError

if TYPE_CHECKING:
    import polars as pl

    from benchmarks.job import SlidingJob


@dataclass(frozen=True)
class Outcome:
    """One run: how long it took, what it answered, and whatever else was counted."""

    seconds: float
    #: None for those who answer nothing, such as a plain scan
    answers: pl.LazyFrame | None = None
    figures: Mapping[str, float] = field(default_factory=dict)
    #: where one run measures many times, such as latencies
    samples: tuple[float, ...] = ()


class UnfinishedError(WindrowError):
    """A contestant has not done its job: it failed, or it was stopped. The others go on without it."""

    default_code = "unfinished"

    def __init__(self, message: str, hint: str | None = None, stopped_after: float | None = None) -> None:
        super().__init__(message, hint=hint)
        #: seconds that it would have taken more than, if it was stopped
        self.stopped_after = stopped_after


def out_of_patience(seconds: float) -> UnfinishedError:
    """What the tables say of a run that was stopped.

    >>> out_of_patience(600).message
    'stopped after 600 s'
    """
    return UnfinishedError(f"stopped after {seconds:g} s", "more minutes: --patience", seconds)


class Contestant(Protocol):
    """Someone who can do the job of sliding aggregates."""

    @property
    def name(self) -> str:
        """How tables and plots call it."""

    @property
    def settings(self) -> Mapping[str, str]:
        """How it is set up: its own best settings, printed with every result."""

    def run(self, job: SlidingJob) -> Outcome:
        """Do the job once, over the whole input."""
