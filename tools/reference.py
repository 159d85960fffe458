"""The references in the documents: the Python API by its docstrings, the command line by its options.

>>> _call("from_", from_)
'from_(source: str, alias: str | None = None, session: Session | None = None) -> Frame'
>>> _markdown("Says it.\\n\\n>>> 1 + 1\\n2\\n\\nAnd more.").split("\\n")
['Says it.', '', '```python', '>>> 1 + 1', '2', '```', '', 'And more.']
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import fields
from enum import Enum
from typing import Any

import typer.main

from windrow import errors, functions
from windrow.algebra.aggregates.declare import aggregate
from windrow.algebra.explain.facts import Explanation
from windrow.algebra.explain.warnings import Warned
from windrow.algebra.values import Change
from windrow.cli.main import app
from windrow.cli.session import HELP
from windrow.engine.explain import explain
from windrow.engine.show import ArchiveView
from windrow.engine.views import Query, QueryProgress, StreamProgress, StreamView, TableView
from windrow.frame import Frame, from_
from windrow.server import metrics
from windrow.session import Windrow, connect
from windrow.testing import Harness

#: the public names, by the chapters of the reference
API: dict[str, tuple[Any, ...]] = {
    "windrow": (connect, Windrow, explain, from_, Frame, aggregate, Change),
    "What is registered": (
        *(Query, QueryProgress, StreamView, StreamProgress, TableView, ArchiveView),
        *(Explanation, Warned),
    ),
    "windrow.functions": (
        *(functions.Column, functions.col, functions.lit, functions.expr),
        *(functions.count, functions.count_distinct),
    ),
    "windrow.testing": (Harness,),
    "Errors": (
        *(errors.WindrowError, errors.QueryError, errors.DataError),
        *(errors.StateError, errors.SourceError, errors.SinkError),
    ),
}
#: those whose fields are for their readers
READ = (Change, QueryProgress, StreamProgress, Explanation, Warned)


def python_markdown() -> str:
    """Every public name with its signature and what its docstring says."""
    parts = []
    for chapter, names in API.items():
        parts.append(f"## {chapter}")
        for each in names:
            parts += _described(each)
    return "\n\n".join(parts)


def members(kind: type) -> Iterator[tuple[str, Any]]:
    """The public methods and properties that a class defines itself, in the order of the alphabet."""
    for name in sorted(vars(kind)):
        member = inspect.getattr_static(kind, name)
        if not name.startswith("_") and (inspect.isfunction(member) or isinstance(member, property)):
            yield name, member


def _described(each: Any) -> Iterator[str]:
    name = each.__name__
    yield f"### {name}"
    if not isinstance(each, type):
        yield f"`{_call(name, each)}`"
    yield _markdown(inspect.getdoc(each) or "")
    if each in READ:
        yield "Fields: " + ", ".join(f"`{field.name}: {field.type}`" for field in fields(each)) + "."
    for member, what in members(each) if isinstance(each, type) else ():
        told = f"{member}{_result(what.fget)}" if isinstance(what, property) else _call(member, what)
        yield f"**`{told}`**<br>\n{_markdown(inspect.getdoc(what) or '')}"


def _call(name: str, function: Callable[..., Any]) -> str:
    """A call as it is written, with types."""
    given = [each for each in inspect.signature(function).parameters.values() if each.name != "self"]
    words = [_parameter(each) for each in given]
    by_name = next((place for place, each in enumerate(given) if each.kind is each.KEYWORD_ONLY), None)
    if by_name is not None and not any(each.kind is each.VAR_POSITIONAL for each in given):
        words.insert(by_name, "*")
    return f"{name}({', '.join(words)}){_result(function)}"


def _parameter(given: inspect.Parameter) -> str:
    stars = "*" if given.kind is given.VAR_POSITIONAL else "**" if given.kind is given.VAR_KEYWORD else ""
    default = "…" if callable(given.default) else repr(given.default).replace("'", '"')
    return f"{stars}{given.name}: {_kind(given.annotation)}" + (
        f" = {default}" if given.default is not given.empty else ""
    )


def _kind(annotation: str) -> str:
    """A type by its own name; of other libraries, behind theirs.

    >>> _kind("list[bound_statements.BoundStatement] | pa.Table")
    'list[BoundStatement] | pa.Table'
    """
    return re.sub(r"\b[a-z_]{3,}\.(?=[A-Z])", "", annotation)


def _result(function: Any) -> str:
    gives = _kind(function.__annotations__.get("return", ""))
    return f" -> {gives}" if gives not in ("", "None") else ""


def _markdown(docstring: str) -> str:
    """A docstring as a part of a page: its examples are blocks that run."""
    parts = re.split(r"\n\n", docstring)
    return "\n\n".join(_block(part) for part in parts)


def _block(part: str) -> str:
    words, example, code = part.partition(">>> ")
    if example and not words.strip():
        return f"```python\n{textwrap.dedent(part)}\n```"
    if example:
        return f"{words.strip()}\n\n```python\n{textwrap.dedent(example + code)}\n```"
    if all(line.startswith("    ") for line in part.split("\n")):
        return f"```text\n{textwrap.dedent(part)}\n```"
    return part


# ------------------------------------------------------------ the command line


def commands_markdown() -> str:
    """Every command with its arguments and options, as `--help` has them."""
    parts = []
    for name, command in typer.main.get_command(app).commands.items():  # type: ignore[attr-defined]
        arguments = [each for each in command.params if each.param_type_name == "argument"]
        options = [each for each in command.params if each.param_type_name == "option"]
        call = " ".join(["windrow", name, *map(_argument, arguments)])
        parts += [f"## windrow {name}", f"`{call}`", command.help or ""]
        rows = [_row(f"`{_option(each)}`", _told(each)) for each in [*arguments, *options]]
        parts += ["\n".join(["| | |", "|---|---|", *rows])] if rows else []
    return "\n\n".join(parts)


def shell_markdown() -> str:
    """The commands of the shell, as its `help` has them."""
    return f"```text\n{HELP}\n```"


def _argument(given: Any) -> str:
    return _value(given) if given.required else f"[{_value(given)}]"


def _option(given: Any) -> str:
    if given.param_type_name == "argument":
        return _value(given)
    words = ", ".join(given.opts)
    return words if given.is_flag else f"{words} {_value(given)}"


def _value(given: Any) -> str:
    """What stands for a value: the words there are, or a name for it."""
    kind = given.type_descriptor.annotation
    if isinstance(kind, type) and issubclass(kind, Enum):
        return "|".join(str(each.value) for each in kind)
    return str(given.metavar or {int: "N", str: "TEXT"}.get(kind, given.name.upper()))


def _told(given: Any) -> str:
    default = given.default
    is_told = default not in (None, False) and not callable(default)
    return (given.help or "") + (f" Default: `{default}`." if is_told else "")


def _row(*cells: str) -> str:
    """A line of a table. A bar in it would be one of the table here, or have its escape shown there.

    >>> print(_row("`--format text|json`", "How."))
    | `--format text or json` | How. |
    """
    return f"| {' | '.join(cell.replace('|', ' or ') for cell in cells)} |"


# ------------------------------------------------------------ metrics


def metrics_markdown() -> str:
    """Every metric with its kind and its help, as the server's module names them."""
    rows = [_row(f"`{name}`", kind, about) for name, (kind, _, about) in metrics.METRICS.items()]
    return "\n".join(["| metric | kind | |", "|---|---|---|", *sorted(rows)])
