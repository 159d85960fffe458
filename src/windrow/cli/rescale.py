"""`windrow rescale`: the state of a stopped engine for another number of shards."""

from __future__ import annotations

from typing import Annotated

import typer

from windrow.errors import StateError


def rescale(
    state: Annotated[str, typer.Option(metavar="DIR|URL", help="Where the state is kept, as for `run`.")],
    shards: Annotated[int, typer.Option(metavar="N", min=1, help="How many shards it is to have.")],
    takeover: Annotated[
        bool, typer.Option("--takeover", help="The engine that seems to own the state is gone: take it.")
    ] = False,
) -> None:
    """Route the state of a stopped engine to another number of shards."""
    from windrow.engine.rescale import rescale as route
    from windrow.state.history import History
    from windrow.state.log import CommitLog
    from windrow.state.object_store import open_store

    store = open_store(state)
    if not History(store).numbers():
        raise StateError(
            f"there is no state in {state}",
            code="no-state",
            hint="name the directory that `windrow run --state` was given",
        )
    with CommitLog.open(store, takeover=takeover) as log:
        before = log.last.shards
        last = route(log, shards)
    told = f"{last.shards} shard{'s' if last.shards != 1 else ''}"
    if before == last.shards:
        print(f"{state} has {told} already")
    elif not before:
        print(f"{state} has no shards yet: give `--shards {shards}` to the first start")
    else:
        print(f"{state} has {told} instead of {before}, from commit {last.number} on")
