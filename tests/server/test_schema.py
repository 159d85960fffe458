"""Requests made up from the OpenAPI description, and loads: no failure of the server, and nothing hangs."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

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


# ------------------------------------------------------------ a crowd

#: a process of clients: followers of a query, and readers who ask again and again, as Retry-After allows.
#: Given the id of an event, it ends when every follower has had that
_CROWD = """
import asyncio, json, re, sys

host, port, followers, readers = "127.0.0.1", *map(int, sys.argv[1:])
sql = json.dumps({"sql": "SELECT k, COUNT(*) AS n FROM s [RANGE 100] GROUP BY k"}).encode()

async def opened(head, body=b""):
    reader, writer = await asyncio.open_connection(host, port)
    size = f"Content-Length: {len(body)}\\r\\nContent-Type: application/json\\r\\n" if body else ""
    lines = f"{head} HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n{size}\\r\\n"
    writer.write(lines.encode() + body)
    return reader, writer

had = {}

async def follow(number):
    reader, _ = await opened("GET /api/queries/sums/events")
    text = b""
    while more := await reader.read(1 << 16):
        text += more
        if found := re.findall(rb"\\nid: ([0-9-]+)\\n", text):
            had[number] = found[-1].decode()
        text = text[-60:]
    raise EOFError("no more events")

async def ask():
    while True:
        reader, writer = await opened("POST /api/select", sql)
        answer = await reader.read()
        writer.close()
        code = int(answer.split()[1])
        assert code in (200, 429), answer
        await asyncio.sleep(3 if code == 429 else 0)

async def main():
    clients = [follow(each) for each in range(followers)] + [ask() for _ in range(readers)]
    tasks = [asyncio.create_task(each) for each in clients]
    last = asyncio.create_task(asyncio.to_thread(sys.stdin.readline))
    done, _ = await asyncio.wait([*tasks, last], return_when=asyncio.FIRST_COMPLETED)
    while set(had.values()) != {last.result().strip()} or len(had) < followers:
        if not followers:
            break
        await asyncio.sleep(0.1)
    assert not any(task.done() for task in tasks), [task for task in tasks if task.done()]
    [task.cancel() for task in tasks]

asyncio.run(main())
"""


@contextmanager
def _crowd(server: Server, followers: int, readers: int) -> Iterator[None]:
    """Clients in a process of their own, which gives way to the engine's."""
    given = map(str, (server.listener.port, followers, readers))
    crowd = subprocess.Popen(
        ["nice", "-n", "15", sys.executable, "-c", _CROWD, *given], stdin=subprocess.PIPE, text=True
    )
    try:
        _wait(server, "windrow_clients", followers)
        asked = _figure(server, 'windrow_selects_total{outcome="done"}')
        _wait(server, 'windrow_selects_total{outcome="done"}', asked + bool(readers))
        yield
        crowd.communicate(f"{server.service.answers.last('sums')}\n", timeout=60)
        assert crowd.returncode == 0, "not all followers have got everything, or a reader neither 200 nor 429"
    finally:
        crowd.kill()
        crowd.wait()
        _wait(server, "windrow_clients", 0, at_most=True)


def _figure(server: Server, name: str) -> float:
    lines = server.http.get("/metrics").text.splitlines()
    return next(float(line.rpartition(" ")[2]) for line in lines if line.startswith(f"{name} "))


def _wait(server: Server, name: str, wanted: float, *, at_most: bool = False) -> None:
    ends = time.monotonic() + 60
    while (found := _figure(server, name)) > wanted if at_most else (found := _figure(server, name)) < wanted:
        assert time.monotonic() < ends, f"{name} is {found}"
        time.sleep(0.05)


class Took(NamedTuple):
    """What an epoch took: seconds on the clock, and of a processor for its own thread."""

    clock: float
    own: float


def _epochs(server: Server, number: int, every: float = 0.0) -> list[Took]:
    """What epochs take; one begins every so many seconds, or when the one before has ended."""
    base, took = server.windrow.streams["s"].progress.greatest or 0, []
    for each in range(1, number + 1):
        began = time.perf_counter(), time.thread_time()
        server.windrow.rows(*((k, 1.0, "a", base + 10 * each) for k in range(2000)))
        took.append(Took(time.perf_counter() - began[0], time.thread_time() - began[1]))
        time.sleep(max(0.0, every - took[-1].clock))
    return took


def _times(server: Server, every: float) -> Took:
    """How many times as long an epoch takes beside all as beside one who asks: the middle ones of many."""
    one: list[Took] = []
    many: list[Took] = []
    for _ in range(4):  # in turns, so that what else the machine does is in both
        with _crowd(server, 0, 1):
            one += _epochs(server, 8, every)
        with _crowd(server, 200, 50):
            many += _epochs(server, 8, every)
    alone, crowded = (
        Took(*map(statistics.median, zip(*found, strict=True)))  # type: ignore[arg-type]
        for found in (one, many)
    )
    found = Took(crowded.clock / alone.clock, crowded.own / alone.own)
    told = f"beside one reader {alone}, beside all {crowded}: {found.clock:.2f} and {found.own:.2f} times"
    sys.stdout.write(f"\nan epoch of 2000 rows and answers every {every} s, {told}\n")
    return found


def test_followers_and_readers_do_not_hold_up_epochs(server: Server) -> None:
    """200 who follow and 50 who ask, of whom one is answered at a time, against one who asks.

    The processor time of an epoch's own thread does not depend on what else runs on the machine: an epoch
    does nothing for clients. Time on the clock does, and what else runs may come down on one side: then it
    is measured again. Where more runs than the machine has cores for, it may say nothing of clients.
    """
    _epochs(server, 5)
    found = [_times(server, 0.5)]
    assert found[0].own <= 1.2
    while found[-1].clock > 1.2 and len(found) < 3:
        found.append(_times(server, 0.5))
    assert server.http.get("/healthz").status_code == 200
    if found[-1].clock > 1.2 and os.getloadavg()[0] > (os.cpu_count() or 1) + 1:
        pytest.skip("more runs on this machine than it has cores for: the clock says nothing about clients")
    assert found[-1].clock <= 1.2
