"""A union of equal windows is the window of a union (paper 001, section 5): one state instead of two.

Only for windows in which a row's own values say when it is valid: [ROWS n] of each stream are n rows of
each, [ROWS n] of their union are n rows. Projections between union and windows sink below the windows
first. `split_windows` goes the other way, and is an alternative, not a rule.

>>> from windrow.algebra.catalog import Stream
>>> from windrow.algebra.expressions import Field, Schema
>>> from windrow.algebra.plan import Scan
>>> from windrow.algebra.types import BIGINT
>>> from windrow.windows.ranges import RangeWindow
>>> a, b = (Scan(Stream(name, Schema((Field("ts", BIGINT),)), "ts"), name) for name in "ab")
>>> apart = Union((Window(a, RangeWindow(9)), Window(b, RangeWindow(9))))
>>> together = Window(Union((a, b)), RangeWindow(9))
>>> merge_windows(apart) == together, list(split_windows(together)) == [apart]
(True, True)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from windrow.algebra import Plan, Project, Union, Window
from windrow.optimizer.trees import expressions_of, is_movable, variants
from windrow.windows.lifetime import LifetimeWindow
from windrow.windows.spec import OwnInterval, WindowSpec


def merge_windows(plan: Plan) -> Plan:
    """Equal windows below one ∪ become one window over a ∪ of streams."""
    return plan.rewrite(_merge)


def split_windows(plan: Plan) -> Iterator[Plan]:
    """One window over a ∪ of streams becomes a ∪ of windows."""
    yield from variants(plan, _split)


def _merge(plan: Plan) -> Plan:
    if not isinstance(plan, Union) or plan.is_stream:
        return plan
    windows = [_sunk(part) for part in plan.inputs]
    groups: dict[WindowSpec, list[int]] = {}
    for place, window in enumerate(windows):
        if window is not None:
            groups.setdefault(window.spec, []).append(place)
    merged = {places[0]: places for places in groups.values() if len(places) > 1}
    gone = {place for places in merged.values() for place in places[1:]}
    inputs = [part for part in range(len(windows)) if part not in gone]
    parts = tuple(_together(windows, merged[n]) if n in merged else plan.inputs[n] for n in inputs)
    return Union(parts) if len(parts) > 1 else parts[0]


def _together(windows: list[Window | None], places: list[int]) -> Window:
    chosen = [window for place in places if (window := windows[place])]
    return Window(Union(tuple(window.input for window in chosen)), chosen[0].spec)


def _sunk(plan: Plan) -> Window | None:
    """The plan as a window over a stream, its projections below it; None if it is not one.

    A condition that may go below its window is there already (`push_filters`).
    """
    if isinstance(plan, Window):
        return plan if _can_merge(plan.spec) else None
    if isinstance(plan, Project) and all(map(is_movable, expressions_of(plan))):
        below = _sunk(plan.input)
        return below and replace(below, input=replace(plan, input=below.input))
    return None


def _can_merge(spec: WindowSpec) -> bool:
    """A LIFETIME reads columns by name, `row_num` counts one stream; neither means the same in a union."""
    own = isinstance(spec, OwnInterval) and not isinstance(spec, LifetimeWindow)
    return own and not spec.counts_arrivals


def _split(plan: Plan) -> Iterator[Plan]:
    if isinstance(plan, Window) and isinstance(plan.input, Union) and _can_merge(plan.spec):
        yield Union(tuple(Window(part, plan.spec) for part in plan.input.inputs))
