"""All facts of an explanation, gathered once; the text, the JSON and the picture only lay them out.

What is above the algebra comes as plain arguments: the rules that fired and the plans considered from the
optimiser, estimated rows from the cost model, by a node's place in the plan.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from windrow.algebra.explain.brackets import quantity
from windrow.algebra.explain.meaning import clocks, finality, guarantee, why_word, word_meaning
from windrow.algebra.explain.operators import Spelling, call_text, operator_text, window_text, word_text
from windrow.algebra.explain.text import as_text
from windrow.algebra.operators import Aggregate
from windrow.algebra.physical import Layout, choose
from windrow.algebra.physical.grouping import function_of
from windrow.algebra.plan import Emit, Plan, Scan, Subquery, TableScan, Window
from windrow.errors import QueryError
from windrow.windows.classes import WindowClass, classify
from windrow.windows.domain import Domain
from windrow.windows.panes import Panes
from windrow.windows.spec import WindowSpec

if TYPE_CHECKING:
    from windrow.algebra.aggregates import Aggregate as Function
    from windrow.algebra.patterns import Pattern
    from windrow.algebra.physical import Physical, PhysicalPlan

#: the place of a node: the number of the child, from the root down
Path = tuple[int, ...]


#: layouts that hold the operator's answer, row by row or value by value
_OF_ANSWERS = frozenset(
    {
        Layout.APPEND,
        Layout.FIFO,
        Layout.CALENDAR,
        Layout.POSITIONS,
        Layout.HASH,
        Layout.CATALOGUES,
        Layout.CALENDAR_NEGATIVE,
        Layout.VALUES,
        Layout.COUNTS,
        Layout.GROUPS,
        Layout.TABLE,
    }
)
#: layouts of which the cost model knows the size
_OF_STATES = frozenset({Layout.YOUNGEST})


@dataclass(frozen=True)
class Size:
    """What a cost model expects of an operator: rows of its answer, rows that it has to work with, and, if it
    has panes, rows of state for each pane and group."""

    answer: float
    state: float
    cells: float = 1.0


@dataclass(frozen=True)
class Step:
    """One operator of the tree. A table has no pattern: it is not a stream of rows that expire."""

    operator: str
    pattern: Pattern | None
    expiry: str
    physical: Physical
    state_rows: float | None = None
    inputs: tuple[Step, ...] = ()

    def walk(self) -> Iterator[Step]:
        """This step and all below it, parents first."""
        yield self
        for part in self.inputs:
            yield from part.walk()


@dataclass(frozen=True)
class WindowFact:
    """A window, how much context it needs (WID 4), and the panes of its extents."""

    window: str
    window_class: WindowClass
    panes_per_extent: int | None = None
    pane: str | None = None


@dataclass(frozen=True)
class Alternative:
    """A plan the optimiser considered: what was done to get it, and what it costs per unit of time."""

    name: str
    cost: float
    chosen: bool = False


@dataclass(frozen=True, repr=False)
class Explanation:
    """Everything EXPLAIN knows about a query. `str` is the text; `render` has the other forms."""

    name: str | None
    plan: Step
    columns: tuple[tuple[str, str], ...]
    word: str
    #: why no stream word means this one; None if it was written
    word_because: str | None
    meaning: str
    final: str
    clock: tuple[tuple[str, str], ...]
    windows: tuple[WindowFact, ...]
    sink: str | None
    guarantee: str
    #: None: no optimiser was asked
    fired: tuple[str, ...] | None = None
    considered: tuple[Alternative, ...] = ()
    #: aggregates that estimate, and how far they may be from the exact value
    errors: tuple[tuple[str, str], ...] = ()
    #: how an engine would run it
    runs: tuple[str, ...] = ()
    #: what an engine that runs it has seen of it
    observed: tuple[str, ...] = ()

    def __str__(self) -> str:
        return as_text(self)

    __repr__ = __str__  # what a shell or a notebook shows


def gather(
    emit: Emit,
    *,
    chosen: Emit | None = None,
    name: str | None = None,
    sink: str | None = None,
    fired: Sequence[str] | None = None,
    considered: Sequence[Alternative] = (),
    sizes: Mapping[Path, Size] | None = None,
    promised: str | None = None,
    runs: Sequence[str] = (),
    observed: Sequence[str] = (),
) -> Explanation:
    """The explanation of a query: of its answers by the plan as written, of its steps by the chosen one."""
    run = chosen or emit
    return Explanation(
        name=name,
        plan=_step(choose(run), (), Spelling.of(run), sizes or {}),
        columns=tuple((field.name, str(field.type)) for field in emit.schema),
        word=word_text(emit),
        word_because=why_word(emit),
        meaning=word_meaning(emit),
        final=finality(emit),
        clock=clocks(emit),
        windows=tuple(_windows(emit)),
        sink=sink,
        guarantee=promised or guarantee(sink),
        fired=None if fired is None else tuple(fired),
        considered=tuple(considered),
        errors=tuple(_errors(run)),
        runs=tuple(runs),
        observed=tuple(observed),
    )


def _errors(emit: Emit) -> Iterator[tuple[str, str]]:
    """What sketches promise, in this query and those nested in it."""
    spelling = Spelling.of(emit)
    for node in emit.walk():
        spelling = Spelling.of(node) if isinstance(node, Emit) else spelling
        for call in (call for _, call in node.aggregates) if isinstance(node, Aggregate) else ():
            function = function_of(call)
            if function.error_bound is not None:
                yield call_text(call, spelling), function.error_bound + _most_state(function)


def _most_state(function: Function) -> str:
    """How large the state of a sketch can become."""
    if function.most_cells is None:
        return ""
    size = function.most_cells * function.cell_bytes / 1024
    return (
        f"; state at most {function.most_cells} cells, {size:.2g} KB, per pane and group"
        if size < 100
        else f"; state at most {function.most_cells} cells, {size / 1024:.2g} MB, per pane and group"
    )


def _step(part: PhysicalPlan, path: Path, spelling: Spelling, sizes: Mapping[Path, Size]) -> Step:
    node = part.node
    inner = Spelling.of(node.query) if isinstance(node, Subquery) else spelling
    inner = Spelling.of(node) if isinstance(node, Emit) and not node.is_union else inner
    # a window right over a stream is one line: the stream has nothing to say of its own
    below = () if isinstance(node, Window) and isinstance(node.input, Scan) else part.inputs
    label = None if isinstance(node, TableScan) else node.label
    return Step(
        operator=operator_text(node, spelling),
        pattern=label.pattern if label else None,
        expiry=label.reason if label else "",
        physical=part.physical,
        state_rows=_state_rows(node, part.physical.layout, sizes.get(path)),
        inputs=tuple(_step(each, (*path, place), inner, sizes) for place, each in enumerate(below)),
    )


def _state_rows(node: Plan, layout: Layout, size: Size | None) -> float | None:
    """How many rows a layout is expected to hold; None where nothing is known, or nothing kept."""
    if size is None:
        return None
    if layout is Layout.PANES:
        return size.answer * Panes.of(node.leaves[0].spec).per_window * size.cells
    return size.answer if layout in _OF_ANSWERS else size.state if layout in _OF_STATES else None


def _windows(emit: Emit) -> Iterator[WindowFact]:
    """The windows of a query, then those of its nested queries."""
    spelling = Spelling.of(emit)
    for leaf in emit.leaves:
        panes = _panes(leaf.spec)
        unit = Domain.NUMBER if leaf.spec.reports_positions else leaf.domain
        yield WindowFact(
            window_text(leaf, spelling),
            classify(leaf.spec),
            panes.per_window if panes else None,
            _width(panes.width, unit, leaf.spec) if panes else None,
        )
        for origin in leaf.origins:
            yield from _windows(origin.query) if isinstance(origin, Subquery) else ()


def _panes(spec: WindowSpec) -> Panes | None:
    try:
        return Panes.of(spec)
    except QueryError:
        return None


def _width(ticks: int, unit: Domain, spec: WindowSpec) -> str:
    return f"{ticks} ROWS" if spec.reports_positions else quantity(ticks, unit)
