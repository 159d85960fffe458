"""From a plan to a better one: rules until nothing changes, then alternatives as long as they are cheaper.

>>> from windrow.algebra.catalog import Stream
>>> from windrow.algebra.expressions import Literal
>>> from windrow.algebra.functions import call
>>> from windrow.algebra.operators import Filter
>>> from windrow.algebra.plan import Scan, Window
>>> from windrow.algebra.schema import Field, Schema
>>> from windrow.algebra.types import BIGINT
>>> from windrow.windows.ranges import RangeWindow
>>> s = Scan(Stream("s", Schema((Field("a", BIGINT), Field("ts", BIGINT))), "ts"), "s")
>>> large = call("<", [Literal(5, BIGINT), s.schema.column("s.a")])
>>> optimise(Emit(Filter(Window(s, RangeWindow(10)), large))).fired
('simplify_predicates', 'push_filters')
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from windrow.algebra.plan import Emit, Plan, StreamUnion
from windrow.errors import QueryError, nearest
from windrow.rules.alternatives import ALTERNATIVES, alternatives
from windrow.rules.cost import total_cost
from windrow.rules.flatten_joins import flatten_joins
from windrow.rules.flatten_unions import flatten_unions
from windrow.rules.fold_constants import fold_constants
from windrow.rules.guards import reports_alike
from windrow.rules.merge_filters import merge_filters
from windrow.rules.merge_projects import merge_projects
from windrow.rules.merge_windows import merge_windows
from windrow.rules.prune_columns import prune_columns
from windrow.rules.push_filters import push_filters
from windrow.rules.remove_trivial import remove_trivial
from windrow.rules.simplify_predicates import simplify_predicates
from windrow.rules.statistics import Statistics
from windrow.rules.trees import as_query

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

#: all rules that always help, in the order in which they are tried
RULES: tuple[tuple[str, Callable[[Plan], Plan]], ...] = (
    ("fold_constants", fold_constants),
    ("simplify_predicates", simplify_predicates),
    ("remove_trivial", remove_trivial),
    ("merge_projects", merge_projects),
    ("merge_filters", merge_filters),
    ("flatten_unions", flatten_unions),
    ("flatten_joins", flatten_joins),
    ("push_filters", push_filters),
    ("merge_windows", merge_windows),
    ("prune_columns", prune_columns),
)
_MOST_ROUNDS = 12
_MOST_STEPS = 12
#: a plan has to be this much cheaper to be worth a change
_GAIN = 0.99


@dataclass(frozen=True)
class Optimised:
    """The plan, the rules and alternatives that made it, and every alternative that was costed."""

    plan: Emit
    fired: tuple[str, ...] = ()
    considered: tuple[tuple[str, float], ...] = ()


def optimise(emit: Emit, statistics: Statistics | None = None, disabled: Collection[str] = ()) -> Optimised:
    """The cheapest plan found for a query; rules and alternatives in `disabled` are not tried."""
    _check_names(disabled)
    if emit.is_union:
        return _united([optimise(branch, statistics, disabled) for branch in emit.branches])
    known = statistics or Statistics()
    current = normalise(emit, disabled)
    fired, considered = list(current.fired), []
    cost = total_cost(current.plan, known)
    for _ in range(_MOST_STEPS):
        steps = alternatives(current.plan, known, disabled)
        found = [(name, normalise(other, disabled)) for name, other in steps]
        costs = [(total_cost(other.plan, known), name, other) for name, other in found]
        considered += [(name, each) for each, name, _ in costs]
        least, name, best = min(costs, key=lambda each: each[0], default=(cost, "", current))
        if least >= cost * _GAIN:
            break
        current, cost = best, least
        fired += [name, *best.fired]
    return Optimised(current.plan, tuple(dict.fromkeys(fired)), tuple(considered))


def normalise(emit: Emit, disabled: Collection[str] = ()) -> Optimised:
    """The rules alone, again and again until none changes anything."""
    if emit.is_union:
        return _united([normalise(branch, disabled) for branch in emit.branches])
    fired: list[str] = []
    for _ in range(_MOST_ROUNDS):
        before = emit
        for name, rule in RULES:
            changed = emit if name in disabled else as_query(rule(emit))
            if changed != emit and reports_alike(emit, changed):
                emit = changed
                fired.append(name)
        if emit == before:
            break
    return Optimised(emit, tuple(dict.fromkeys(fired)))


def _united(branches: Sequence[Optimised]) -> Optimised:
    """A union of streams: nothing moves from one branch to another."""
    plan = Emit(StreamUnion(tuple(branch.plan for branch in branches)))
    fired = dict.fromkeys(name for branch in branches for name in branch.fired)
    return Optimised(plan, tuple(fired), tuple(each for branch in branches for each in branch.considered))


def _check_names(names: Collection[str]) -> None:
    known = [name for name, _ in (*RULES, *ALTERNATIVES)]
    unknown = next((name for name in names if name not in known), None)
    if unknown is not None:
        raise QueryError(f"no rule `{unknown}`", code="unknown-rule", hint=nearest(unknown, known))
