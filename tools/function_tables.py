"""The tables of functions and aggregates in the documentation, made from what is callable now.

>>> from windrow.algebra.functions.registry import lookup
>>> [form(lookup(name)) for name in ("+", "like", "log", "concat", "trim")]
['x + y', 'x LIKE y[ ESCAPE z]', 'log(x[, y])', 'concat(x, …)', 'TRIM([y FROM ]x)']
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import groupby

from windrow.algebra import aggregates
from windrow.algebra.functions import catalogue
from windrow.algebra.functions.registry import Function
from windrow.algebra.types import (
    DOUBLE,
    INT,
    INTERVAL,
    STRING,
    TIMESTAMP,
    DataType,
    Kind,
    common_type,
    decimal,
)
from windrow.errors import QueryError

_LETTERS = "xyz"
#: forms with words between the arguments, which are not printed so
_SPOKEN = {
    "between": "x BETWEEN y AND z",
    "case": "CASE WHEN x THEN y … ELSE z END",
    "extract": "EXTRACT(field FROM x)",
}
_ARGUMENTS = (INT, decimal(10, 2), DOUBLE, STRING, TIMESTAMP, INTERVAL)
_PARAMETERS = {"fraction": 0.5, "k": 3, "value": 1, "separator": ","}


def functions_markdown() -> str:
    """A table for each category, with an example for each function."""
    return "\n\n".join(_category(*group) for group in groupby(catalogue(), lambda each: each.category))


def _category(name: str, functions: Iterable[Function]) -> str:
    if name == "refused":
        return f"Refused, with the reason: {', '.join(f'`{function.name}`' for function in functions)}."
    head = [
        f"**{name.capitalize()}**",
        "",
        "| form | also | meaning | example | notes |",
        "|---|---|---|---|---|",
    ]
    return "\n".join([*head, *(_row(_function_cells(function)) for function in functions)])


def _function_cells(function: Function) -> Iterator[str]:
    yield _code(form(function))
    yield ", ".join(_code(alias) for alias in function.aliases)
    yield function.description.replace("|", "\\|")
    call, value = function.example.split(" -> ")
    yield f"{_code(call)} → {_code(value)}"
    yield "; ".join(_notes(function))


def _notes(function: Function) -> Iterator[str]:
    if function.can_fail:
        yield f"can fail: {_code(function.try_form)}" if function.try_form else "can fail"
    if not function.null_propagating:
        yield "sees NULL"


def form(function: Function) -> str:
    """How a function is written, with letters for its arguments."""
    if function.name in _SPOKEN:
        return _SPOKEN[function.name]
    if function.sql and not function.sql.lower().startswith(function.name + "({"):
        text = function.sql.replace("{1*}", "y, …")
        return re.sub(r"\{(\d)\}", lambda match: _LETTERS[int(match[1])], text)
    least, most = function.arity
    if most is None:
        return f"{function.name}({', '.join([*_LETTERS[:least], '…'])})"
    optional = "".join(f"[, {letter}]" for letter in _LETTERS[least:most])
    return f"{function.name}({', '.join(_LETTERS[:least])}{optional})"


def aggregates_markdown() -> str:
    """What each aggregate gives for an argument of each kind of type."""
    names: dict[type[aggregates.AggregateFunction], list[str]] = {}
    for name in aggregates.names():
        names.setdefault(aggregates.lookup(name), []).append(name)
    head = ["form", "also", *(str(kind) for kind in _ARGUMENTS)]
    rows = [_row(_aggregate_cells(kind, known)) for kind, known in names.items()]
    return "\n".join([_row(head), _row("---" for _ in head), *rows])


def _aggregate_cells(kind: type[aggregates.AggregateFunction], names: list[str]) -> Iterator[str]:
    options = "".join(f"[, {name}]" for name, _ in kind.options)
    arguments = ["x", "y"][: max(1, kind.arity[0])]
    yield _code(f"{kind.name}({', '.join([*arguments, *kind.parameters])}{options})")
    yield ", ".join(_code(name) for name in names if name != kind.name)
    for argument in _ARGUMENTS:
        yield _result(kind, argument)


def _result(kind: type[aggregates.AggregateFunction], argument: DataType) -> str:
    constants = [_PARAMETERS[name] for name in kind.parameters]
    written = tuple("a" if each == 1 and argument == STRING else each for each in constants)
    try:
        types = (argument,) * max(1, kind.arity[0])
        if kind.takes is not None and common_type(argument, kind.takes[0]) == kind.takes[0]:
            types = kind.takes
        result = aggregates.make(kind.name, written, types=types).result
    except QueryError:
        return "–"
    assert result is not None
    return result.kind.value if result.kind is Kind.ARRAY else str(result)


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _code(text: str) -> str:
    return "`" + text.replace("|", "\\|") + "`"
