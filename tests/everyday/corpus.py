"""A small market in which everyday SQL is asked, and what each executor answers.

Rows are out of order, with ties, NULLs and a pause; one push is one micro-batch. Instants are in seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from windrow.algebra.plan import Emit
from windrow.algebra.values import Change
from windrow.engine.explain import declared
from windrow.language.catalog import Catalog
from windrow.language.compile import compile_query
from windrow.testing import Harness
from windrow.testing.spark_executor import SparkExecutor

SECOND = 1_000_000
STREAMS = {
    "bids": ("item BIGINT, price DOUBLE, bidder STRING, ts TIMESTAMP", "WATTR ts"),
    "asks": ("item BIGINT, price DOUBLE, qty INT, ts TIMESTAMP", "WATTR ts"),
    "ticks": ("k BIGINT, v INT, n BIGINT", "WATTR n"),
    "orders": (
        "id BIGINT, buyer STRUCT<name: STRING, at: STRUCT<x: INT, y: INT>>, tags ARRAY<STRING>,"
        " lines ARRAY<STRUCT<item: INT, price: DOUBLE>>, marks MAP<STRING, INT>, doc STRING, n BIGINT",
        "WATTR n",
    ),
}
TABLES = {"items": "item BIGINT, name STRING", "owners": ("item BIGINT, owner STRING", "RELATION")}
BIDS = [
    (1, 10.0, "ann", 1 * SECOND),
    (2, 20.0, "bob", 4 * SECOND),
    (1, 5.0, "ann", 7 * SECOND),
    (1, 7.0, "cid", 12 * SECOND),
    (None, 9.0, "bob", 11 * SECOND),
    (3, 1.0, "bob", 17 * SECOND),
    (1, 7.0, "cid", 12 * SECOND),
    (1, None, None, 41 * SECOND),
]
ASKS = [
    (1, 10.0, 3, 2 * SECOND),
    (2, 1.0, 1, 9 * SECOND),
    (1, 7.0, 2, 11 * SECOND),
    (None, 7.0, 5, 12 * SECOND),
    (4, 2.0, None, 16 * SECOND),
]
TICKS = [(1, 10, 0), (2, 20, 1), (1, 30, 4), (2, None, 5), (1, 30, 5), (1, 5, 9), (3, 7, 10)]
DOC = '{"a":[1,{"b":"x"}],"c":1.50}'
ORDERS = [
    (
        1,
        ("ann", (1, 2)),
        ["a", "b"],
        [(1, 0.5), (2, None)],
        {"z": 1, "a": 5},
        '{"a":[1,{"b":"x"}],"c":1.50}',
        1,
    ),
    (2, None, [], None, None, "oops", 2),
    (1, ("bob", None), None, [], {}, None, 3),
    (3, ("cid", (7, None)), ["c", None], [(3, 1.0)], {"a": None}, "[1, [2], 3]", 5),
]
SOURCES = (("bids", BIDS), ("asks", ASKS), ("ticks", TICKS), ("orders", ORDERS))
EXECUTORS = ("kernels", "engine")


def market() -> Catalog:
    return declared(STREAMS, TABLES)


def plan_of(query: str) -> Emit:
    return compile_query(query, market())


#: what happens to a table: when, which rows come, which leave
Update = tuple[str, int, list[Any], list[Any]]
UPDATES: tuple[Update, ...] = (
    ("items", 0, [(1, "pen"), (2, "cup")], []),
    ("items", 10 * SECOND, [(3, "hat")], [(2, "cup")]),
    ("owners", 0, [(1, "eve")], []),
    ("owners", 6 * SECOND, [(2, "dan")], [(1, "eve")]),
)


def answers(query: str | Emit, executor: str) -> list[Change]:
    """All that a query says over the rows above."""
    harness = Harness(query, STREAMS, TABLES, executor)
    named = {name for node in harness.plan.walk() for name in _names(node)}
    for table, at, insert, delete in UPDATES:
        if table in named:
            harness.update(table, at, insert, delete)
    for part in (slice(3), slice(3, None)):
        for name, rows in SOURCES:
            if name in named:
                harness.push(name, rows[part])
    harness.finish()
    return harness.take()


def answers_together(queries: Mapping[str, str], *, spark: bool) -> dict[str, list[Change]]:
    """What each of many queries says over the same rows, all of them in one engine."""
    plans = {name: plan_of(text) for name, text in queries.items()}
    return told_together(plans, UPDATES, dict(SOURCES), 3, spark=spark)


def told_together(
    plans: Mapping[str, Emit],
    updates: Iterable[Update],
    sources: Mapping[str, Sequence[Any]],
    cut: int,
    *,
    spark: bool,
) -> dict[str, list[Change]]:
    """Tables change, rows come in two batches, the first with `cut` rows of each stream, and all is over."""
    named = {name for plan in plans.values() for node in plan.walk() for name in _names(node)}
    executor = SparkExecutor(next(iter(plans.values())), spark=spark, beside=plans)
    try:
        for table, at, insert, delete in updates:
            if table in named:
                executor.update(table, at, insert, delete)
        for part in (slice(cut), slice(cut, None)):
            executor.push_all({name: rows[part] for name, rows in sources.items() if name in named})
        executor.finish()
        return {name: executor.take(name) for name in plans}
    finally:
        executor.close()


def _names(node: Any) -> list[str]:
    found = [getattr(node, part, None) for part in ("stream", "table")]
    return [each.name for each in found if hasattr(each, "name")]


def shown(changes: list[Change]) -> str:
    """A change in a line: the operation, the row, and the instant it is about."""
    return "\n".join(f"{c.op} {', '.join(map(_value, c.row))}  @ {_instant(c.at)}" for c in changes)


def _value(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= SECOND // 2:
        return _instant(value)
    return repr(value)


def _instant(at: int) -> str:
    return f"{at / SECOND:g}s" if at % 1000 == 0 else f"{at}us" if abs(at) >= 1000 else str(at)
