"""Requests made up from the OpenAPI description, and loads: no failure of the server, and nothing hangs."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from tests.server.world import Server, serving

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif("WINDROW_INTEGRATION" not in os.environ, reason="run by make test-integration"),
    pytest.mark.filterwarnings("default"),
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("state")) as found:
        found.windrow.rows(*((k, 1.0, "a", k) for k in range(100)))
        yield found


def test_made_up_requests_are_answered(server: Server) -> None:
    schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")
    described = schemathesis.openapi.from_url(f"{server.url}/openapi.json")
    routes = [found.ok() for found in described.exclude(path_regex="/events$").get_all_operations()]
    assert len(routes) > 10  # but for those that never end
    for route in routes:
        _try(route.as_strategy())


def _try(requests: Any) -> None:
    @settings(
        max_examples=40,
        deadline=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=requests)
    def answered(case: Any) -> None:
        answer = case.call(timeout=20)
        assert answer.status_code < 500, answer.text
        if answer.status_code >= 400:
            assert {"code", "message", "span", "hint"} <= answer.json().keys()

    answered()


def _epochs(server: Server, number: int) -> float:
    """Seconds that an epoch takes, the middle one of many."""
    base = server.windrow.streams["s"].progress.greatest or 0
    took = []
    for each in range(number):
        began = time.perf_counter()
        server.windrow.rows(*((k, 1.0, "a", base + 10 * each) for k in range(50)))
        took.append(time.perf_counter() - began)
    return sorted(took)[number // 2]


def test_two_hundred_followers_and_fifty_readers_leave_the_server_standing(server: Server) -> None:
    """What they cost is written down; on a busy machine it is no measure, so only that all are served."""
    alone = _epochs(server, 15)
    over, heard, codes = threading.Event(), [], []

    def follow() -> None:
        with (
            httpx.Client(base_url=server.url, timeout=60, trust_env=False) as client,
            client.stream("GET", "/api/queries/sums/events") as response,
        ):
            count = 0
            for line in response.iter_lines():
                count += line.startswith("event: answers")
                if over.is_set() and count:
                    break
        heard.append(count)

    def ask() -> None:
        with httpx.Client(base_url=server.url, timeout=60, trust_env=False) as client:
            while not over.is_set():
                sql = {"sql": "SELECT k, COUNT(*) AS n FROM s [RANGE 100] GROUP BY k"}
                code = client.post("/api/select", json=sql).status_code
                codes.append(code)
                time.sleep(0.2 if code == 429 else 0)

    with ThreadPoolExecutor(250) as threads:
        work = [threads.submit(follow) for _ in range(200)] + [threads.submit(ask) for _ in range(50)]
        time.sleep(2)
        among = _epochs(server, 15)
        over.set()
        for _ in range(5):
            _epochs(server, 1)
            time.sleep(0.5)
        for each in work:
            each.result(60)
    assert len(heard) == 200
    assert min(heard) > 0
    assert set(codes) <= {200, 429}
    assert codes.count(200) > 0
    assert server.http.get("/healthz").status_code == 200
    assert among < 20 * max(alone, 0.05)
