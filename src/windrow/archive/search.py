"""What is searched for: one key, or keys from one to another, both included.

Keys are compared as the column's own type has them, so a date may be given as a date and a time as a time. A
NULL is no key: it is never found, only scanned.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from windrow.errors import DataError


@dataclass(frozen=True, slots=True)
class Wanted:
    """Keys from `low` to `high`, as scalars of the column's type; None is no bound.

    >>> Wanted.between("k", 3, 5, pa.int64()).of(pa.table({"k": [2, 3, 5, 6]}))["k"].to_pylist()
    [3, 5]
    """

    key: str
    low: pa.Scalar | None
    high: pa.Scalar | None

    @classmethod
    def between(cls, key: str, low: Any, high: Any, kind: pa.DataType) -> Wanted:
        """Keys in a range; `kind` is the type of the column."""
        return cls(key, _scalar(key, low, kind), _scalar(key, high, kind))

    def of(self, table: pa.Table) -> pa.Table:
        """The rows that are wanted."""
        column = table[self.key]
        mask = pc.is_valid(column)
        if self.low is not None:
            mask = pc.and_kleene(mask, pc.greater_equal(column, self.low))
        if self.high is not None:
            mask = pc.and_kleene(mask, pc.less_equal(column, self.high))
        return table.filter(mask)

    def can_be_in(self, least: Any, greatest: Any) -> bool:
        """Whether keys from `least` to `greatest` may be wanted; if those are unknown, they may."""
        try:
            below = self.low is not None and greatest is not None and greatest < self.low.as_py()
            above = self.high is not None and least is not None and least > self.high.as_py()
        except TypeError:  # the footer has them in another form
            return True
        return not (below or above)


def _scalar(key: str, value: Any, kind: pa.DataType) -> pa.Scalar | None:
    if value is None:
        return None
    try:
        return pa.scalar(value, kind)
    except (pa.ArrowInvalid, pa.ArrowTypeError, ValueError, OverflowError) as error:
        hint = f"`{key}` is {kind}: give a value of that type"
        raise DataError(f"{value!r} is no key of this archive", code="key", hint=hint) from error
