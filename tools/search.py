"""A search by hand: property tests with new examples, a piece at a time, for as long as it is told.

    make search MINUTES=20                               everything that needs no JVM
    python tools/search.py --minutes 5 tests/kernels     part of it
    python tools/search.py --minutes 60 --resume         go on where the last search ended

A pass gives each test 300 examples and each test of random plans and random lives (marked `deep`) 2,000; the
cases of a parametrised test share them. The deep tests come first. What was tried stands in
`tests/searched.json`, to which every search adds, so that a pass can be done in pieces and on many machines;
without `--resume` it begins anew. Whoever searched commits the file.
What fails is printed with the example found, to be mended and pinned by a test of its own: CI tries the same
examples every time and finds nothing new.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
#: the examples of each test function that were tried and held, "all" where there are no more
TALLY = ROOT / "tests" / "searched.json"
ALL = "all"
SELECTED = "(property or deep) and not jvm"


def main() -> int:
    """0 if nothing was found, 1 otherwise."""
    asked = arguments()
    with ProcessPoolExecutor(1) as pool:  # what is imported to look at the tests goes with the process
        tests = pool.submit(property_tests, asked.paths).result()
    tally = json.loads(TALLY.read_text(encoding="utf-8")) if asked.resume and TALLY.exists() else {}
    for name, test in tests.items():
        test.target = asked.deep if test.deep else asked.examples
        known = tally.get(name, 0)
        test.before, test.exhausted_before = (0, True) if known == ALL else (known, False)
    with TemporaryDirectory() as folder:
        record = Path(folder) / "search.jsonl"
        record.touch()
        add_up(tests, [])
        search(tests, record, asked, tally)
        return tell(tests, lines_of(record))


def search(
    tests: dict[str, Searched], record: Path, asked: argparse.Namespace, tally: dict[str, Any]
) -> None:
    """Piece after piece, until the time is over or every test has had its examples."""
    one_by_one = Lock()

    def try_and_keep(piece: Piece) -> None:
        try_piece(piece, record, ends)
        with one_by_one:
            add_up(tests, lines_of(record))
            keep(tests, tally)

    ends = time.monotonic() + asked.minutes * 60
    given_up: set[str] = set()  # what fails is mended before it is searched again
    while time.monotonic() < ends and (pieces := next_pieces(tests, given_up, asked.piece)):
        lacked = {name: (test.lacks, test.failures) for name, test in tests.items()}
        with ThreadPoolExecutor(asked.processes) as pool:
            list(pool.map(try_and_keep, pieces))
        for name in (name for piece in pieces for name in piece.tests):
            test, (lacks, failures) = tests[name], lacked[name]
            if test.lacks == lacks or test.failures > failures:
                given_up.add(name)


def keep(tests: dict[str, Searched], tally: dict[str, Any]) -> None:
    """What was tried so far; of a test that fails, nothing: it is searched anew when it is mended."""
    for name, test in tests.items():
        tally.pop(name, None)
        if not test.failures and (test.exhausted or test.examples):
            tally[name] = ALL if test.exhausted else test.examples
    TALLY.write_text(json.dumps(dict(sorted(tally.items())), indent=1) + "\n", encoding="utf-8")


def arguments() -> argparse.Namespace:
    """What is asked for on the command line."""
    parser = argparse.ArgumentParser(description="Search for failures of property tests.")
    parser.add_argument("paths", nargs="*", default=["tests"], help="files or folders of tests")
    parser.add_argument("--minutes", type=float, default=10, help="no piece is begun later than that")
    parser.add_argument("--examples", type=int, default=300, help="for each test")
    parser.add_argument("--deep", type=int, default=2000, help="for each test of random plans and lives")
    parser.add_argument("--piece", type=int, default=200, help="for each test, at a time")
    parser.add_argument("--processes", type=int, default=1, help="files searched at the same time")
    parser.add_argument("--resume", action="store_true", help="what was searched is not searched again")
    return parser.parse_args()


@dataclass
class Searched:
    """A test function, and what was tried of it in all its cases."""

    deep: bool
    cases: int = 0
    target: int = 0
    examples: int = 0
    seconds: float = 0.0
    failures: int = 0
    #: whether it has no examples, or no more than were tried
    exhausted: bool = False
    #: the same, by earlier searches
    before: int = 0
    exhausted_before: bool = False

    @property
    def lacks(self) -> int:
        """So many more examples are to be tried in each case."""
        return 0 if self.exhausted else max(0, -(-(self.target - self.examples) // self.cases))


@dataclass
class Collected:
    """A plugin of pytest that keeps the tests which were found."""

    tests: dict[str, Searched] = field(default_factory=dict)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Called by pytest."""
        for item in session.items:
            deep = item.get_closest_marker("deep") is not None
            self.tests.setdefault(function_of(item.nodeid), Searched(deep)).cases += 1


