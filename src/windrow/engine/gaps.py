"""Gaps as users see them: tables of windows that were left out, by where they end.

A gap can be filled when it is read, from the answers on both sides of it. What is filled in is a guess: it is
marked, and never part of what sinks get.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from windrow.algebra.aggregates.numbers import WIDE
from windrow.algebra.expressions import Call, ColumnRef, Expression, Literal, WindowBound
from windrow.algebra.operators import Aggregate, Filter, Limit, Project
from windrow.algebra.plan import Emit
from windrow.engine.output.outbox import published_schema
from windrow.errors import QueryError
from windrow.shedding.agreement import final_grid
from windrow.shedding.phases import Phases
from windrow.windows.spec import SlideGrid


@dataclass(frozen=True, slots=True)
class Gap:
    """Windows in a row without an answer: `first` and `last` are where the first and the last one end."""

    first: int
    last: int
    windows: int
    #: the query was suspended; otherwise MAX GAP holds
    suspended: bool = False

    def to_json(self) -> list[Any]:
        return [self.first, self.last, self.windows, self.suspended]

    @classmethod
    def from_json(cls, stored: Sequence[Any]) -> Self:
        return cls(*stored)


def gaps(phases: Phases, grid: SlideGrid, after: int, until: int) -> list[Gap]:
    """The gaps among the windows that end in (after, until].

    >>> from windrow.shedding.phases import Cycles, Phases
    >>> from windrow.windows.spec import SlideGrid
    >>> phases = Phases().then(0, Cycles(0, 10, batch=3), p=0.75, seed=1)
    >>> gaps(phases, SlideGrid(5), 0, 80)
    [Gap(first=15, last=40, windows=6, suspended=False), Gap(first=55, last=80, windows=6, suspended=False)]
    """
    found = []
    for run in phases.runs(after, until):
        missing = grid.instants(run.after, run.until)
        if missing:
            found.append(Gap(missing[0], missing[-1], len(missing), run.suspended))
    return found


def joined(known: Sequence[Gap], new: Iterable[Gap], slide: int) -> list[Gap]:
    """Gaps in order; where one goes on in the next, they are one.

    >>> joined([Gap(10, 20, 2)], [Gap(30, 40, 2), Gap(60, 60, 1)], slide=10)
    [Gap(first=10, last=40, windows=4, suspended=False), Gap(first=60, last=60, windows=1, suspended=False)]
    """
    found = list(known)
    for gap in new:
        last = found[-1] if found else None
        if last is not None and last.last + slide == gap.first and last.suspended == gap.suspended:
            found[-1] = Gap(last.first, gap.last, last.windows + gap.windows, gap.suspended)
        else:
            found.append(gap)
    return found


#: how gaps are filled: by lines between the answers around, or with the answer before
FILLS = ("linear", "last")

#: what SHOW GAPS gives; instants as text, since queries may differ in what an instant is
_ALL = pa.schema(
    {"query": pa.string(), "first": pa.string(), "last": pa.string()}
    | {"windows": pa.int64(), "suspended": pa.bool_()}
)


def gap_table(emit: Emit, gaps: Sequence[Gap]) -> pa.Table:
    """The gaps of one query; `first` and `last` are of the type of its `at`."""
    instant = published_schema(emit).field("at").type
    columns = {
        "first": pa.array([gap.first for gap in gaps], pa.int64()).cast(instant),
        "last": pa.array([gap.last for gap in gaps], pa.int64()).cast(instant),
        "windows": pa.array([gap.windows for gap in gaps], pa.int64()),
        "suspended": pa.array([gap.suspended for gap in gaps], pa.bool_()),
    }
    return pa.table(columns)


def with_gaps(
    emit: Emit, answers: pa.Table, gaps: Sequence[Gap], *, marked: bool = True, fill: str | None = None
) -> pa.Table:
    """The answers of a query, with rows for windows that are missing, by `at`.

    Where they are `marked`, each missing window that is not filled has a row of NULLs; a column `op` says
    'gap' of all that is no answer. To `fill` says in a column `filled` which rows are guesses.
    """
    if emit.emits_deletions:  # such a query loses nothing, and has an `op` already
        return answers
    slide = final_grid(emit).period if gaps else 1
    runs = joined((), (replace(gap, suspended=False) for gap in gaps), slide)  # whatever they came from
    guesses = _guessed(emit, answers, runs, slide, fill)
    known = set(guesses.column("at").cast(pa.int64()).to_pylist())
    ends = [end for gap in gaps for end in range(gap.first, gap.last + 1, slide)] if marked else []
    missing = [end for end in ends if end not in known]
    empty = [pa.array(missing, pa.int64()).cast(answers.schema.field("at").type)]
    empty += [pa.nulls(len(missing), field.type) for field in list(answers.schema)[1:]]
    parts = [answers, guesses, pa.Table.from_arrays(empty, schema=answers.schema)]
    found = pa.concat_tables(parts)
    sizes = [part.num_rows for part in parts]
    if fill is not None:
        is_guess = [False] * sizes[0] + [True] * sizes[1] + [False] * sizes[2]
        found = _with_column(found, "filled", pa.array(is_guess, pa.bool_()))
    if marked:
        op = ["+"] * sizes[0] + ["gap"] * (sizes[1] + sizes[2])
        found = _with_column(found, "op", pa.array(op, pa.string()))
    return found.sort_by("at")


def _with_column(table: pa.Table, name: str, column: pa.Array) -> pa.Table:
    """A column of ours beside `at`; one of the query's that is called so gets an underscore."""
    names = [f"{name}_" if each == name else each for each in table.column_names]
    return table.rename_columns(names).add_column(1, name, column)


