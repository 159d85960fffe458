"""Pane partials in the JVM: which queries can share one native aggregation, and its SQL.

All queries over one stream with the same GROUP BY share a *feed*: one aggregation by (finest pane, keys) with
the union of the states they need, each state once, WHERE and FILTER as conditions inside it. Its panes are
cut wherever a window of any of the queries begins or ends.

What may be native: conditions, keys and arguments that no row can make fail (one query's bad cast must not
stop the others, so such a query is computed from rows in a worker), and states Spark computes as the kernels
do: counts, sums of integers in limbs, sums and moments of doubles, extremes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from math import gcd

import polars as pl

from windrow.algebra import BIGINT, DataType, Kind, Late, Stream
from windrow.algebra.expressions import TRUE, Call, Expression, conjunction
from windrow.algebra.functions import call, lookup
from windrow.algebra.functions.sql_text import backquoted, to_sql
from windrow.kernels.aggregates import partials
from windrow.kernels.aggregates.measures import GROUPS
from windrow.kernels.columnar.expressions import can_fail
from windrow.kernels.panes.program import PaneProgram
from windrow.kernels.panes.query import Cut, normal_form
from windrow.kernels.shared.shared_state import PaneGrid, SharedState
from windrow.kernels.state import PANE, ROWS
from windrow.state.names import RESERVED
from windrow.windows import Instant, NoPolicy, Ordered, Slack

BEGIN, COUNT, GREATEST = "__begin", "__rows", "__greatest"
#: what stands beside the columns of a stream, under names that none of them can have
MOMENT, IS_SHED, PANE_OF_ROW = (f"`{RESERVED}{word}`" for word in ("t", "shed", "pane"))
#: stand for the panes of rows that no query needs, and of those that are none
SHED, NO_ROW = -(2**63) + 1, -(2**63) + 2
#: more grids than these are replaced by their common divisor
MOST_GRIDS = 8
#: this many groupings of one stream are aggregated natively; each reads the batch once more
MOST_FEEDS = 2
#: so many keys of several groupings are aggregated together
MOST_KEYS = 64
#: a feed with more aggregations than these (different conditions, different arguments) is computed from rows
MOST_AGGREGATIONS = 64
_LIMIT = 1 << 62


@dataclass(frozen=True)
class FeedPart:
    """A part in a feed: what it adds."""

    feed: str
    keys: tuple[Expression, ...]
    #: aggregations by the name of their column in the feed
    aggregations: Mapping[str, str]
    #: the feed's column for each column of the own tables
    columns: Mapping[str, str]
    #: the types that values have in kernels, for the columns that hold values
    kinds: Mapping[str, DataType]
    #: where its panes begin
    cuts: tuple[Cut, ...]


@dataclass(frozen=True)
class NativeQuery(FeedPart):
    """A query's part in a feed, and how it finds its own states again."""

    #: the greatest moment of a row that entered the window
    latest: str

    @property
    def cut(self) -> Cut:
        """That of its window."""
        return self.cuts[0]

    def panes(self, feed: pl.DataFrame) -> pl.DataFrame:
        """The states of the feed under the query's own names and panes; several may be of one pane."""
        names = [f"k{place}" for place in range(len(self.keys))]
        begins, cut = feed[BEGIN].to_numpy(), self.cut
        # rows before a landmark were not counted; a pane may well begin before it
        held = cut.holds(begins) if cut.range is not None else begins == begins
        inside = pl.Series(held) & (feed[self.columns["rows.0"]] > 0)
        panes = pl.Series(PANE, cut.panes_of(begins))
        states = [feed[column].alias(name) for name, column in self.columns.items()]
        return pl.DataFrame([panes, *(feed[name] for name in names), *states]).filter(inside)


