"""States as bytes and back: what an engine writes between two steps.

Every chunk becomes one Arrow IPC stream; its span of expiry and all numbers are JSON.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from windrow.kernels.columnar.buffers import within_buffers
from windrow.kernels.state import Chunk, State


def written(states: Mapping[str, State]) -> tuple[str, list[bytes]]:
    """The states of all operators: a description, and the tables it refers to by number.

    >>> text, tables = written({"0": State({"rows": (Chunk(3, 9, pa.table({"k": [1, 2]})),)}, {"count": 2})})
    >>> text, len(tables)
    ('{"0": {"chunks": {"rows": [[3, 9, 0]]}, "meta": {"count": 2}}}', 1)
    >>> read(text, tables)["0"].chunks["rows"][0].table.column("k").to_pylist()
    [1, 2]
    """
    tables: list[bytes] = []
    described: dict[str, Any] = {}
    for path, state in states.items():
        chunks: dict[str, list[list[int]]] = {}
        for name, kept in state.chunks.items():
            chunks[name] = []
            for chunk in kept:
                chunks[name].append([chunk.first, chunk.last, len(tables)])
                tables.append(_bytes(chunk.table))
        described[path] = {"chunks": chunks, "meta": dict(state.meta)}
    return json.dumps(described), tables


def read(text: str, tables: list[bytes]) -> dict[str, State]:
    """What `written` wrote."""
    return {
        path: State(
            {
                name: tuple(Chunk(first, last, _table(tables[place])) for first, last, place in kept)
                for name, kept in state["chunks"].items()
            },
            state["meta"],
        )
        for path, state in json.loads(text).items()
    }


def _bytes(table: pa.Table) -> bytes:
    table, sink = within_buffers(table), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    found: bytes = sink.getvalue().to_pybytes()
    return found


def _table(data: bytes) -> pa.Table:
    with pa.ipc.open_stream(data) as reader:
        return reader.read_all()
