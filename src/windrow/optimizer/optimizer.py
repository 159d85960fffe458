"""From a plan to a better one: rules until nothing changes, then alternatives as long as they are cheaper.

>>> from windrow.algebra.catalog import Stream
>>> from windrow.algebra.expressions import Field, Literal, Schema
>>> from windrow.algebra.functions import call
>>> from windrow.algebra.operators import Distinct, Filter, Join
>>> from windrow.algebra.plan import Window
>>> from windrow.algebra.types import BIGINT
>>> from windrow.windows.ranges import RangeWindow
>>> s = Stream("s", Schema((Field("a", BIGINT), Field("ts", BIGINT))), "ts")
>>> x, y = (Window(Scan(s, alias), RangeWindow(10)) for alias in "xy")
>>> large = call("<", [Literal(5, BIGINT), x.schema.column("x.a")])
>>> by_preference(candidates(Emit(Filter(x, large))))[0].fired
('simplify_predicates', 'push_filters')
>>> [name for name, _ in alternatives(Emit(Distinct(Join((x, y)))))]
['push_distinct']
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter

from windrow.algebra import Emit, Plan, Project, Scan, StreamUnion
from windrow.algebra.finality import is_final_by_group
from windrow.errors import QueryError, nearest
from windrow.optimizer import costs, flows, trees
from windrow.optimizer.flatten import flatten_joins, flatten_unions
from windrow.optimizer.fold_constants import fold_constants
from windrow.optimizer.merge_filters import merge_filters
from windrow.optimizer.merge_projects import merge_projects
from windrow.optimizer.merge_windows import merge_windows, split_windows
from windrow.optimizer.move_negation import pull_up_negation, push_down_negation
from windrow.optimizer.move_tables import pull_up_tables, push_down_tables
from windrow.optimizer.prune_columns import prune_columns
from windrow.optimizer.push_distinct import push_distinct
from windrow.optimizer.push_filters import push_filters
from windrow.optimizer.remove_trivial import remove_trivial
from windrow.optimizer.reorder_joins import reorder_joins
from windrow.optimizer.simplify_predicates import simplify_predicates
from windrow.optimizer.use_panes import use_panes

# ------------------------------------------------------------ guards
#
# What a rewritten query must have in common with the original besides its rows.
#
# A rule is about relations; a query is also about when something is reported, and how. Some of that follows
# from the shape of the plan, so it is compared after every change.


def reports_alike(before: Emit, after: Emit) -> bool:
    """Whether both mean the same stream word, extents, bounds and finality of groups."""
    return (
        before.schema == after.schema
        and before.meaning is after.meaning
        and before.is_periodic == after.is_periodic
        and before.reports_sessions == after.reports_sessions
        and _bounds(before) == _bounds(after)
        and _finality(before) == _finality(after)
        and _retelling(before) == _retelling(after)
    )


def _bounds(emit: Emit) -> object:
    """The periods that `window_start` and `window_end` are about: each node reads those of its windows."""
    readers = (
        node
        for node in trees.own_nodes(emit)
        if any(each.reads_window_bounds for each in trees.expressions_of(node))
    )
    return {node.leaves[0].spec.period for node in readers}


def _finality(emit: Emit) -> set[str]:
    """The streams whose sources' groups are final one by one."""
    streams = {node.stream.name: node.stream for node in emit.walk() if isinstance(node, Scan)}
    return {
        name
        for name, stream in streams.items()
        if stream.progress.per is not None and is_final_by_group(emit, stream, stream.progress.per)
    }


def _retelling(emit: Emit) -> Counter[tuple[str, ...]]:
    """The projections that decide which results RESTORE takes for one and the same.

    Rows of DISTINCT, GROUP BY and EXCEPT are told apart by their values only; a projection of theirs makes
    one result of two that follow each other and differ in a dropped column.
    """
    queries = (node for node in emit.walk() if isinstance(node, Emit) and node.word.restores)
    nodes = (node for query in queries for node in trees.own_nodes(query.input))
    return Counter(node.schema.names for node in nodes if isinstance(node, Project) and not node.has_wattr)


# ------------------------------------------------------------ alternatives


Variation = Callable[[Plan, flows.Statistics], Iterable[Plan]]

