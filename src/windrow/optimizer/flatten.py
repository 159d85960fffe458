"""A join of joins is one n-way join, whose inputs can then be probed in any order; a union of unions is one.

>>> from windrow.algebra.catalog import Stream
>>> from windrow.algebra.functions import call
>>> from windrow.algebra.plan import Scan, Window
>>> from windrow.algebra.expressions import Field, Schema
>>> from windrow.algebra.types import BIGINT
>>> from windrow.windows.ranges import NowWindow
>>> scans = [Scan(Stream("s", Schema((Field("ts", BIGINT),)), "ts"), alias) for alias in "abc"]
>>> a, b, c = (Window(scan, NowWindow()) for scan in scans)
>>> p = call("=", [a.schema.column("a.ts"), b.schema.column("b.ts")])
>>> flatten_joins(Join((Join((a, b), p), c))) == Join((a, b, c), p)
True
>>> flatten_unions(Union((Union((scans[0], scans[1])), scans[2]))) == Union(tuple(scans))
True
"""

from __future__ import annotations

from itertools import chain

from windrow.algebra import Join, Plan, Union
from windrow.algebra.expressions import conjunction, conjuncts
from windrow.optimizer.trees import can_fail


def flatten_joins(plan: Plan) -> Plan:
    """⋈ of ⋈ in one node, if no condition is then tested on rows it did not see before."""
    return plan.rewrite(_flatten)


def _flatten(plan: Plan) -> Plan:
    if not isinstance(plan, Join) or not any(isinstance(part, Join) for part in plan.inputs):
        return plan
    inner = [part for part in plan.inputs if isinstance(part, Join)]
    inputs = (part.inputs if isinstance(part, Join) else (part,) for part in plan.inputs)
    parts = [*(part for join in inner for part in conjuncts(join.predicate)), *conjuncts(plan.predicate)]
    if any(map(can_fail, parts)):
        return plan
    return Join(tuple(chain.from_iterable(inputs)), conjunction(tuple(dict.fromkeys(parts))))


def flatten_unions(plan: Plan) -> Plan:
    """∪ of ∪ in one node, in the same order."""
    return plan.rewrite(_flatten_union)


def _flatten_union(plan: Plan) -> Plan:
    if not isinstance(plan, Union) or not any(isinstance(part, Union) for part in plan.inputs):
        return plan
    inputs = (part.inputs if isinstance(part, Union) else (part,) for part in plan.inputs)
    return Union(tuple(chain.from_iterable(inputs)))
