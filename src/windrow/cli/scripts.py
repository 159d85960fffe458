"""Scripts on the command line: reading them, errors that name their file; `check` and `explain`."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from windrow.algebra.catalog import Forms, form_text
from windrow.errors import QueryError

if TYPE_CHECKING:
    from windrow.algebra.explain import Explanation
    from windrow.algebra.expressions import Schema
    from windrow.language.binder import bound_statements
    from windrow.language.compile import Catalog

_FORM = re.compile(r"\d+ (millisecond|second|minute|hour)s?", re.IGNORECASE)


def trigger_text(text: str) -> str:
    """The option's value, checked before anything is started.

    >>> trigger_text("1 second")
    '1 second'
    """
    if _FORM.fullmatch(text.strip()) is None:
        raise typer.BadParameter(f"`{text}` is no span of time: write a number and a unit, as in '5 seconds'")
    return text.strip()


STDIN = Path("-")


def read_script(file: Path) -> str:
    """The text of a script; `-` is standard input."""
    try:
        content = sys.stdin.buffer.read() if file == STDIN else file.read_bytes()
        return content.decode("utf-8-sig")
    except OSError as error:
        raise typer.BadParameter(f"cannot read '{file}': {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise QueryError(
            f"{name_of(file)} is not UTF-8 text: byte {error.start} is {content[error.start]:#04x}",
            code="not-text",
            hint="save the script in the encoding UTF-8",
        ) from None


def name_of(file: Path) -> str:
    return "<stdin>" if file == STDIN else str(file)


def state_of(file: Path | None) -> str:
    """Where the state of a script is kept if nothing is said: two scripts run in one folder do not meet.

    >>> state_of(Path("examples/orders.cql")), state_of(STDIN), state_of(None)
    ('state/orders', 'state/stdin', 'state/served')
    """
    return f"state/{'served' if file is None else 'stdin' if file == STDIN else file.stem}"


@contextmanager
def within(name: str) -> Iterator[None]:
    """Errors raised inside say that they are about `name`."""
    try:
        yield
    except QueryError as error:
        error.file = error.file or name
        raise


# ------------------------------------------------------------ windrow check


_PLURALS = {"query": "queries"}


def check(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE.cql", dir_okay=False, help="A script; - reads from standard input."),
    ],
) -> None:
    """Tell what each statement means, and refuse what would not run."""
    from windrow.cli.declarations import Declarations
    from windrow.cli.plain import wrapped

    with within(name_of(file)), Declarations().keeping(read_script(file)) as (_, bound):
        described = [_described(statement) for statement in bound]
    widest = max((len(name) for _, name, _ in described), default=0)
    for kind, name, about in described:
        print(wrapped(f"{kind:<7} {name:<{widest}}  {about}".rstrip()))
    print(_summary([kind for kind, _, _ in described]))


def _described(statement: bound_statements.BoundStatement) -> tuple[str, str, str]:
    from windrow.language.binder import bound_statements

    match statement:
        case bound_statements.DeclareStream(stream):
            return "stream", stream.name, _columns(stream.schema, stream.forms)
        case bound_statements.DeclareTable(table):
            return "table", table.name, _columns(table.schema, table.forms)
        case bound_statements.RegisterQuery(query):
            return "query", query.name, _columns(query.plan.schema)
        case bound_statements.DeclareArchive(archive):
            return "archive", archive.name, f"of {archive.source} by {archive.key}"
        case bound_statements.RelayArchive(name=name):
            return "alter", name, "archive"
        case bound_statements.ExplainLayout(name=name):
            return "explain", name, "archive"
        case bound_statements.Dropped(kind, name):
            return "drop", name, kind.lower()
        case bound_statements.ShowAll(kind):
            return "show", "", kind.lower()
        case bound_statements.DescribeEntry(entry):
            return "describe", entry.name, ""
        case bound_statements.Nothing(kind, name):
            return "nothing", name, f"{kind.lower()}: nothing to do"
        case bound_statements.AnalyzeQuery(query) | bound_statements.RefreshQuery(query):
            is_analyzed = isinstance(statement, bound_statements.AnalyzeQuery)
            return "analyze" if is_analyzed else "refresh", query.name, ""
    return "query", "", _columns(statement.plan.schema)


def _columns(schema: Schema, forms: Forms = ()) -> str:
    written = {name: f" {form_text(form)}" for name, form in forms}
    return ", ".join(f"{field.name} {field.type}{written.get(field.name, '')}" for field in schema)


def _summary(kinds: list[str]) -> str:
    """
    >>> _summary(["stream", "query", "query"]), _summary([])
    ('ok  3 statements: 1 stream, 2 queries', 'ok  0 statements')
    """
    counts = [_counted(count, kind) for kind, count in Counter(kinds).items()]
    return f"ok  {_counted(len(kinds), 'statement')}" + (f": {', '.join(counts)}" if counts else "")


def _counted(count: int, kind: str) -> str:
    return f"{count} {kind if count == 1 else _PLURALS.get(kind, kind + 's')}"


# ------------------------------------------------------------ windrow explain


class ExplainForm(StrEnum):
    """How the plan is shown."""

    text = "text"
    json = "json"
    dot = "dot"


def explain(
    file: Annotated[
        Path | None,
        typer.Argument(metavar="FILE.cql", dir_okay=False, help="A script; - reads from standard input."),
    ] = None,
    statements: Annotated[
        str | None, typer.Option("-e", "--execute", metavar="SELECT", help="A query, in place of a file.")
    ] = None,
    stream: Annotated[
        list[str] | None,
        typer.Option(metavar="DECLARATION", help="A stream: 'bids(item BIGINT, ts TIMESTAMP) WATTR ts'."),
    ] = None,
    table: Annotated[
        list[str] | None,
        typer.Option(metavar="DECLARATION", help="A table: 'items(item BIGINT, KEY (item)) NRR'."),
    ] = None,
    rate: Annotated[
        list[str] | None,
        typer.Option(metavar="STREAM=ROWS", help="Rows per second of a stream, to estimate state."),
    ] = None,
    form: Annotated[
        ExplainForm, typer.Option("--format", help="Text, JSON, or a Graphviz picture.")
    ] = ExplainForm.text,
) -> None:
    """Show how each query is run: its plan, what it keeps, and why."""
    from windrow.cli.plain import wrapped
    from windrow.engine.explain import explain_script
    from windrow.optimizer.flows import Statistics

    if (file is None) == (statements is None):
        raise typer.BadParameter("give either a file or a query with -e")
    catalog = _declared(stream or (), table or ())
    known = Statistics(rates=dict(map(_rate, rate))) if rate else None
    text = statements if file is None else read_script(file)
    with within("-e" if file is None else name_of(file)):
        shown = _rendered(explain_script(text or "", catalog, known), form)
    print(wrapped(shown) if form is ExplainForm.text else shown)


def _declared(streams: Sequence[str], tables: Sequence[str]) -> Catalog:
    from windrow.language.compile import Catalog, compile_script
    from windrow.spark.sources import infer_columns

    catalog = Catalog(inference=infer_columns)
    for kind, declarations in (("stream", streams), ("table", tables)):
        for declaration in declarations:
            with within(f"--{kind}"):
                compile_script(f"CREATE {kind.upper()} {declaration}", catalog)
    return catalog


def _rate(text: str) -> tuple[str, float]:
    """
    >>> _rate("bids=50")
    ('bids', 50.0)
    """
    found = re.fullmatch(r"\s*(\S+)\s*=\s*(\d+(?:\.\d+)?)\s*", text)
    if found is None:
        raise typer.BadParameter(f"`{text}` is no rate: write STREAM=ROWS, as in bids=50")
    return found[1], float(found[2])


def _rendered(explanations: list[Explanation], form: ExplainForm) -> str:
    """JSON is always one array; texts and pictures stand one after the other."""
    from windrow.algebra.explain import as_dict, render

    if form is ExplainForm.json:
        return json.dumps([as_dict(each) for each in explanations], indent=2, ensure_ascii=False)
    return "\n\n".join(render(each, form.value) for each in explanations)
