"""Running the command line in tests: in this process, or in one of its own with Spark."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import IO

import pytest
from tests.support.patience import PATIENCE

from windrow.cli.main import main

EXAMPLES = Path(__file__).parents[2] / "examples"
#: seconds after which a process of its own hangs; starting Spark on a busy machine takes a while


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of `windrow` with these arguments."""
    with pytest.raises(SystemExit) as leaving:
        main(list(arguments))
    output = capsys.readouterr()
    return leaving.value.code or 0, output.out, output.err


def start(*arguments: str, folder: Path, out: IO[str] | None = None) -> subprocess.Popen[str]:
    """`windrow` as a process in a folder that has `examples`, its output in pipes, or in a file."""
    if not (folder / "examples").exists():
        (folder / "examples").symlink_to(EXAMPLES)
    environment = {name: value for name, value in os.environ.items() if name != "WINDROW_TRACEBACK"}
    return subprocess.Popen(
        [sys.executable, "-m", "windrow", *arguments],
        cwd=folder,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=out or subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str], typed: str = "") -> tuple[int, str, str]:
    """Exit code and output of a process that ends by itself."""
    try:
        out, err = process.communicate(typed, timeout=PATIENCE)
    finally:
        process.kill()
    return process.returncode, out, err
