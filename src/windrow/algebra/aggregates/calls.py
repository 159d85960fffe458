"""The aggregate that a call of a plan names, with its algebra."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windrow.algebra.aggregates import make

if TYPE_CHECKING:
    from windrow.algebra.aggregates import AggregateFunction
    from windrow.algebra.operators import AggregateCall


def function_of(call: AggregateCall) -> AggregateFunction:
    """The aggregate with its algebra."""
    types = tuple(argument.type for argument in call.args)
    return make(call.function, call.params, distinct=call.distinct, types=types)
