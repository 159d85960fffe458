"""Aggregates that need every value, and what comes near them in less: time, state and error side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from benchmarks.benchmark import Benchmark, Findings
from benchmarks.chart import Chart, Point, Series
from benchmarks.contestant import Outcome
from benchmarks.rounds import Case, Measured, measure
from benchmarks.table import Table
from benchmarks.times import times_chart

if TYPE_CHECKING:
    from benchmarks.pane_runs import Ints
    from benchmarks.setting import Setting

_STATE, _STATE_ROWS, _ERROR = "state MB", "state rows", "error percent"
_K = 10
_NOTES = [
    "Half of the rows go through all values in turn, so that every window has all of them; the other half are"
    " drawn by Zipf's law. Time is that of the kernel for all panes, each with its answer, in seconds of the"
    " processor, all threads together; Spark has no part in it.",
    "Error: of a number, relative to the exact one; of a list, the share of the true ten most frequent values"
    " that is missing. State is what is kept after an answer: all panes of the window but the oldest, and,"
    " of counts, their sum.",
    "FREQUENT reports what is certainly over its threshold, however many that are: that a value is missing"
    " here says that it was not certain.",
]


@dataclass(frozen=True)
class Form:
    """An aggregate, and what its error is measured by: the exact one of its family."""

    sql: str
    exact: str
    error: Callable[[Any, Any], float]


def _relative(found: Any, exact: Any) -> float:
    return abs(found - exact) / abs(exact) if exact else float(found != exact)


def _missing(found: Any, exact: Any) -> float:
    """The share of the exact list that is not in the other."""
    known = {each["value"] for each in found}
    return sum(each["value"] not in known for each in exact) / len(exact)


_DISTINCT, _QUANTILE, _TOP = "COUNT(DISTINCT x)", "QUANTILE(x, 0.95)", f"TOP_K(x, {_K})"
FORMS = (
    Form(_DISTINCT, _DISTINCT, _relative),
    Form("APPROX_COUNT_DISTINCT(x)", _DISTINCT, _relative),
    Form(_QUANTILE, _QUANTILE, _relative),
    Form("APPROX_QUANTILE(x, 0.95)", _QUANTILE, _relative),
    Form(_TOP, _TOP, _missing),
    Form(f"APPROX_TOP_K(x, {_K})", _TOP, _missing),
    Form(f"FREQUENT(x, {_K})", _TOP, _missing),
    Form("FREQUENT(x, 100)", _TOP, _missing),
)


@dataclass(frozen=True)
class Options:
    """What can be varied."""

    distinct: Annotated[tuple[int, ...], "How many different values a window has."] = (
        1000,
        100_000,
        1_000_000,
    )
    rows: Annotated[int, "Rows per window."] = 2_000_000
    panes: Annotated[int, "Panes per window."] = 10


QUICK = Options(distinct=(100, 1000), rows=20_000, panes=4)


def run(setting: Setting, options: Options) -> Findings:
    """Every form at every number of values; the exact answers are computed once more, for the errors."""
    cases = []
    for distinct in options.distinct:
        panes = _panes(options, distinct)
        exact: dict[str, Any] = {}
        for form in FORMS:
            answer = partial(_run, form, panes, options.panes, exact)
            cases.append(Case(form.sql, {"values": distinct}, answer))
    measured = measure(cases, setting.rounds, setting.say)
    names = [form.sql for form in FORMS]
    charts = [
        times_chart("holistic-time", "Processor time of all panes", measured, names, "values"),
        _chart("holistic-state", "State of a window", _STATE, measured, names),
    ]
    settings = {form.sql: {"error against": form.exact} for form in FORMS if form.sql != form.exact}
    return Findings(settings, measured.measurements, [_table(measured)], charts, notes=_NOTES)


def _panes(options: Options, distinct: int) -> list[Ints]:
    """Two more panes than a window has, so that panes leave too."""
    import numpy as np

    from windrow.spark.sources.generators import Settings, bits, src

    settings = Settings(keys=distinct)
    numbers = np.argsort(bits(settings.seed, "number", np.arange(distinct)))
    width = options.rows // options.panes
    panes = []
    for number in range(options.panes + 2):
        events = np.arange(number * width, (number + 1) * width)
        ranks = np.where(events % 2 == 0, events // 2 % distinct, src(settings, events))
        panes.append(np.asarray(numbers[ranks]))
    return panes


def _run(form: Form, panes: Sequence[Ints], per_window: int, exact: dict[str, Any]) -> Outcome:
    from benchmarks.pane_runs import query, run_panes

    found = run_panes(query(form.sql, per_window), panes)
    if form.exact not in exact:
        right = found if form.sql == form.exact else run_panes(query(form.exact, per_window), panes)
        exact[form.exact] = right.answer
    error = 100 * form.error(found.answer, exact[form.exact])
    figures = {_STATE: found.state_bytes / 1e6, _STATE_ROWS: float(found.state_rows), _ERROR: error}
    return Outcome(found.seconds, None, figures)


def _table(measured: Measured) -> Table:
    rows = tuple(
        (
            f"{each.variant['values']:,}",
            each.contestant,
            each.time.text(2, " s"),
            f"{each.figures[_STATE]:,.2f} MB",
            f"{each.figures[_STATE_ROWS]:,.0f}",
            f"{each.figures[_ERROR]:.2f} %",
        )
        for each in measured.measurements
    )
    columns = ("values", "aggregate", "processor time", "state", "rows of state", "error")
    return Table("Exact and approximate forms", columns, rows)


def _chart(name: str, title: str, figure: str, measured: Measured, names: Sequence[str]) -> Chart:
    series = []
    for contestant in names:
        mine = [each for each in measured.measurements if each.contestant == contestant]
        sizes = [(float(each.variant["values"]), each.figures[figure]) for each in mine]
        series.append(Series(contestant, tuple(Point(x, y, y, y) for x, y in sorted(sizes))))
    return Chart(name, title, "values", figure, tuple(series))


BENCHMARK = Benchmark(
    "holistic", "Exact and approximate forms of holistic aggregates: time, state, error.", Options, QUICK, run
)