@dataclass(frozen=True)
class NativeSharedState(FeedPart):
    """A shared state's part in a feed, and how each pane grid finds its own states again."""

    def panes(self, feed: pl.DataFrame, pane_grid: PaneGrid) -> pl.DataFrame:
        """The states of the feed as those of a pane grid; several may be of one interval. Entries that the
        feed does not know came later than it."""
        panes = pl.Series(PANE, pane_grid.panes_of(feed[BEGIN].to_numpy()))
        keys = [feed[f"k{place}"] for place in range(len(self.keys))]
        names = {name: self.columns[name] for name in pane_grid.nothing}
        known = [feed[column].alias(name) for name, column in names.items() if column in feed.columns]
        return pane_grid.some(
            pane_grid.fitted(pl.DataFrame([panes, *keys, *known]), tuple(key.name for key in keys))
        )


@lru_cache(maxsize=4096)
def _native(program: PaneProgram) -> NativeQuery | str:
    """How a query shares a feed, or why it cannot."""
    stream, level = program.stream, program.bottom
    measures = level.answers.measures
    if stream.domain.resolution is not None:
        return (
            f"`{stream.wattr}` is a {stream.schema.column(stream.wattr).type}: its ticks are found row by row"
        )
    if not _is_simple(stream):
        return f"progress and late rows of `{stream.name}` are judged row by row"
    if level.query.attribute != stream.wattr or level.query.scan.pseudo:
        return "row numbers and arrival times are given to rows as they come"
    if set(measures.layouts) != {GROUPS}:
        return "an aggregate keeps values, not a state of constant size"
    normal = normal_form(level.query)
    states = [partial for partial in measures.layouts[GROUPS].partials if partial != ROWS]
    parts = [(partial, *measures.argument_of(partial)) for partial in states]
    read = [normal.where, *normal.keys, *(normal.of(e) for _, args, where in parts for e in (*args, where))]
    if any(can_fail(part) or part.reads_window_bounds for part in read):
        return "an expression may fail for some row, which must not stop other queries"
    if any(isinstance(node, Call) and not lookup(node.function).native for e in read for node in e.walk()):
        return "it reads parts of nested values"
    if any(key.type.fields for key in normal.keys):
        return "it groups by arrays or structs"
    bounds = _landmark(level.query.cut)
    told = _states(
        (
            (
                partial.label,
                partial,
                tuple(map(normal.of, args)),
                conjunction((*_parts(normal.where), *_parts(normal.of(where)))),
            )
            for partial, args, where in [(ROWS, (), TRUE), *parts]
        ),
        bounds,
    )
    if told is None:
        return "Spark has no aggregation that keeps the same state"
    aggregations, columns, kinds = told
    entered = _condition(normal.enters, bounds)
    latest = f"l{_digest(entered)}"
    aggregations[latest] = f"max(CASE WHEN {entered} THEN {MOMENT} END)"
    feed = _digest(stream.name, *(_sql(key) for key in normal.keys))
    return NativeQuery(feed, normal.keys, aggregations, columns, kinds, (level.query.cut,), latest)


def native_query(program: PaneProgram) -> NativeQuery | None:
    """How a query shares a feed; None if it must be computed from rows."""
    found = _native(program)
    return None if isinstance(found, str) else found


def why_from_rows(program: PaneProgram) -> str | None:
    """Why a query is computed from rows; None if Spark aggregates for it."""
    found = _native(program)
    return found if isinstance(found, str) else None


def _is_simple(stream: Stream) -> bool:
    """Whether progress follows from the greatest value of each batch, and late rows are forgotten."""
    rule = stream.progress
    simple = isinstance(rule.policy, NoPolicy | Ordered | Slack) and rule.mark is None and rule.per is None
    plain = stream.wattr in stream.schema and stream.domain.resolution is None
    return simple and plain and not stream.also and stream.late is Late.DROP