def _guessed(emit: Emit, answers: pa.Table, gaps: Sequence[Gap], slide: int, fill: str | None) -> pa.Table:
    """Rows for the windows of gaps, made of the answers before and after each of them."""
    if fill is None:
        return answers.slice(0, 0)
    if fill not in FILLS:
        raise QueryError(
            f"gaps are not filled by `{fill}`",
            code="bad-argument",
            hint="fill='linear' draws lines between answers, fill='last' repeats the last answer",
        )
    told, bounds = _columns_of(emit)
    if fill == "linear" and told is None:
        raise QueryError(
            "no lines can be drawn between these answers: their rows cannot be told apart by groups",
            code="cannot-fill",
            hint="fill='last' repeats the last answer; or aggregate, and select all columns of GROUP BY",
        )
    ends = answers.column("at").cast(pa.int64()).to_numpy()
    parts = [answers.slice(0, 0)]
    for gap in gaps:
        left, right = gap.first - slide, gap.last + slide
        before = answers.filter(pa.array(ends == left))
        if fill == "linear":
            before, after = _paired(before, answers.filter(pa.array(ends == right)), told or ())
        for at in range(gap.first, gap.last + 1, slide) if before.num_rows else ():
            moved = _moved(before, ("at", *bounds), at - left)
            if fill == "linear":
                moved = _between(moved, after, Fraction(at - left, right - left), {*(told or ()), *bounds})
            parts.append(moved)
    return pa.concat_tables(parts)


