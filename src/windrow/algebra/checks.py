"""What makes a plan legal, one rule per function, each with its reason in the message.

The nodes call these when they are made, so that an illegal plan cannot exist.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

from windrow.algebra.aggregates import make
from windrow.algebra.catalog import Late, TableKind
from windrow.algebra.expressions import Expression, Schema, WindowBound
from windrow.algebra.types import Kind
from windrow.errors import QueryError, nearest
from windrow.windows import ROW_NUM, Domain, Pattern, Quantity, panes, ranges, spec

if TYPE_CHECKING:
    from windrow.algebra.operators import AggregateCall, TableJoin
    from windrow.algebra.plan import Emit, Plan, Subquery, Window

_NEEDS_ORDER = frozenset({"first", "last", "array_agg", "string_agg", "listagg"})
_NEEDS_SUB_WINDOWS = frozenset({"approx_top_k", "frequent"})


def reads_only(schema: Schema, *expressions: Expression) -> None:
    """Expressions read columns that exist."""
    for expression in expressions:
        for name in sorted(expression.columns):
            if name not in schema:
                hint = nearest(name, schema.names)
                raise QueryError(f"no column `{name}` here", code="unknown-column", hint=hint)


def is_predicate(expression: Expression, where: str) -> None:
    """A condition is BOOLEAN."""
    if expression.type.kind not in (Kind.BOOLEAN, Kind.NULL):
        raise QueryError(
            f"{where} needs a condition, but this is {expression.type}",
            code="not-a-condition",
            hint="compare it with something",
        )


def has_inputs(inputs: Sequence[Plan], least: int, what: str) -> None:
    if len(inputs) < least:
        raise QueryError(f"{what} needs at least {least} inputs, not {len(inputs)}", code="too-few-inputs")


def no_table_below_a_join(inputs: Sequence[Plan]) -> None:
    """A join result sees an NRR table as of its youngest row, so the table is joined last."""
    if any(part.reads_as_of_rows for part in inputs):
        raise QueryError(
            "an NRR table is joined below a join of streams: a result would not see the table as of its"
            " youngest row",
            code="table-below-join",
            hint="join the table in the outer query, after the streams",
        )


def same_columns(inputs: Sequence[Plan], what: str) -> None:
    """Set operations need rows of the same types."""
    first = inputs[0].schema
    for other in inputs[1:]:
        if not first.accepts(other.schema):
            raise QueryError(
                f"{what} needs the same column types on all sides, but {_types(first)} meets"
                f" {_types(other.schema)}",
                code="set-types",
                hint="select the same number of columns, and CAST where types differ",
            )


def _types(schema: Schema) -> str:
    return "(" + ", ".join(str(kind) for kind in schema.types) + ")"


def no_internal_windows(plan: Plan, what: str) -> None:
    """DISTINCT and differences over INTERNAL windows would contradict themselves."""
    if plan.is_internal:
        raise QueryError(
            f"{what} cannot take INTERNAL windows: results that never expire would contain duplicates,"
            " or rows that no longer qualify",
            code="internal-window",
            hint="drop INTERNAL, and say ISTREAM to get an append-only stream",
        )


def order_is_known(plan: Plan, call: AggregateCall) -> None:
    """FIRST, LAST and arrays go by the windowing attribute, so rows must still have one."""
    if call.function in _NEEDS_ORDER and not call.distinct and not plan.has_wattr:
        raise QueryError(
            f"{call.function.upper()} goes by the windowing attribute, which rows lose under GROUP BY,"
            " DISTINCT and EXCEPT",
            code="no-order",
            hint="take MIN or MAX of a column that holds the order",
        )


def sub_windows_are_known(plan: Plan, call: AggregateCall) -> None:
    """FREQUENT and APPROX_TOP_K keep lists of sub-windows, which leave whole, in the order they came."""
    if call.function not in _NEEDS_SUB_WINDOWS:
        return
    name = call.function.upper()
    make(call.function, call.params, distinct=call.distinct)
    if any(leaf.spec.internal for leaf in plan.leaves):
        raise QueryError(
            f"{name} cannot take INTERNAL windows: lists of sub-windows would never leave",
            code="internal-window",
            hint="drop INTERNAL",
        )
    if any(leaf.keeps_late_rows for leaf in plan.leaves):
        raise QueryError(
            f"{name} cannot count late rows that are kept (LATE KEEP): their sub-window is over, and of its"
            " values only a list is left",
            code="late-keep",
            hint="declare the stream LATE DROP or LATE TO a sink",
        )
    if not plan.label.fifo:
        raise QueryError(
            f"{name} keeps a list for each sub-window, and rows below it do not leave first in, first out"
            f" ({plan.label.reason})",
            code="not-fifo",
            hint="take it of one window, before joins, DISTINCT and GROUP BY; or take TOP_K, which is exact",
        )
    cuts = {panes.sub_windows_of(leaf.spec) for leaf in plan.leaves}
    if None in cuts:
        raise QueryError(
            f"{name} keeps a list for each sub-window, and a window of this query has none",
            code="no-sub-windows",
            hint="write [RANGE r SLIDE s], [LANDMARK SLIDE s] or [ROWS n SLIDE m ROWS]; or take TOP_K",
        )
    if len(cuts) > 1 or (len(plan.leaves) > 1 and any(leaf.spec.reports_positions for leaf in plan.leaves)):
        raise QueryError(
            f"{name} keeps a list for each sub-window, and the windows below it have none in common",
            code="no-sub-windows",
            hint="give all windows the same RANGE, SLIDE and ORIGIN; or take TOP_K",
        )


def positive_limit(count: int) -> None:
    if count < 1:
        raise QueryError(f"LIMIT {count} leaves nothing", code="bad-limit", hint="LIMIT takes 1 or more")


def table_takes_input(join: TableJoin) -> None:
    """A join with a table cannot process negative rows: the table may have changed since (thesis, 3.5.3)."""
    table = join.table.table
    if join.input.label.pattern is Pattern.STR:
        raise QueryError(
            f"table `{table.name}` cannot be joined above rows that expire unpredictably"
            f" ({join.input.label.reason}): the table may have changed before they are retracted",
            code="table-over-str",
            hint=f"join `{table.name}` first, to the rows of a stream: below what makes them expire so",
        )
    assert not join.outer or table.kind is TableKind.NRR, "a RELATION is padded by EXCEPT ALL"
    if join.outer:
        no_internal_windows(join.input, "an outer join")
    if table.kind is TableKind.NRR and not join.input.has_wattr:
        raise QueryError(
            f"NRR table `{table.name}` is read as of each row's WATTR, which rows lose under"
            " GROUP BY, DISTINCT and EXCEPT",
            code="no-order",
            hint=f"join `{table.name}` first, to the rows of a stream: below what takes their time",
        )


def window_fits_its_stream(window: Window) -> None:
    """A window takes streams; windows that number rows need an order that late rows do not change."""
    if not window.input.is_stream:
        raise QueryError(
            f"a window is over a stream, not over a {type(window.input).__name__}",
            code="not-a-stream",
            hint="turn the relation into a stream first, with a nested query",
        )
    if window.keeps_late_rows and not isinstance(window.spec, spec.OwnInterval):
        name = next(stream.name for stream in window.streams if stream.late is Late.KEEP)
        raise QueryError(
            f"stream `{name}` keeps late rows (LATE KEEP), which would change the order that ROWS, SESSION"
            " and slide-by-tuple windows count in",
            code="late-keep",
            hint=f"declare the stream LATE {Late.DROP.value} or LATE TO a sink",
        )
    if window.spec.counts_arrivals and len(window.streams) != 1:
        raise QueryError(
            f"rows of nested queries and unions have no arrival order, so `{ROW_NUM}` is not defined",
            code="no-arrival-order",
            hint="leave WATTR row_num out: rows are then counted in order of their instants",
        )


def inner_query_is_append_only(subquery: Subquery) -> None:
    """A window takes rows, not retractions."""
    if subquery.query.emits_deletions:
        raise QueryError(
            "this nested query would emit '-' rows, which cannot enter a window",
            code="nested-deletions",
            hint="say ISTREAM(…) or RSTREAM(…) inside, or give its windows a SLIDE",
        )


def branches_only_add(branches: Sequence[Emit]) -> None:
    """The streams of a union are added up: rows of one are not retracted for the others."""
    if any(branch.emits_deletions or branch.is_union for branch in branches):
        raise QueryError(
            "a branch of UNION ALL with '+' and '-' rows is a relation, not a stream to be added to others",
            code="set-words",
            hint="say ISTREAM(…), DSTREAM(…) or RSTREAM(…) on every branch, or on none",
        )


class HasLeaves(Protocol):
    """A plan, or the windows of one that is being made."""

    @property
    def leaves(self) -> tuple[Window, ...]: ...


def _with_slide(leaf: Window) -> str:
    """The window with a SLIDE, behind its stream."""
    source = leaf.streams[0].name if len(leaf.streams) == 1 else "s"
    size = leaf.spec.range if isinstance(leaf.spec, ranges.RangeWindow) else 60_000_000
    written = Quantity.of_time(size) if leaf.domain is Domain.TIME else Quantity(size)
    return f"give the window a SLIDE, as in FROM {source} [RANGE {written} SLIDE {written}]"


def window_bounds_are_defined(plan: HasLeaves, expressions: Iterable[Expression]) -> None:
    """`window_start` and `window_end` exist where all windows of their SELECT move together."""
    bound = next((node for e in expressions for node in e.walk() if isinstance(node, WindowBound)), None)
    if bound is None:
        return
    boundless = next((leaf for leaf in plan.leaves if not leaf.spec.has_bounds), None)
    if boundless is not None:
        periodic = boundless.spec.is_periodic
        raise QueryError(
            f"`{bound.which}` is not defined: a window has {'no first instant' if periodic else 'no SLIDE'}",
            code="window-bounds",
            hint="the instant of each answer is in `at`" if periodic else _with_slide(boundless),
        )
    if len({leaf.spec.period for leaf in plan.leaves}) > 1:
        raise QueryError(
            f"`{bound.which}` is not defined: the windows of this SELECT have different periods",
            code="window-bounds",
            hint="give all windows the same RANGE, SLIDE and ORIGIN; or select"
            f" `{bound.which}` in a nested query over the windows it is about, under a name of its own",
        )


def emission_is_defined(emit: Emit) -> None:
    """Domains agree, and the stream word means something here."""
    _domains_agree(emit)
    if emit.is_union:  # each branch is defined by itself
        return
    if emit.word.restores:
        _restore_is_defined(emit)
    if emit.reads_window_bounds:
        _reports_one_extent_at_a_time(emit)


def _reports_one_extent_at_a_time(emit: Emit) -> None:
    by_themselves = all(leaf.spec.grid is not None for leaf in emit.leaves) or (
        len(emit.leaves) == 1 and emit.reports_extents and emit.meaning.value == "RSTREAM"
    )
    if emit.word.restores or emit.is_internal or not by_themselves:
        raise QueryError(
            "`window_start` and `window_end` are not defined here: answers are not about one extent each",
            code="window-bounds",
            hint="leave them out, or report each extent by itself: RSTREAM over one window",
        )


def _domains_agree(emit: Emit) -> None:
    domains = {leaf.domain for leaf in emit.leaves}
    if len(domains) > 1 and any(domain.resolution for domain in domains):
        raise QueryError(
            "the windows of one query must be on one domain, and those of a DOUBLE or a DECIMAL on one type"
            " and one RESOLUTION",
            code="mixed-domains",
            hint="declare the streams with the same type and RESOLUTION of their WATTR",
        )
    if len(domains) > 1:
        raise QueryError(
            "the windows of one query must be on one domain: all on time, or all on numbers",
            code="mixed-domains",
            hint="window each stream on an attribute of the same kind with WATTR",
        )


def _restore_is_defined(emit: Emit) -> None:
    calls = (call for node in emit.input.own_nodes for _, call in getattr(node, "aggregates", ()))
    if any(call.function in _NEEDS_SUB_WINDOWS for call in calls):
        raise QueryError(
            f"{emit.word.value} takes SLIDE for a refresh period of windows that move at every instant, which"
            " have no sub-windows to keep lists of",
            code="restore",
            hint="use ISTREAM or RSTREAM, or take TOP_K",
        )
    slides = {leaf.spec.period for leaf in emit.leaves}
    if any(not leaf.spec.is_refreshable for leaf in emit.leaves):
        raise QueryError(
            f"{emit.word.value} needs [RANGE … SLIDE …] or [ROWS n SLIDE …] windows that slide in time: SLIDE"
            " is the period in which results could be missed",
            code="restore",
            hint="give every window such a SLIDE, or use ISTREAM or RSTREAM",
        )
    if len({(slide, origin) for _, slide, origin in slides}) > 1:
        raise QueryError(
            f"{emit.word.value} refreshes all windows together, so they need one SLIDE",
            code="restore",
            hint="give all windows the same SLIDE and ORIGIN",
        )
