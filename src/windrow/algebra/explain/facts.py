"""All facts of an explanation, gathered once; the text, the JSON and the picture only lay them out.

What is above the algebra comes as plain arguments: the steps as a physical plan has them, the rules that
fired, the plans considered, and what was seen while it ran.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from windrow.algebra.aggregates.calls import function_of
from windrow.algebra.explain.brackets import quantity
from windrow.algebra.explain.guarantees import clocks, finality, guarantee, why_word, word_meaning
from windrow.algebra.explain.operators import Spelling, call_text, window_text, word_text
from windrow.algebra.explain.text import as_text
from windrow.algebra.operators import Aggregate
from windrow.algebra.plan import Emit, Subquery
from windrow.errors import QueryError
from windrow.windows.classes import WindowClass, classify
from windrow.windows.domain import Domain
from windrow.windows.panes import Panes
from windrow.windows.spec import WindowSpec

if TYPE_CHECKING:
    from windrow.algebra.aggregates import AggregateFunction
    from windrow.algebra.patterns import Pattern


@dataclass(frozen=True)
class Step:
    """One operator of the tree. A table has no pattern: it is not a stream of rows that expire."""

    operator: str
    pattern: Pattern | None
    expiry: str
    #: how it works, and why so
    method: str
    reason: str = ""
    #: what it keeps; empty: nothing
    state: str = ""
    state_rows: float | None = None
    #: its durable name, and its place among the operators that run; None: another one does its work
    kind: str | None = None
    place: str | None = None
    #: rows go through one by one: there is nothing to know about it but its pattern
    passes_on: bool = False
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
    """A plan that the planner considered: what was done to get it, and what it costs per unit of time."""

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
    plan: Step,
    *,
    name: str | None = None,
    sink: str | None = None,
    fired: Sequence[str] | None = None,
    considered: Sequence[Alternative] = (),
    promised: str | None = None,
    runs: Sequence[str] = (),
    observed: Sequence[str] = (),
) -> Explanation:
    """The explanation of a query: of its answers by the plan as written, of its steps as they run."""
    return Explanation(
        name=name,
        plan=plan,
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
        errors=tuple(_errors(emit)),
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


def _most_state(function: AggregateFunction) -> str:
    """How large the state of a sketch can become."""
    if function.most_cells is None:
        return ""
    size = function.most_cells * function.cell_bytes / 1024
    return (
        f"; state at most {function.most_cells} cells, {size:.2g} KB, per pane and group"
        if size < 100
        else f"; state at most {function.most_cells} cells, {size / 1024:.2g} MB, per pane and group"
    )


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
