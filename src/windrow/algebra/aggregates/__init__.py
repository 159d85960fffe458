"""The algebra of aggregates: facts and laws that executors and rules rely on.

`make` gives an aggregate; `fold` its lifted rows in any grouping, and `lower` the state.

>>> from windrow.algebra.types import INT
>>> mean = make("avg", types=(INT,))
>>> old, new = mean.fold([mean.lift((1,)), mean.lift((2,))]), mean.lift((6,))
>>> mean.lower(mean.combine(old, new))
3.0
>>> mean.invertible, mean.lower(mean.subtract(mean.combine(old, new), old))
(True, 6.0)
"""

from windrow.algebra.aggregates.base import AggregateFunction, Differential, Gray, Size, State, Types
from windrow.algebra.aggregates.definition import Definition
from windrow.algebra.aggregates.order import restored, sortable
from windrow.algebra.aggregates.registry import is_aggregate, lookup, make, names

__all__ = [
    "AggregateFunction",
    "Definition",
    "Differential",
    "Gray",
    "Size",
    "State",
    "Types",
    "is_aggregate",
    "lookup",
    "make",
    "names",
    "restored",
    "sortable",
]
