"""One line of SQL-like text per operator, with the signs of the algebra.

Windows, lengths and punctuation policies as a reader writes them.

>>> from windrow.windows.ranges import RangeWindow
>>> bracket(RangeWindow(300_000_000, 60_000_000), Domain.TIME, "ts", str)
'[RANGE 5 MINUTES SLIDE 1 MINUTE]'
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Context

from windrow.algebra import catalog, operators as ops, types
from windrow.algebra.expressions import TRUE, Expression, Literal
from windrow.algebra.functions import registry, sql_text
from windrow.algebra.functions.calendar import timestamp_text
from windrow.algebra.plan import Emit, Plan, Scan, StreamUnion, Subquery, TableScan, Window
from windrow.windows import calendar, cumulate, landmark, lifetime, ranges, session, slide_by_tuple
from windrow.windows.domain import CALENDAR, DAYS, MICROSECONDS, MONTHS, ROW_NUM, Domain, Quantity
from windrow.windows.progress import NoPolicy, Ordered, OrderedPer, Punctuated, Slack, SlackRows
from windrow.windows.rows import RowsWindow
from windrow.windows.spec import WindowSpec

Spell = Callable[[str], str]


def bracket(spec: WindowSpec, domain: Domain, wattr: str, names: Spell, attributes: Spell = str) -> str:
    """A window on a stream ordered by `wattr`, whose instants are of the domain.

    `names` spells the columns that LIFETIME reads, `attributes` those of the other parts.
    """
    parts = _parts(spec, domain, wattr, names, attributes)
    if spec.wattr is not None and not (
        isinstance(spec, slide_by_tuple.SlideByTupleWindow) and spec.range is not None
    ):
        parts.append(f"WATTR {attributes(spec.wattr)}")
    return f"[{' '.join(parts + ['INTERNAL'] * spec.internal)}]"


def _parts(spec: WindowSpec, domain: Domain, wattr: str, names: Spell, attributes: Spell) -> list[str]:
    match spec:
        case ranges.RangeWindow() | ranges.LaggedWindow():
            slide = _optional("SLIDE", spec.slide, domain, quantity)
            origin = _optional("ORIGIN", spec.origin or None, domain, point)
            lag = [f"LAG {quantity(spec.lag, domain)}"] if isinstance(spec, ranges.LaggedWindow) else []
            return [f"RANGE {quantity(spec.range, domain)}", *slide, *lag, *origin]
        case RowsWindow():
            return _rows(spec, domain, attributes)
        case landmark.LandmarkWindow():
            return _landmark(spec, domain)
        case slide_by_tuple.SlideByTupleWindow(range=None):
            points = [
                *_optional("FROM", spec.start, domain, point),
                *_optional("UNTIL", spec.until, domain, point),
            ]
            return ["LANDMARK", *points, f"SLIDE {spec.every} ROWS"]
        case slide_by_tuple.SlideByTupleWindow():
            assert spec.range is not None
            over = attributes(spec.rattr or wattr)
            rows = f"SLIDE {spec.every} ROWS SATTR {f'rank({over})' if spec.by_rank else ROW_NUM}"
            parts = [f"RANGE {quantity(spec.range, domain)} RATTR {over}", rows]
            return parts + _partitions(spec.partition_by, attributes)
        case cumulate.CumulateWindow():
            origin = _optional("ORIGIN", spec.origin or None, domain, point)
            return [f"CUMULATE {quantity(spec.size, domain)} SLIDE {quantity(spec.step, domain)}", *origin]
        case calendar.CalendarWindow():
            origin = _optional("ORIGIN", spec.origin or None, domain, point)
            sizes = [f"RANGE {calendar_length(spec.length)}", f"SLIDE {calendar_length(spec.step)}"]
            return [*sizes, *origin, "ZONE " + sql_text.to_sql(Literal(spec.zone, types.STRING), str)]
        case session.SessionWindow():
            gap = f"SESSION {quantity(spec.gap, domain)}" + " INCLUSIVE" * spec.inclusive
            return [gap, *_partitions(spec.partition_by, attributes)]
        case lifetime.LifetimeWindow():
            return [f"LIFETIME {_lifetime(spec, names)}"]
        case ranges.NowWindow() | ranges.UnboundedWindow():
            return [type(spec).__name__.removesuffix("Window").upper()]
    raise TypeError(f"no bracket for {type(spec).__name__}")


def _rows(spec: RowsWindow, domain: Domain, attributes: Spell) -> list[str]:
    parts = [f"ROWS {spec.rows}"]
    parts += [f"SLIDE {spec.slide_rows} ROWS"] if spec.slide_rows else []
    parts += _optional("SLIDE", spec.slide_time, domain, quantity)
    parts += _optional("ORIGIN", spec.origin or None, domain, point)
    parts += [f"WATTR {ROW_NUM}"] if spec.arrival_order else []
    return parts + _partitions(spec.partition_by, attributes)


def _landmark(spec: landmark.LandmarkWindow, domain: Domain) -> list[str]:
    parts = ["LANDMARK", *_optional("FROM", spec.start, domain, point)]
    parts += _optional("UNTIL", spec.until, domain, point)
    parts += _optional("SLIDE", spec.slide, domain, quantity)
    return parts + _optional("ORIGIN", spec.origin, domain, point)


def _optional(word: str, value: int | None, domain: Domain, write: Callable[[int, Domain], str]) -> list[str]:
    return [] if value is None else [f"{word} {write(value, domain)}"]


def _partitions(columns: Sequence[str], attributes: Spell) -> list[str]:
    return [f"PARTITION BY {', '.join(map(attributes, columns))}"] if columns else []


def _lifetime(spec: lifetime.LifetimeWindow, names: Spell) -> str:
    """The expression and its unit, of all of it: operators are put in parentheses."""
    text = sql_text.to_sql(spec.expression, names)
    unit = next((name for name, size in MICROSECONDS.items() if 1 < size == spec.scale), "")
    bare = isinstance(spec.expression, Literal) and spec.expression.type == types.SMALLINT
    if (unit and sql_text.precedence(spec.expression) < registry.ATOM) or bare:
        text = f"({text})"  # 5S by itself would be five seconds
    return f"{text} {unit}".rstrip()


def frame_text(frame: ops.OverFrame, domain: Domain) -> str:
    """The frame of an OVER.

    >>> from windrow.algebra.operators import OverFrame
    >>> frame_text(OverFrame(False, 60_000_000), Domain.TIME)
    'RANGE 1 MINUTE PRECEDING'
    >>> frame_text(OverFrame(True, None, 1), Domain.TIME)
    'ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING'
    """

    def before(amount: int | None) -> str:
        if amount is None:
            return "UNBOUNDED"
        return str(amount) if frame.by_rows else quantity(amount, domain)

    word, start = "ROWS" if frame.by_rows else "RANGE", f"{before(frame.start)} PRECEDING"
    return f"{word} BETWEEN {start} AND {before(frame.stop)} PRECEDING" if frame.stop else f"{word} {start}"


def quantity(ticks: int, domain: Domain) -> str:
    """A length in the greatest unit that divides it.

    >>> quantity(90_000_000, Domain.TIME), quantity(60_000_000, Domain.TIME), quantity(90, Domain.NUMBER)
    ('90 SECONDS', '1 MINUTE', '90')
    """
    if domain is not Domain.TIME:
        return _number(ticks, domain)
    return str(Quantity.of_time(ticks))


def _number(ticks: int, domain: Domain) -> str:
    """So many ticks as a number of the attribute, with all its digits.

    >>> from fractions import Fraction
    >>> _number(3, Domain("number", Fraction(1, 4))), _number(8, Domain("number", Fraction(1, 4), 2))
    ('0.75', '2')
    """
    exact = Context(prec=99)
    return f"{exact.multiply(ticks, domain.step or 1).normalize(exact):f}"


def calendar_length(length: calendar.Length) -> str:
    """A length by the calendar.

    >>> calendar_length((24, "MONTHS")), calendar_length((1, "DAYS")), calendar_length((90, "MICROSECONDS"))
    ('2 YEARS', '1 DAY', '90 MICROSECONDS')
    """
    number, unit = length
    if unit not in (MONTHS, DAYS):
        return quantity(number, Domain.TIME)
    times, name = max((t, name) for name, (t, of) in CALENDAR.items() if of == unit and number % t == 0)
    count = number // times
    return f"{count} {name.removesuffix('S') if count == 1 else name}"


def point(instant: int, domain: Domain) -> str:
    """A point of the attribute; times that no calendar text says are counted from 1970.

    >>> point(-3, Domain.NUMBER), point(-3_000_000, Domain.TIME), point(2**60, Domain.TIME)
    ('-3', "'1969-12-31 23:59:57'", '1152921504606846976 MICROSECONDS')
    """
    if domain is not Domain.TIME:
        return _number(instant, domain)
    return f"'{timestamp_text(instant)}'" if sql_text.is_ordinary(instant) else f"{instant} MICROSECONDS"


def resolution_text(stream: catalog.Stream) -> str:
    """What follows the name of a WATTR that is a DOUBLE or a DECIMAL."""
    return "" if stream.domain.resolution is None else f" RESOLUTION {_number(1, stream.domain)}"


def policy(stream: catalog.Stream) -> str | None:
    """How a stream's punctuation is made, in the words of CREATE STREAM; None if it has none."""
    rule = stream.progress
    per = f" PER {rule.per}" if rule.per else ""
    if stream.also:
        own = {
            name: replace(stream, wattr=name, progress=catalog.ProgressRule(p), also=())
            for name, p in stream.also
        }
        further = [f"ALSO {name} {policy(each)}" for name, each in own.items()]
        return " ".join(filter(None, [policy(replace(stream, also=())), *further]))
    match rule.policy:
        case NoPolicy():
            return None
        case Ordered() | Slack(ticks=0):
            return "ORDERED"
        case Slack(ticks=ticks):
            return f"SLACK {quantity(ticks, stream.domain)}"
        case SlackRows(rows=rows):
            return f"SLACK {rows} ROWS"
        case OrderedPer(idle=idle):
            return f"ORDERED{per}" + (f" IDLE {quantity(idle, Domain.TIME)}" if idle else "")
        case Punctuated():
            return f"PUNCTUATED BY {sql_text.to_sql(rule.mark, str) if rule.mark else 'the source'}{per}"
    raise TypeError(f"no words for {type(rule.policy).__name__}")


