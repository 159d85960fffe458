"""What all tests share: how hard the property tests try, and one Spark session for those that ask for it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

# No deadline: how long one example takes says more about the machine than about the code.
settings.register_profile("default", deadline=None, max_examples=50)
# CI tries the same examples every time, so that a red build is red because of its change.
settings.register_profile(
    "ci", deadline=None, max_examples=50, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
# For a long search by hand: HYPOTHESIS_PROFILE=thorough make test
settings.register_profile("thorough", deadline=None, max_examples=5000)

_IN_CI = os.environ.get("CI") == "true"
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if _IN_CI else "default"))

# Many short jobs: a Java that compiles quickly and collects on one thread leaves more of the cores to them.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")

#: files whose tests start processes of their own and take longest: begun first, they leave no worker idle
_LONGEST = (
    "test_killed.py",
    "test_run_on_spark.py",
    "test_contestants.py",
    "test_agreement.py",
    "test_shell.py",
    "test_demo.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files first, everything else as it was."""
    places = {name: place for place, name in enumerate(_LONGEST)}
    items.sort(key=lambda item: places.get(item.path.name, len(places)))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The one Spark session of the test run, started by the first test that wants it."""
    from windrow.spark.session import local_session

    session = local_session("windrow-tests", cores=2)
    yield session
    session.stop()
