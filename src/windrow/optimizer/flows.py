"""Statistics of streams and tables, and the formulae by which rows are estimated from them.

Statistics are known or assumed, and the input of every cost. Rates are per unit of time: `ticks` microseconds
for windows over time (a second, unless said otherwise), one tick for windows over numbers. What was not
observed is a default; costs compare plans, they do not predict seconds.

>>> bids = Statistics(rates={"bids": 50}, distinct={"bids.item": 1000})
>>> bids.rate("bids"), bids.rate("asks"), bids.values("bids.item")
(50, 1.0, 1000)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import expm1, log1p, prod

from windrow.algebra import Aggregate, Plan, Scan, Stream, Window
from windrow.algebra.aggregates import Size, function_of
from windrow.algebra.expressions import Call, Cast, ColumnRef, Expression, Literal, conjuncts
from windrow.windows import ROW_NUM, Domain, Pattern, lifetime, rows

# ------------------------------------------------------------ statistics


@dataclass(frozen=True)
class Statistics:
    """Numbers by name: of streams and tables, or `name.column`."""

    #: rows that arrive per unit of time, by stream
    rates: Mapping[str, float] = field(default_factory=dict)
    #: distinct values, by `stream.column` or `table.column`
    distinct: Mapping[str, float] = field(default_factory=dict)
    #: shares of rows that pass, by condition, where they were observed
    selectivities: Mapping[Expression, float] = field(default_factory=dict)
    #: rows, and changes per unit of time, by table
    table_rows: Mapping[str, float] = field(default_factory=dict)
    table_changes: Mapping[str, float] = field(default_factory=dict)
    #: microseconds in a unit of time
    ticks: int = 1_000_000
    #: for how long a state that only grows is looked at, and how long rows with LIFETIME live, in units
    horizon: float = 86_400.0
    lifetime: float = 60.0
    default_rate: float = 1.0
    default_distinct: float = 100.0
    default_table_rows: float = 1000.0
    default_table_changes: float = 0.01

    def rate(self, stream: str) -> float:
        """Rows of a stream per unit of time."""
        return self.rates.get(stream, self.default_rate)

    def values(self, column: str) -> float:
        """Distinct values of a column; at least one."""
        return max(1.0, self.distinct.get(column, self.default_distinct))

    def table(self, name: str) -> tuple[float, float]:
        """The rows of a table, and its changes per unit of time."""
        return (
            self.table_rows.get(name, self.default_table_rows),
            self.table_changes.get(name, self.default_table_changes),
        )

    def with_declared(self, streams: Iterable[Stream]) -> Statistics:
        """The same, but for what the declarations of streams say."""
        told = {stream.name: stream.expected for stream in streams if stream.expected is not None}
        rates = {name: expected.rate for name, expected in told.items()}
        values = {f"{name}.{column}": n for name, each in told.items() for column, n in each.values}
        if not told:
            return self
        return replace(self, rates={**self.rates, **rates}, distinct={**self.distinct, **values})

    def units(self, ticks: float, domain: Domain) -> float:
        """A length in ticks as units of time.

        >>> Statistics().units(60_000_000, Domain.TIME), Statistics().units(60, Domain.NUMBER)
        (60.0, 60)
        """
        return ticks / self.ticks if domain is Domain.TIME else ticks


# ------------------------------------------------------------ selectivity
#
# Which share of rows passes a condition, and how the inputs of a join thin each other out.
#
# Values are uniform, columns independent, and of two columns compared the one with fewer values finds all
# of them in the other (thesis, 5.3.1). Columns set equal to one another form a class; a part joined to
# others meets them through the classes they share.


Values = Mapping[str, float]

_SHARES = {"<>": 0.9, "<": 1 / 3, "<=": 1 / 3, ">": 1 / 3, ">=": 1 / 3, "is_null": 0.1, "is_not_null": 0.9}
_UNKNOWN = 0.5


def selectivity(condition: Expression, values: Values, statistics: Statistics) -> float:
    """The share of rows for which a condition holds; `values` are the distinct values of columns.

    >>> from windrow.algebra.functions import call
    >>> from windrow.algebra.types import INT
    >>> a = ColumnRef("a", INT)
    >>> one = call("=", [a, Literal(1, INT)])
    >>> selectivity(one, {"a": 10}, Statistics())
    0.1
    >>> selectivity(one, {"a": 10}, Statistics(selectivities={one: 0.7}))
    0.7
    """
    if condition in statistics.selectivities:
        return statistics.selectivities[condition]
    match condition:
        case Literal(value):
            return 1.0 if value is True else 0.0
        case Call("and", args):
            left, right = (selectivity(arg, values, statistics) for arg in args)
            return left * right
        case Call("or", args):
            left, right = (selectivity(arg, values, statistics) for arg in args)
            return left + right - left * right
        case Call("not", (arg,)):
            return 1.0 - selectivity(arg, values, statistics)
        case Call("=" | "<=>" | "in", (value, *others)):
            return min(1.0, sum(1 / max(_count(value, values), _count(other, values)) for other in others))
        case Call(name):
            return _SHARES.get(name, _UNKNOWN)
    return _UNKNOWN


def _count(expression: Expression, values: Values) -> float:
    column = _column(expression)
    return (values.get(column) or 1.0) if column else 1.0  # none where no rows are expected


def _column(expression: Expression) -> str | None:
    inner = expression.arg if isinstance(expression, Cast) else expression
    return inner.name if isinstance(inner, ColumnRef) else None


def equal_columns(predicate: Expression) -> list[frozenset[str]]:
    """The classes of columns that a condition sets equal to one another.

    >>> from windrow.algebra.functions import call
    >>> from windrow.algebra.types import INT
    >>> a, b, c = (ColumnRef(name, INT) for name in "abc")
    >>> [sorted(same) for same in equal_columns(call("and", [call("=", [a, b]), call("=", [b, c])]))]
    [['a', 'b', 'c']]
    """
    classes: list[frozenset[str]] = []
    for part in conjuncts(predicate):
        pair = _pair(part)
        if pair:
            touched = [known for known in classes if known & pair]
            classes = [known for known in classes if not known & pair]
            classes.append(pair.union(*touched))
    return classes


def _pair(part: Expression) -> frozenset[str] | None:
    if not (isinstance(part, Call) and part.function == "="):
        return None
    names = [_column(arg) for arg in part.args]
    return frozenset(name for name in names if name) if None not in names and len(set(names)) == 2 else None


#: a place in a plan: the number of the child, from the root down
Path = tuple[int, ...]


@dataclass(frozen=True)
class Estimate:
    """Of one node: rows it gives per unit of time, rows of its answer, rows it keeps, its own cost."""

    rate: float
    rows: float
    state_rows: float = 0.0
    cost: float = 0.0
    #: the distinct values that each column can have, however few rows there are
    values: Values = field(default_factory=dict, compare=False, repr=False)


def growing(parts: Sequence[Estimate], predicate: Expression, statistics: Statistics) -> list[float]:
    """For each part after the first, by which factor joining it changes the number of partial results.

    >>> from windrow.algebra.functions import call
    >>> from windrow.algebra.types import INT
    >>> a, b = ColumnRef("a", INT), ColumnRef("b", INT)
    >>> parts = Estimate(1, 1, values={"a": 5}), Estimate(1, 20, values={"b": 10})
    >>> growing(parts, call("=", [a, b]), Statistics())
    [2.0]
    """
    classes = equal_columns(predicate)
    others = [part for part in conjuncts(predicate) if _pair(part) is None]
    seen = dict(parts[0].values)
    found = []
    for part in parts[1:]:
        factor = part.rows
        for same in classes:
            mine = [part.values[name] for name in same if name in part.values]
            theirs = [seen[name] for name in same if name in seen]
            factor /= max(min(mine), min(theirs)) if mine and theirs else 1.0
        together = {**seen, **part.values}
        for test in others:
            if test.columns <= together.keys() and not test.columns <= seen.keys():
                factor *= selectivity(test, together, statistics)
        found.append(factor)
        seen = together
    return found


# ------------------------------------------------------------ rows of nodes


def counts_rows(window: Window) -> bool:
    """Whether the instants of the window are row numbers: one row arrives per tick."""
    scans = (origin for origin in window.origins if isinstance(origin, Scan))
    return any(window.attribute_of(scan) == ROW_NUM for scan in scans)


def rows_within(window: Window, rate: float, values: Values, statistics: Statistics) -> float:
    """How many rows the window holds at an instant, of `rate` rows per unit of time."""
    spec, most = window.spec, rate * statistics.horizon
    if isinstance(spec, lifetime.LifetimeWindow):
        return rate * statistics.lifetime
    if isinstance(spec, rows.RowsWindow):
        alias = window.origins[0].alias
        keys = (f"{alias}.{name}" for name in spec.partition_by)
        return spec.rows * prod((values.get(key, statistics.default_distinct) for key in keys), start=1.0)
    if spec.typical_length is None:
        return most
    held = rate * statistics.units(spec.typical_length, window.domain)
    return min(held, most) if spec.label.pattern is Pattern.MON else held


#: what keeping a row costs over its life: coming, and going by age, by calendar, or by being looked for
_UPKEEP = {Pattern.MON: 1, Pattern.WKS: 2, Pattern.WK: 3, Pattern.STR: 4}


def distinct_of(rows: float, values: float) -> float:
    """How many of that many values are expected among that many rows.

    >>> round(distinct_of(rows=1, values=10), 6), round(distinct_of(rows=1000, values=10), 6)
    (1.0, 10.0)
    """
    return -values * expm1(rows * log1p(-1 / values)) if values > 1 else min(rows, 1.0)


def combinations(columns: Iterable[str], values: Values) -> float:
    """How many combinations of values these columns can have."""
    return prod((values[column] for column in columns), start=1.0)


def arrivals(plan: Plan, flow: Estimate) -> float:
    """Rows that a node has to process of this input: negative ones too, where its pattern is STR."""
    return flow.rate * (2 if plan.label.pattern is Pattern.STR else 1)


def upkeep(plan: Plan, rate: float) -> float:
    """What it costs to keep rows of this plan, `rate` of them per unit of time, until they expire."""
    return rate * _UPKEEP[plan.label.pattern]


def pane_cells(node: Aggregate, rows: float, statistics: Statistics) -> float:
    """The rows of state of a pane and group in which `rows` rows are expected: one, and the cells of holistic
    aggregates and sketches, no more than rows or distinct values, and of a sketch than it has cells."""
    streams = {scan.alias: scan.stream.name for scan in node.walk() if isinstance(scan, Scan)}

    def distinct(column: str) -> float:
        alias, _, name = column.partition(".")
        return statistics.values(f"{streams.get(alias, alias)}.{name}")

    cells = 1.0
    for _, call in node.aggregates:
        function = function_of(call)
        if function.size is not Size.BOUNDED:
            columns = {name for arg in call.args for name in arg.columns}
            found = distinct_of(rows, prod(map(distinct, columns), start=1.0))
            cells += min(found, function.most_cells or found)
    return cells
