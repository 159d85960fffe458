"""How long each query of a task takes: what tells the dear ones from the cheap ones."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter


@contextmanager
def timed(spent: dict[str, float], *queries: str) -> Iterator[None]:
    """Add what the block takes to what queries have spent; those that are answered together share alike.

    >>> spent = {}
    >>> for _ in range(2):
    ...     with timed(spent, "q"):
    ...         pass
    >>> list(spent), spent["q"] > 0
    (['q'], True)
    """
    began = perf_counter()
    try:
        yield
    finally:
        each = (perf_counter() - began) / max(1, len(queries))
        for query in queries:
            spent[query] = spent.get(query, 0.0) + each
