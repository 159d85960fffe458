"""Implementations of operators: their durable names, and what EXPLAIN says of them.

What will run, and why: read off the operators that `build` has made, so that it cannot say anything else.

>>> from windrow.algebra.catalog import Stream
>>> from windrow.algebra.functions import call
>>> from windrow.algebra.operators import Join
>>> from windrow.algebra.plan import Emit, Scan, Window
>>> from windrow.algebra.expressions import Field, Schema
>>> from windrow.algebra.types import BIGINT
>>> from windrow.windows.ranges import RangeWindow
>>> schema = Schema((Field("k", BIGINT), Field("ts", BIGINT)))
>>> bids, asks = (Window(Scan(Stream(n, schema, "ts"), n), RangeWindow(60)) for n in ("bids", "asks"))
>>> same = call("=", [bids.schema.column("bids.k"), asks.schema.column("asks.k")])
>>> program = RelationalProgram(Emit(Join((bids, asks), same)))
>>> _, node, place, operator = list(placed(program))[1]
>>> print(place, str(report(program, node, operator)).replace("; ", "\\n"))
0.0 hash tables per window, eager, probing order bids → asks
inputs in FIFO chunks, expired rows leave by chunks
results WK, their ends told when they come, since changes keep no results

The durable names of operators, layouts and kernels: what a state directory knows them by.

A name says what is kept and in which form; its number is raised when that form changes. Names never come from
classes, so a class can be renamed; a name that was ever committed is never given to another form.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import singledispatchmethod
from typing import Any

from windrow.algebra.plan import Plan
from windrow.kernels.panes import live_panes, subtract_on_evict, two_stacks
from windrow.kernels.relational import distinct, emission, negation, ranks, tables
from windrow.kernels.relational.aggregate import by_expiry, group_by, row_panes, totals
from windrow.kernels.relational.expiry_layouts import Calendar, ExpiryLayout, ExpiryList, Fifo, Hashed, Sorted
from windrow.kernels.relational.internal import build, operators as internal
from windrow.kernels.relational.join import multiway, partners
from windrow.kernels.relational.operator import Filtered, Operator, Projected, Stateless, United, Unnested
from windrow.kernels.relational.program import RelationalProgram
from windrow.kernels.relational.windows import leaf, rows
from windrow.windows.patterns import Pattern

OPERATORS: dict[type[Operator], str] = {
    leaf.Scanned: "rows-of-stream.1",
    leaf.NestedRows: "rows-of-query.1",
    Filtered: "filter.1",
    Projected: "project.1",
    United: "union.1",
    Unnested: "unnest.1",
    leaf.Intervals: "interval-window.1",
    rows.RowsNumbering: "row-window.1",
    rows.ReportedRows: "row-extents.1",
    rows.ByTuple: "tuple-window.1",
    rows.Sessions: "session-window.1",
    rows.ReportedSessions: "session-extents.1",
    leaf.NumberedRows: "numbered-rows.1",
    leaf.Identified: "identified-rows.1",
    leaf.NegativeRows: "negative-rows.1",
    rows.Extents: "extents.1",
    multiway.Joined: "join.1",
    multiway.Catalogued: "join-catalogues.1",
    emission.HeldRows: "held-results.1",
    tables.TablePieces: "table-rows.1",
    tables.LookedUp: "table-lookup.1",
    negation.Matched: "match.1",
    negation.Semijoin: "semi-join.1",
    negation.Keys: "keys.1",
    negation._Asked: "asked-columns.1",
    negation.Difference: "difference.1",
    distinct.DeltaStar: "distinct-youngest.1",
    distinct.CountingDelta: "distinct-counting.1",
    distinct.Presence: "distinct-told.1",
    group_by.Grouped: "group-rows.1",
    totals.Running: "group-running.1",
    by_expiry.ByEnd: "group-by-end.1",
    by_expiry.Candidates: "group-candidates.1",
    row_panes.Binned: "group-bins.1",
    row_panes.RowPanes: "group-row-panes.1",
    ranks.Limited: "limit.1",
    ranks.Ranked: "rank.1",
    ranks.Framed: "frames.1",
    internal.Staying: "staying-results.1",
    build.Outliving: "outliving.1",
    internal.Witnessed: "outliving-witnessed.1",
    internal.Unmatched: "outliving-unmatched.1",
    internal.Valued: "outliving-valued.1",
    internal.Branch: "outliving-branch.1",
    internal.Stamped: "outliving-stamped.1",
    internal.Copies: "outliving-copies.1",
    internal.WindowRuns: "runs-of-window.1",
    internal.TableRuns: "runs-of-table.1",
    internal.ValueRuns: "runs-of-values.1",
    internal.GroupRuns: "runs-of-groups.1",
    emission.Changes: "changes.1",
    emission.Snapshots: "snapshots.1",
    emission.Reports: "reports.1",
    emission.Restored: "restored.1",
    emission.ByCount: "restored-by-count.1",
}
LAYOUTS: dict[type[ExpiryLayout], str] = {
    Fifo: "fifo.1",
    Calendar: "calendar.1",
    Sorted: "sorted.1",
    Hashed: "hash.1",
    ExpiryList: "list.1",
}
KERNELS: dict[type, str] = {
    live_panes.RunningTotals: "running-totals.1",
    two_stacks.TwoStacks: "two-stacks.1",
    subtract_on_evict.Differences: "running-counts.1",
    live_panes.LivePanes: "live-panes.1",
}


def kind_of(thing: object) -> str:
    """The durable name of an operator, a layout or a kernel.

    >>> kind_of(Fifo()), kind_of(Calendar(4))
    ('fifo.1', 'calendar.1')
    """
    known: dict[Any, str] = {**OPERATORS, **LAYOUTS, **KERNELS}
    return known[type(thing)]


def parts_of(operator: Operator) -> list[str]:
    """The names of the layouts, kernels and inner operators that an operator has, besides its inputs."""
    return sorted(name for value in vars(operator).values() for name in _names(value, operator))


def _names(value: object, operator: Operator) -> Iterator[str]:
    if isinstance(value, list | tuple):
        for each in value:
            yield from _names(each, operator)
    elif (
        type(value) in LAYOUTS
        or type(value) in KERNELS
        or (isinstance(value, Operator) and not any(value is each for each in operator.inputs))
    ):
        yield kind_of(value)


#: the place of a node: the number of the child, from the root down
Path = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Implementation:
    """How an operator of a plan works, why so, and what it keeps: nothing, if that is empty."""

    name: str
    reason: str
    state: str = ""
    #: its durable name
    kind: str = ""

    def __str__(self) -> str:
        return f"{self.name}; {self.reason}" if self.reason else self.name


def report(program: RelationalProgram, node: Plan, operator: Operator) -> Implementation:
    """What an operator says of itself."""
    return replace(_Reading(program, node).of(operator), kind=kind_of(operator))


def placed(program: RelationalProgram) -> Iterator[tuple[Path, Plan, str | None, Operator | None]]:
    """Every node of a query with its place in the plan, and the operator that it became with that one's place
    among the operators; None for one that an operator above has taken in. Nested queries included."""
    places = {id(operator): place for place, operator in program.operators()}
    built = {**program.builder.sources_built, **program.builder.built, id(program.emit): program.root}
    waiting: list[tuple[Path, Plan]] = [((), program.emit)]
    while waiting:
        path, node = waiting.pop(0)
        operator = built.get(id(node))
        place = None if operator is None else places.get(id(operator))
        yield path, node, place, operator
        waiting += [((*path, number), child) for number, child in enumerate(node.children)]


def _tells(operator: Operator) -> bool:
    """Whether no row comes from an operator that ends later than it can be told."""
    if isinstance(operator, Stateless):
        return all(map(_tells, operator.inputs))
    return isinstance(operator, distinct.Presence) or (
        isinstance(operator, multiway.Joined | negation.Matched) and operator.tells
    )


#: what EXPLAIN says of operators of which nothing can be chosen: name and reason
WORDS: dict[type, str] = {
    rows.ByTuple: "rows between moves; rows move the window; one that leaves tells so",
    rows.Sessions: "chains of rows; a session ends when no row has come for the gap",
    Stateless: "row by row; leaves expiry alone",
    distinct.DeltaStar: "δ*; no row below leaves early: each value with the end of its youngest copy",
    distinct.Presence: f"δ, told; each value with the end of its youngest copy, {partners.ENDS_TOLD}",
    ranks.Limited: "ranked at each change; any row may be among the first",
    build.Outliving: "computed again where rows change;"
    " results outlive rows of INTERNAL windows, and no faster way is known for this plan",
    internal.Runs: "rows kept whole; what is computed again above needs where each began and ended",
    internal.Recomputed: "computed again; from the rows that are kept below",
    tables.LookedUp: "lookup on arrival; the table as of each row's instant",
    tables.TablePieces: "rows of the table; a change retracts or adds results of rows before it",
}
#: what an operator keeps from one step to the next, where that is always the same
KEPT: dict[type, str] = {
    emission.ByCount: "the count of each result",
    rows.ByTuple: "the rows of the window, and the moves that are not final",
    rows.Sessions: "the rows of open sessions",
    distinct.DeltaStar: "each value with its youngest copy",
    distinct.Presence: "each value with its youngest copy",
    ranks.Limited: "all rows below",
    internal.Staying: "results that outlive their rows",
    build.Outliving: "the rows below, whole",
    internal.Runs: "the rows below, whole",
    internal.Recomputed: "results until they end",
    tables.TablePieces: "the changes of the table that rows may still ask for",
    tables.LookedUp: "the changes of the table that rows may still ask for",
}


def _said(texts: dict[type, str], operator: Operator) -> str:
    return next((texts[kind] for kind in type(operator).__mro__ if kind in texts), "")


def _in(*layouts: ExpiryLayout) -> str:
    """In which layouts something is kept, each named once."""
    return " and ".join(dict.fromkeys(f"in {layout.text}" for layout in layouts))


class _Reading:
    """Says of an operator what it has become."""

    def __init__(self, program: RelationalProgram, node: Plan) -> None:
        self.program = program
        self.node = node

    @singledispatchmethod
    def of(self, operator: Operator) -> Implementation:
        """The operator's implementation."""
        name, _, reason = _said(WORDS, operator).partition("; ")
        return Implementation(name or operator.name, reason, _said(KEPT, operator))

    # The root.

    def _evaluated(self) -> str:
        why = self.program.why_not_lazy
        return "evaluated lazily, when a report is due" if why is None else f"evaluated step by step: {why}"

    @of.register
    def _(self, operator: emission.Changes) -> Implementation:
        told = all(map(_tells, operator.inputs))
        how = f"rows that end at known times {_in(operator.layout)}"
        how = "nothing is kept, since ends are told when they come" if told else how
        nothing = told or operator.emit.label.pattern is Pattern.MON
        kept = "" if nothing else f"answers with their ends, {_in(operator.layout)}"
        return Implementation("changes", f"{self._evaluated()}; {how}", kept)

    @of.register
    def _(self, operator: emission.Snapshots) -> Implementation:
        why = f"{self._evaluated()}; the rows alive {_in(operator.layout)}"
        until = (
            "until their extent is reported"
            if isinstance(operator, emission.Reports)
            else _in(operator.layout)
        )
        return Implementation(operator.name, why, f"the rows alive, {until}")

    @of.register
    def _(self, operator: emission.Restored) -> Implementation:
        why = f"{self._evaluated()}; results that came and went between two refreshes are reported too"
        return Implementation("restored results", why, "results since the last refresh")

    # Windows.

    @of.register
    def _(self, operator: leaf.Intervals) -> Implementation:
        if operator.ahead:
            return Implementation("intervals", "rows are passed on when they come, before they begin")
        why = "known when a row comes; those that begin later wait"
        return Implementation("intervals", why, "rows that begin later")

    @of.register
    def _(self, operator: rows.Numbering) -> Implementation:
        why = "a row leaves when others have come, and tells so"
        why = why if operator.passes_on else "rows become states of the γ above, and are forgotten"
        return Implementation("numbered rows", why, "the rows of the window by number")

    @of.register
    def _(self, operator: leaf.Identified) -> Implementation:
        return self.of(operator.leaf)

    @of.register
    def _(self, operator: leaf.NegativeRows) -> Implementation:
        why = f"every row that leaves tells so; the window {_in(operator.layout)}"
        return Implementation("negative rows", why, f"the window, {_in(operator.layout)}")

    @of.register
    def _(self, operator: rows.Extents) -> Implementation:
        return replace(self.of(operator.inputs[0]), state="rows until their extents are known")

    # Operators.

    @of.register
    def _(self, operator: distinct.CountingDelta) -> Implementation:
        why = f"rows below may leave early, so all copies are counted; known ends {_in(operator.calendar)}"
        kept = f"the count of each value, known ends {_in(operator.calendar)}"
        return Implementation("counting δ", why, kept)

    @of.register
    def _(self, operator: group_by.Grouped) -> Implementation:
        why = f"some aggregate needs the rows of its group; these {_in(operator.layout)}"
        kept = f"the rows of each group, {_in(operator.layout)}"
        return Implementation("values recomputed where rows change", why, kept)

    @of.register
    def _(self, operator: totals.Running) -> Implementation:
        parts = ["totals are added to and subtracted from"] if not operator.only_selected else []
        parts += ["of extremes only rows that no younger one outdoes"] if operator.selected else []
        kept = "a total per group" + (" and candidates" if operator.selected else "")
        kept = "candidates per group" if operator.only_selected else kept
        return Implementation("running values", "; ".join(parts), kept)

    @of.register
    def _(self, operator: by_expiry.ByEnd) -> Implementation:
        some = "only states that none which lives longer outdoes" if operator.only_extremes else "no rows"
        why = f"one state per group and instant at which rows leave, {some}; {_in(operator.layout)}"
        kept = f"a state per group and instant of leaving, {_in(operator.layout)}"
        return Implementation("states by end", why, kept)

    @of.register
    def _(self, operator: by_expiry.Candidates) -> Implementation:
        why = f"only rows that none which lives longer outdoes, {_in(operator.layout)}"
        return Implementation("candidates", why, f"candidates per group, {_in(operator.layout)}")

    @of.register
    def _(self, operator: row_panes.Binned) -> Implementation:
        why = "one state per group and value that moves the window, no rows"
        return Implementation("bins", why, "a state per group and value that moves the window")

    @of.register
    def _(self, operator: row_panes.RowPanes) -> Implementation:
        how = "combined for each window"
        if isinstance(operator.kernel, subtract_on_evict.Differences):
            how = "added to running counts as they close and subtracted as they leave"
        elif isinstance(operator.kernel, two_stacks.TwoStacks):
            how = "on two stacks"
        why = f"states of {operator.cut.per_window} panes per window, {how}; no rows are kept"
        return Implementation("panes of rows", why, "a state per pane and group")

    @of.register
    def _(self, operator: ranks.Framed) -> Implementation:
        kept = "the states of rows that later frames reach"
        if not operator.is_bounded:
            kept = "a state per partition, and those of rows that later frames reach or reach later"
        why = "a row is combined into the frames it is in once it is final"
        return Implementation("frames in order", why, kept)

    @of.register
    def _(self, operator: emission.HeldRows) -> Implementation:
        found = self.of(operator.inputs[0])
        why = f"{found.reason}; results are held until they begin"
        return Implementation(found.name, why, "results until they begin")

    @of.register
    def _(self, operator: multiway.Joined) -> Implementation:
        how = "hash tables per window" if operator.hashes else "nested loops"
        lazy = "lazy" if self.program.why_not_lazy is None else "eager"
        order = " → ".join(self._aliases(operator)) + (" at first, then as seen" if operator.reorders else "")
        where = " and ".join(dict.fromkeys(layout.text for layout in operator.layouts))
        kept = f"the rows of each input, {_in(*operator.layouts)}"
        if isinstance(operator, multiway.Catalogued):
            kept = "the rows of each input, and results in a catalogue per window"
        return Implementation(
            f"{how}, {lazy}, probing order {order}",
            f"inputs in {where}, {operator.expiry.text}; {self._results(operator)}",
            kept,
        )

    def _aliases(self, operator: multiway.Joined) -> list[str]:
        names = [part.leaves[0].origins[0].alias for part in self.node.children if part.leaves]
        names += ["table"] * (len(operator.inputs) - len(names))
        return names if len(set(names)) == len(names) else [f"{n}#{i}" for i, n in enumerate(names, 1)]

    def _results(self, operator: multiway.Joined) -> str:
        if isinstance(operator, multiway.Catalogued):
            return "results in a catalogue per window, by the rows that leave"
        pattern = self.node.label.pattern
        if operator.tells:
            return f"results {pattern}, {partners.ENDS_TOLD}"
        return f"results {pattern}, for {self.program.builder.choice.layout(operator).text}"

    @of.register
    def _(self, operator: negation.Difference) -> Implementation:
        kept = "the rows of both sides, counted by value"
        return Implementation("difference of counts", operator.retractions.text, kept)

    @of.register
    def _(self, operator: negation.Matched) -> Implementation:
        kind = "hash" if operator.condition.equalities and not operator.kept.loops else "loop"
        why = f"inputs in {' and '.join(layout.text for layout in operator.kept.layouts)}"
        if operator.tells:
            why = f"results with {partners.ENDS_TOLD}"
        elif operator.negated:
            why = operator.retractions.text
        kept = f"the rows of the left side and the distinct keys of the right, {_in(*operator.kept.layouts)}"
        return Implementation(f"{kind} match on distinct keys", why, kept)
