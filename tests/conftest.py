"""What all tests share: how hard the property tests try, and one Spark session for those that ask for it."""

from __future__ import annotations

import gc
import os
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.effort import EFFORT, apply_effort, chosen, forbid_java, load_profile, log_search
from tests.support.object_stores import s3  # noqa: F401  a fixture
from tests.support.workers import OneSpark, uses_spark

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from pyspark.sql import SparkSession

load_profile()

# What is collected stays until the end: the collector of garbage has nothing to find in it, now or later.
gc.disable()

# Many short jobs: a Java that compiles quickly and collects on one thread leaves more of the cores to them.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")

# Workers share the cores, and their tables are small: one thread of Polars each is fastest.
os.environ.setdefault("POLARS_MAX_THREADS", "1")

#: files whose tests take longest: begun first, they leave no worker idle
_LONGEST = (
    "test_killed.py",
    "test_killed_anywhere.py",
    "test_failures.py",
    "test_run_on_spark.py",
    "test_contestants.py",
    "test_executor.py",
    "test_choices.py",
)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Marks for what needs a JVM or tries examples; what the effort leaves out; the longest files first."""
    for item in items:
        if " at 0x" in item.nodeid:  # several workers would not agree on what there is to run
            raise pytest.UsageError(f"a test has an address in its name: {item.nodeid}")
        _mark(item)
    if not any("::" in argument for argument in config.args):  # who names a test gets it
        kept = {id(item) for item in chosen(items)}
        config.hook.pytest_deselected(items=[item for item in items if id(item) not in kept])
        items[:] = [item for item in items if id(item) in kept]
    places = {name: place for place, name in enumerate(_LONGEST)}
    items.sort(key=lambda item: places.get(item.path.name, len(places)))
    items.sort(key=lambda item: not uses_spark(item.path, item.name))
    for item in items:
        apply_effort(item)


def pytest_collection_finish() -> None:
    """From here on there is garbage, but not in what was collected."""
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_sessionfinish() -> None:
    """What is still there at the end, libraries would tell as leaks."""
    gc.unfreeze()


def _mark(item: pytest.Item) -> None:
    asks = "spark" in getattr(item, "fixturenames", ()) or item.get_closest_marker("jvm")
    if asks and not uses_spark(item.path, item.name):  # its worker would start a second session
        raise pytest.UsageError(f"{item.nodeid} asks for Spark in a way that tests/support/workers.py misses")
    if asks or item.get_closest_marker("process"):
        item.add_marker("jvm")
    if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
        item.add_marker("property")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> OneSpark:
    """Where there are several workers, one of them has the Spark session."""
    return OneSpark(config, log)


@pytest.fixture(scope="session", autouse=True)
def no_java(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Where tests are to be fast, none of them starts a JVM without saying so."""
    if EFFORT == "fast":
        forbid_java(tmp_path_factory.mktemp("no-java"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """What a search tried is written down."""
    report = yield
    if EFFORT == "search" and call.when == "call":
        log_search(item, report)
    return report


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The one Spark session of the test run, started by the first test that wants it."""
    from windrow.spark.session import start_session

    session = start_session("windrow-tests", "local[2,2]")  # what must fail does so at the second attempt
    yield session
    session.stop()
