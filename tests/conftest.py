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
settings.register_profile("default", deadline=None, max_examples=60)
# CI tries the same examples every time, so that a red build is red because of its change, and tries more.
settings.register_profile(
    "ci", deadline=None, max_examples=150, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
# For a long search by hand: HYPOTHESIS_PROFILE=thorough make test
settings.register_profile("thorough", deadline=None, max_examples=5000)

_IN_CI = os.environ.get("CI") == "true"
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if _IN_CI else "default"))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The one Spark session of the test run, started by the first test that wants it."""
    from windrow.spark.session import local_session

    session = local_session("windrow-tests", cores=2)
    yield session
    session.stop()