# ------------------------------------------------------------ operators


_PREFIX = re.compile(r"\b[A-Za-z_]\w*\.(?=[A-Za-z_])")


@dataclass(frozen=True)
class Spelling:
    """How columns are called in the text of one query: with one source, and no doubt, without its alias."""

    bare: bool = False

    @classmethod
    def of(cls, emit: Emit) -> Spelling:
        nodes = list(emit.walk((Subquery,)))
        names = {name for node in nodes for name in node.schema.names if _PREFIX.search(name)}
        sources = sum(isinstance(node, Scan | Subquery | TableScan) for node in nodes)
        return cls(bare=sources == 1 and len({_PREFIX.sub("", name) for name in names}) == len(names))

    def __call__(self, name: str) -> str:
        """
        >>> Spelling(bare=True)("MAX(b.price)"), Spelling()("b.price")
        ('MAX(price)', 'b.price')
        """
        return _PREFIX.sub("", name) if self.bare else name

    def sql(self, expression: Expression) -> str:
        return sql_text.to_sql(expression, self)


def word_text(emit: Emit) -> str:
    """The stream word, or what stands for it where rows come and go."""
    return " ∪ ".join(dict.fromkeys(branch.meaning.value or "'+' and '-'" for branch in emit.branches))


def _order(order: Iterable[tuple[Expression, bool]], spelling: Spelling) -> str:
    return ", ".join(spelling.sql(key) + (" DESC" if descending else "") for key, descending in order)


