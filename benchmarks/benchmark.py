"""What a benchmark is: a name, options with defaults, and a function from them to findings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchmarks.chart import Chart
    from benchmarks.rounds import Measurement
    from benchmarks.setting import Setting
    from benchmarks.table import Table
    from benchmarks.targets import Target


@dataclass(frozen=True)
class Findings:
    """What a run found out. Notes are sentences about what was left out or done differently."""

    contestants: Mapping[str, Mapping[str, str]]
    measurements: list[Measurement]
    tables: list[Table]
    charts: list[Chart]
    targets: list[Target] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    #: what was tried and did not finish
    unfinished: list[Measurement] = field(default_factory=list)


@dataclass(frozen=True)
class Benchmark:
    """One benchmark.

    `options` is a frozen dataclass whose fields have defaults and are `Annotated[…, "help"]`, of type int,
    str or tuple[int, ...]; each becomes an option of the command line. `quick` is the small form, which shows
    that it works.
    """

    name: str
    about: str
    options: type[Any]
    quick: Any
    run: Callable[[Setting, Any], Findings]
