"""A search by hand: property tests with new examples, file after file, for as long as it is told.

    make search MINUTES=20                               everything that needs no JVM
    python tools/search.py --minutes 5 tests/kernels     part of it
    python tools/search.py --examples 300 --deep 2000 --minutes 600 --once     one whole pass

Tests of random plans and random lives (marked `deep`) try more examples than the rest. What fails is
printed with the example found, to be mended and pinned by a test of its own: CI tries the same examples
every time and finds nothing new. Files come in random order, so that several short searches are as good as
a long one.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SELECTED = "(property or deep) and not jvm"


def main() -> int:
    """0 if nothing was found, 1 otherwise."""
    asked = arguments()
    files = property_files(asked.paths)
    ends = time.monotonic() + asked.minutes * 60
    log = Path(tempfile.mkdtemp(prefix="windrow-search-")) / "log.jsonl"
    log.touch()
    print(f"a line for each test: {log}", flush=True)
    rounds = 0
    while time.monotonic() < ends and not (asked.once and rounds):
        rounds += 1
        random.shuffle(files)
        with ThreadPoolExecutor(asked.processes) as pool:
            list(pool.map(lambda file: search(file, asked, log, ends), files))
    return tell([json.loads(line) for line in log.read_text(encoding="utf-8").split("\n") if line])


def arguments() -> argparse.Namespace:
    """What is asked for on the command line."""
    parser = argparse.ArgumentParser(description="Search for failures of property tests.")
    parser.add_argument("paths", nargs="*", default=["tests"], help="files or folders of tests")
    parser.add_argument("--minutes", type=float, default=10, help="no file is begun later than that")
    parser.add_argument("--examples", type=int, default=300, help="for each test, at a time")
    parser.add_argument("--deep", type=int, default=2000, help="for each test of random plans and lives")
    parser.add_argument("--processes", type=int, default=1, help="files searched at the same time")
    parser.add_argument("--once", action="store_true", help="every file once, if there is time")
    return parser.parse_args()


def property_files(paths: list[str]) -> list[str]:
    """The files that have property tests."""
    listed = pytest_process([*paths, "--collect-only", "-q"], os.environ | {"WINDROW_EFFORT": ""})
    found = {line.split("::")[0] for line in listed.stdout.splitlines() if "::" in line}
    return sorted(file for file in found if file.startswith("tests"))


def search(file: str, asked: argparse.Namespace, log: Path, ends: float) -> None:
    """One file with a seed of its own; each test adds a line to the log."""
    if time.monotonic() > ends:
        return
    environment = os.environ | {
        "WINDROW_EFFORT": "search",
        "WINDROW_EXAMPLES": str(asked.examples),
        "WINDROW_DEEP_EXAMPLES": str(asked.deep),
        "WINDROW_SEARCH_LOG": str(log),
    }
    began = time.monotonic()
    seed = random.randrange(1 << 32)
    ended = pytest_process([file, f"--hypothesis-seed={seed}", "-q", "--tb=long"], environment)
    outcome = {0: "clean", 1: "FAILED"}.get(ended.returncode, f"pytest ended with {ended.returncode}")
    print(f"{time.monotonic() - began:7.0f} s  {file}  seed {seed}  {outcome}", flush=True)
    if ended.returncode not in (0, 1):
        print(ended.stdout[-2000:] + ended.stderr[-2000:], flush=True)


def pytest_process(words: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Pytest over what a search looks at."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-m", SELECTED, *words]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


def tell(entries: list[dict[str, Any]]) -> int:
    """How many examples each test had and how long they took, and what failed."""
    tried: dict[str, int] = {}
    took: dict[str, float] = {}
    for entry in entries:
        tried[entry["test"]] = tried.get(entry["test"], 0) + entry["examples"]
        took[entry["test"]] = took.get(entry["test"], 0) + entry["seconds"]
    print(" examples  seconds  test")
    for test, examples in sorted(tried.items(), key=lambda item: (-item[1], item[0])):
        print(f"{examples:9,}{took[test]:9,.0f}  {test}")
    failed = [entry for entry in entries if entry["failed"]]
    for entry in failed:
        print(f"\n=== {entry['test']}\n{entry['failed']}")
    print(
        f"\n{sum(tried.values()):,} examples of {len(tried)} tests in {sum(took.values()):,.0f} seconds;"
        f" {len(failed)} failures"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
