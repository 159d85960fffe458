"""Processes to be killed, forked from a server that has imported all they need: each costs little."""

from __future__ import annotations

import multiprocessing
import os
from typing import TYPE_CHECKING, Any

from tests.support.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.process import BaseProcess

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(
    ["pytest", "pandas", "windrow.state.shard", "windrow.state.log", "windrow.state.history"]
)  # pyarrow imports pandas the first time it makes an array


def start(target: Callable[..., Any], *arguments: Any) -> BaseProcess:
    """A process that calls the function, in the environment of now: the server has that of its start."""
    process = CONTEXT.Process(target=_called, args=(dict(os.environ), target, arguments))
    process.start()
    return process


def _called(environment: dict[str, str], target: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    os.environ.update(environment)
    target(*arguments)


def run(target: Callable[..., Any], *arguments: Any) -> int | None:
    """Call the function in a process of its own; how that ended."""
    process = start(target, *arguments)
    process.join(PATIENCE)
    return process.exitcode
