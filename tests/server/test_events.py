"""Event streams: every commit once, in order, for clients that come back, are slow, or outlive a server."""

from __future__ import annotations

import random
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from itertools import islice
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest
from tests.server.world import Server, events, serving
from tests.support.patience import wait_until

from windrow.engine.views import Query
from windrow.errors import QueryError, StateError
from windrow.server.answers import AnswerLog, LoggedSink, ReadPosition
from windrow.server.events import Feeds
from windrow.server.service import ClientLimits
from windrow.sinks import Delivery


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with serving(tmp_path / "state") as found:
        yield found


def _answers(found: list[dict[str, Any]]) -> list[Any]:
    return [row for each in found if each["event"] == "answers" for row in each["data"]["rows"]]


def _push(server: Server, number: int) -> None:
    server.windrow.rows((number % 3, float(number), "a", 10 * number), (7, 1.0, "b", 10 * number + 1))


def test_one_event_for_each_commit(server: Server) -> None:
    for number in range(5):
        _push(server, number)
    with server.http.stream("GET", "/api/queries/sums/events?after=0") as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        opened, *found = list(events(response, 4))
    assert opened["event"] == "open"
    assert [column["name"] for column in opened["data"]["columns"]] == ["at", "k", "total", "n"]
    ids = [int(each["id"]) for each in found]
    assert ids == sorted(set(ids))
    assert all(str(each["data"]["commit"]) == each["id"] for each in found)
    page = server.http.get("/api/queries/sums/results").json()["rows"]
    assert _answers(found) == page[: len(_answers(found))]


def test_without_a_place_only_what_is_to_come(server: Server) -> None:
    for number in range(5):
        _push(server, number)
    with server.http.stream("GET", "/api/queries/sums/events") as response:
        stream = events(response)
        assert next(stream)["event"] == "open"
        before = server.windrow.commit
        _push(server, 5)
        assert next(stream)["data"]["commit"] == before + 1


def test_a_client_that_comes_back_again_and_again_misses_and_repeats_nothing(server: Server) -> None:
    over = threading.Event()

    def feed() -> None:
        for number in range(60):
            _push(server, number)
            time.sleep(0.005)
        over.set()

    feeder = threading.Thread(target=feed)
    feeder.start()
    chance, found, last = random.Random(5), [], None
    while not over.is_set() or ReadPosition.parse(last or "0") < server.service.answers.last("sums"):
        headers = {} if last is None else {"last-event-id": last}
        path = "/api/queries/sums/events?after=0"
        with (
            suppress(httpx.ReadTimeout),
            server.http.stream("GET", path, headers=headers, timeout=0.5) as response,
        ):
            for each in events(response, chance.randint(1, 6)):
                if each["event"] == "answers":
                    found.append(each)
                    last = each["id"]
    feeder.join()
    everything = server.http.get("/api/queries/sums/results?limit=10000").json()["rows"]
    assert _answers(found) == everything
    assert len(everything) > 100


