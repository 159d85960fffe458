"""Effort: how many examples property tests try, and whether these are the same every time.

One environment variable decides, WINDROW_EFFORT:

    (not set)   few examples, fewer where one takes more than milliseconds, and in each case of a test that
                has a hundred cases (marked `cases`), one case
                in n where a test is marked `part(n)`, and nothing that is marked `thorough`; the same every
                time: `make test`
    all         what that leaves out: property tests with as many examples as they name, up to a bound,
                if these are more, the other cases, and what is marked `thorough`;
                the same every time: `make test-all`
    fast        a tenth of them, a few cases of tests that have many, nothing that is marked `slow`; no JVM
                may start: `make test-fast`
    search      new examples every time, WINDROW_EXAMPLES of them (WINDROW_DEEP_EXAMPLES for tests marked
                `deep`), and a line for each test in the file WINDROW_SEARCH_LOG if that is set: `make search`
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    import pytest

EFFORT = os.environ.get("WINDROW_EFFORT", "")
#: where nothing else is asked for, a test tries at most so many examples, so many where one takes long, and
#: so many where it has many cases
_EXAMPLES, _LONG_EXAMPLES, _EXAMPLES_OF_CASES = 5, 2, 2
#: at most so many where all is asked for: a landing must not take hours; `make search` has no such bound
_MOST_EXAMPLES, _MOST_LONG_EXAMPLES, _MOST_EXAMPLES_OF_CASES = 30, 12, 6
#: of the examples that a test names, this part is tried by `fast`
_FAST_PART = 10
#: so many cases of a test are tried by `fast` at most, and where a case takes long
_FAST_CASES, _FAST_LONG_CASES = 20, 2
#: the folders in which a case or an example takes more than milliseconds
_LONG = {
    "algebra",
    "archive",
    "benchmarks",
    "engine",
    "everyday",
    "kernels",
    "physical",
    "sharing",
    "shedding",
    "spark",
    "state",
}

_SETTINGS = "_hypothesis_internal_use_settings"  # where Hypothesis keeps the settings of a test
#: examples tried by functions that a test runs itself, and that Hypothesis does not count for the test
_INSIDE: list[int] = []
_COUNTED = re.compile(r"(\d+) passing(?: examples?)?, (\d+) failing")

# Where a test cannot start a JVM, Java is this script: it says so to whoever tries.
_NO_JAVA = """\
#!/bin/sh
[ "$1" = -version ] && { echo 'openjdk version "21.0.8"' >&2; exit 0; }
echo "this test starts a JVM: mark it with pytest.mark.jvm" >&2
exit 1
"""


def load_profile() -> None:
    """No deadline and no complaint of slowness: how long an example takes says more about the machine."""
    settings.register_profile(
        "windrow",
        deadline=None,
        max_examples=int(os.environ["WINDROW_EXAMPLES"]) if EFFORT == "search" else 50,
        derandomize=EFFORT != "search",
        print_blob=EFFORT == "search",
        suppress_health_check=[HealthCheck.too_slow],
    )
    settings.load_profile("windrow")


def examples(named: int, *, deep: bool = False, cases: bool = False, long: bool = False) -> int:
    """How many examples are tried where a test names a number; `long` if an example takes long."""
    if EFFORT == "fast":
        return max(1, named // _FAST_PART)
    if EFFORT == "search":
        return int(os.environ["WINDROW_DEEP_EXAMPLES" if deep else "WINDROW_EXAMPLES"])
    if EFFORT == "all":
        most = _MOST_EXAMPLES_OF_CASES if cases else _MOST_LONG_EXAMPLES if long else _MOST_EXAMPLES
        return min(named, most)
    return _usual(named, cases=cases, long=long)


def _usual(named: int, *, cases: bool, long: bool) -> int:
    return min(named, _EXAMPLES_OF_CASES if cases else _LONG_EXAMPLES if long else _EXAMPLES)


def _takes_long(item: pytest.Item) -> bool:
    return not _LONG.isdisjoint(item.nodeid.split("/"))


def apply_effort(item: pytest.Item) -> None:
    """The settings of a property test, with the number of examples that the effort asks for."""
    function = _function(item)
    if not getattr(function, "is_hypothesis_test", False) or hasattr(function, "_effort"):
        return
    own = getattr(function, _SETTINGS, settings.default)
    deep, cases = (item.get_closest_marker(mark) is not None for mark in ("deep", "cases"))
    tried = examples(own.max_examples, deep=deep, cases=cases, long=_takes_long(item))
    setattr(function, _SETTINGS, settings(own, max_examples=tried))
    function._effort = EFFORT  # the cases of a parametrised test share a function


def _function(item: pytest.Item) -> Any:
    """The function of a test, that of a method."""
    return getattr(getattr(item, "obj", None), "__func__", getattr(item, "obj", None))


def count_inside(tried: int) -> None:
    """So many examples were tried by a function inside the test that is running."""
    _INSIDE.append(tried)


def chosen(items: list[pytest.Item]) -> list[pytest.Item]:
    """The tests that are run with the effort that is asked for."""
    if EFFORT == "fast":
        return _a_few_cases(items)
    if EFFORT == "search":
        return items
    left_out = _left_out(items)
    if EFFORT == "all":
        return [item for item in items if id(item) in left_out or _has_more_examples(item)]
    return [item for item in items if id(item) not in left_out]


def _left_out(items: list[pytest.Item]) -> set[int]:
    """What is run if all is asked for, and not otherwise."""
    found = {id(item) for item in items if _is_thorough(item)}
    cases: Counter[str] = Counter()
    for item in items:
        if (mark := item.get_closest_marker("part")) is not None:
            name = item.nodeid.partition("[")[0]
            if cases[name] % mark.args[0]:
                found.add(id(item))
            cases[name] += 1
    return found


def _is_thorough(item: pytest.Item) -> bool:
    return item.get_closest_marker("thorough") is not None


def _has_more_examples(item: pytest.Item) -> bool:
    """Whether a test names more examples than it tries where nothing else is asked for."""
    function = _function(item)
    if not getattr(function, "is_hypothesis_test", False):
        return False
    named: int = getattr(function, _SETTINGS, settings.default).max_examples
    cases = item.get_closest_marker("cases") is not None
    return named > _usual(named, cases=cases, long=_takes_long(item))


def _a_few_cases(items: list[pytest.Item]) -> list[pytest.Item]:
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("slow") is None and not _is_thorough(item):
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    kept: set[int] = set()
    for name, each in cases.items():
        most = _FAST_CASES if _LONG.isdisjoint(name.split("/")) else _FAST_LONG_CASES
        kept.update(map(id, each[:: -(-len(each) // most)]))
    return [item for item in items if id(item) in kept]


def forbid_java(folder: Path) -> None:
    """From here on, in this process and those it starts, every attempt to start a JVM fails and says why."""
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True, exist_ok=True)
    java.write_text(_NO_JAVA)
    java.chmod(0o755)
    os.environ["JAVA_HOME"] = str(folder)


def log_search(item: pytest.Item, report: pytest.TestReport) -> None:
    """A line of JSON for a test that was searched: how many examples it had, if more exist, what failed.
    Nobody asks for it where a piece of a search is repeated by hand."""
    if "WINDROW_SEARCH_LOG" not in os.environ:
        return
    statistics = getattr(item, "hypothesis_statistics", "")
    counted = _COUNTED.findall(statistics)
    tried = sum(int(passing) + int(failing) for passing, failing in counted) + sum(_INSIDE)
    entry = {
        "test": item.nodeid,
        "examples": tried,
        "exhausted": tried == 0 or "nothing left to do" in statistics,
        "seconds": round(report.duration, 1),
        "failed": report.longreprtext if report.failed else None,
    }
    _INSIDE.clear()
    with Path(os.environ["WINDROW_SEARCH_LOG"]).open("a", encoding="utf-8") as file:
        file.write(json.dumps(entry) + "\n")
