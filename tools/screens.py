"""The screens of a newcomer, recorded with their times; docs/cli.md shows some of them.

    python tools/screens.py                         # the demonstration, a script and the shell
    python tools/screens.py run examples/flights.cql --flush

Each command runs on pseudo-terminals of 80×24 and 160×50, with an empty home directory and without a Java
but that of the extra `java`. Printed is what it leaves there, and after how many seconds the first words, the
first answer and the end came.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.support.terminal import Screen, run_in_terminal  # noqa: E402  it is found by the line above

SIZES = ((80, 24), (160, 50))
PATIENCE = 300
#: the headline of a query's answers: in the live view, in a table of a run, and in the shell
ANSWER = re.compile(r"^● \w+  [1-9]|^\w+, commit \d+: |^\w+ at \S.*: \d+ rows?$", re.MULTILINE)
#: what is typed into the shell, each once the pattern before it is to be seen
TYPED = [
    ("windrow>", "CREATE STREAM bids (item BIGINT, price DOUBLE, ts TIMESTAMP)\r"),
    ("->", "WATTR ts SLACK 5 SECONDS FROM 'generator:auction?rate=500&event_rate=50&keys=9';\r"),
    (
        "created bids\nwindrow>",
        "CREATE QUERY top AS SELECT item, MAX(prise) AS best FROM bids [NOW] GROUP BY item;\r",
    ),
    (
        "did you mean `price`.\nwindrow>",
        "CREATE QUERY top AS SELECT item, MAX(price) AS best\r"
        "FROM bids [RANGE 1 MINUTE SLIDE 10 SECONDS] GROUP BY item;\r",
    ),
    (".start runs the queries\nwindrow>", ".start\r"),
    ("type on meanwhile", "\\d bids\r"),
    (r"^running; .watch NAME[^\0]*\nwindrow>$", ".watch top 8\r"),
    (r"^top at .*\n(  .*\n)+windrow>$", ".stop\r"),
    (r"^stopped at commit .*\nwindrow>", "quit\r"),
]
COMMANDS = (
    ("demo", "traffic", "--seconds", "12"),
    ("run", "examples/flights.cql", "--flush"),
    ("shell",),
)


@dataclass
class Times:
    """When something was first to be seen, in seconds."""

    began: float = field(default_factory=time.monotonic)
    words: float | None = None
    answer: float | None = None

    def watch(self, screen: Screen) -> None:
        now = time.monotonic() - self.began
        text = "\n".join(screen.lines)
        if self.words is None and text.strip():
            self.words = now
        if self.answer is None and ANSWER.search(text):
            self.answer = now


def without_java(folder: Path) -> str:
    """A folder with links to all that is on the PATH, but no Java."""
    folder.mkdir()
    for place in os.get_exec_path():
        for program in Path(place).glob("*") if Path(place).is_dir() else ():
            link = folder / program.name
            if program.name != "java" and not link.is_symlink():
                link.symlink_to(program)
    return str(folder)


def record(arguments: Sequence[str], width: int, height: int) -> None:
    """One command at one size, printed."""
    with TemporaryDirectory() as name:
        home, here = Path(name, "home"), Path(name, "here")
        home.mkdir()
        here.mkdir()
        (here / "examples").symlink_to(ROOT / "examples")
        environment: Mapping[str, str] = {
            "HOME": str(home),
            "PATH": without_java(Path(name, "bin")),
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
        }
        times = Times()
        code, screen = run_in_terminal(
            [sys.executable, "-m", "windrow", *arguments],
            width,
            height,
            patience=PATIENCE,
            typed=TYPED if arguments == ("shell",) else (),
            watch=times.watch,
            cwd=here,
            env=environment,
        )
    ended = time.monotonic() - times.began
    told = {"first words": times.words, "first answer": times.answer, "end": ended}
    seconds = ", ".join(f"{what} {when:.1f} s" for what, when in told.items() if when is not None)
    print(f"===== windrow {' '.join(arguments)}, {width}×{height}: {seconds}, exit code {code}")
    print("\n".join(screen.lines), end="\n\n", flush=True)


def main() -> None:
    """All of them, or the one that is named."""
    for arguments in [tuple(sys.argv[1:])] if len(sys.argv) > 1 else COMMANDS:
        for width, height in SIZES:
            record(arguments, width, height)


if __name__ == "__main__":
    main()
