"""PyFlink's own virtual environment, made when it is asked for: its packages do not go with Windrow's."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from windrow.errors import WindrowError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PACKAGE = "apache-flink"
_COMPLETE = "windrow-bench-complete"


def flink_python(cache: Path, say: Callable[[str], None]) -> Path:
    """The Python that has PyFlink; installed from the package index if it is not there yet."""
    folder = cache / "pyflink"
    python = folder / "bin" / "python"
    if not (folder / _COMPLETE).exists():
        say(f"installing {PACKAGE} into {folder}, which takes minutes the first time")
        _do([sys.executable, "-m", "venv", "--clear", str(folder)])
        _do([str(python), "-m", "pip", "install", "--quiet", "--no-input", PACKAGE])
        (folder / _COMPLETE).touch()
    return python


def flink_version(python: Path) -> str:
    """Which one it is."""
    code = f"from importlib.metadata import version; print(version({PACKAGE!r}))"
    return _do([str(python), "-c", code]).strip()


def _do(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["no message"]
        raise WindrowError(
            f"PyFlink cannot be installed: {lines[-1]}",
            code="no-pyflink",
            hint="leave out --with pyflink, or see whether the package index has it for this Python",
        )
    return done.stdout
