"""Partners: pairs of pieces that meet in time and satisfy a predicate; and who keeps the ends of results.

Equalities between the two sides become a hash join on key columns; what is left of the predicate is tested on
the pairs. NULL equals nothing; NaN equals NaN, and -0.0 equals 0.0, as in Spark. A batch that reaches over
many windows has many rows of each key, of which few meet in time. There the hash table is by key and slot of
time: a row is in every slot that it lasts in, and a pair counts in the slot in which the later of the two
begins. With slots as long as rows last on average, the table has twice the rows.

A row of a join, a distinct value or a row without a match ends at an instant that is known when it begins. If
a result carries it, whoever reads the result keeps both until then. That is right below δ and γ, which keep
less than they read. Changes at the root of a query would store every result from its beginning to its end,
and a join has many more results than rows. There an end is told when it comes, from what an operator keeps
anyway:

    ⋈, EXISTS     rows that expire look for their partners, as new rows do: they are negative rows within the
                  operator, whose state stays in order of expiry; no window is kept twice
    δ             each value is kept with the end of its youngest copy (`presence`)
    NOT EXISTS    both

Rows that come and go within a step carry their end, which is due at once.

Card: ends told
    requirements  a chain of σ, π and ∪ leads from the operator to changes at the root; partners are found by
                  hash tables, since nested loops would look at every pair twice; all rows have one clock
    time          each result is found twice, and neither sorted by its end nor moved
    space         the inputs; no results
    source        Golab's thesis, 2.3.3: the negative tuple approach against the direct one, chosen by reader
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import polars as pl

from windrow.algebra import Distinct, Emit, Exists, Filter, Join, Plan, Project, StreamWord, Union
from windrow.algebra.expressions import TRUE, Call, Expression, conjunction, conjuncts
from windrow.kernels.clock import Slice
from windrow.kernels.columnar.columns import by_value
from windrow.kernels.columnar.expressions import can_fail, compile_expression, holds, target_of
from windrow.kernels.relational.expiry_layouts import Ends, Options, Strategy
from windrow.kernels.relational.signed_rows import FOREVER, INT, TS, VE, VS, N

#: what EXPLAIN says of such an operator
ENDS_TOLD = "their ends told when they come, since changes keep no results"


def telling(emit: Emit, options: Options) -> frozenset[int]:
    """The operators, by `id`, whose results go to changes at the root and to nobody else."""
    if not lapses(options) or emit.meaning is StreamWord.RSTREAM or emit.is_internal or emit.word.restores:
        return frozenset()
    read = _read_by_root(emit.input)
    if options.negation is not None:  # it is said how the results of a negation leave
        read = (node for node in read if not (isinstance(node, Exists) and node.negated))
    return frozenset(map(id, read))


def lapses(options: Options) -> bool:
    """Whether keys on the right of a negation are told when they come and go: it gives negative rows anyhow,
    and each time a key is prolonged, it would look for its rows on the left."""
    return options.strategy is Strategy.UPA and options.ends is not Ends.CARRIED


def _read_by_root(plan: Plan) -> Iterator[Plan]:
    if isinstance(plan, Filter | Project | Union):
        for child in plan.children:
            yield from _read_by_root(child)
    elif isinstance(plan, Join | Exists | Distinct):
        yield plan


def with_negative_rows(old: pl.DataFrame, new: pl.DataFrame, span: Slice) -> pl.DataFrame:
    """What is new in a step whose ends are told: new rows, open if they stay, and rows that expire.

    >>> from windrow.kernels.clock import Clock, Slice
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


def last_kept(span: Slice) -> int:
    """The last instant of which rows that end there are needed no more; what is to be told is told first.

    >>> from windrow.kernels.clock import Clock, Slice
    >>> last_kept(Slice.of(Clock(5, 10), 0))
    9
    """
    return span.floor - 1 if span.floor < FOREVER else span.floor


