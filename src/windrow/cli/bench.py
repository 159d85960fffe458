"""`windrow bench NAME`: a door to the benchmarks, which are in the repository and not in the package."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import typer

import windrow
from windrow.errors import WindrowError

#: what stands in a checkout of the repository, and nowhere else
_COMMAND = Path("benchmarks", "command.py")
#: how typer is to declare the command: every word after `bench` is for the benchmarks, `--help` too
PASSED_ON = {
    "allow_extra_args": True,
    "ignore_unknown_options": True,
    "allow_interspersed_args": False,
    "help_option_names": [],
}


def bench(context: typer.Context) -> None:
    """Measure Windrow against others: same rows, same answers. From a checkout of the repository."""
    found = checkout(Path(windrow.__file__).parents[2], Path.cwd())
    if found is None:
        raise WindrowError(
            "the benchmarks are not part of the installed package",
            code="no-benchmarks",
            hint="clone Windrow's repository, run `pip install -e '.[bench]'` in it, and call `windrow bench`"
            " there",
        )
    if str(found) not in sys.path:
        sys.path.insert(0, str(found))
    import_module("benchmarks.command").main(context.args)


def checkout(*folders: Path) -> Path | None:
    """The first folder that holds the repository.

    >>> checkout(Path("/proc/none")) is None
    True
    """
    return next((each for each in folders if (each / _COMMAND).is_file()), None)
