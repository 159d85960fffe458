"""Queries in SQL over one stream of packets."""

from __future__ import annotations

from windrow.algebra.plan import Emit
from windrow.engine.explain import declared
from windrow.language.compile import compile_query

_PACKETS = "src STRING, user STRING, protocol STRING, length INT, delay DOUBLE, ts TIMESTAMP"


def packets(text: str, options: str = "SLACK 5 SECONDS") -> Emit:
    """A query over `S`, and `T`, streams of packets."""
    return compile_query(text, declared({"S": (_PACKETS, options), "T": (_PACKETS, options)}, {}))
