"""Who keeps the ends of results: those who read them, or nobody.

A row of a join, a distinct value or a row without a match ends at an instant that is known when it begins. If
a result carries it, whoever reads the result keeps both until then. That is right below δ and γ, which keep
less than they read. Changes at the root of a query keep nothing but that: they would store every result from
its beginning to its end, and a join has many more results than rows. There an end is told when it comes. What
an operator keeps anyway is enough to find it:

    ⋈, EXISTS     rows that expire look for their partners, as new rows do: they are negative rows within the
                  operator, whose state stays in order of expiry; no window is kept twice
    δ             each value is kept with the end of its youngest copy (`presence`)
    NOT EXISTS    both

Rows that come and go within a step carry their end, which is due at once. Operators are linear in each input,
so that the pieces of all steps add up to the same relation.

Card: ends told
    requirements  a chain of σ, π and ∪ leads from the operator to changes at the root; partners are found by
                  hash tables, since nested loops would look at every pair twice; all rows have one clock
    time          each result is found twice, and neither sorted by its end nor moved
    space         the inputs; no results
    source        Golab's thesis, 2.3.3: the negative tuple approach against the direct one, chosen by reader
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import polars as pl

from windrow.algebra.operators import Distinct, Exists, Filter, Join, Project, Union
from windrow.algebra.plan import Emit, Plan, StreamWord
from windrow.kernels.relational.options import Ends, Options, Strategy
from windrow.kernels.relational.signed_rows import FOREVER, VE, VS, N

if TYPE_CHECKING:
    from windrow.kernels.relational.clock import Slice

#: what EXPLAIN says of such an operator
ENDS_TOLD = "their ends told when they come, since changes keep no results"


def telling(emit: Emit, options: Options) -> frozenset[int]:
    """The operators, by `id`, whose results go to changes at the root and to nobody else."""
    if not lapses(options) or emit.meaning is StreamWord.RSTREAM or emit.is_internal or emit.word.restores:
        return frozenset()
    return frozenset(id(node) for node in _read_by_root(emit.input) if not _is_forced(node, options))


def lapses(options: Options) -> bool:
    """Whether keys on the right of a negation are told when they come and go: it gives negative rows anyhow,
    and each time a key is prolonged, it would look for its rows on the left."""
    return options.strategy is Strategy.UPA and options.ends is not Ends.CARRIED


def _is_forced(node: Plan, options: Options) -> bool:
    """Whether it is said how the results of a negation leave."""
    return isinstance(node, Exists) and node.negated and options.negation is not None


def _read_by_root(plan: Plan) -> Iterator[Plan]:
    if isinstance(plan, Filter | Project | Union):
        for child in plan.children:
            yield from _read_by_root(child)
    elif isinstance(plan, Join | Exists | Distinct):
        yield plan


def with_negative_rows(old: pl.DataFrame, new: pl.DataFrame, span: Slice) -> pl.DataFrame:
    """What is new in a step whose ends are told: new rows, open if they stay, and rows that expire.

    >>> from windrow.kernels.relational.clock import Clock, Slice
    >>> old = pl.DataFrame({"k": [1, 2], VS: [0, 0], VE: [5, 30], N: [1, 1]})
    >>> new = pl.DataFrame({"k": [3, 4], VS: [6, 7], VE: [9, 40], N: [1, 1]})
    >>> with_negative_rows(old, new, Slice.of(Clock(5, 10), 0)).with_columns(pl.col(VE) < FOREVER).rows()
    [(3, 6, True, 1), (4, 7, False, 1), (1, 5, False, -1)]
    """
    stays = pl.col(VE) >= span.stop
    opened = new.with_columns(pl.when(stays).then(FOREVER).otherwise(VE).alias(VE))
    ending = old.filter(pl.col(VE).is_between(span.start, span.stop, closed="left"))
    if not ending.height:
        return opened
    gone = ending.with_columns(pl.col(VE).alias(VS), pl.lit(FOREVER, pl.Int64).alias(VE), -pl.col(N))
    return pl.concat([opened, gone.select(opened.columns)])


def still_there(old: pl.DataFrame, span: Slice) -> pl.DataFrame:
    """The rows kept that have not been told to be over, without their ends."""
    return old.filter(pl.col(VE) >= span.start).with_columns(
        pl.lit(-FOREVER, pl.Int64).alias(VS), pl.lit(FOREVER, pl.Int64).alias(VE)
    )


def last_of(span: Slice, *, told: bool) -> int:
    """The last instant of which rows that end there are needed no more; what is to be told is told first.

    >>> from windrow.kernels.relational.clock import Clock, Slice
    >>> [last_of(Slice.of(Clock(5, 10), 0), told=told) for told in (False, True)]
    [10, 9]
    """
    return span.floor - 1 if told and span.floor < FOREVER else span.floor