def _columns_of(emit: Emit) -> tuple[list[str] | None, list[str]]:
    """The columns of an answer that tell its groups apart (None if none do), and those that say where its
    window is.

    >>> from windrow.engine.explain import declared
    >>> from windrow.language.compile import compile_query
    >>> text = "SELECT k, window_end, SUM(v) AS v FROM s [RANGE 9 SLIDE 3] GROUP BY k"
    >>> _columns_of(compile_query(text, declared({"s": "k BIGINT, v BIGINT, t BIGINT"}, {})))
    (['k'], ['window_end'])
    """
    node = emit.input
    outputs: dict[str, Expression] = {each.name: ColumnRef(each.name, each.type) for each in emit.schema}
    while isinstance(node, Project | Filter | Limit):
        if isinstance(node, Project):
            below = dict(node.outputs)
            outputs = {n: below[e.name] if isinstance(e, ColumnRef) else e for n, e in outputs.items()}
        node = node.input
    names = {name: each.name for name, each in outputs.items() if isinstance(each, ColumnRef)}
    bounds = [name for name, each in outputs.items() if _moves(each)]
    if not isinstance(node, Aggregate):
        return None, bounds
    keys = {name for name, _ in node.keys}
    told = {each: name for name, each in names.items() if each in keys}
    return (list(told.values()) if told.keys() == keys else None), bounds


def _moves(expression: Expression) -> bool:
    """Whether it is as much later for a later window as that window is."""
    match expression:
        case WindowBound():
            return True
        case Call("+" | "-", (first, Literal())):
            return _moves(first)
    return False


def _paired(before: pa.Table, after: pa.Table, told: Sequence[str]) -> tuple[pa.Table, pa.Table]:
    """The rows of groups that are in both of two answers."""
    places = {repr(row): place for place, row in enumerate(after.select(told).to_pylist())}
    groups = [repr(row) for row in before.select(told).to_pylist()]
    both = [(place, places[group]) for place, group in enumerate(groups) if group in places]
    mine, others = (pa.array([pair[side] for pair in both], pa.int64()) for side in (0, 1))
    return before.take(mine), after.take(others)


def _moved(table: pa.Table, names: Iterable[str], ticks: int) -> pa.Table:
    """The same rows, where some columns are so many ticks later."""
    for place, field in enumerate(table.schema):
        if field.name in names:
            later = pc.add(table.column(place).cast(pa.int64()), ticks)
            table = table.set_column(place, field, later.cast(field.type))
    return table


def _between(before: pa.Table, after: pa.Table, part: Fraction, fixed: Collection[str]) -> pa.Table:
    """Numbers on the lines between two answers; all else is as before."""
    for place, field in enumerate(before.schema):
        is_number = kinds.is_integer(field.type) or kinds.is_floating(field.type)
        if place and field.name not in fixed and (is_number or kinds.is_decimal(field.type)):
            ends = zip(before.column(place).to_pylist(), after.column(place).to_pylist(), strict=True)
            values = [_on_line(one, other, part) for one, other in ends]
            before = before.set_column(place, field, pa.array(values, field.type))
    return before


def _on_line(one: Any, other: Any, part: Fraction) -> Any:
    """What is between two numbers, of their type: rounded where that has no fractions.

    >>> _on_line(1, 4, Fraction(1, 2)), _on_line(1.0, 4.0, Fraction(1, 2)), _on_line(None, 4, Fraction(1, 2))
    (2, 2.5, None)
    """
    if one is None or other is None or one == other:
        return one if one == other else None
    if isinstance(one, float):
        return one + (other - one) * float(part)
    if isinstance(one, Decimal):
        exponent = one.as_tuple().exponent
        assert isinstance(exponent, int)
        return Decimal(_on_line(_units(one, exponent), _units(other, exponent), part)).scaleb(exponent, WIDE)
    return round(one + (other - one) * part)


def _units(value: Decimal, exponent: int) -> int:
    return int(value.scaleb(-exponent, WIDE))


def all_gaps(tables: Mapping[str, pa.Table]) -> pa.Table:
    """The gaps of all queries by name.

    >>> all_gaps({}).num_rows
    0
    """
    parts = [_ALL.empty_table()]
    for name, table in tables.items():
        text = [table["first"].cast(pa.string()), table["last"].cast(pa.string())]
        names = pa.array([name] * table.num_rows, pa.string())
        parts.append(pa.table([names, *text, table["windows"], table["suspended"]], schema=_ALL))
    return pa.concat_tables(parts)
