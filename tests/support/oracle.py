"""The oracle: what a query answers over batches of rows. Every other way of running it is held against it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from windrow.algebra.plan import Scan, TableScan
from windrow.testing import Harness

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from windrow.algebra.changes import Change

Declared = str | tuple[str, str]


def oracle(
    text: str,
    streams: Mapping[str, Declared],
    batches: Iterable[tuple[str, Iterable[tuple[Any, ...]]]],
    *,
    tables: Mapping[str, tuple[Declared, list[tuple[Any, ...]]]] | None = None,
    ended: bool = True,
) -> Counter[Any]:
    """What a query answers, from scratch: rows with their instant, and with the sign if it tells deletions.

    Batches of streams that it does not read are left out. Tables are given with the rows they have all along.
    """
    tables = tables or {}
    harness = Harness(text, dict(streams), {name: declared for name, (declared, _) in tables.items()})
    read = {node.stream.name for node in harness.plan.walk() if isinstance(node, Scan)}
    looked_up = {node.table.name for node in harness.plan.walk() if isinstance(node, TableScan)}
    for name in looked_up:
        harness.update(name, at=_BEFORE, insert=tables[name][1])
    for stream, rows in batches:
        if stream in read:
            harness.push(stream, list(rows))
    if ended:
        harness.finish()
    signed = harness.plan.emits_deletions
    return Counter(_row(change, signed=signed) for change in harness.take())


#: before all rows of all tests
_BEFORE = -1000


def _row(change: Change, *, signed: bool) -> tuple[Any, ...]:
    return (change.at, *((change.op,) if signed else ()), *change.row)
