"""What results over INTERNAL windows are made of: rows of windows and tables, values of groups, as runs.

A run is a row with the whole interval [`#vs`, `#ve`) in which it is there, as far as that is known. Hidden
columns tell who it is (`#id.`), when its external window lets go of it (`#stays.`), and whether that may
still turn out to be earlier (`#open.`).

Card: kept runs
    requirements  any signed pieces
    time          the runs kept, and what is new
    space         runs that are there, and those that results not yet let go of may be made of
    source        Golab's thesis, 3.3.2
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np
import polars as pl

from windrow.algebra.operators import Aggregate
from windrow.kernels.relational import signed_rows as signed
from windrow.kernels.relational.operator import Operator, Step
from windrow.kernels.relational.signed_rows import FOREVER, ID, INT, SIGNED, STAYS, TS, VE, VS, Columns, N
from windrow.kernels.state import State

#: prefix of columns that tell whether a row may leave earlier than `#stays.` says
OPEN = "#open."


def place_name(number: int) -> str:
    """The place of a part in its plan, as it sorts."""
    return f"{number:04}"


def ids_of(names: Sequence[str]) -> list[str]:
    """The columns that tell what a row is made of, in the order of the plan."""
    return sorted(name for name in names if name.startswith(ID))


class Runs(Operator):
    """One source of a plan. It is not advanced by itself: what it kept and what is new become its runs."""

    def __init__(
        self,
        below: Operator,
        number: int,
        values: Sequence[str],
        kept: Columns,
        ids: Columns,
        by_value: Sequence[str] = (),
    ) -> None:
        self.below = below
        self.number = place_name(number)
        self.stays, self.open = f"{STAYS}{self.number}", f"{OPEN}{self.number}"
        own = {name: below.columns[name] for name in values}
        #: what is kept of each run
        self.kept = own | kept
        #: values that tell who a row is, besides `ids`: a projection above may leave them out
        self.copies = {name: f"{ID}{self.number}.{i:02}" for i, name in enumerate(by_value)}
        copied = {copy: own[name] for name, copy in self.copies.items()}
        self.columns = own | copied | ids | {self.stays: INT, self.open: pl.Int8()} | SIGNED

    def advance(self, state: State, inputs: Sequence[pl.DataFrame], step: Step) -> tuple[State, pl.DataFrame]:
        raise AssertionError("runs are collected by the operator that is made of them")

    def collected(self, old: pl.DataFrame, new: pl.DataFrame) -> pl.DataFrame:
        """The runs that were kept, with what is new."""
        return signed.merged(signed.together([old, new], self.kept))

    @abstractmethod
    def shown(self, runs: pl.DataFrame, stop: int) -> pl.DataFrame:
        """The runs with their hidden columns; `stop` is how far all is known."""

    def has_all(self, records: pl.DataFrame, runs: pl.DataFrame, since: int) -> pl.Series:
        """Of some results, those that may be found again at instants from `since` on."""
        return pl.repeat(True, records.height, dtype=pl.Boolean, eager=True)

    def _annotated(self, runs: pl.DataFrame, stays: pl.Expr, open_: pl.Expr) -> pl.DataFrame:
        told = runs.with_columns(
            *(pl.col(name).alias(copy) for name, copy in self.copies.items()),
            stays.cast(pl.Int64).alias(self.stays),
            open_.cast(pl.Int8).alias(self.open),
            pl.lit(1, pl.Int64).alias(N),
        )
        return told.select(list(self.columns))


NEVER, NO, END = pl.lit(FOREVER), pl.lit(0), pl.col(VE)


class WindowRuns(Runs):
    """The rows of a window; each has a number."""

    name = "rows of a window"

    def __init__(
        self, below: Operator, number: int, values: Sequence[str], *, internal: bool, ends_known: bool
    ) -> None:
        self.internal, self.ends_known = internal, ends_known
        (self.numbered,) = (name for name in below.columns if name.startswith(ID))
        self.id = f"{ID}{place_name(number)}"
        super().__init__(below, number, values, {self.numbered: INT} | SIGNED, {self.id: INT})

    def shown(self, runs: pl.DataFrame, stop: int) -> pl.DataFrame:
        runs = runs.rename({self.numbered: self.id})
        open_ = NO if self.internal or self.ends_known else stop < END
        return self._annotated(runs, NEVER if self.internal else END, open_)

    def has_all(self, records: pl.DataFrame, runs: pl.DataFrame, since: int) -> pl.Series:
        if self.id not in records.columns:
            return super().has_all(records, runs, since)
        numbers = records[self.id]
        return numbers.is_in(runs[self.numbered].unique().implode()) | (numbers == 0)


class TableRuns(Runs):
    """The rows of a RELATION; of equal rows, the one that was inserted first is deleted first."""

    name = "rows of a table"

    def __init__(self, below: Operator, number: int, values: Sequence[str]) -> None:
        self.values = list(values)
        self.since, self.copy = f"{ID}{place_name(number)}.s", f"{ID}{place_name(number)}.t"
        ids = {self.since: INT, self.copy: INT}
        super().__init__(below, number, values, {self.copy: INT} | SIGNED, ids, values)

    def collected(self, old: pl.DataFrame, new: pl.DataFrame) -> pl.DataFrame:
        inserted = new.filter(pl.col(N) > 0)
        place = pl.Series(signed.codes(inserted, [*self.values, VS]))
        number = pl.int_range(pl.len(), dtype=pl.Int64).over("#code") + 1
        inserted = inserted.with_columns(place.alias("#code")).with_columns(number.alias(self.copy))
        lives = signed.together([old, inserted], self.kept).sort(VS, self.copy, maintain_order=True)
        gone = new.filter(pl.col(N) < 0).sort(VS)
        if not gone.height or not lives.height:
            return lives
        mine, theirs = signed.codes_of([lives, gone], self.values)
        alive = (lives[VE] >= FOREVER).to_numpy()
        turn = pl.int_range(pl.len(), dtype=pl.Int64).over("#code").alias("#turn")
        first = pl.DataFrame({"#code": mine[alive], "#row": np.flatnonzero(alive)}).with_columns(turn)
        last = pl.DataFrame({"#code": theirs, "#end": gone[VS]}).with_columns(turn)
        pairs = first.join(last, on=["#code", "#turn"])
        ends = lives[VE].to_numpy().copy()
        ends[pairs["#row"].to_numpy()] = pairs["#end"].to_numpy()
        return lives.with_columns(pl.Series(VE, ends)).filter(pl.col(VS) < pl.col(VE))

    def shown(self, runs: pl.DataFrame, stop: int) -> pl.DataFrame:
        return self._annotated(runs.with_columns(pl.col(VS).alias(self.since)), END, stop < END)


class ValueRuns(Runs):
    """Rows not made of certain rows, which others may take the place of: results of δ, − and LIMIT."""

    name = "values"

    def __init__(self, below: Operator, number: int, values: Sequence[str], *, stamped: bool = False) -> None:
        self.level, self.stamp = f"{ID}{place_name(number)}", f"{ID}{place_name(number)}.s"
        self.stamped = stamped
        kept = {VS: INT, VE: INT, N: INT} | ({TS: INT} if stamped else {})
        super().__init__(below, number, values, kept, {self.level: INT, self.stamp: INT}, values)

    def shown(self, runs: pl.DataFrame, stop: int) -> pl.DataFrame:
        told = signed.merged(signed.single_copies(runs, self.level))
        if not self.stamped:
            told = told.with_columns(pl.lit(-FOREVER, pl.Int64).alias(TS))
        return self._annotated(told.with_columns(pl.col(TS).alias(self.stamp)), END, stop < END)


class GroupRuns(Runs):
    """The values of groups: a group has a new one when its value changes."""

    name = "values of groups"

    def __init__(self, below: Operator, number: int, plan: Aggregate) -> None:
        self.internal = plan.is_internal
        self.since = f"{ID}{place_name(number)}.s"
        kept = {VS: INT, VE: INT, N: INT}
        keys = [name for name, _ in plan.keys]
        super().__init__(below, number, plan.schema.names, kept, {self.since: INT}, keys)

    def shown(self, runs: pl.DataFrame, stop: int) -> pl.DataFrame:
        told = runs.with_columns(pl.col(VS).alias(self.since), pl.lit(-FOREVER, pl.Int64).alias(TS))
        return self._annotated(told, END, NO if self.internal else stop < END)

    def has_all(self, records: pl.DataFrame, runs: pl.DataFrame, since: int) -> pl.Series:
        if self.since not in records.columns:
            return super().has_all(records, runs, since)
        began = records[self.since]
        return began.is_in(runs[VS].unique().implode()) | (began == 0) | (began >= since)
