"""Two projections in a row are one, unless that would compute something twice.

>>> from windrow.algebra.catalog import Stream
>>> from windrow.algebra.plan import Scan
>>> from windrow.algebra.expressions import Field, Schema
>>> from windrow.algebra.types import BIGINT
>>> s = Scan(Stream("s", Schema((Field("a", BIGINT), Field("ts", BIGINT))), "ts"), "s")
>>> inner = Project(s, (("x", s.schema.column("s.a")), ("y", s.schema.column("s.ts"))))
>>> outer = Project(inner, (("z", inner.schema.column("y")),))
>>> merge_projects(outer) == Project(s, (("z", s.schema.column("s.ts")),))
True
"""

from __future__ import annotations

from collections import Counter

from windrow.algebra import Plan, Project
from windrow.algebra.expressions import ColumnRef, Literal, substituted


def merge_projects(plan: Plan) -> Plan:
    """π over π in one node."""
    return plan.rewrite(_merge)


def _merge(plan: Plan) -> Plan:
    if not (isinstance(plan, Project) and isinstance(plan.input, Project)):
        return plan
    values = dict(plan.input.outputs)
    uses = Counter(
        node.name for _, output in plan.outputs for node in output.walk() if isinstance(node, ColumnRef)
    )
    if any(uses[name] > 1 and not isinstance(value, ColumnRef | Literal) for name, value in values.items()):
        return plan
    outputs = tuple((name, substituted(value, values)) for name, value in plan.outputs)
    return Project(plan.input.input, outputs)
