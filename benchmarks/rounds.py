"""Alternating rounds: everyone runs once per round, so that what disturbs the machine disturbs all alike.

Each contestant first does one run that is discarded, which warms the JVM. Every second round goes through the
cases backwards, so that nobody always comes after the same one. Answers are checked after each run, outside
of the time that is measured, before any times are compared. What did not finish once is not tried again.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from benchmarks.checks import Agreement
from benchmarks.contestant import UnfinishedError
from benchmarks.statistics import Summary, summary

if TYPE_CHECKING:
    from benchmarks.contestant import Outcome

Variant = Mapping[str, int | str]


@dataclass(frozen=True)
class Case:
    """One contestant at one variant of the job."""

    contestant: str
    variant: Variant
    run: Callable[[], Outcome]
    #: slow ones may run in fewer rounds, which the table shows; None: in all
    rounds: int | None = None
    #: cases with the same question have to answer the same; None: those of the same variant
    question: Hashable = None

    @property
    def asked(self) -> Hashable:
        """What it answers."""
        return self.question if self.question is not None else tuple(sorted(self.variant.items()))

    @property
    def label(self) -> str:
        """For the person who waits."""
        return " ".join([self.contestant, *(f"{name}={value}" for name, value in self.variant.items())])


@dataclass
class Measurement:
    """What the rounds of one case came to. Figures are the greatest of all rounds, samples are of all."""

    contestant: str
    variant: Variant
    seconds: list[float] = field(default_factory=list)
    answers: int | None = None
    figures: dict[str, float] = field(default_factory=dict)
    samples: list[float] = field(default_factory=list)
    #: why there is no more of it
    unfinished: UnfinishedError | None = None

    @property
    def time(self) -> Summary:
        """Median and spread of the seconds."""
        return summary(self.seconds)


@dataclass
class Measured:
    """All measurements of a benchmark, and what was tried and has none."""

    measurements: list[Measurement]
    unfinished: list[Measurement] = field(default_factory=list)

    def find(self, contestant: str, **variant: int | str) -> Measurement | None:
        """The measurement of a case, if it was run."""
        return _found(self.measurements, contestant, variant)

    def failure(self, contestant: str, **variant: int | str) -> UnfinishedError | None:
        """Why a case has no measurement, if it was tried."""
        each = _found(self.unfinished, contestant, variant)
        return each.unfinished if each else None


def _found(among: Sequence[Measurement], contestant: str, variant: Variant) -> Measurement | None:
    for each in among:
        if each.contestant == contestant and each.variant == variant:
            return each
    return None


def measure(cases: Sequence[Case], rounds: int, say: Callable[[str], None]) -> Measured:
    """Warm up, run all rounds, check all answers."""
    _warm(cases, say)
    agreement = Agreement()
    found = [Measurement(case.contestant, dict(case.variant)) for case in cases]
    for number in range(rounds):
        turns = list(zip(cases, found, strict=True))
        for case, into in turns if number % 2 == 0 else reversed(turns):
            if into.unfinished is None and number < (rounds if case.rounds is None else case.rounds):
                say(f"round {number + 1} of {rounds}: {case.label}: {_run(case, into, agreement)}")
    return Measured(
        [each for each in found if each.seconds],
        [each for each in found if each.unfinished and not each.seconds],
    )


def _warm(cases: Sequence[Case], say: Callable[[str], None]) -> None:
    warm: set[str] = set()
    for case in cases:
        if case.contestant not in warm:
            warm.add(case.contestant)
            try:
                told = f"{case.run().seconds:.2f} s"
            except UnfinishedError as error:
                told = error.message
            say(f"warm-up, discarded: {case.label}: {told}")


def _run(case: Case, into: Measurement, agreement: Agreement) -> str:
    try:
        outcome = case.run()
    except UnfinishedError as error:
        into.unfinished = error
        return error.message
    if outcome.answers is not None:
        into.answers = agreement.check(case.asked, case.contestant, outcome.answers)
    into.seconds.append(outcome.seconds)
    into.samples += outcome.samples
    for name, value in outcome.figures.items():
        into.figures[name] = max(value, into.figures.get(name, value))
    return f"{outcome.seconds:.2f} s"
