"""How γ keeps its groups: by panes, running, per session, or by replacing values as rows come and go.

The aggregates' algebra decides, never their names. Panes ("No Pane, No Gain", 3): every row goes into one
pane (the pane-level query PLQ), every extent is combined from panes (the window-level query WLQ). Aggregates
of bounded size hold one small state per pane and group, holistic ones the counts of their values.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from windrow.algebra.aggregates import Size, make
from windrow.algebra.aggregates.waved import Waved
from windrow.algebra.expressions import WindowBound
from windrow.algebra.operators import Aggregate, Filter, Project, TableJoin, Union
from windrow.algebra.patterns import Pattern
from windrow.algebra.physical.layouts import Implementation, Layout, Physical
from windrow.algebra.plan import Emit, Plan, Window
from windrow.errors import QueryError
from windrow.windows.panes import Panes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from windrow.algebra.aggregates import Aggregate as Function
    from windrow.algebra.expressions import Expression
    from windrow.algebra.operators import AggregateCall
    from windrow.algebra.patterns import Label


class Manner(Enum):
    """How the value of one aggregate follows the rows that come and go."""

    GROUP = "by adding and subtracting"
    CANDIDATES = "from candidates that no younger row outdoes"
    WAVE = "from few rows, the younger the more"
    STACKS = "on two stacks"
    ROWS = "from the rows of the group"


def grouped(node: Aggregate, emit: Emit) -> Physical:
    """The choice for a γ in this query."""
    if panes_of(node, emit) is not None:
        return Physical(Implementation.PANES, Layout.PANES, _why_panes(node))
    if _reports_sessions(node, emit):
        why = "a row joins, begins or links sessions; each is reported once, when it has ended"
        return Physical(Implementation.SESSIONS, Layout.SESSIONS, why)
    if node.input.label.pattern is Pattern.MON:
        why = "nothing below expires, so rows are added and forgotten"
        return Physical(Implementation.RUNNING, Layout.GROUPS, why)
    layout = Layout.CANDIDATES if _only_candidates(node) else Layout.GROUPS
    return Physical(Implementation.REPLACED, layout, _why_replaced(node))


def why_no_rows(node: Aggregate, emit: Emit) -> str | None:
    """Why a γ never reads the rows below again; None if it does."""
    match grouped(node, emit).layout:
        case Layout.PANES:
            return "the γ above keeps panes, not rows"
        case Layout.SESSIONS:
            return "the γ above keeps a state per session, not rows"
        case Layout.CANDIDATES:
            return "the γ above keeps only candidates"
    return "the γ above adds rows and forgets them" if node.input.label.pattern is Pattern.MON else None


def panes_of(node: Aggregate, emit: Emit) -> Panes | None:
    """The panes in which a γ can be evaluated.

    All rows must reach it as they come, the same for every extent, from windows with one common RANGE and
    SLIDE. RESTORE takes the SLIDE for a refresh period of windows that move continuously.
    """
    if emit.word.restores or node.is_internal or not _reaches_windows(node.input):
        return None
    if len({leaf.spec.period for leaf in node.leaves}) > 1 or any(map(_reads_bounds, _below_groups(node))):
        return None
    try:
        return Panes.of(node.leaves[0].spec)
    except QueryError:
        return None


def _below_groups(node: Aggregate) -> Iterator[Expression]:
    """What is computed per row, before rows are grouped; a key that is a bound itself is not."""
    yield from (key for _, key in node.keys if not isinstance(key, WindowBound))
    yield from (part for _, call in node.aggregates for part in (*call.args, call.where))
    for below in node.input.walk():
        yield from (below.predicate,) if isinstance(below, Filter) else ()
        yield from (value for _, value in below.outputs) if isinstance(below, Project) else ()


def _reads_bounds(expression: Expression) -> bool:
    return any(isinstance(part, WindowBound) for part in expression.walk())


def _reaches_windows(plan: Plan) -> bool:
    """Whether only operators that look at one row at a time are between here and the windows."""
    match plan:
        case Window():
            # positions are counted per partition: panes of one are of no use to groups across several
            return not getattr(plan.spec, "partition_by", ())
        case Filter(input=below) | Project(input=below):
            return _reaches_windows(below)
        case TableJoin(input=below):
            return not plan.is_retroactive and _reaches_windows(below)
        case Union(inputs=inputs):
            # each stream counts its own positions: they have no panes in common
            counted = any(leaf.spec.reports_positions for leaf in plan.leaves)
            return not counted and all(_reaches_windows(part) for part in inputs)
    return False


def _reports_sessions(node: Aggregate, emit: Emit) -> bool:
    below: Plan = node.input
    while isinstance(below, Filter | Project):
        below = below.input
    return emit.reports_sessions and isinstance(below, Window)


def function_of(call: AggregateCall) -> Function:
    """The aggregate with its algebra."""
    types = tuple(argument.type for argument in call.args)
    return make(call.function, call.params, distinct=call.distinct, types=types)


def manner_of(function: Function, label: Label) -> Manner:
    """How an aggregate over rows that expire in this way is kept up to date.

    >>> from windrow.algebra.patterns import Label
    >>> from windrow.algebra.types import BIGINT, DOUBLE
    >>> fifo = Label(Pattern.WKS, "", fifo=True)
    >>> for name, kind in ("sum", BIGINT), ("sum", DOUBLE), ("max", DOUBLE):
    ...     print(name, kind, manner_of(make(name, types=(kind,)), fifo).value)
    sum BIGINT by adding and subtracting
    sum DOUBLE on two stacks
    max DOUBLE from candidates that no younger row outdoes
    """
    if isinstance(function, Waved):
        return Manner.WAVE
    if function.invertible:
        return Manner.GROUP
    selects = function.duplicate_insensitive and function.size is Size.BOUNDED and not function.ordered
    if selects and (label.fifo or label.pattern is Pattern.WK):
        return Manner.CANDIDATES
    return Manner.STACKS if label.fifo else Manner.ROWS


def _only_candidates(node: Aggregate) -> bool:
    manners = {manner_of(function_of(call), node.input.label) for _, call in node.aggregates}
    return bool(manners) and manners <= {Manner.CANDIDATES, Manner.WAVE}


_SIZES = {
    Size.BOUNDED: "of constant size for",
    Size.SKETCH: "sketches for",
    Size.LISTS: "lists of the most frequent values for",
    Size.HOLISTIC: "counts of values for",
}


def _why_panes(node: Aggregate) -> str:
    sizes: dict[Size, list[AggregateCall]] = {size: [] for size in _SIZES}
    for _, call in node.aggregates:
        sizes[function_of(call).size].append(call)
    parts = [f"{_SIZES[size]} {_listed(calls)}" for size, calls in sizes.items() if calls]
    return "; ".join(parts) or "one mark per pane and group"


def _why_replaced(node: Aggregate) -> str:
    manners: dict[Manner, list[AggregateCall]] = {}
    for _, call in node.aggregates:
        manners.setdefault(manner_of(function_of(call), node.input.label), []).append(call)
    return "; ".join(f"{_listed(calls)} {manner.value}" for manner, calls in manners.items()) or (
        "a group is there while it has rows"
    )


def _listed(calls: Iterable[AggregateCall]) -> str:
    names = (("DISTINCT " if call.distinct else "") + call.function.upper() for call in calls)
    return ", ".join(dict.fromkeys(names))