def operator_text(node: Plan, spelling: Spelling) -> str:  # noqa: C901  # one line for each operator
    """The operator and its parameters."""
    match node:
        case Emit():
            return "emit the rows of all branches" if node.is_union else f"emit {word_text(node)}"
        case StreamUnion():
            return "∪ UNION ALL of streams, each with a clock of its own"
        case ops.Project(outputs=outputs):
            return f"π {_named(outputs, spelling)}"
        case ops.Filter(predicate=predicate):
            return f"σ {spelling.sql(predicate)}"
        case ops.Union():
            return "∪ UNION ALL"
        case ops.Distinct():
            return "δ DISTINCT"
        case ops.Except():
            return "− EXCEPT ALL"
        case ops.TableJoin(predicate=predicate, outer=True):
            return f"⟕ {spelling.sql(predicate) if predicate != TRUE else 'every pair'}"
        case ops.Join(predicate=predicate) | ops.TableJoin(predicate=predicate):
            return f"⋈ {spelling.sql(predicate) if predicate != TRUE else 'every pair'}"
        case ops.Exists(predicate=predicate, negated=negated):
            condition = spelling.sql(predicate) if predicate != TRUE else "any row"
            return f"{'▷ NOT EXISTS' if negated else '⋉ EXISTS'} {condition}"
        case ops.Aggregate():
            return _aggregate(node, spelling)
        case ops.Rank(kind=kind, partition=partition, order=order):
            apart = f" of {', '.join(map(spelling.sql, partition))}" if partition else ""
            return f"# {kind}{apart} by {_order(order, spelling)}"
        case ops.Unnest(array=array, outer=outer):
            return f"{'OUTER ' * outer}UNNEST {spelling.sql(array)} AS {', '.join(map(spelling, node.names))}"
        case ops.Over(calls=calls):
            domain = node.leaves[0].domain
            texts = (f"{call_text(each.call, spelling)} {_over(each, domain, spelling)}" for _, each in calls)
            return ", ".join(texts)
        case ops.Limit(order=order, count=count):
            return f"first {count}" + (f" by {listed}" if (listed := _order(order, spelling)) else "")
        case Window():
            return f"window {window_text(node, spelling)}"
        case Scan(stream=stream, alias=alias):
            return f"stream {_aliased(stream.name, alias)}"
        case Subquery(alias=alias):
            return f"nested query AS {alias}"
        case TableScan(table=table, alias=alias):
            return f"table {_aliased(table.name, alias)} {table.kind.value}"
    raise TypeError(f"no text for {type(node).__name__}")