def property_tests(paths: list[str]) -> dict[str, Searched]:
    """The tests that a search looks at."""
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT))  # as `python -m pytest` has it
    os.environ.update(WINDROW_EFFORT="search", WINDROW_EXAMPLES="1", WINDROW_DEEP_EXAMPLES="1")
    found = Collected()
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere, redirect_stdout(nowhere):
        ended = pytest.main(
            [*paths, "--collect-only", "-qq", "-p", "no:cacheprovider", "-m", SELECTED], plugins=[found]
        )
    if ended != pytest.ExitCode.OK:
        raise SystemExit(f"the tests cannot be listed: {ended!r}; see python -m pytest --collect-only")
    return found.tests


def function_of(test: str) -> str:
    """The name of a test without its case."""
    return test.partition("[")[0]


def lines_of(record: Path) -> list[dict[str, Any]]:
    """What was tried now: a line for each case of each piece."""
    return [json.loads(line) for line in record.read_text(encoding="utf-8").split("\n") if line]


def add_up(tests: dict[str, Searched], lines: list[dict[str, Any]]) -> None:
    """Count what was tried."""
    open_cases: dict[str, set[str]] = {}
    for test in tests.values():
        test.examples, test.exhausted = test.before, test.exhausted_before
        test.seconds, test.failures = 0.0, 0
    for line in lines:
        name = function_of(line["test"])
        if name not in tests:
            continue
        test = tests[name]
        test.examples += line["examples"]
        test.seconds += line["seconds"]
        test.failures += line["failed"] is not None
        cases = open_cases.setdefault(name, set())
        (cases.discard if line["exhausted"] else cases.add)(line["test"])
    for name, cases in open_cases.items():
        tests[name].exhausted = not cases


@dataclass(frozen=True)
class Piece:
    """Tests of one file that are run with as many examples each."""

    tests: tuple[str, ...]
    examples: int


def next_pieces(tests: dict[str, Searched], given_up: set[str], most: int) -> list[Piece]:
    """What is tried next: deep tests before others, the files in random order."""
    lacking = {name: test for name, test in tests.items() if test.lacks and name not in given_up}
    deep = any(test.deep for test in lacking.values())
    together: dict[tuple[str, int], list[str]] = {}
    for name, test in lacking.items():
        if test.deep == deep:
            together.setdefault((name.partition("::")[0], min(test.lacks, most)), []).append(name)
    pieces = [Piece(tuple(names), examples) for (_, examples), names in together.items()]
    random.shuffle(pieces)
    return pieces


def try_piece(piece: Piece, record: Path, ends: float) -> None:
    """Pytest with a seed of its own; each case adds a line to the record."""
    if time.monotonic() > ends:
        return
    environment = os.environ | {
        "WINDROW_EFFORT": "search",
        "WINDROW_EXAMPLES": str(piece.examples),
        "WINDROW_DEEP_EXAMPLES": str(piece.examples),
        "WINDROW_SEARCH_LOG": str(record),
    }
    began = time.monotonic()
    seed = random.randrange(1 << 32)
    words = ["-p", "no:cacheprovider", "-m", SELECTED, f"--hypothesis-seed={seed}", "-q", "--tb=long"]
    command = [sys.executable, "-m", "pytest", *words, *piece.tests]
    ended = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    outcome = {0: "clean", 1: "FAILED"}.get(ended.returncode, f"pytest ended with {ended.returncode}")
    file = piece.tests[0].partition("::")[0]
    print(
        f"{time.monotonic() - began:7.0f} s  {len(piece.tests):3} tests x {piece.examples:4}  {file}"
        f"  seed {seed}  {outcome}",
        flush=True,
    )
    if ended.returncode == 1:  # what it was is told at the end
        print(
            "\n".join(f"           {line}" for line in ended.stdout.split("\n") if line.startswith("FAILED "))
        )
    if ended.returncode not in (0, 1):
        print(ended.stdout[-2000:] + ended.stderr[-2000:], flush=True)


def tell(tests: dict[str, Searched], lines: list[dict[str, Any]]) -> int:
    """How many examples each test had and how long they took, what is lacking, and what failed now."""
    print(" examples  lacking  seconds  failures  test")
    with_examples = {name: test for name, test in tests.items() if test.examples or not test.exhausted}
    for name, test in sorted(with_examples.items(), key=lambda item: (not item[1].deep, item[0])):
        lacking = test.lacks * test.cases
        print(f"{test.examples:9,}{lacking:9,}{test.seconds:9,.0f}{test.failures:10}  {name}")
    failed = [line for line in lines if line["failed"]]
    for line in failed:
        print(f"\n=== {line['test']}\n{line['failed']}")
    everyone = with_examples.values()
    print(
        f"\n{sum(test.examples for test in everyone):,} examples of {len(everyone)} tests in"
        f" {sum(test.seconds for test in everyone):,.0f} seconds;"
        f" {sum(test.lacks > 0 for test in everyone)} tests lack some; {len(failed)} failures now"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
