"""`windrow serve`: the engine with an HTTP API, a live page and metrics."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from windrow.cli import options, run, scripts
from windrow.errors import StateError, to_install

if TYPE_CHECKING:
    from windrow.server.access import AccessTokens
    from windrow.server.service import Service

PORT = 8642


def serve(
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE.cql", dir_okay=False, help="A script to begin with.")
    ] = None,
    host: Annotated[str, typer.Option(metavar="NAME", help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 is any that is free.")] = PORT,
    state: options.StateOption = None,
    trigger: Annotated[
        str, typer.Option(metavar="TIME", callback=scripts.trigger_text, help="How often rows are taken.")
    ] = "1 second",
    name: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="A name under which a proxy passes requests on.")
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", dir_okay=False, help="Tokens, one on each line after `read` or `write`."
        ),
    ] = None,
    takeover: Annotated[
        bool, typer.Option("--takeover", help="The engine that seems to own the state is gone: take it.")
    ] = False,
    master: options.MasterOption = None,
    conf: options.ConfOption = None,
    shards: options.ShardsOption = None,
    log: options.LogOption = None,
    level: options.LevelOption = None,
    metrics: options.MetricsOption = None,
) -> None:
    """Serve a live page, an HTTP API and metrics, until Ctrl-C."""
    check_installed()
    spark = options.SparkChoice(master, conf, shards=shards)
    observed = options.Observability(log, level, metrics, usual_level="info")
    observed.set_up()
    script = scripts.read_script(file) if file is not None else ""
    tokens = tokens_for(host, token_file)
    where, state = scripts.name_of(file) if file is not None else "", state or scripts.state_of(file)
    with (
        scripts.within(where),
        serving(state, script, trigger=trigger, takeover=takeover, spark=spark, observed=observed) as service,
    ):
        listen(service, host, port, tokens, names=name or (), state=state)


def is_installed() -> bool:
    return all(find_spec(name) is not None for name in ("fastapi", "uvicorn"))


def check_installed() -> None:
    if not is_installed():
        raise StateError(
            "the server needs fastapi and uvicorn, which are not installed",
            code="not-installed",
            hint=to_install("server"),
        )


def tokens_for(host: str, token_file: Path | None) -> AccessTokens | None:
    """The tokens of a file; where others can reach the server, one is made and told if there is none."""
    from windrow.server.access import AccessTokens, is_loopback

    if token_file is not None:
        return AccessTokens.read(token_file)
    if is_loopback(host):
        return None
    tokens, text = AccessTokens.made()
    print(f"token for this run, which may do everything: {text}", file=sys.stderr)
    print(
        "it goes over the wire as it is: put a proxy that speaks TLS in front (see docs/server.md)",
        file=sys.stderr,
        flush=True,
    )
    return tokens


@contextmanager
def serving(
    state: str | Path | None,
    script: str,
    *,
    trigger: str,
    takeover: bool = False,
    spark: options.SparkChoice,
    observed: options.Observability | None = None,
) -> Iterator[Service]:
    """An engine that runs a script, and what may be done with it from outside."""
    from windrow.server.service import Service

    with run.started(state, _take_signals, spark, observed, takeover=takeover) as engine:
        service = Service(engine, trigger=trigger, script=script)
        try:
            service.start()
            yield service
        finally:
            service.close()


def listen(
    service: Service,
    host: str,
    port: int,
    tokens: AccessTokens | None,
    seconds: float | None = None,
    names: Iterable[str] = (),
    state: str | None = None,
) -> None:
    """Answer until a signal comes, or for so long. Then it is told where the state is that is kept."""
    from windrow.server.serve import Listener

    listener = Listener(service, host, port, tokens, names)
    print(f"serving on {listener.url}", flush=True)
    run.say("Ctrl-C ends it")
    if seconds is not None:
        timer = threading.Timer(seconds, listener.stop)
        timer.daemon = True
        timer.start()
    _on_signals(lambda *_: None)  # uvicorn takes them meanwhile, and gives those that ended it on to us
    try:
        listener.run()
    finally:
        _take_signals()
    run.say("\nstopped" if state is None else f"\nstopped; the same command goes on from there, with {state}")


def _on_signals(handler: Callable[..., None]) -> None:
    if threading.current_thread() is threading.main_thread():
        for each in (signal.SIGINT, signal.SIGTERM):
            signal.signal(each, handler)


def _take_signals() -> None:
    """uvicorn takes signals itself; before and after it runs they just interrupt."""

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    _on_signals(interrupt)
