"""A union of unions is one union.

>>> from windrow.algebra.catalog import Stream
>>> from windrow.algebra.plan import Scan
>>> from windrow.algebra.schema import Field, Schema
>>> from windrow.algebra.types import BIGINT
>>> a, b, c = (Scan(Stream("s", Schema((Field("ts", BIGINT),)), "ts"), alias) for alias in "abc")
>>> flatten_unions(Union((Union((a, b)), c))) == Union((a, b, c))
True
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from windrow.algebra.operators import Union

if TYPE_CHECKING:
    from windrow.algebra.plan import Plan


def flatten_unions(plan: Plan) -> Plan:
    """∪ of ∪ in one node, in the same order."""
    return plan.rewrite(_flatten)


def _flatten(plan: Plan) -> Plan:
    if not isinstance(plan, Union) or not any(isinstance(part, Union) for part in plan.inputs):
        return plan
    inputs = (part.inputs if isinstance(part, Union) else (part,) for part in plan.inputs)
    return Union(tuple(chain.from_iterable(inputs)))
