"""The oracle: what a query answers to a history. Every other way of running it is held against it."""

from __future__ import annotations

from collections import Counter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from tests.support.history import BATCHES, COLUMNS, OPTIONS

from windrow.algebra.plan import Emit, Scan, TableScan
from windrow.testing import Harness

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from windrow.algebra.values import Change

Declared = str | tuple[str, str]
STREAMS: Mapping[str, Declared] = MappingProxyType({"s": (COLUMNS, OPTIONS)})
NO_TABLES: Mapping[str, Declared] = MappingProxyType({})
#: before all rows of all tests
_BEFORE = -1000


def named(step: Any) -> tuple[str, Any]:
    """A step with the name of what it is about: rows by themselves are rows of `s`."""
    return tuple(step) if step and isinstance(step[0], str) else ("s", step)


def told(
    query: str | Emit,
    history: Iterable[Any] = BATCHES,
    streams: Mapping[str, Declared] = STREAMS,
    tables: Mapping[str, Declared] = NO_TABLES,
) -> Harness:
    """The oracle of a query, to which a history has happened. A step of it is one of

        rows                      of the stream `s`
        (stream, rows)
        (stream, instant)         a promise: nothing below it will come
        (table, at, new, gone)    a change; without an instant it is there before all rows

    What the query does not read is passed over.
    """
    harness = Harness(query, dict(streams), dict(tables))
    nodes = list(harness.plan.walk())
    read = {node.stream.name for node in nodes if isinstance(node, Scan)}
    looked_up = {node.table.name for node in nodes if isinstance(node, TableScan)}
    for name, *what in map(named, history):
        if name in looked_up:
            at, new, gone = what
            harness.update(name, _BEFORE if at is None else at, insert=new, delete=gone)
        elif name in read:
            (told,) = what
            harness.punctuate(name, told) if isinstance(told, int) else harness.push(name, list(told))
    return harness


def oracle(
    query: str | Emit,
    history: Iterable[Any] = BATCHES,
    streams: Mapping[str, Declared] = STREAMS,
    tables: Mapping[str, Declared] = NO_TABLES,
    *,
    ended: bool = True,
) -> Counter[Any]:
    """What a query answers, from scratch: rows with their instant, and a sign if it tells deletions."""
    harness = told(query, history, streams, tables)
    if ended:
        harness.finish()
    signed = harness.plan.emits_deletions
    return Counter(_row(change, signed=signed) for change in harness.take())


def _row(change: Change, *, signed: bool) -> tuple[Any, ...]:
    return (change.at, *((change.op,) if signed else ()), *change.row)
