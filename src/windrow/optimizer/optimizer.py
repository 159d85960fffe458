"""From a plan to a better one: rules until nothing changes, then alternatives as long as they are cheaper.

>>> from windrow.algebra.catalog import Stream
>>> from windrow.algebra.expressions import Literal
>>> from windrow.algebra.functions import call
>>> from windrow.algebra.operators import Filter
>>> from windrow.algebra.plan import Scan, Window
>>> from windrow.algebra.expressions import Field, Schema
>>> from windrow.algebra.types import BIGINT
>>> from windrow.windows.ranges import RangeWindow
>>> s = Scan(Stream("s", Schema((Field("a", BIGINT), Field("ts", BIGINT))), "ts"), "s")
>>> large = call("<", [Literal(5, BIGINT), s.schema.column("s.a")])
>>> by_preference(candidates(Emit(Filter(Window(s, RangeWindow(10)), large))))[0].fired
('simplify_predicates', 'push_filters')
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from windrow.algebra.plan import Emit, Plan, StreamUnion
from windrow.errors import QueryError, nearest
from windrow.optimizer.alternatives import ALTERNATIVES, alternatives
from windrow.optimizer.cost.model import total_cost
from windrow.optimizer.cost.statistics import Statistics
from windrow.optimizer.flatten import flatten_joins, flatten_unions
from windrow.optimizer.fold_constants import fold_constants
from windrow.optimizer.guards import reports_alike
from windrow.optimizer.merge_filters import merge_filters
from windrow.optimizer.merge_projects import merge_projects
from windrow.optimizer.merge_windows import merge_windows
from windrow.optimizer.prune_columns import prune_columns
from windrow.optimizer.push_filters import push_filters
from windrow.optimizer.remove_trivial import remove_trivial
from windrow.optimizer.simplify_predicates import simplify_predicates
from windrow.optimizer.trees import as_query

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
#: the plan that no alternative has changed
RULES_ALONE = "the rules alone"
_MOST_ROUNDS = 12
_MOST_STEPS = 12
#: a plan has to be this much cheaper to be worth a change
_GAIN = 0.95


@dataclass(frozen=True)
class Optimised:
    """The plan, and the rules that made it."""

    plan: Emit
    fired: tuple[str, ...] = ()


@dataclass(frozen=True)
class Candidate:
    """A plan that means the same, what was done to get it, and what it costs."""

    name: str
    plan: Emit
    cost: float
    fired: tuple[str, ...] = ()


def by_preference(found: Sequence[Candidate]) -> list[Candidate]:
    """The cheapest first; what is hardly cheaper than what the rules alone make comes after that."""
    plain = found[0]
    better = [each for each in found[1:] if each.cost < plain.cost * _GAIN]
    others = [each for each in found[1:] if each.cost >= plain.cost * _GAIN]
    return [*sorted(better, key=_cost), plain, *sorted(others, key=_cost)]


def _cost(candidate: Candidate) -> float:
    return candidate.cost


def candidates(
    emit: Emit,
    statistics: Statistics | None = None,
    disabled: Collection[str] = (),
    is_settled: Callable[[Emit], bool] = lambda plan: False,
) -> list[Candidate]:
    """What the rules make of a query, and all plans that were tried on the way to the cheapest; no others if
    what the rules make of it `is_settled`."""
    _check_names(disabled)
    known = statistics or Statistics()
    if emit.is_union:
        return _of_branches([candidates(each, known, disabled, is_settled) for each in emit.branches])
    plain = normalise(emit, disabled)
    current = Candidate(RULES_ALONE, plain.plan, total_cost(plain.plan, known), plain.fired)
    found = {current.plan: current}
    for _ in () if is_settled(plain.plan) else range(_MOST_STEPS):
        tried = alternatives(current.plan, known, disabled)
        steps = [_stepped(current, name, other, known, disabled) for name, other in tried]
        for each in steps:
            found.setdefault(each.plan, each)
        best = min(steps, key=lambda each: each.cost, default=current)
        if best.cost >= current.cost * _GAIN:
            break
        current = best
    return list(found.values())


def _of_branches(found: Sequence[Sequence[Candidate]]) -> list[Candidate]:
    """A union of streams: what the rules make of every branch, and the cheapest plan of each."""
    united = [_joined([each[0] for each in found])]
    if any(len(each) > 1 for each in found):
        united.append(_joined([min(each, key=lambda one: one.cost) for each in found]))
    return [each for place, each in enumerate(united) if each.plan not in [u.plan for u in united[:place]]]


def _joined(branches: Sequence[Candidate]) -> Candidate:
    plan = Emit(StreamUnion(tuple(branch.plan for branch in branches)))
    names = dict.fromkeys(branch.name for branch in branches if branch.name != RULES_ALONE)
    fired = dict.fromkeys(name for branch in branches for name in branch.fired)
    cost = sum(branch.cost for branch in branches)
    return Candidate(", ".join(names) or RULES_ALONE, plan, cost, tuple(fired))


def _stepped(
    before: Candidate, name: str, plan: Emit, known: Statistics, disabled: Collection[str]
) -> Candidate:
    after = normalise(plan, disabled)
    steps = name if before.name == RULES_ALONE else f"{before.name}, {name}"
    fired = tuple(dict.fromkeys((*before.fired, name, *after.fired)))
    return Candidate(steps, after.plan, total_cost(after.plan, known), fired)


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
    return Optimised(plan, tuple(fired))


def _check_names(names: Collection[str]) -> None:
    known = [name for name, _ in (*RULES, *ALTERNATIVES)]
    unknown = next((name for name in names if name not in known), None)
    if unknown is not None:
        raise QueryError(f"no rule `{unknown}`", code="unknown-rule", hint=nearest(unknown, known))
