"""The same question, asked of a database over plain tables."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import duckdb

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Row = tuple[Any, ...]


def by_duckdb(
    query: str, held: Mapping[str, Sequence[Row]], streams: Mapping[str, tuple[str, str]]
) -> Counter[Row]:
    """The rows of the answer, NULLs ordered as here; each table is declared as a stream is."""
    with duckdb.connect() as database:
        database.execute("SET default_null_order = 'nulls_first_on_asc_last_on_desc'")
        for name, rows in held.items():
            database.execute(f"CREATE TABLE {name} ({streams[name][0]})")
            if rows:
                database.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(rows[0]))})", rows)
        return Counter(database.execute(query).fetchall())