#: nested loops look at so many pairs at a time
PAIRS = 2_000_000
#: rows are looked up by time, too, where that avoids more pairs than this, and than so many times the rows
MANY, TIMES = 100_000, 8
#: so many rows of the larger side tell how many pairs there will be
SAMPLE = 10_000
SLOT = "#slot"


@dataclass(frozen=True)
class Equality:
    """Two expressions that must be equal, and the inputs they read."""

    left: Expression
    right: Expression
    homes: tuple[int, int]

    def side(self, place: int) -> Expression:
        """The expression that reads one of the two inputs."""
        return self.left if self.homes[0] == place else self.right


class Condition:
    """A predicate over several inputs, taken apart: equalities between two of them, and the rest.

    A part that can fail is tested last, in the order in which it was written, so that what stands before it
    protects it.
    """

    def __init__(self, predicate: Expression, names: Sequence[Sequence[str]]) -> None:
        self.names = [frozenset(part) for part in names]
        parts = [part for part in conjuncts(predicate) if part != TRUE]
        self.equalities: list[Equality] = []
        self.early: list[Expression] = []
        late: list[Expression] = []
        for part in parts:
            equality = self._equality(part)
            if equality is not None and not can_fail(part):
                self.equalities.append(equality)
            elif can_fail(part) or late:
                late.append(part)
            else:
                self.early.append(part)
        self.late = conjunction(tuple(late)) if late else None
        #: whether nothing but equalities is asked for
        self.is_equality = bool(self.equalities) and not self.early and not late

    def _equality(self, part: Expression) -> Equality | None:
        if not isinstance(part, Call) or part.function != "=":
            return None
        left, right = part.args
        homes = [self.homes(side) for side in (left, right)]
        if (
            [len(home) for home in homes] != [1, 1]
            or homes[0] == homes[1]
            or target_of(left) != target_of(right)
        ):
            return None
        return Equality(left, right, (homes[0].pop(), homes[1].pop()))

    def homes(self, expression: Expression) -> set[int]:
        """The inputs an expression reads."""
        return {place for place, known in enumerate(self.names) if expression.columns & known}


def keyed(frame: pl.DataFrame, expressions: Sequence[Expression]) -> pl.DataFrame:
    """The frame with join keys as columns `#key0` …; floating point as codes, since NaN must be found."""
    if frame.height:
        columns = [matchable(compile_expression(e)(frame)) for e in expressions]
        return frame.with_columns(column.alias(f"#key{i}") for i, column in enumerate(columns))
    dtypes = [target_of(e) for e in expressions]
    return frame.with_columns(
        pl.lit(None).cast(INT if dtype.is_float() else dtype).alias(f"#key{i}")
        for i, dtype in enumerate(dtypes)
    )


def matchable(column: pl.Series) -> pl.Series:
    """Doubles as integers that are equal where the doubles are, NULL as NULL."""
    if not column.dtype.is_float():
        return column
    numbers = pl.Series(column.name, by_value(column).numbers)
    return numbers.zip_with(column.is_not_null(), numbers.clear(len(numbers)))


