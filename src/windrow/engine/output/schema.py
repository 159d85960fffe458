"""Answers as users get them: `at` first, `op` where answers come and go, times as Arrow's times.

>>> from windrow.engine.explain import declared
>>> from windrow.language.compile import compile_query
>>> bids = {"bids": "item BIGINT, ts TIMESTAMP"}
>>> text = "SELECT item, COUNT(*) AS n FROM bids [RANGE 1 MINUTE SLIDE 1 MINUTE] GROUP BY item"
>>> published_schema(compile_query(text, declared(bids, {}))).names
['at', 'item', 'n']
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from windrow.algebra.catalog import instant_type
from windrow.kernels.columnar.columns import INSTANT, RESOLUTION, arrow_type, published, rows_schema

if TYPE_CHECKING:
    from windrow.algebra.expressions import Schema
    from windrow.algebra.plan import Emit
    from windrow.windows.domain import Domain


def published_schema(emit: Emit) -> pa.Schema:
    """The columns of a query's answers."""
    at = instants(emit.leaves[0].domain)
    op = [pa.field("op", pa.string())] if emit.emits_deletions else []
    return pa.schema([at, *op, *_fields(emit.schema, "at")])


def instants(domain: Domain) -> pa.Field:
    """The column of instants. Where a tick is no value, it says what one is, which `published` reads."""
    kind = arrow_type(instant_type(domain))
    return pa.field("at", kind, metadata=domain.step and {RESOLUTION: str(domain.step)})


def _fields(schema: Schema, *taken: str) -> list[pa.Field]:
    """A column that is called like one of ours gets an underscore."""
    return [pa.field(f.name + "_" * (f.name in taken), arrow_type(f.type)) for f in schema]


__all__ = ["INSTANT", "arrow_type", "published", "published_schema", "rows_schema"]
