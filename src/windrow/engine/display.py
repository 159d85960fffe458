"""Notebook output: tables, queries and streams as HTML, answers as a chart, and a view that stays live.

Nothing here is needed to run. A chart needs matplotlib, a live view IPython: the extra `notebook` has both.

>>> import pyarrow as pa
>>> print(table_html(pa.table({"item": ["<pen>", None], "price": [2.5, 3.0]})))
<table class="windrow"><caption></caption><thead><tr><th>item</th><th>price</th></tr></thead><tbody>\
<tr><td>&lt;pen&gt;</td><td>2.5</td></tr><tr><td>NULL</td><td>3.0</td></tr></tbody></table>
"""

from __future__ import annotations

import datetime as dt
import time
from collections import Counter
from collections.abc import Callable, Mapping
from html import escape
from importlib import import_module
from typing import Any

import pyarrow as pa
import pyarrow.types as kinds

from windrow.errors import QueryError, to_install

#: rows of a table in a notebook, and lines in a chart
ROWS, LINES = 20, 8
_AT, _OP = "at", "op"


def table_html(table: pa.Table, caption: str = "", rows: int = ROWS) -> str:
    """The last rows of a table; the caption says how many there are."""
    shown = table.slice(max(table.num_rows - rows, 0))
    more = f" (the last {rows} of {table.num_rows} rows)" if table.num_rows > rows else ""
    head = "".join(f"<th>{escape(name)}</th>" for name in table.column_names)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(_shown(value))}</td>' for value in row.values())}</tr>"
        for row in shown.to_pylist()
    )
    return (
        f'<table class="windrow"><caption>{escape(caption)}{more}</caption><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table>"
    )


def facts_html(title: str, facts: Mapping[str, object], below: str = "") -> str:
    """A name, what is known of it line by line, and what follows."""
    lines = "".join(
        f"<tr><th style='text-align:left'>{escape(name)}</th><td style='text-align:left'>"
        f"{escape(_shown(value))}</td></tr>"
        for name, value in facts.items()
        if value is not None
    )
    return f"<div><strong>{escape(title)}</strong><table>{lines}</table>{below}</div>"


def _shown(value: object) -> str:
    match value:
        case None:
            return "NULL"
        case dt.datetime():
            return value.isoformat(sep=" ", timespec="milliseconds" if value.microsecond else "seconds")
        case _:
            return str(value)


def plot(table: pa.Table, title: str, columns: list[str] | None, by: list[str] | None, axes: Any) -> Any:
    """Numbers of answers over `at`: a line for each number and for each of the groups with most answers.

    `columns` are the numbers that are drawn, `by` the columns whose values tell lines apart: without them all
    that are no numbers, and every number behind them.
    """
    pyplot = _needed("matplotlib.pyplot", "a chart")
    rest = [field for field in table.schema if field.name not in (_AT, _OP)]
    groups = [field.name for field in rest if not _is_number(field.type)] if by is None else by
    numbers = [field.name for field in rest if _is_number(field.type) and field.name not in groups]
    drawn = numbers if columns is None else columns
    for name in (*drawn, *groups):
        if name not in table.column_names:
            known = ", ".join(table.column_names)
            raise QueryError(f"no column `{name}`", code="unknown-column", hint=f"there are {known}")
    if not drawn:
        hint = "aggregate something: COUNT(*), AVG(…)"
        raise QueryError("the answers have no numbers to draw", code="nothing-to-draw", hint=hint)
    axes = pyplot.subplots()[1] if axes is None else axes
    if not callable(getattr(axes, "plot", None)):
        hint = "as matplotlib's subplots() gives them, or leave them out"
        raise QueryError("a chart is drawn on axes of matplotlib", code="bad-argument", hint=hint)
    rows = table.to_pylist()
    common = Counter(tuple(row[name] for name in groups) for row in rows).most_common(LINES)
    for group, _ in common:
        mine = [row for row in rows if tuple(row[name] for name in groups) == group]
        for name in drawn:
            label = " ".join(str(part) for part in ([*group, name] if len(drawn) > 1 or not group else group))
            axes.plot([row[_AT] for row in mine], [row[name] for row in mine], label=label, marker=".")
    axes.set_title(title)
    axes.set_xlabel(_AT)
    if pa.types.is_temporal(table.schema.field(_AT).type):  # in full, times would run into each other
        dates = _needed("matplotlib.dates", "a chart")
        axes.xaxis.set_major_formatter(dates.ConciseDateFormatter(axes.xaxis.get_major_locator()))
    if len(drawn) == 1:
        axes.set_ylabel(drawn[0])
    if len(common) * len(drawn) > 1:
        axes.legend()
    return axes


def watch(html: Callable[[], str], is_over: Callable[[], bool], seconds: float | None) -> None:
    """Show something in a notebook and again whenever it is different, until it is over or the time is."""
    display = _needed("IPython.display", "a live view")
    shown = html()
    handle = display.display(display.HTML(shown), display_id=True)
    ends = None if seconds is None else time.monotonic() + seconds
    while not is_over() and (ends is None or time.monotonic() < ends):
        time.sleep(0.25)
        fresh = html()
        if fresh != shown and handle is not None:
            handle.update(display.HTML(fresh))
        shown = fresh
    if handle is not None:
        handle.update(display.HTML(html()))


def _is_number(kind: pa.DataType) -> bool:
    return bool(kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_decimal(kind))


def _needed(module: str, what: str) -> Any:
    try:
        return import_module(module)
    except ImportError:
        package = module.split(".")[0]
        raise QueryError(
            f"{what} needs {package}", code="missing-package", hint=to_install("notebook")
        ) from None
