"""What a rewritten query must have in common with the original besides its rows.

A rule is about relations; a query is also about when something is reported, and how. Some of that follows
from the shape of the plan, so it is compared after every change.
"""

from __future__ import annotations

from collections import Counter

from windrow.algebra.finality import is_final_by_group
from windrow.algebra.operators import Project
from windrow.algebra.plan import Emit, Scan
from windrow.optimizer.trees import expressions_of, own_nodes, reads_bounds


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
    readers = (node for node in own_nodes(emit) if any(map(reads_bounds, expressions_of(node))))
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
    nodes = (node for query in queries for node in own_nodes(query.input))
    return Counter(node.schema.names for node in nodes if isinstance(node, Project) and not node.has_wattr)
