"""Aggregate calls as SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windrow.algebra.expressions import TRUE
from windrow.algebra.functions.sql_text import constant_sql, to_sql

if TYPE_CHECKING:
    from collections.abc import Callable

    from windrow.algebra.operators import AggregateCall


def call_sql(call: AggregateCall, names: Callable[[str], str]) -> str:
    """An aggregate call; `names` spells the columns.

    >>> from windrow.algebra.expressions import Column
    >>> from windrow.algebra.operators import AggregateCall
    >>> from windrow.algebra.types import DOUBLE
    >>> call_sql(AggregateCall("quantile", (Column("s.x", DOUBLE),), DOUBLE, (0.95,)), str)
    'QUANTILE(s.x, 0.95)'
    """
    args = [to_sql(arg, names) for arg in call.args] or ["*"]
    args += [constant_sql(param) for param in call.params]
    where = f" FILTER (WHERE {to_sql(call.where, names)})" if call.where != TRUE else ""
    return f"{call.function.upper()}({'DISTINCT ' if call.distinct else ''}{', '.join(args)}){where}"
