"""Notebook cells of window SQL, after `%load_ext windrow`.

    %%windrow
    CREATE STREAM bids (item BIGINT, price DOUBLE, ts TIMESTAMP) WATTR ts ORDERED FROM 'files://bids.csv';
    CREATE QUERY top AS SELECT item, MAX(price) AS best FROM bids [RANGE 1 HOUR SLIDE 1 HOUR] GROUP BY item;

Statements go to the engine that the notebook calls `w`, or to the one that is named: `%%windrow other`. Where
there is none, one without a state directory is made and called so. What SHOW, EXPLAIN and SELECT give is
displayed, what was made is told, and an error is shown at its place in the cell, without a traceback.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

import pyarrow as pa

from windrow.engine.display import table_html
from windrow.errors import QueryError, WindrowError
from windrow.session import Windrow, connect


def register(shell: Any) -> None:
    """Make `%%windrow` known to a notebook."""
    display = import_module("IPython.display")

    def windrow(line: str, cell: str) -> None:
        try:
            engine = _engine(shell.user_ns, line.strip() or "w")
            before = _names(engine)
            for shown in engine.sql(cell):
                html = table_html(shown) if isinstance(shown, pa.Table) else shown._repr_html_()
                display.display(display.HTML(html))
            if created := [name for name in _names(engine) if name not in before]:
                sys.stdout.write(f"created {', '.join(created)}\n")
        except WindrowError as error:
            sys.stderr.write(f"{error.render()}\n")

    shell.register_magic_function(windrow, "cell", "windrow")


def _names(engine: Windrow) -> list[str]:
    return [*engine.streams, *engine.tables, *engine.queries]


def _engine(names: dict[str, Any], name: str) -> Windrow:
    found = names.get(name)
    if found is None:
        found = names[name] = connect(state=None)
    if not isinstance(found, Windrow):
        hint = f"give it another name: %%windrow my_engine, or {name} = windrow.connect(…)"
        raise QueryError(f"`{name}` is no engine, but {type(found).__name__}", code="bad-value", hint=hint)
    return found
