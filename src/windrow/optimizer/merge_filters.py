"""Two conditions in a row are one.

>>> from windrow.algebra.catalog import Stream
>>> from windrow.algebra.functions import call
>>> from windrow.algebra.plan import Scan
>>> from windrow.algebra.expressions import Field, Schema
>>> from windrow.algebra.types import BIGINT
>>> s = Scan(Stream("s", Schema((Field("a", BIGINT), Field("ts", BIGINT))), "ts"), "s")
>>> a, ts = s.schema.column("s.a"), s.schema.column("s.ts")
>>> p, q = call("is_not_null", [a]), call(">", [a, ts])
>>> merge_filters(Filter(Filter(s, p), q)) == Filter(s, call("and", [p, q]))
True
"""

from __future__ import annotations

from windrow.algebra import Filter, Plan, conjuncts
from windrow.optimizer.trees import filtered


def merge_filters(plan: Plan) -> Plan:
    """σ over σ in one node; a condition that can fail stays above the one that guards it."""
    return plan.rewrite(_merge)


def _merge(plan: Plan) -> Plan:
    if isinstance(plan, Filter) and isinstance(plan.input, Filter):
        return filtered(plan.input, conjuncts(plan.predicate))
    return plan
