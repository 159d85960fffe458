"""Update patterns: four queries over a connection log, as windows grow (Golab's thesis, 3.6).

    Query 1   links joined on the source, ftp or telnet only
    Query 2   the distinct sources of a link, or pairs of source and destination
    Query 3   the connections of a link whose source is not on another
    Query 4   Query 3 joined with the ftp connections of a third link, in both orders, and in the one that
              the planner chooses

NT tells every expiry by a negative row, DIRECT looks through lists, UPA keeps state by update pattern and
lets results carry their ends, as the thesis has it; the default does so only where results are kept. Time is
that of steps after the windows are full; each step takes as many units of time as `rows_per_batch` says, with
about one row on each link in each unit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from benchmarks.benchmark import Findings
from benchmarks.rounds import Case, Measured, measure
from benchmarks.studies.connections import Links, links, query
from benchmarks.studies.costs import STATE_ROWS, compared, cost_chart, cost_table, merged, state_table
from benchmarks.studies.spark_patterns import SPARK, WITHOUT_SPARK, with_spark
from benchmarks.studies.steps import Standing, timed
from benchmarks.targets import Target
from windrow.kernels.relational.expiry_layouts import Ends, Negation, Options as Physical, Strategy
from windrow.optimizer.flows import Statistics
from windrow.optimizer.move_negation import push_down_negation
from windrow.optimizer.trees import as_query
from windrow.physical import plan_query

if TYPE_CHECKING:
    from benchmarks.chart import Chart
    from benchmarks.rounds import Variant
    from benchmarks.setting import Setting
    from benchmarks.suite.patterns import Options
    from benchmarks.table import Table
    from windrow.algebra.plan import Emit

LINKS = ("link1", "link2", "link3")
#: steps between the large ones that fill the windows and those that are timed
_SETTLING = 3
_JOIN = (
    "SELECT * FROM link1 [RANGE {w}], link2 [RANGE {w}] WHERE link1.src = link2.src"
    " AND link1.protocol = '{p}' AND link2.protocol = '{p}'"
)
_ABSENT = "NOT EXISTS (SELECT * FROM link2 [RANGE {w}] WHERE link2.src = link1.src)"
QUERIES = {
    "1 join ftp": _JOIN.replace("{p}", "ftp"),
    "1 join telnet": _JOIN.replace("{p}", "telnet"),
    "2 distinct src": "SELECT DISTINCT src FROM link1 [RANGE {w}]",
    "2 distinct src, dst": "SELECT DISTINCT src, dst FROM link1 [RANGE {w}]",
    "3 negation": f"SELECT * FROM link1 [RANGE {{w}}] WHERE {_ABSENT}",
    "4 negation and join": "SELECT * FROM link1 [RANGE {w}], link3 [RANGE {w}]"
    f" WHERE link1.src = link3.src AND link3.protocol = 'ftp' AND {_ABSENT}",
}
_TELNET, _NEGATION, _BOTH = "1 join telnet", "3 negation", "4 negation and join"
NT, DIRECT, UPA, UPA50 = "NT", "DIRECT", "UPA(10)", "UPA(50)"
CALENDAR, NEGATIVE, PUSHED, UPA_PUSHED = "UPA calendar", "UPA negative rows", "NT (join up)", "UPA (join up)"
TOLD, TOLD_PUSHED, PLANNED = "default", "default (join up)", "default, planned"
HOW: Mapping[str, Physical] = {
    NT: Physical(Strategy.NT),
    DIRECT: Physical(Strategy.DIRECT),
    UPA: Physical(buckets=10, ends=Ends.CARRIED),
    UPA50: Physical(buckets=50, ends=Ends.CARRIED),
    CALENDAR: Physical(negation=Negation.CALENDAR, ends=Ends.CARRIED),
    NEGATIVE: Physical(negation=Negation.NEGATIVE, ends=Ends.CARRIED),
    TOLD: Physical(),
    PUSHED: Physical(Strategy.NT),
    UPA_PUSHED: Physical(buckets=10, ends=Ends.CARRIED),
    TOLD_PUSHED: Physical(),
    PLANNED: Physical(),
}
_ABOUT = {
    NT: "negative rows everywhere; negation above the join",
    DIRECT: "rows carry their expiry, state is a list",
    UPA: "state by update pattern, calendars of 10 buckets; negation above the join",
    UPA50: "the same with 50 buckets",
    CALENDAR: "UPA, results of a negation leave on their own unless a match comes first",
    NEGATIVE: "UPA, every result of a negation leaves by a negative row",
    PUSHED: "negative rows everywhere; negation below the join",
    UPA_PUSHED: "UPA; negation below the join",
    TOLD: "UPA, as it is chosen if nothing is said: results that only changes read carry no end",
    TOLD_PUSHED: "the same; negation below the join",
    PLANNED: "the same; the order that the planner chooses, by rates and numbers of values",
}


def run(setting: Setting, options: Options) -> Findings:
    """Query by query and window by window, all strategies in turn."""
    parts = []
    for name in QUERIES:
        for window in _windows(name, options):
            parts.append(measure(_cases(name, window, options), setting.rounds, setting.say))
    measured = merged(parts)
    settings = {name: {"what": about} for name, about in _ABOUT.items()}
    steps = f"{options.steps} of {options.rows_per_batch} units, after the windows are full"
    settings["all"] = {"steps": steps, "rows": "`network`, 1,650 sources, about one row per link and unit"}
    found = Findings(
        settings,
        measured.measurements,
        [table for name in QUERIES for table in _tables(name, measured, options)],
        [_chart(name, measured) for name in QUERIES],
        shapes(measured, options),
    )
    if SPARK in setting.extras:
        return with_spark(found, setting, options.spark_windows)
    return replace(found, notes=[WITHOUT_SPARK])


def contestants(name: str) -> tuple[str, ...]:
    """Who answers a query."""
    if name == _NEGATION:
        return (NT, DIRECT, CALENDAR, NEGATIVE, TOLD)
    if name == _BOTH:
        return (NT, PUSHED, DIRECT, UPA, UPA_PUSHED, TOLD, TOLD_PUSHED, PLANNED)
    return (NT, DIRECT, UPA, UPA50, TOLD)


def plan(text: str, window: int, contestant: str, log: Links) -> Emit:
    """The plan a contestant runs."""
    found = query(text.format(w=window), LINKS)
    if contestant == PLANNED:
        return plan_query(found, known(log)).emit
    if contestant in (PUSHED, UPA_PUSHED, TOLD_PUSHED):
        (found,) = map(as_query, push_down_negation(found))
    return found


def known(log: Links) -> Statistics:
    """What an engine would have seen of the rows: how many come, and how many values differ."""
    values = {f"{name}.{each.name}": each.n_unique() for name, rows in log.rows.items() for each in rows}
    return Statistics(rates=dict.fromkeys(LINKS, 1.0), distinct=values)


def _windows(name: str, options: Options) -> tuple[int, ...]:
    return options.telnet_windows if name == _TELNET else options.windows


def _cases(name: str, window: int, options: Options) -> list[Case]:
    size = options.rows_per_batch
    log = links(LINKS, window + (_SETTLING + options.steps) * size)
    steps = log.batches(window, size, _SETTLING + options.steps)
    cases = []
    for contestant in contestants(name):
        standing = Standing.of(plan(QUERIES[name], window, contestant, log), HOW[contestant])
        standing.filled(log.filling(window)).filled(steps[:_SETTLING])
        run_it = partial(timed, standing, steps[_SETTLING:])
        cases.append(Case(contestant, {"query": name, "window": window}, run_it))
    return cases


def _tables(name: str, measured: Measured, options: Options) -> list[Table]:
    variants: list[Variant] = [{"query": name, "window": window} for window in _windows(name, options)]
    who = contestants(name)
    title = f"Query {name}"
    return [
        cost_table(title, measured, who, variants),
        state_table(title, measured, who, variants, STATE_ROWS),
    ]


def _chart(name: str, measured: Measured) -> Chart:
    slug = name.replace(",", "").replace(" ", "-")
    return cost_chart(f"patterns-{slug}", f"Query {name}", measured, contestants(name), "window", query=name)


def shapes(measured: Measured, options: Options) -> list[Target]:
    """The default against the others, and what the thesis found, as ratios of times; at the largest window
    unless the claim says otherwise."""
    found = []

    def claim(name: str, of: str, to: str, *, smallest: bool = False) -> None:
        window = (min if smallest else max)(_windows(name, options))
        ratio = compared(measured, of, to, query=name, window=window)
        found.append(Target(f"Query {name}, window {window:,}: {of}'s time to {to}'s", "≥", 1.0, ratio))

    for name in QUERIES:
        pushed = name == _BOTH
        for other in (
            PUSHED if pushed else NT,
            CALENDAR if name == _NEGATION else UPA_PUSHED if pushed else UPA,
        ):
            claim(name, other, TOLD_PUSHED if pushed else TOLD)
    for name in ("1 join ftp", _TELNET, "2 distinct src", "2 distinct src, dst"):
        for other in (NT, DIRECT):
            claim(name, other, UPA)
    claim(_TELNET, UPA, UPA50)
    claim(_TELNET, DIRECT, NT)
    claim("1 join ftp", NT, DIRECT)
    claim(_NEGATION, NT, CALENDAR, smallest=True)
    claim(_NEGATION, CALENDAR, NT)
    claim(_BOTH, UPA, PUSHED, smallest=True)
    claim(_BOTH, PUSHED, UPA)
    claim(_BOTH, NT, UPA)
    claim(_BOTH, NT, PUSHED)
    for window in options.windows:
        orders = (
            compared(measured, PLANNED, each, query=_BOTH, window=window) for each in (TOLD, TOLD_PUSHED)
        )
        worst = max((each for each in orders if each), key=lambda each: each.median, default=None)
        what = f"Query {_BOTH}, window {window:,}: {PLANNED}, to the better of the orders"
        found.append(Target(what, "≤", 1.2, worst))
    return found
