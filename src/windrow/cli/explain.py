"""`windrow explain`: the plan of every query of a script, with update patterns, state and guarantees."""

from __future__ import annotations

import json
import re
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from windrow.cli.scripts import name_of, read_script, within

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windrow.algebra.explain import Explanation
    from windrow.language.compile import Catalog
    from windrow.optimizer.cost.statistics import Statistics


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
    """Show the plan of every query: update patterns, state layouts, sink guarantee."""
    from windrow.engine import explain_script

    if (file is None) == (statements is None):
        raise typer.BadParameter("give either a file or a query with -e")
    catalog = _declared(stream or (), table or ())
    known = _statistics(rate or ())
    text = statements if file is None else read_script(file)
    with within("-e" if file is None else name_of(file)):
        print(_rendered(explain_script(text or "", catalog, known), form))


def _declared(streams: Sequence[str], tables: Sequence[str]) -> Catalog:
    from windrow.language.compile import Catalog, compile_script
    from windrow.spark.sources import infer_columns

    catalog = Catalog(inference=infer_columns)
    for kind, declarations in (("stream", streams), ("table", tables)):
        for declaration in declarations:
            with within(f"--{kind}"):
                compile_script(f"CREATE {kind.upper()} {declaration}", catalog)
    return catalog


def _statistics(rates: Sequence[str]) -> Statistics | None:
    from windrow.optimizer.cost.statistics import Statistics

    return Statistics(rates=dict(_rate(each) for each in rates)) if rates else None


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
