"""Whether synopses have what a SELECT asks for: an aggregate over one window of one stream.

A shared state fits if it is grouped by what is asked, or finer: states of several groups combine to that of
all of them, and a condition on what is grouped by chooses among them. All other conditions have to be those
of the synopses. The window has to begin where an interval does, and to end where one does, unless no row is
known beyond its end: then what the last interval has is in the window.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from windrow.algebra.explain.operators import quantity
from windrow.algebra.expressions import ColumnRef, Expression, conjunction, conjuncts
from windrow.algebra.operators import Limit
from windrow.algebra.plan import Emit, Plan, StreamWord, Window
from windrow.engine.adhoc.snapshot import NO_LIMIT, without_order
from windrow.errors import QueryError
from windrow.physical import plan_query
from windrow.sharing.predicates import Predicate, predicate_of
from windrow.sharing.questions import Need, QueryNeeds, question_of
from windrow.windows.domain import INFINITY, Instant
from windrow.windows.ranges import RangeWindow

if TYPE_CHECKING:
    from windrow.engine.adhoc.from_synopses import Synopsis, SynopsisShelf
    from windrow.engine.records import StreamRecord
    from windrow.engine.sharing.shared_state import KeptSynopsis

#: what a column of a group's key is called where conditions and keys are computed from it
KEY = "#k"


@dataclass(frozen=True)
class SynopsisRequest:
    """A SELECT that synopses may answer: what it needs, over windows of some length; then its first rows."""

    question: QueryNeeds
    range: int
    #: whether its windows end at certain instants only
    slides: bool
    order: tuple[tuple[str, bool], ...] = ()
    count: int | None = None


@dataclass(frozen=True)
class AttributeRange:
    """Rows with begin <= attribute < end."""

    begin: int
    end: int


@dataclass(frozen=True)
class Fit:
    """Synopses of one shared state that have all that is asked of a window."""

    shelf: SynopsisShelf
    span: AttributeRange
    chosen: dict[Need, Synopsis]
    #: what groups have to satisfy, and the keys that are asked for, both over the shared state's keys
    condition: Expression
    keys: tuple[Expression, ...]


@dataclass(frozen=True)
class NearMiss:
    """Synopses that have what is asked for, but not of this window; and what could be asked instead."""

    query: str
    why: str
    instead: str | None = None


Found: TypeAlias = "Fit | NearMiss | None"


def asked_of(emit: Emit) -> SynopsisRequest | None:
    """What a SELECT asks of synopses; None if there are none for its like."""
    top, order = without_order(emit)
    limit = top.input if isinstance(top.input, Limit) else None
    if limit is not None and not all(isinstance(key, ColumnRef) for key, _ in limit.order):
        return None
    plan = Emit(limit.input if limit is not None else top.input, StreamWord.RSTREAM)
    windows = [node for node in plan.walk() if isinstance(node, Window)]
    spec = windows[0].spec if len(windows) == 1 else None
    if not isinstance(spec, RangeWindow) or spec.internal or emit.reads_window_bounds:
        return None
    try:
        question = question_of("", plan_query(_tumbling(plan, spec)).emit)
    except QueryError:
        return None
    if any(need.datum.is_complex for need in question.needs):
        return None
    count = None if limit is None or limit.count == NO_LIMIT else limit.count
    return SynopsisRequest(question, spec.range, spec.slide is not None, order, count)


def _tumbling(plan: Emit, spec: RangeWindow) -> Emit:
    """The same of windows that follow each other, which have the needs of any others."""
    plain = replace(spec, slide=spec.range, origin=0)

    def change(node: Plan) -> Plan:
        return Window(node.input, plain) if isinstance(node, Window) else node

    changed = plan.rewrite(change)
    assert isinstance(changed, Emit)
    return changed


def fit(
    asked: SynopsisRequest, shelves: Sequence[SynopsisShelf], record: StreamRecord, span: AttributeRange
) -> Found:
    """Synopses for a window; else those that nearly fit, if there are any."""
    if record.shed:
        return None  # what was shed is in no synopsis, and nobody knows when it was
    missed: NearMiss | None = None
    for shelf, condition, keys, found in _candidates(asked, shelves):
        tried = [_of_window(each, record, span) for each in found.values()]
        chosen = {need: each for need, each in zip(found, tried, strict=True) if not isinstance(each, str)}
        if len(chosen) == len(found):
            return Fit(shelf, span, chosen, condition, keys)
        missed = missed or _near_miss(asked, shelf, found, [each for each in tried if isinstance(each, str)])
    return missed


def earlier(
    asked: SynopsisRequest, shelves: Sequence[SynopsisShelf], record: StreamRecord, span: AttributeRange
) -> Fit | None:
    """Synopses for the last window that ended with an interval: a state that was true before this one."""
    if asked.slides:
        return None
    ends = {
        grid.begin(grid.index(span.end))
        for _, _, _, found in _candidates(asked, shelves)
        for each in found.values()
        for grid in (synopsis.kept.grid for synopsis in each)
    }
    for end in sorted(ends, reverse=True):
        found = fit(asked, shelves, record, AttributeRange(end - asked.range, end))
        if isinstance(found, Fit):
            return found
    return None


def _candidates(
    asked: SynopsisRequest, shelves: Sequence[SynopsisShelf]
) -> Iterator[tuple[SynopsisShelf, Expression, tuple[Expression, ...], dict[Need, list[Synopsis]]]]:
    """Shared states with all data that are asked for: the condition on groups, the keys, and the synopses."""
    question = asked.question
    for shelf in shelves:
        keys = tuple(_over_keys(key, shelf.keys) for key in question.keys)
        if not all(keys):
            continue
        where = conjuncts(question.existence.predicate.expression)
        over = {part: changed for part in where if (changed := _over_keys(part, shelf.keys)) is not None}
        for left_out in ({}, over) if over else ({},):
            found = {need: shelf.of(need.datum, _without(need, left_out)) for need in question.needs}
            if all(found.values()):
                yield shelf, conjunction(tuple(left_out.values())), keys, found  # type: ignore[misc]
                break


def _over_keys(expression: Expression, keys: Sequence[Expression]) -> Expression | None:
    """An expression over a shared state's keys instead of the stream's columns; None if it reads anything
    else.

    Keys do not tell -0.0 from 0.0, so nothing but themselves is computed from those that are fractional.
    """
    names = {key: ColumnRef(f"{KEY}{place}", key.type) for place, key in enumerate(keys)}
    if expression in names:
        return names[expression]
    exact = {key: name for key, name in names.items() if not key.type.is_fractional}
    changed = expression.rewrite(lambda node: exact.get(node, node))
    return changed if changed.columns <= {name.name for name in exact.values()} else None


def _without(need: Need, left_out: Mapping[Expression, Expression]) -> Predicate:
    if not left_out:
        return need.predicate
    parts = conjuncts(need.predicate.expression)
    return predicate_of(conjunction(tuple(part for part in parts if part not in left_out)))


def _of_window(found: Sequence[Synopsis], record: StreamRecord, span: AttributeRange) -> Synopsis | str:
    """The first synopsis that has a window, or why the first does not."""
    reasons = []
    for each in found:
        reason = _why_not(each, record, span)
        if reason is None:
            return each
        reasons.append(reason)
    return reasons[0]


def _why_not(synopsis: Synopsis, record: StreamRecord, span: AttributeRange) -> str | None:
    kept, grid = synopsis.kept, synopsis.kept.grid
    each = quantity(grid.width, record.stream.domain)
    known = record.greatest is not None and record.greatest >= span.end
    if grid.begin(grid.index(span.begin)) != span.begin:
        return f"its intervals of {each} do not begin with this window"
    if known and grid.begin(grid.index(span.end)) != span.end:
        return f"its intervals of {each} do not end with this window"
    if kept.since is not None and span.begin < kept.since:
        return "it has not been there for so long"
    if grid.index(span.begin) < _reached(kept, record) - kept.length:
        return f"it has {kept.length} × {each}"
    return None


def _reached(kept: KeptSynopsis, record: StreamRecord) -> Instant:
    """The interval before which a synopsis counts those that it keeps; after the end, behind the last row."""
    clock = record.known.progress_on(record.stream, record.stream.wattr)
    if abs(clock) != INFINITY:
        return kept.grid.index(int(clock))
    return -INFINITY if record.greatest is None else kept.grid.index(record.greatest) + 1


def _near_miss(
    asked: SynopsisRequest, shelf: SynopsisShelf, found: dict[Need, list[Synopsis]], reasons: Sequence[str]
) -> NearMiss:
    grids = [synopsis.kept.grid for each in found.values() for synopsis in each[:1]]
    domain = asked.question.emit.leaves[0].domain
    widths = {grid.width for grid in grids}
    instead = None
    if not asked.slides and all(asked.range % width == 0 for width in widths) and "do not" in reasons[0]:
        instead = f"ask WITH ISOLATION WINDOW, or with SLIDE {quantity(max(widths), domain)}"
    return NearMiss(shelf.query, reasons[0], instead)