def meet(
    left: pl.DataFrame,
    right: pl.DataFrame,
    keys: Sequence[str],
    *,
    nulls: bool = False,
    loops: bool = False,
    tests: Sequence[Expression] = (),
) -> pl.DataFrame:
    """The pairs with equal keys whose intervals have an instant in common, and that pass all tests; their
    counts are multiplied.

    Without keys, or where `loops` are asked for, every row looks at all rows of the other side, a block at a
    time.
    """
    right = right.rename({VS: "#vs2", VE: "#ve2", N: "#n2", TS: "#ts2"})
    if keys and not loops:
        return _tested(_of_equal_keys(left, right, list(keys), nulls=nulls), tests)
    right = right.rename({key: f"#right.{key}" for key in keys})
    mine = [pl.col(key) for key in keys]
    same = [key.eq_missing(pl.col(f"#right.{key.meta.output_name()}")) for key in mine]
    if not nulls:
        same += [key.is_not_null() for key in mine]
    size = max(1, PAIRS // max(1, right.height))
    blocks = []
    for place in range(0, max(1, left.height), size):
        pairs = left.slice(place, size).join(right, how="cross").filter(*same)
        blocks.append(_tested(pairs.drop([f"#right.{key}" for key in keys]), tests))
    return pl.concat(blocks)


def _of_equal_keys(left: pl.DataFrame, right: pl.DataFrame, keys: list[str], *, nulls: bool) -> pl.DataFrame:
    """All pairs with equal keys that meet in time, and others with equal keys that do not."""
    few = max(MANY, TIMES * (left.height + right.height))
    if _has_more_pairs(left, right, keys, few, nulls=nulls):
        # the later of two begins lies between the later of the first, and of the last ones
        begins = [_least_and_greatest(left, VS), _least_and_greatest(right, "#vs2")]
        since, until = (max(each) for each in zip(*begins, strict=True))
        spans = [_span(VS, VE, since, until + 1), _span("#vs2", "#ve2", since, until + 1)]
        sides = [side.filter(end > begin) for side, (begin, end) in zip((left, right), spans, strict=True)]
        both = list(zip(sides, spans, strict=True))
        lasting = sum(side.select((end - begin).cast(pl.Float64).sum()).item() for side, (begin, end) in both)
        width = max(1, int(lasting / max(1, sum(side.height for side in sides))))
        slots = [pl.int_ranges((a - since) // width, (b - 1 - since) // width + 1) for a, b in spans]
        left, right = (s.with_columns(n.alias(SLOT)).explode(SLOT) for s, n in zip(sides, slots, strict=True))
        pairs = left.join(right, on=[*keys, SLOT], how="inner", nulls_equal=nulls)
        later = pl.max_horizontal(VS, "#vs2")
        return pairs.filter((later - since) // width == pl.col(SLOT)).drop(SLOT)
    return left.join(right, on=keys, how="inner", nulls_equal=nulls)


def _least_and_greatest(side: pl.DataFrame, column: str) -> tuple[int, int]:
    least, greatest = pl.col(column).min().alias("least"), pl.col(column).max().alias("greatest")
    return side.select(least, greatest).row(0)


def _span(begin: str, end: str, since: int, until: int) -> tuple[pl.Expr, pl.Expr]:
    """The part of an interval in which a pair can begin."""
    return pl.col(begin).clip(lower_bound=since), pl.col(end).clip(upper_bound=until)


def _has_more_pairs(
    left: pl.DataFrame, right: pl.DataFrame, keys: list[str], few: int, *, nulls: bool
) -> bool:
    """Whether more pairs than these have equal keys, by a sample of the larger side: a window may be long."""
    small, large = sorted((left, right), key=lambda side: side.height)
    if small.height * large.height <= few:
        return False
    counts = small.group_by(keys).agg(pl.len().cast(pl.Int64).alias("#rows"))
    if int(counts.select(pl.col("#rows").max()).item()) * large.height <= few:
        return False
    every = -(-large.height // SAMPLE)
    met = large.select(keys).gather_every(every).join(counts, on=keys, how="inner", nulls_equal=nulls)
    return int(met["#rows"].sum()) * every > few


def _tested(pairs: pl.DataFrame, tests: Sequence[Expression]) -> pl.DataFrame:
    """Pairs of rows as rows: those that meet and pass."""
    begin, end = pl.max_horizontal(VS, "#vs2").alias(VS), pl.min_horizontal(VE, "#ve2").alias(VE)
    pairs = pairs.with_columns(begin, end)
    pairs = pairs.filter(pl.col(VS) < pl.col(VE))
    for test in tests:
        pairs = satisfying(pairs, test)
    counted, latest = (pl.col(N) * pl.col("#n2")).alias(N), pl.max_horizontal(TS, "#ts2").alias(TS)
    return pairs.with_columns(counted, latest).drop("#vs2", "#ve2", "#n2", "#ts2")


def satisfying(frame: pl.DataFrame, predicate: Expression) -> pl.DataFrame:
    """The rows for which a predicate is true."""
    return frame.filter(holds(compile_expression(predicate), frame)) if frame.height else frame
