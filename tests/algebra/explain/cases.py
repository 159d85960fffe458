"""The streams and tables that the golden plans are about."""

from __future__ import annotations

from windrow.engine.explain import declared
from windrow.language.compile import compile_query

STREAMS = {
    "bids": ("item BIGINT, price DOUBLE, bidder STRING, ttl INT, ts TIMESTAMP", "WATTR ts SLACK 5 SECONDS"),
    "sales": ("item BIGINT, price DOUBLE, ts TIMESTAMP", "WATTR ts ORDERED"),
    "sensors": ("id STRING, value BIGINT, ts TIMESTAMP", "WATTR ts ORDERED PER id IDLE 30 SECONDS"),
}
TABLES = {
    "items": ("item BIGINT, name STRING", "NRR KEY (item)"),
    "watched": ("item BIGINT, least DOUBLE", "RELATION KEY (item)"),
}


def planned(query):
    """The plan of a query, as written."""
    return compile_query(query, declared(STREAMS, TABLES))