def test_a_client_goes_on_after_a_restart_of_the_server(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        for number in range(6):
            _push(server, number)
        with server.http.stream("GET", "/api/queries/sums/events?after=0") as response:
            found = list(events(response, 3))
    with serving(tmp_path) as server:
        for number in range(6, 10):
            _push(server, number)
        total = len(server.http.get("/api/queries/sums/results?limit=10000").json()["rows"])
        headers = {"last-event-id": found[-1]["id"]}
        with server.http.stream("GET", "/api/queries/sums/events", headers=headers) as response:
            for each in events(response):
                found.append(each)
                if len(_answers(found)) >= total:
                    break
        everything = server.http.get("/api/queries/sums/results?limit=10000").json()["rows"]
    assert _answers(found) == everything


def test_a_commit_of_many_rows_comes_in_parts_that_can_be_resumed(server: Server) -> None:
    server.windrow.rows(*((k, 1.0, "a", 1) for k in range(2500)))
    server.windrow.promise("s", 20)
    found, last = [], None
    while len(_answers(found)) < 2500:
        headers = {} if last is None else {"last-event-id": last}
        with server.http.stream("GET", "/api/queries/sums/events?after=0", headers=headers) as response:
            for each in events(response, 2):
                if each["event"] == "answers":
                    found.append(each)
                    last = each["id"]
    keys = [row["k"] for row in _answers(found) if row["at"] == 10]
    assert sorted(keys) == list(range(2500))
    assert len({each["data"]["commit"] for each in found}) < len(found)


def test_a_dropped_query_ends_its_events(server: Server) -> None:
    with server.http.stream("GET", "/api/queries/sums/events") as response:
        stream = events(response)
        next(stream)
        server.http.delete("/api/queries/sums").raise_for_status()
        assert next(stream)["event"] == "end"
        assert list(stream) == []


def test_a_query_that_is_dropped_while_it_is_looked_at_stops_nobodys_events(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, gone = Query.id.fget, []  # type: ignore[attr-defined]

    def id_(query: Query) -> str:
        if not gone:
            gone.append(query.name)
            raise QueryError(f"no query `{query.name}`")
        found: str = plain(query)
        return found

    with server.http.stream("GET", "/api/queries/sums/events") as response:
        stream = events(response)
        next(stream)
        monkeypatch.setattr(Query, "id", property(id_))
        wait_until(lambda: bool(gone))
        assert next(stream)["event"] == "end"  # as if it were gone
    with server.http.stream("GET", "/api/queries/sums/events") as response:
        stream = events(response)
        next(stream)
        _push(server, 0)
        _push(server, 2)
        assert next(stream)["event"] == "answers"


def test_reading_for_those_who_follow_goes_on_after_a_failure(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    plain, failed = Feeds.keep_reading, []

    async def keep_reading(feeds: Feeds) -> None:
        if not failed:
            failed.append(True)
            raise ValueError("once")
        await plain(feeds)

    monkeypatch.setattr(Feeds, "keep_reading", keep_reading)
    with serving() as server, server.http.stream("GET", "/api/queries/sums/events") as response:
        stream = events(response)
        next(stream)
        _push(server, 0)
        _push(server, 2)
        assert next(stream)["event"] == "answers"
    assert "what clients follow is read again" in caplog.text


def test_answers_are_read_once_for_all_who_follow(server: Server) -> None:
    read, log = [], server.service.answers
    real = log.after
    log.after = lambda *given: read.append(given) or real(*given)  # type: ignore[method-assign, func-returns-value]
    with ExitStack() as stack:
        path = "/api/queries/sums/events"
        responses = [stack.enter_context(server.http.stream("GET", path)) for _ in range(20)]
        streams = [events(each) for each in responses]
        assert {next(each)["event"] for each in streams} == {"open"}
        for number in range(5):
            _push(server, number)
        last = str(log.last("sums"))
        found = [list(_up_to(each, last)) for each in streams]
    assert all(each == found[0] for each in found)
    assert len(_answers(found[0])) >= 4
    assert len(read) < 20  # one or two for each commit, not for each client


def _only_answers(response: httpx.Response) -> Iterator[dict[str, Any]]:
    return (each for each in events(response) if each["event"] == "answers")


def _up_to(stream: Iterator[dict[str, Any]], id_: str) -> Iterator[dict[str, Any]]:
    for each in stream:
        yield each
        if each["id"] == id_:
            return


def test_clients_further_back_than_what_is_held_for_all_miss_nothing(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("windrow.server.events._TAIL_BYTES", 300)
    monkeypatch.setattr("windrow.server.events._CHUNK_BYTES", 200)
    paths = ["/api/queries/sums/events?after=0", "/api/queries/sums/events?after=0-5"]
    with server.http.stream("GET", paths[0]) as one, server.http.stream("GET", paths[1]) as two:
        for number in range(25):
            _push(server, number)
        last = str(server.service.answers.last("sums"))
        found = [list(_up_to(_only_answers(each), last)) for each in (one, two)]
    everything = server.http.get("/api/queries/sums/results?limit=10000").json()["rows"]
    assert [_answers(each) for each in found] == [everything, everything]


def test_who_follows_a_query_whose_answers_cannot_be_read_is_let_go(server: Server) -> None:
    text = "CREATE QUERY counts AS SELECT COUNT(*) AS n FROM s [RANGE 10 SLIDE 10]"
    server.http.post("/api/statements", json={"sql": text}).raise_for_status()
    log = server.service.answers
    real = log.after

    def failing(query: str, *given: Any) -> Any:
        if query == "counts":
            raise StateError("the disk is gone", code="answers-lost")
        return real(query, *given)

    log.after = failing  # type: ignore[method-assign]
    with (
        server.http.stream("GET", "/api/queries/counts/events") as broken,
        server.http.stream("GET", "/api/queries/sums/events") as good,
    ):
        for number in range(3):
            _push(server, number)
        with suppress(httpx.RemoteProtocolError):
            assert [each["event"] for each in events(broken)] == ["open"]
        assert [each["event"] for each in events(good, 2)] == ["open", "answers"]
    log.after = real  # type: ignore[method-assign]
    with server.http.stream("GET", "/api/queries/counts/events?after=0") as again:
        assert [each["event"] for each in events(again, 2)] == ["open", "answers"]


@pytest.mark.thorough
@pytest.mark.slow
def test_a_client_that_takes_nothing_holds_nobody_up(tmp_path: Path) -> None:
    with serving(tmp_path, limits=ClientLimits(follower_seconds=1.0)) as server:
        server.windrow.rows((1, 1.0, "a", 0))
        deaf = socket.create_connection(("127.0.0.1", server.listener.port))
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.sendall(b"GET /api/queries/sums/events?after=0 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        time.sleep(0.2)
        assert "windrow_clients 1" in server.http.get("/metrics").text
        began = time.monotonic()
        for number in range(1, 30):
            server.windrow.rows(*((k, 1.0, "a", 10 * number) for k in range(4000)))
        took = time.monotonic() - began
        assert took < 60  # all of that without waiting for the client, which has more than fits into buffers
        for _ in range(100):
            if "windrow_clients 0" in server.http.get("/metrics").text:
                break
            time.sleep(0.1)
        else:
            pytest.fail("the client that takes nothing was not let go")
        deaf.close()


def test_too_many_clients_are_told_to_come_back(tmp_path: Path) -> None:
    with (
        serving(tmp_path, limits=ClientLimits(followers=2)) as server,
        server.http.stream("GET", "/api/events") as one,
        server.http.stream("GET", "/api/events") as two,
    ):
        held = [events(one), events(two)]
        assert [next(each)["event"] for each in held] == ["hello", "hello"]
        answer = server.http.get("/api/events")
        assert answer.status_code == 429
        assert int(answer.headers["retry-after"]) >= 1


@pytest.mark.thorough
def test_two_hundred_clients_get_every_answer(server: Server) -> None:
    heard: list[int] = []

    def follow() -> None:
        path, found = "/api/queries/sums/events?after=0", []
        with (
            httpx.Client(base_url=server.url, timeout=60, trust_env=False) as client,
            client.stream("GET", path) as response,
        ):
            for each in events(response):
                found.append(each)
                if any(row["at"] == 90 for row in _answers(found)):
                    break
        heard.append(len(_answers(found)))

    threads = [threading.Thread(target=follow) for _ in range(200)]
    for each in threads:
        each.start()
    for number in range(12):
        _push(server, number)
    for each in threads:
        each.join(60)
    assert len(heard) == 200
    assert len(set(heard)) == 1


def test_the_page_gets_looks_and_the_answers_of_all_queries(server: Server) -> None:
    text = "CREATE QUERY counts AS SELECT COUNT(*) AS n FROM s [RANGE 10 SLIDE 10]"
    server.http.post("/api/statements", json={"sql": text}).raise_for_status()
    with server.http.stream("GET", "/api/events") as response:
        stream = events(response)
        assert next(stream)["event"] == "hello"
        seen: dict[str, Any] = {}
        number = 0
        while {"sums", "counts"} - seen.keys():
            _push(server, number)
            number += 1
            for each in stream:
                if each["event"] == "answers":
                    seen[each["data"]["query"]] = each["data"]["rows"]
                if each["event"] == "look":
                    looked = each["data"]
                    break
    assert looked["streams"][0]["name"] == "s"
    assert looked["epochs"][-1]["rows"] == 2
    assert seen["counts"][0]["n"] == 2


def test_a_page_that_comes_back_gets_the_answers_it_has_not_seen(server: Server) -> None:
    for number in range(8):
        _push(server, number)
    pages = server.http.get("/api/queries/sums/results?limit=10000").json()["rows"]
    commits = [part.commit for part in server.service.answers.after("sums", ReadPosition(0), 10_000)]
    for after in (0, commits[2]):
        with server.http.stream("GET", f"/api/events?after={after}") as response:
            found = list(islice(_only_answers(response), sum(each > after for each in commits)))
        assert [each["data"]["commit"] for each in found] == [each for each in commits if each > after]
        assert _answers(found) == pages[len(pages) - len(_answers(found)) :]


# ------------------------------------------------------------ the log


def _delivery(commit: int, rows: int, query: str = "q") -> Delivery:
    table = pa.table({"at": [commit] * rows, "x": [f"{commit}:{row}" for row in range(rows)]})
    return Delivery(query, commit, table.schema, lambda: iter([table]))


def test_the_log_keeps_the_newest_and_tells_what_is_gone(tmp_path: Path) -> None:
    log = AnswerLog(tmp_path / "answers.db", kept_bytes=20_000)
    log.keep_only({"q": ("q@1", 0)})
    for commit in range(1, 60):
        log.add(_delivery(commit, 50))
        log.flush()
    assert 0 < log.gone("q") < 59
    assert log.size("q") <= 20_000
    assert log.after("q", ReadPosition(0))[0].commit == log.gone("q") + 1
    assert log.last("q") == ReadPosition(59)
    log.close()


def test_a_reader_that_is_too_far_behind_is_told(server: Server) -> None:
    server.service.answers._kept = 2000
    for number in range(20):
        _push(server, number)
    with server.http.stream("GET", "/api/queries/sums/events", headers={"last-event-id": "2"}) as response:
        found = list(events(response, 3))
    assert [each["event"] for each in found] == ["open", "lost", "answers"]
    assert found[1]["data"]["gone"] < found[2]["data"]["commit"]
    assert int(found[1]["id"]) == found[1]["data"]["gone"]


def test_the_same_commit_twice_is_kept_once(tmp_path: Path) -> None:
    log = AnswerLog(tmp_path / "answers.db")
    sink = LoggedSink(log)
    for commit in (1, 2, 2, 1, 3):
        sink.deliver(_delivery(commit, 2500))
    log.flush()
    places = [part.place for part in log.after("q", ReadPosition(0), 100_000)]
    assert places == [ReadPosition(c, p) if p < 2 else ReadPosition(c) for c in (1, 2, 3) for p in range(3)]
    log.close()


def test_the_log_outlives_the_process_and_forgets_dropped_queries(tmp_path: Path) -> None:
    log = AnswerLog(tmp_path / "answers.db")
    log.keep_only({"q": ("q@1", 0), "r": ("r@1", 0)})
    for name in ("q", "r"):
        log.add(_delivery(5, 10, name))
        log.flush()
    log.close()
    log = AnswerLog(tmp_path / "answers.db")
    log.keep_only({"q": ("q@1", 0), "r": ("r@9", 8)})
    assert [part.commit for part in log.after("q", ReadPosition(0))] == [5]
    assert log.after("r", ReadPosition(0)) == []
    log.close()


def test_a_damaged_log_is_told_with_the_way_out(tmp_path: Path) -> None:
    path = tmp_path / "answers.db"
    path.write_bytes(b"this is no database" * 100)
    with pytest.raises(StateError, match="log of answers") as found:
        AnswerLog(path)
    assert found.value.code == "answers-lost"


def test_what_could_not_be_written_is_delivered_again(server: Server) -> None:
    log, failures = server.service.answers, [2]
    for number in range(4):
        _push(server, number)
    before = server.http.get("/api/queries/sums/results").json()["rows"]
    real = server.windrow.flushes[-1]

    def failing() -> None:
        if failures[0]:
            failures[0] -= 1
            log._writer.rollback()
            raise StateError("the disk is full", code="answers-lost")
        real()

    server.windrow.flushes[-1] = failing
    for number in (4, 5):
        with pytest.raises(StateError, match="disk is full"):
            _push(server, number)
        assert server.http.get("/api/queries/sums/results").json()["rows"] == before
    _push(server, 6)
    found = server.http.get("/api/queries/sums/results").json()["rows"]
    assert found[: len(before)] == before
    keys = [(row["at"], row["k"]) for row in found]
    assert len(keys) == len(set(keys))
    assert {at for at, _ in keys} == set(range(10, 60, 10))