def _states(
    states: Iterable[tuple[str, partials.Partial, tuple[Expression, ...], Expression]], bounds: str
) -> tuple[dict[str, str], dict[str, str], dict[str, DataType]] | None:
    """The aggregations, columns and kinds of a feed's part, of states by their labels, with their arguments
    and conditions; None if Spark has no aggregation for one of them."""
    aggregations: dict[str, str] = {}
    columns: dict[str, str] = {}
    kinds: dict[str, DataType] = {}
    for label, shape, args, chosen in states:
        whole = shape.whole if isinstance(shape, partials.PartialColumns) else shape
        found = _aggregations(whole, args, chosen, bounds)
        if found is None:
            return None
        mine = found[shape.first : shape.stop] if isinstance(shape, partials.PartialColumns) else found
        for place, text in enumerate(mine):
            column = f"a{_digest(text)}"
            aggregations[column], columns[f"{label}.{place}"] = text, column
            if isinstance(shape, partials.Extreme) and place == 1:
                kinds[column] = args[0].type
    return aggregations, columns, kinds


def _parts(condition: Expression) -> tuple[Expression, ...]:
    return () if condition == TRUE else (condition,)


def _aggregations(
    partial: partials.Partial, args: tuple[Expression, ...], chosen: Expression, bounds: str
) -> list[str] | None:
    """The columns of a state as Spark's aggregations; None if Spark has none that is the same."""
    counted = conjunction((*_parts(chosen), *(call("is_not_null", [arg]) for arg in args)))
    condition = _condition(counted, bounds)
    count = f"count(CASE WHEN {condition} THEN 1 END)"

    def of(value: str) -> str:
        return f"CASE WHEN {condition} THEN {value} END"

    match partial:
        case partials.CountPartial():
            return [count]
        case partials.ExactTotal() if args[0].type.is_integer and not partial.squared:
            value = f"CAST({_sql(args[0])} AS BIGINT)"
            if partial.limbs == 1:
                return [count, f"coalesce(sum({of(value)}), 0L)"]
            low, high = f"({value}) & 4294967295L", f"shiftright({value}, 32)"
            return [count, f"coalesce(sum({of(low)}), 0L)", f"coalesce(sum({of(high)}), 0L)"]
        case partials.FloatTotal() if args[0].type.is_fractional or args[0].type.is_integer:
            value = f"CAST({_sql(args[0])} AS DOUBLE)"
            return [count, f"coalesce(sum({of(value)}), 0D)"]
        case partials.FloatMoments() if args[0].type.is_fractional:
            value = f"CAST({_sql(args[0])} AS DOUBLE)"
            spread = f"var_pop({of(value)}) * {count}"
            return [count, f"coalesce(avg({of(value)}), 0D)", f"coalesce({spread}, 0D)"]
        case partials.Extreme() if not args[0].type.fields and args[0].type.kind is not Kind.INTERVAL:
            function = "max" if partial.greatest else "min"
            return [count, f"{function}({of(_sql(args[0]))})"]
    return None


def _landmark(cut: Cut) -> str:
    """The condition of FROM and UNTIL."""
    parts = []
    if cut.range is None and cut.start is not None:
        parts.append(f"{MOMENT} >= {cut.start}L")
    if cut.range is None and cut.until is not None:
        parts.append(f"{MOMENT} <= {cut.until}L")
    return " AND ".join(parts)


def _condition(predicate: Expression, bounds: str) -> str:
    text = f"({_sql(predicate)})"
    return f"{text} AND {bounds}" if bounds else text


def _sql(expression: Expression) -> str:
    return to_sql(expression, backquoted)


def _digest(*texts: str) -> str:
    return blake2b("\0".join(texts).encode(), digest_size=8).hexdigest()


