"""All facts of an explanation, gathered once; the text, the JSON and the picture only lay them out.

What is above the algebra comes as plain arguments: the steps as a physical plan has them, the rules that
fired, the plans considered, and what was seen while it ran.

WID's classes of windows, by what *wids* must know of other rows (WID 4 and 6).

A window declares two facts: whether the extents of a row depend on rows that came before it, and with
which attribute values a row that comes after it can still change them. The class follows.

>>> from windrow.windows.ranges import RangeWindow
>>> from windrow.windows.rows import RowsWindow
>>> from windrow.windows.slide_by_tuple import SlideByTupleWindow
>>> q1 = RangeWindow(300, 60)
>>> q2 = RowsWindow(1000, 10, arrival_order=True)
>>> q3 = SlideByTupleWindow(300, 1)
>>> q4 = RowsWindow(1000, 10, partition_by=("seg_id",), arrival_order=True)
>>> q5 = SlideByTupleWindow(300, 5, by_rank=True)
>>> [classify(q).name for q in (q1, q2, q3, q4, q5)]
['CF', 'CF', 'FCB', 'FCF', 'FCU']

Rows numbered by their attribute are not context free, as those numbered on arrival are: a row that comes
late shifts the count of all that follow it.

>>> classify(RowsWindow(1000, 10)).name
'FCU'

What comes out of a query, when it is final, and what its sink guarantees, in plain sentences.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from html import escape

from windrow.algebra.aggregates import AggregateFunction, function_of
from windrow.algebra.catalog import Stream
from windrow.algebra.explain.formats import as_text
from windrow.algebra.explain.operators import Spelling, call_text, policy, quantity, window_text, word_text
from windrow.algebra.explain.warnings import Warned, query_warnings
from windrow.algebra.finality import is_final_by_group
from windrow.algebra.operators import Aggregate
from windrow.algebra.plan import Emit, Scan, StreamWord, Subquery, TableScan
from windrow.errors import QueryError
from windrow.windows import Panes, Pattern, WindowSpec
from windrow.windows.domain import INFINITY, Domain, Element


class WindowClass(Enum):
    """From the least context to the most."""

    CF = "context free: the row itself tells its extents"
    FCF = "forward-context free: the row and those before it tell its extents"
    FCB = "forward-context bounded: later rows within a range of values can change its extents"
    FCU = "forward-context unbounded: any later row can change its extents"


def classify(spec: WindowSpec) -> WindowClass:
    """The class of a window, from the context its *wids* needs."""
    reach = spec.later_context(Element(0, 1))
    if reach is not None:
        return WindowClass.FCU if INFINITY in (-reach[0], reach[1]) else WindowClass.FCB
    return WindowClass.FCF if spec.needs_earlier else WindowClass.CF


_WORDS = {
    StreamWord.AUTO: "rows that join ('+') and leave ('-') the answer, told apart by the column `op`",
    StreamWord.ISTREAM: "rows that join the answer, at the instant they do",
    StreamWord.DSTREAM: "rows that leave the answer, at the instant they do",
    StreamWord.RSTREAM: "the whole answer, at each instant it changed",
    StreamWord.ISTREAM_RESTORE: "at each refresh, all results born since the last, also those gone again",
    StreamWord.RSTREAM_RESTORE: "at each refresh, the answer, and what was born and gone since the last",
}
_SINKS = {
    "console": "printed as it becomes final; a restart may print the last commit again",
    "memory": "kept in this process while it runs, each answer once; lost with the process",
    "files": "exactly once: a file appears with its commit, and a commit is never written twice",
    "delta": "exactly once: each commit is one Delta transaction that names its number",
    "kafka": "at least once, with the commit number in the headers to tell repeats by",
}
_NO_SINK = "none is named: kept for results(), or printed by `windrow run`"


def word_meaning(emit: Emit) -> str:
    """What the stream word of a query means here."""
    if emit.is_union:
        return "; ".join(f"branch {n}: {word_meaning(each)}" for n, each in enumerate(emit.branches, 1))
    if emit.meaning is StreamWord.RSTREAM and emit.reports_sessions:
        return "the answer of each session, when it has ended"
    if emit.meaning is StreamWord.RSTREAM and emit.is_periodic:
        return "the answer of each extent, when it closes"
    return _WORDS[emit.meaning]


def why_word(emit: Emit) -> str | None:
    """Why no stream word means this one; None if one is written."""
    if emit.is_union:
        found = [why_word(branch) for branch in emit.branches]
        return found[0] if len(set(found)) == 1 else None
    if emit.word is not StreamWord.AUTO:
        return None
    if emit.reports_extents:
        return "every window has a SLIDE" if emit.is_periodic else "sessions are reported as they end"
    if emit.meaning is StreamWord.ISTREAM:
        return "nothing ever leaves the answer"
    return "not every window has a SLIDE, and answers expire"


def finality(emit: Emit) -> str:
    """When an answer is final and therefore emitted; the clock is the least punctuation of all inputs, or of
    those of a branch."""
    if emit.is_union:
        return "; ".join(
            f"branch {n}, by the clock of {', '.join(name for name, _ in clocks(each))}: {finality(each)}"
            for n, each in enumerate(emit.branches, 1)
        )
    sources = ((stream, stream.progress.per) for stream in streams_of(emit))
    per = next((per for stream, per in sources if per and is_final_by_group(emit, stream, per)), None)
    return _final(emit) + (f"; each `{per}` has a clock of its own" if per else "")


def _final(emit: Emit) -> str:
    if emit.reports_sessions and getattr(emit.leaves[0].spec, "inclusive", False):
        return "a session, when the clock has passed its end, a gap after its last row"
    if emit.reports_sessions:
        return "a session, when the clock reaches its end, a gap after its last row"
    if emit.word.restores:
        return "a refresh, when the clock reaches it"
    if not emit.is_periodic:
        return "a change, when the clock has passed its instant"
    if all(leaf.spec.grid is not None for leaf in emit.leaves):
        return "an extent, when the clock reaches its end" + _repeated(emit)
    return "an extent, when the clock has passed the row that closes it"


def _repeated(emit: Emit) -> str:
    """How often an answer is told again that stays without new rows."""
    period = repetition(emit)
    if period is None:
        return ""
    if (domain := emit.leaves[0].domain) is not Domain.TIME:
        return f"; told again every {quantity(period, domain)}, also where no row came"
    often = 86_400_000_000 / period
    return f"; told again at every SLIDE, {often:,.0f} times a day, also where no row came"


def repetition(emit: Emit) -> int | None:
    """Every so many ticks an answer is told that no new row has changed; None where rows leave with time, or
    only changes are told.

    >>> from windrow.engine.explain import declared
    >>> from windrow.language.compile import compile_query
    >>> catalog = declared({"s": "k BIGINT, n BIGINT"}, {})
    >>> texts = ("COUNT(*) FROM s [LANDMARK SLIDE 5]", "ISTREAM(COUNT(*)) FROM s [LANDMARK SLIDE 5]")
    >>> [repetition(compile_query(f"SELECT {text}", catalog)) for text in texts]
    [5, None]
    """
    if emit.is_union:
        return min(filter(None, map(repetition, emit.branches)), default=None)
    told = emit.is_periodic and emit.meaning is StreamWord.RSTREAM
    stays = any(leaf.label.pattern in (Pattern.MON, Pattern.STR) for leaf in emit.leaves)
    grids = [leaf.spec.grid for leaf in emit.leaves]
    if not told or not stays or any(grid is None for grid in grids):
        return None
    return min(grid.period for grid in grids if grid is not None)


def clocks(emit: Emit) -> tuple[tuple[str, str], ...]:
    """What holds the clock: each stream with its policy, each table."""
    streams = {s.name: policy(s) or "no punctuation: at the end of its input" for s in streams_of(emit)}
    tables = {
        node.table.name: f"{node.table.kind.value} table: as of its last change"
        for node in emit.walk()
        if isinstance(node, TableScan)
    }
    return (*streams.items(), *tables.items())


def streams_of(emit: Emit) -> tuple[Stream, ...]:
    """The streams a query reads, nested queries included, each once."""
    return tuple({node.stream.name: node.stream for node in emit.walk() if isinstance(node, Scan)}.values())


def guarantee(sink: str | None) -> str:
    """What a sink promises about the answers it is given.

    >>> guarantee("kafka://broker:9092/alerts")
    'at least once, with the commit number in the headers to tell repeats by'
    """
    scheme = (sink or "").partition(":")[0].lower()
    return _SINKS.get(scheme, _NO_SINK if sink is None else f"not known: no sink is called `{scheme}:`")


@dataclass(frozen=True)
class ExplainStep:
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
    inputs: tuple[ExplainStep, ...] = ()

    def walk(self) -> Iterator[ExplainStep]:
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
    plan: ExplainStep
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
    #: what is legal and rarely meant
    warnings: tuple[Warned, ...] = ()

    def __str__(self) -> str:
        return as_text(self)

    __repr__ = __str__  # what a shell shows

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def gather(
    emit: Emit,
    plan: ExplainStep,
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
        warnings=query_warnings(emit),
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
    written = f"{size:.2g} KB" if size < 100 else f"{size / 1024:.2g} MB"
    return f"; state at most {function.most_cells} cells, {written}, per pane and group"


def _windows(emit: Emit) -> Iterator[WindowFact]:
    """The windows of a query, then those of its nested queries."""
    spelling = Spelling.of(emit)
    for leaf in emit.leaves:
        panes = _panes(leaf.spec)
        count = width = None
        if panes is not None:
            count, size = panes.per_window, panes.width
            width = f"{size} ROWS" if leaf.spec.reports_positions else quantity(size, leaf.domain)
        yield WindowFact(window_text(leaf, spelling), classify(leaf.spec), count, width)
        for origin in leaf.origins:
            yield from _windows(origin.query) if isinstance(origin, Subquery) else ()


def _panes(spec: WindowSpec) -> Panes | None:
    try:
        return Panes.of(spec)
    except QueryError:
        return None
