"""Tables: what they accept, and how their changes reach the rows that are joined with them.

A change is a row with `#at`, when it happens, and `#n`, +1 for an insertion, -1 for a deletion. A RELATION
is one more input of a join, whose pieces end when they are deleted: negative rows. An NRR is looked up as it
was before each row's own instant; its changes are kept, since an older row may come or go later.

What a table holds: its rows, and the keys they have or had.

A change is checked before it is applied, so that one that is refused leaves nothing behind; both cost what
the change has, whatever the table has.

>>> from windrow.algebra.catalog import Table, TableKind
>>> from windrow.algebra.expressions import Field, Schema
>>> from windrow.algebra.types import BIGINT
>>> contents = TableContents(Table("t", Schema((Field("k", BIGINT),)), TableKind.RELATION, ("k",)))
>>> contents.apply([], [(1,), (2,)])
>>> contents.difference([(2,), (3,)])
([(1,)], [(3,)])
>>> contents.check([], [(2,)])
Traceback (most recent call last):
windrow.errors.DataError: table `t` has a row with key (2,) already (delete the old row in the same update)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import polars as pl

from windrow.algebra import TableScan, catalog, expressions, operators as ops
from windrow.algebra.values import canonical_rows
from windrow.errors import DataError
from windrow.kernels.columnar.columns import frame_of as columns_from
from windrow.kernels.relational import expiry_layouts as layouts, operator, signed_rows, signed_rows as signed
from windrow.kernels.relational.join.partners import Condition, keyed, satisfying
from windrow.kernels.state import State
from windrow.windows.domain import INFINITY, Instant, check_instant

Values: TypeAlias = tuple[Any, ...]


class TableContents:
    """The rows of a table, each as often as it is there."""

    def __init__(self, table: catalog.Table) -> None:
        self.table = table
        self.rows: Counter[Values] = Counter()
        self._places = [table.schema.index(name) for name in table.key]
        self._never_again = table.kind is catalog.TableKind.NRR
        self._present: set[Values] = set()
        #: keys that no row of an NRR table may have any more
        self.retired: set[Values] = set()

    def check(self, gone: Sequence[Values], new: Sequence[Values]) -> None:
        """Refuse to delete what is not there, and to insert a key that is, or in an NRR table ever was."""
        for row, count in Counter(gone).items():
            if self.rows[row] < count:
                raise DataError(
                    f"table `{self.table.name}` has no row {row!r} to delete",
                    code="no-such-row",
                    hint="give the whole row, as it was inserted",
                )
        if self._places:
            self._check_keys({self._key(row) for row in gone}, [self._key(row) for row in new])

    def _check_keys(self, freed: set[Values], keys: Sequence[Values]) -> None:
        never = self._never_again
        seen: set[Values] = set()
        for key in keys:
            if key in seen or (key in self._present and (never or key not in freed)) or key in self.retired:
                raise self._taken(key)
            seen.add(key)

    def _taken(self, key: Values) -> DataError:
        told = f"has a row with key {key!r} already"
        hint = "delete the old row in the same update"
        if self._never_again:
            told = f"has, or had, a row with key {key!r}"
            hint = (
                "keys of an NRR table are not used again: old results would seem to mean it;"
                " declare it without KEY, or as a RELATION"
            )
        return DataError(f"table `{self.table.name}` {told}", code="key-reused", hint=hint)

    def apply(self, gone: Iterable[Values], new: Iterable[Values]) -> None:
        """Rows leave, then rows come."""
        for row in gone:
            self.rows[row] -= 1
            if not self.rows[row]:
                del self.rows[row]
            if self._places:
                key = self._key(row)
                self._present.discard(key)
                if self._never_again:
                    self.retired.add(key)
        for row in new:
            self.rows[row] += 1
            if self._places:
                self._present.add(self._key(row))

    def difference(self, rows: Iterable[Values]) -> tuple[list[Values], list[Values]]:
        """What has to leave and to come for these to be the rows of the table."""
        wanted = Counter(rows)
        gone = [row for row, n in self.rows.items() for _ in range(n - wanted[row])]
        new = [row for row, n in wanted.items() for _ in range(n - self.rows[row])]
        return gone, new

    def _key(self, row: Values) -> Values:
        return tuple(row[place] for place in self._places)


AT = "#at"
CHANGES = "changes"
CHANGE: signed_rows.Columns = {AT: signed_rows.INT, signed_rows.N: signed_rows.INT}
#: the number of a row, where it matters which rows have found a partner
ROW = "#row"


@dataclass
class TableIntake:
    """What a table accepts: changes in order. A table nobody punctuates is taken to be complete."""

    table: catalog.Table
    progress: Instant = INFINITY
    last: Instant = -INFINITY

    def __post_init__(self) -> None:
        self.contents = TableContents(self.table)

    def punctuate(self, progress: Instant, clock: Instant) -> None:
        """From now on the table holds the clock back to what it promises."""
        self.progress = promised(self.table.name, self.progress, progress, clock)

    def update(
        self, at: int, insert: Sequence[Sequence[Any]], delete: Sequence[Sequence[Any]]
    ) -> pl.DataFrame:
        """Rows leave, then rows come: the changes. Without any, nothing changes."""
        check_instant(at, f"a change of table `{self.table.name}`")
        check_order(self.table.name, at, self.last, self.progress)
        where = f"table `{self.table.name}`"
        gone = canonical_rows(self.table.schema, delete, where)
        new = canonical_rows(self.table.schema, insert, where)
        self.contents.check(gone, new)
        self.contents.apply(gone, new)
        if gone or new:
            self.last = at
        return changes_at(self.table.schema, at, gone, new)


def promised(table: str, before: Instant, progress: Instant, clock: Instant) -> Instant:
    """How far a table is after it was punctuated. One that nobody has punctuated must not hold back a clock
    that is further."""
    if before == INFINITY and progress < clock:
        raise DataError(
            f"table `{table}` cannot hold the clock at {progress}: it is at {clock} already",
            code="late-punctuation",
            hint="punctuate a table before its streams move on",
        )
    return progress if before == INFINITY else max(before, progress)


def check_order(table: str, at: int, last: Instant, progress: Instant) -> None:
    """Refuse a change before one that is known, or below what the table was punctuated with."""
    known = max(last, progress) if progress != INFINITY else last
    if at < known:
        raise DataError(
            f"table `{table}` cannot change at {at}: it is known up to {known}",
            code="late-update",
            hint="changes of a table come in order, and not below what it was punctuated with",
        )


def changes_at(
    schema: expressions.Schema, at: int, gone: Sequence[tuple[Any, ...]], new: Sequence[tuple[Any, ...]]
) -> pl.DataFrame:
    """Canonical rows that leave and come at an instant, as changes."""
    frames = [(columns_from(schema, gone), -1), (columns_from(schema, new), 1)]
    return pl.concat(
        frame.with_columns(pl.lit(at, pl.Int64).alias(AT), pl.lit(sign, pl.Int64).alias(signed_rows.N))
        for frame, sign in frames
    )


class TablePieces(operator.Operator):
    """A RELATION as pieces. `lag` is 1 where the answer at E sees the table as it is before E."""

    name = "table"

    def __init__(self, scan: TableScan, lag: int) -> None:
        self.scan = scan
        self.lag = lag
        self.columns = signed.columns_of(scan.schema)
        self.changed = signed.columns_of(scan.schema, CHANGE)

    def advance(
        self, state: State, inputs: Sequence[pl.DataFrame], step: operator.Step
    ) -> tuple[State, pl.DataFrame]:
        frame = layouts.frame_of(state.of(CHANGES), self.changed, changes_of(self.scan, step))
        if not frame.height:
            return state, signed.blank(self.columns)
        begins = frame[AT].to_numpy() + self.lag
        if step.reports is not None:
            begins = step.first_report + np.searchsorted(step.reports["at"].to_numpy(), frame[AT].to_numpy())
        due = begins < step.slice.stop
        found, later = signed.parted(frame, due)
        pieces = signed.pieces(found, self.columns, begins[due], n=found[signed_rows.N])
        return State({CHANGES: layouts.chunks_of(later)}), pieces


class LookedUp(operator.Operator):
    """⋈ with an NRR: each row sees the changes before its own instant.

    No row to come is older than the clock by more than `reach`, so that changes before that are added up;
    None if older rows may come or go.
    """

    name = "⋈ NRR"

    def __init__(self, plan: ops.TableJoin, below: operator.Operator, reach: int | None = None) -> None:
        self.inputs = (below,)
        self.reach = reach
        self.outer = plan.outer
        self.scan = plan.table
        self.condition = Condition(plan.predicate, [plan.input.schema.names, plan.table.schema.names])
        self.changed = signed.columns_of(self.scan.schema, CHANGE)
        self.table = signed.columns_of(self.scan.schema, {})
        self.columns = signed.values_of(below.columns) | self.table | signed_rows.SIGNED

    def advance(
        self, state: State, inputs: Sequence[pl.DataFrame], step: operator.Step
    ) -> tuple[State, pl.DataFrame]:
        new = changes_of(self.scan, step)
        history = layouts.frame_of(state.of(CHANGES), self.changed, new)
        if new.height:
            state = State({CHANGES: layouts.chunks_of(self._added_up(history, step.slice.floor))})
        (rows,) = inputs
        if not rows.height or not (history.height or self.outer):
            return state, signed.blank(self.columns)
        if not self.outer:
            return state, self._found(rows, history.rename({signed_rows.N: "#m"}), list(self.columns))
        numbered = rows.with_row_index(ROW)
        found = self._found(numbered, history.rename({signed_rows.N: "#m"}), [ROW, *self.columns])
        alone = numbered.join(found.select(ROW).unique(), on=ROW, how="anti")
        missing = (pl.lit(None, kind).alias(name) for name, kind in self.table.items())
        padded = alone.with_columns(missing).select(list(self.columns))
        return state, signed.together([found.select(list(self.columns)), padded], self.columns)

    def _added_up(self, history: pl.DataFrame, floor: int) -> pl.DataFrame:
        if self.reach is None or floor >= signed_rows.FOREVER or floor <= -signed_rows.FOREVER:
            return history
        old, others = signed.parted(history, history[AT] < floor - self.reach)
        then = pl.lit(floor - self.reach - 1, pl.Int64).alias(AT)
        return pl.concat([signed.consolidated(old.with_columns(then)), others])

    def _found(self, rows: pl.DataFrame, history: pl.DataFrame, columns: list[str]) -> pl.DataFrame:
        equalities = self.condition.equalities
        names = [f"#key{i}" for i in range(len(equalities))]
        if names:
            left = keyed(rows, [equality.side(0) for equality in equalities])
            right = keyed(history, [equality.side(1) for equality in equalities])
            pairs = left.join(right, on=names, how="inner").drop(names)
        else:
            pairs = rows.join(history, how="cross")
        pairs = pairs.filter(pl.col(AT) < pl.col(signed_rows.TS)).with_columns(
            (pl.col(signed_rows.N) * pl.col("#m")).alias(signed_rows.N)
        )
        pairs = signed.consolidated(pairs.select(columns))
        for test in (*self.condition.early, *([self.condition.late] if self.condition.late else [])):
            pairs = satisfying(pairs, test)
        return pairs


def changes_of(scan: TableScan, step: operator.Step) -> pl.DataFrame:
    """The changes of a step, as the scan names their columns."""
    frame = step.changes.get(scan.table.name)
    columns = signed.columns_of(scan.schema, CHANGE)
    if frame is None:
        return signed.blank(columns)
    names = dict(zip(scan.table.schema.names, scan.schema.names, strict=True))
    return frame.rename(names).select(list(columns))