@dataclass(frozen=True)
class Feed:
    """One native aggregation, for all queries of a grouping."""

    name: str
    keys: tuple[Expression, ...]
    aggregations: Mapping[str, str]
    kinds: Mapping[str, DataType]
    begin: str
    #: the feeds that are aggregated together as this one
    parts: tuple[Feed, ...] = ()

    @property
    def key_kinds(self) -> dict[str, DataType]:
        """The key columns and their types."""
        return {f"k{place}": key.type for place, key in enumerate(self.keys)}

    @property
    def key_texts(self) -> list[str]:
        """The key columns as Spark computes them."""
        return [_sql(key) for key in self.keys]

    @property
    def columns(self) -> frozenset[str]:
        """All columns it gives."""
        return frozenset(self.aggregations)

    def part(self, panes: pl.DataFrame, of: Feed) -> pl.DataFrame:
        """The panes of one of its parts: a group may have several states in a pane, one for each combination
        with groups of the others."""
        places = {text: place for place, text in enumerate(self.key_texts)}
        keys = [pl.col(f"k{places[text]}").alias(f"k{own}") for own, text in enumerate(of.key_texts)]
        return panes.select(BEGIN, *keys, *of.aggregations)


@lru_cache(maxsize=256)
def native_shared_state(shared_state: SharedState) -> NativeSharedState | None:
    """How the synopses of a stream and a grouping share a feed; None if they must be computed from rows."""
    stream, keys = shared_state.stream, shared_state.keys
    if not _is_simple(stream) or any(key.type.fields for key in keys):
        return None
    found = _states(
        (
            (entry.name, entry.shape, entry.args, entry.where)
            for pane_grid in shared_state.pane_grids
            for entry in pane_grid.entries
        ),
        "",
    )
    if found is None:
        return None
    feed = _digest(stream.name, *(_sql(key) for key in keys))
    cuts = tuple(
        Cut(pane_grid.width, pane_grid.width, pane_grid.phase) for pane_grid in shared_state.pane_grids
    )
    return NativeSharedState(feed, keys, *found, cuts)


def feeds_of(programs: Iterable[PaneProgram], shared_states: Iterable[SharedState] = ()) -> list[Feed] | None:
    """The feeds of all queries of a stream; None if they are better computed from rows."""
    queries: list[FeedPart | None] = [native_query(program) for program in programs]
    queries += [
        None if shared_state.value_counters else native_shared_state(shared_state)
        for shared_state in shared_states
    ]
    if not queries:
        return []
    groups: dict[str, list[FeedPart]] = {}
    for query in queries:
        if query is None:
            return None
        groups.setdefault(query.feed, []).append(query)
    feeds = [_feed(name, group) for name, group in groups.items()]
    return feeds if all(len(feed.aggregations) <= MOST_AGGREGATIONS for feed in feeds) else None


def together(feeds: Sequence[Feed]) -> Feed | None:
    """Several feeds as one, by all keys of all of them; None if it would have too much to aggregate.

    It reads the rows once. How many groups it has is seen when it has run: groupings by columns that depend
    on each other, or by few values, have few in common.
    """
    aggregations = {column: text for feed in feeds for column, text in feed.aggregations.items()}
    keys = {text: key for feed in feeds for text, key in zip(feed.key_texts, feed.keys, strict=True)}
    if len(aggregations) > MOST_AGGREGATIONS or len(keys) > MOST_KEYS:
        return None
    kinds = {column: kind for feed in feeds for column, kind in feed.kinds.items()}
    begins = list(dict.fromkeys(feed.begin for feed in feeds))
    begin = begins[0] if len(begins) == 1 else f"greatest({', '.join(begins)})"
    name = _digest(*(feed.name for feed in feeds))
    return Feed(name, tuple(keys.values()), aggregations, kinds, begin, tuple(feeds))


def _feed(name: str, queries: Sequence[FeedPart]) -> Feed:
    aggregations = {column: text for query in queries for column, text in query.aggregations.items()}
    kinds = {column: kind for query in queries for column, kind in query.kinds.items()}
    cuts = [cut for query in queries for cut in query.cuts]
    return Feed(name, queries[0].keys, aggregations, kinds, pane_begin(cuts))


