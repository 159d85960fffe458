"""The rows of a query, from the states of what it needs over some windows: all windows and groups at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import polars as pl

from windrow.kernels.codes import looked_up
from windrow.kernels.columns import polars_type
from windrow.kernels.layout import PANE
from windrow.kernels.measures import GROUPS
from windrow.kernels.partials import Partial, Rows
from windrow.sharing.data import LABEL, Datum

if TYPE_CHECKING:
    import pyarrow as pa

    from windrow.kernels.answers import Answers
    from windrow.sharing.questions import Need, Question

    #: where a window ends, and the states of each need over it
    Window = tuple[int, Mapping[Need, pl.DataFrame]]


def answer(question: Question, answers: Answers, windows: Sequence[Window]) -> pa.Table | None:
    """The answers about some windows; None if none of them has rows."""
    gathered = {need: _gathered(windows, need) for need in question.needs}
    exists = gathered[question.existence]
    exists = exists.filter(pl.col(f"{LABEL}.0") > 0) if exists.height else exists
    if not exists.height:
        return None
    by = [PANE, *(f"k{place}" for place in range(len(question.keys)))]
    number = pl.int_range(exists.height, dtype=pl.Int64, eager=True).alias("g")
    groups = pl.DataFrame([*exists.select(by).get_columns(), number])
    w = ((exists[PANE] - question.origin) // question.slide - 1).alias("w")
    columns = [w, number, exists[f"{LABEL}.0"].alias("rows.0")]
    frames = {}
    for name, needs in question.measured.items():
        if needs[0].datum.is_complex:
            frames[name] = _cells(gathered[needs[0]], groups, by, w)
            continue
        parts = [column for need in needs for column in _parts(need.datum, gathered[need], groups, by)]
        columns += [column.alias(f"{name}.{place}") for place, column in enumerate(parts)]
    return answers.table(groups.drop(PANE), {GROUPS: pl.DataFrame(columns), **frames})


def _gathered(windows: Sequence[Window], need: Need) -> pl.DataFrame:
    """The states of all windows, the ends of these as panes."""
    tables = [
        table.with_columns(pl.lit(at, pl.Int64).alias(PANE))
        for at, states in windows
        if (table := states[need]).height
    ]
    return pl.concat(tables) if tables else pl.DataFrame()


def _cells(table: pl.DataFrame, groups: pl.DataFrame, by: list[str], w: pl.Series) -> pl.DataFrame:
    if not table.height:
        return table
    number = looked_up(table.select(by), groups, "g").alias("g")
    known = pl.DataFrame([number, *table.drop(by)]).filter(number.is_not_null() & (table["rows.0"] > 0))
    return known.select(pl.Series("w", w.gather(known["g"])), pl.all())


def _parts(datum: Datum, table: pl.DataFrame, groups: pl.DataFrame, by: list[str]) -> list[pl.Series]:
    """The state of each group in each window; that of no rows where there is none."""
    nothing = _nothing(datum)
    if not table.height:
        return [column.new_from_index(0, groups.height) for column in nothing]
    rows = table.select(by).with_columns(pl.int_range(table.height, dtype=pl.Int64).alias("#row"))
    places = looked_up(groups.select(by), rows, "#row").fill_null(table.height)
    padded = [
        pl.concat([part, one.cast(part.dtype)]) for part, one in zip(table.drop(by), nothing, strict=True)
    ]
    return [column.gather(places) for column in padded]


def _nothing(datum: Datum) -> list[pl.Series]:
    """The state of no rows: that of one row which does not count."""
    assert isinstance(datum.shape, Partial)
    args = tuple(pl.Series([None], dtype=polars_type(arg.type)) for arg in datum.args)
    order = [pl.Series("#t", [0], dtype=pl.Int64)]
    order += [pl.Series(f"o{n}", [None], dtype=polars_type(part.type)) for n, part in enumerate(datum.order)]
    return datum.shape.lift(Rows(args, pl.Series([False]), pl.DataFrame(order)))