ALTERNATIVES: tuple[tuple[str, Variation], ...] = (
    ("push_down_negation", lambda plan, _: push_down_negation(plan)),
    ("pull_up_negation", lambda plan, _: pull_up_negation(plan)),
    ("push_down_tables", lambda plan, _: push_down_tables(plan)),
    ("pull_up_tables", lambda plan, _: pull_up_tables(plan)),
    ("push_distinct", lambda plan, _: push_distinct(plan)),
    ("reorder_joins", reorder_joins),
    ("use_panes", lambda plan, _: use_panes(plan)),
    ("split_windows", lambda plan, _: split_windows(plan)),
)


def alternatives(
    plan: Emit, statistics: flows.Statistics | None = None, disabled: Collection[str] = ()
) -> list[tuple[str, Emit]]:
    """Every plan one step away, with the name of the step."""
    return [
        (name, other)
        for name, variation in ALTERNATIVES
        if name not in disabled
        for other in variation(plan, statistics or flows.Statistics())
        if isinstance(other, Emit) and reports_alike(plan, other)
    ]


# ------------------------------------------------------------ optimizer


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


_COST = attrgetter("cost")


def by_preference(found: Sequence[Candidate]) -> list[Candidate]:
    """The cheapest first; what is hardly cheaper than what the rules alone make comes after that."""
    plain = found[0]
    better = [each for each in found[1:] if each.cost < plain.cost * _GAIN]
    others = [each for each in found[1:] if each.cost >= plain.cost * _GAIN]
    return [*sorted(better, key=_COST), plain, *sorted(others, key=_COST)]


def candidates(
    emit: Emit,
    statistics: flows.Statistics | None = None,
    disabled: Collection[str] = (),
    is_settled: Callable[[Emit], bool] = lambda plan: False,
) -> list[Candidate]:
    """What the rules make of a query, and all plans that were tried on the way to the cheapest; no others if
    what the rules make of it `is_settled`."""
    _check_names(disabled)
    known = statistics or flows.Statistics()
    if emit.is_union:
        return _of_branches([candidates(each, known, disabled, is_settled) for each in emit.branches])
    plain = normalise(emit, disabled)
    current = Candidate(RULES_ALONE, plain.plan, costs.total_cost(plain.plan, known), plain.fired)
    found = {current.plan: current}
    for _ in () if is_settled(plain.plan) else range(_MOST_STEPS):
        tried = alternatives(current.plan, known, disabled)
        steps = [_stepped(current, name, other, known, disabled) for name, other in tried]
        for each in steps:
            found.setdefault(each.plan, each)
        best = min(steps, key=_COST, default=current)
        if best.cost >= current.cost * _GAIN:
            break
        current = best
    return list(found.values())


def _of_branches(found: Sequence[Sequence[Candidate]]) -> list[Candidate]:
    """A union of streams: what the rules make of every branch, and the cheapest plan of each."""
    united = [_joined([each[0] for each in found])]
    if any(len(each) > 1 for each in found):
        united.append(_joined([min(each, key=_COST) for each in found]))
    return united[:1] if united[-1].plan == united[0].plan else united


def _joined(branches: Sequence[Candidate]) -> Candidate:
    united = _united([Optimised(branch.plan, branch.fired) for branch in branches])
    names = dict.fromkeys(branch.name for branch in branches if branch.name != RULES_ALONE)
    cost = sum(branch.cost for branch in branches)
    return Candidate(", ".join(names) or RULES_ALONE, united.plan, cost, united.fired)


def _stepped(
    before: Candidate, name: str, plan: Emit, known: flows.Statistics, disabled: Collection[str]
) -> Candidate:
    after = normalise(plan, disabled)
    steps = name if before.name == RULES_ALONE else f"{before.name}, {name}"
    fired = tuple(dict.fromkeys((*before.fired, name, *after.fired)))
    return Candidate(steps, after.plan, costs.total_cost(after.plan, known), fired)


def normalise(emit: Emit, disabled: Collection[str] = ()) -> Optimised:
    """The rules alone, again and again until none changes anything."""
    if emit.is_union:
        return _united([normalise(branch, disabled) for branch in emit.branches])
    fired: list[str] = []
    for _ in range(_MOST_ROUNDS):
        before = emit
        for name, rule in RULES:
            changed = emit if name in disabled else trees.as_query(rule(emit))
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
