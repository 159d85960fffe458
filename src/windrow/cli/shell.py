"""`windrow shell`: statements and dot-commands, typed or from a pipe."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from windrow.cli.options import (
    ConfOption,
    LevelOption,
    LogOption,
    MasterOption,
    MetricsOption,
    Observability,
    ShardsOption,
    SparkChoice,
)


def shell(
    state: Annotated[
        str | None,
        typer.Option(metavar="DIR|URL", help="Where the state is kept, as for `run`; else nothing is."),
    ] = None,
    master: MasterOption = None,
    conf: ConfOption = None,
    shards: ShardsOption = None,
    log: LogOption = None,
    level: LevelOption = None,
    metrics: MetricsOption = None,
) -> None:
    """Type statements, run them, watch their answers."""
    from windrow.cli.session import ShellSession, is_ended, piped

    is_typed = sys.stdin.isatty()
    observed = Observability(log, level, metrics)
    observed.set_up()
    session = ShellSession(state, SparkChoice(master, conf, shards=shards), observed, is_typed=is_typed)
    lines = piped()
    if is_typed:
        from windrow.cli.prompt import Typed

        print("Statements end with `;`. Tab completes, `help` lists the commands, Ctrl-D ends.")
        lines = iter(Typed(lambda: session.catalog, session.commands, is_ended))
    try:
        for text in lines:
            if not session.take(text):
                break
    finally:
        session.close()