def window_text(node: Window, spelling: Spelling) -> str:
    """What a window is over, and its bracket."""
    over = [
        _aliased(origin.stream.name, origin.alias) if isinstance(origin, Scan) else origin.alias
        for origin in node.origins
    ]
    own = node.streams[0].wattr if node.streams else "at"
    return f"{' ∪ '.join(over)} {bracket(node.spec, node.domain, own, spelling)}"


def call_text(call: ops.AggregateCall, spelling: Spelling) -> str:
    """An aggregate call.

    >>> from windrow.algebra.expressions import ColumnRef
    >>> from windrow.algebra.types import DOUBLE
    >>> call_text(ops.AggregateCall("quantile", (ColumnRef("s.x", DOUBLE),), DOUBLE, (0.95,)), Spelling("s"))
    'QUANTILE(x, 0.95)'
    """
    args = [spelling.sql(arg) for arg in call.args] or ["*"]
    args += [sql_text.constant_sql(param) for param in call.params]
    where = f" FILTER (WHERE {spelling.sql(call.where)})" if call.where != TRUE else ""
    return f"{call.function.upper()}({'DISTINCT ' if call.distinct else ''}{', '.join(args)}){where}"


def _over(framed: ops.FramedCall, domain: Domain, spelling: Spelling) -> str:
    apart = f"PARTITION BY {', '.join(map(spelling.sql, framed.partition))} " if framed.partition else ""
    return f"OVER ({apart}{frame_text(framed.frame, domain)})"


def _aggregate(node: ops.Aggregate, spelling: Spelling) -> str:
    calls = [_as(call_text(call, spelling), spelling(name)) for name, call in node.aggregates]
    keys = _named(node.keys, spelling) or "all rows"
    return f"γ {keys}" + (f": {', '.join(calls)}" if calls else "")


def _named(outputs: Iterable[tuple[str, Expression]], spelling: Spelling) -> str:
    return ", ".join(_as(spelling.sql(value), spelling(name)) for name, value in outputs)


def _as(text: str, name: str) -> str:
    return text if text == name or text.endswith("." + name) else f"{text} AS {name}"


def _aliased(name: str, alias: str) -> str:
    return name if name == alias else f"{name} AS {alias}"