def pane_begin(cuts: Iterable[Cut]) -> str:
    """Where the finest pane of a moment begins: the last place where any window begins or ends.

    >>> from windrow.kernels.panes.query import Cut
    >>> pane_begin([Cut(60, 10), Cut(300, 20)]).replace(MOMENT, "t")
    '(t - pmod(t - 0L, 10L))'
    >>> pane_begin([Cut(7, 5)]).replace(MOMENT, "t")
    'greatest((t - pmod(t - 0L, 5L)), (t - pmod(t - 3L, 5L)))'
    """
    grids = _needed({grid for cut in cuts for grid in _grids(cut)})
    if len(grids) > MOST_GRIDS:
        first = grids[0][1]
        width = gcd(*(period for period, _ in grids), *(phase - first for _, phase in grids))
        grids = [(width, first % width)]
    texts = [f"({MOMENT} - pmod({MOMENT} - {phase}L, {period}L))" for period, phase in grids]
    return texts[0] if len(texts) == 1 else f"greatest({', '.join(texts)})"


def _grids(cut: Cut) -> list[tuple[int, int]]:
    """Where windows end and begin: (period, phase)."""
    ends = (cut.slide, cut.origin % cut.slide)
    return [ends, (cut.slide, (cut.origin - cut.range) % cut.slide)] if cut.range is not None else [ends]


def _needed(grids: set[tuple[int, int]]) -> list[tuple[int, int]]:
    """Without those whose points are all points of another."""
    finest = sorted(grids)
    return [
        (period, phase)
        for period, phase in finest
        if not any(
            period % other == 0 and phase % other == at and (other, at) != (period, phase)
            for other, at in finest
        )
    ]


def moment_sql(stream: Stream) -> str:
    """The stream's WATTR as a 64-bit integer."""
    name, kind = backquoted(stream.wattr), stream.schema.column(stream.wattr).type
    if kind.kind is Kind.TIMESTAMP:
        return f"unix_micros({name})"
    if kind.kind is Kind.DATE:
        return f"CAST(unix_date({name}) AS BIGINT) * 86400000000L"
    return f"CAST({name} AS {BIGINT})"


def promised_sql(progress: Instant) -> str:
    """What a stream had promised before the batch: rows below it are late. It is new in every epoch: as a
    plain constant it would be part of the generated code, which would be compiled anew (80 ms); an element of
    an array is not.

    >>> promised_sql(7).replace(MOMENT, "t")
    'element_at(array(7L, 0L), IF(t IS NULL, 2, 1))'
    """
    promised = int(max(-_LIMIT, min(_LIMIT, progress)))
    return f"element_at(array({promised}L, 0L), IF({MOMENT} IS NULL, 2, 1))"


@dataclass(frozen=True)
class Aggregation:
    """What Spark computes for a feed, whatever the batch: columns and their texts."""

    moment: str
    keys: tuple[tuple[str, str], ...]
    states: tuple[tuple[str, str], ...]


def aggregation(feed: Feed, moment: str, *, sheds: bool = False, malformed: str = "") -> Aggregation:
    """The aggregation of a feed. Rows that are shed, and those that are none, where the column `malformed`
    has something, are only counted, all together: nothing is computed from them."""
    counted = " OR ".join([IS_SHED] * sheds + [f"`{malformed}` IS NOT NULL"] * bool(malformed))
    keys = [f"CASE WHEN {counted} THEN NULL ELSE {text} END" if counted else text for text in feed.key_texts]
    states = {COUNT: "count(1)", GREATEST: f"max({MOMENT})", **feed.aggregations}
    named = tuple((f"{RESERVED}key{place}", text) for place, text in enumerate(keys))
    return Aggregation(moment, named, tuple(states.items()))


def pane_sql(feed: Feed, promised: str, *, sheds: bool = False, malformed: str = "") -> str:
    """The pane of a row. Rows before the promise are in no pane; those that are shed, and those that are
    none, are together in one."""
    pane = f"CASE WHEN {IS_SHED} THEN {SHED}L ELSE {feed.begin} END" if sheds else feed.begin
    no_row = f"WHEN `{malformed}` IS NOT NULL THEN {NO_ROW}L " if malformed else ""
    return f"CASE {no_row}WHEN {MOMENT} >= {promised} THEN {pane} END"
