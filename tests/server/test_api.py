"""Every route, on an engine without Spark: what it gives, and what it says when something is wrong."""

from __future__ import annotations

import asyncio
import json
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pytest
from tests.server.world import SCRIPT, STREAM, SUMS, Server, events, serving
from tests.support.patience import PATIENCE, wait_until

from windrow.server.access import BusyError, Gate
from windrow.server.service import ClientLimits


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with serving(tmp_path / "state") as found:
        yield found


def test_health_and_readiness(server: Server) -> None:
    assert server.http.get("/healthz").json() == {"status": "ok"}
    ready = server.http.get("/readyz")
    assert ready.status_code == 200
    assert ready.json()["status"] == "running"


def test_streams_and_queries_tell_how_far_they_are(server: Server) -> None:
    server.windrow.rows((1, 2.0, "a", 5), (2, 3.0, "b", 25), (1, 1.0, "late", 3))
    server.windrow.rows((1, 1.0, "late", 3))
    (stream,) = server.http.get("/api/streams").json()
    assert (stream["name"], stream["accepted"], stream["late"]) == ("s", 3, 1)
    assert (stream["watermark"], stream["greatest"], stream["lag"]) == (22, 25, 3)
    (query,) = server.http.get("/api/queries").json()
    assert (query["name"], query["status"], query["clock"], query["rows"]) == ("sums", "running", 22, 2)
    one = server.http.get("/api/queries/SUMS").json()
    assert one["plan"]["plan"]["operator"]
    assert [column["name"] for column in one["columns"]] == ["at", "k", "total", "n"]


def test_a_query_is_declared_answers_and_is_dropped(server: Server) -> None:
    text = "CREATE QUERY counts AS SELECT COUNT(*) AS n FROM s [RANGE 10 SLIDE 10]"
    assert server.http.post("/api/statements", json={"sql": text}).json() == []
    server.windrow.rows((1, 2.0, "a", 5), (2, 3.0, "b", 15), (2, 3.0, "b", 35))
    found = server.http.get("/api/queries/counts/results").json()
    assert found["rows"] == [{"at": 10, "n": 1}, {"at": 20, "n": 1}]
    assert server.http.delete("/api/queries/counts").status_code == 204
    assert server.http.get("/api/queries/counts").status_code == 404
    shown = server.http.post("/api/statements", json={"sql": "SHOW QUERIES"}).json()
    assert [row["name"] for row in shown[0]["rows"]] == ["sums"]


def test_errors_carry_code_message_span_and_hint(server: Server) -> None:
    answer = server.http.post(
        "/api/statements", json={"sql": "CREATE QUERY q AS\nSELECT kk FROM s [RANGE 5]"}
    )
    assert answer.status_code == 400
    assert answer.json() == {
        "code": "unknown-column",
        "message": "no column `kk`",
        "span": {"start": 25, "end": 27, "line": 2, "column": 8},
        "hint": "did you mean `k`?",
    }


def test_statements_are_done_all_or_none(server: Server) -> None:
    text = f"{SUMS.replace('sums', 'more')}; CREATE QUERY bad AS SELECT nothing FROM s [RANGE 5]"
    assert server.http.post("/api/statements", json={"sql": text}).status_code == 400
    assert [each["name"] for each in server.http.get("/api/queries").json()] == ["sums"]


def test_a_select_as_json_csv_and_arrow(server: Server) -> None:
    server.windrow.rows((1, 2.0, "a", 5), (2, 3.0, 'b"', 7), (2, 3.0, "c", 30))
    sql = {"sql": "SELECT k, name FROM s [RANGE 100] ORDER BY k"}
    asked = server.http.post("/api/select", json=sql)
    assert asked.json()["rows"] == [{"k": 1, "name": "a"}, {"k": 2, "name": 'b"'}]
    assert asked.json()["commit"] == server.windrow.commit
    text = server.http.post("/api/select", json=sql, headers={"accept": "text/csv"})
    assert text.text == '"k","name"\n1,"a"\n2,"b"""\n'
    arrow = server.http.post(
        "/api/select", json=sql, headers={"accept": "application/vnd.apache.arrow.stream"}
    )
    assert pa.ipc.open_stream(arrow.content).read_all().to_pylist() == asked.json()["rows"]
    assert server.http.post("/api/select", json=sql, headers={"accept": "image/png"}).status_code == 406


def test_a_select_has_limits(tmp_path: Path) -> None:
    with serving(tmp_path, limits=ClientLimits(select_rows=2)) as server:
        server.windrow.rows(*((k, 1.0, "x", k) for k in range(10)), (0, 0.0, "x", 50))
        answer = server.http.post("/api/select", json={"sql": "SELECT k FROM s [RANGE 100]"})
        assert (answer.status_code, answer.json()["code"]) == (413, "too-many-rows")


def test_statements_of_another_content_type_are_told_the_right_one(server: Server) -> None:
    """What curl says by itself."""
    form = {"content-type": "application/x-www-form-urlencoded"}
    answer = server.http.post("/api/statements", content='{"sql": "SHOW QUERIES"}', headers=form)
    assert answer.status_code == 422
    assert answer.json()["hint"] == "send it with the header `content-type: application/json`"
    answer = server.http.post("/api/streams/s/rows", content="{}", headers=form)
    assert answer.json()["hint"].startswith("say `content-type: application/x-ndjson`")


def test_a_select_among_statements_is_answered(server: Server) -> None:
    server.windrow.rows((1, 2.0, "a", 5), (1, 2.0, "a", 50))
    found = server.http.post("/api/statements", json={"sql": "SELECT COUNT(*) AS n FROM s [RANGE 100]"})
    assert found.json()[0]["rows"] == [{"n": 1}]


def test_one_select_runs_at_a_time_and_too_many_are_sent_away(tmp_path: Path) -> None:
    with serving(tmp_path, limits=ClientLimits(selects_at_once=1, selects_waiting=3)) as server:
        server.windrow.rows((1, 2.0, "a", 5), (1, 2.0, "a", 50))
        running, most = [0], [0]
        real = server.windrow._answer

        def slow(*given: object, **more: object) -> pa.Table:
            running[0] += 1
            most[0] = max(most[0], running[0])
            time.sleep(0.1)
            running[0] -= 1
            return real(*given, **more)

        server.windrow._answer = slow
        codes: list[int] = []

        def ask() -> None:
            answer = server.http.post("/api/select", json={"sql": "SELECT COUNT(*) AS n FROM s [RANGE 90]"})
            codes.append(answer.status_code)
            if answer.status_code == 429:
                assert int(answer.headers["retry-after"]) >= 1

        threads = [threading.Thread(target=ask) for _ in range(12)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert most == [1]
        assert set(codes) == {200, 429}
        assert codes.count(200) >= 4


def test_one_text_is_explained_at_a_time(tmp_path: Path) -> None:
    with serving(tmp_path, limits=ClientLimits(texts_waiting=2)) as server:
        going, begun, codes = threading.Event(), threading.Semaphore(0), list[int]()

        def slow(text: str) -> list[Any]:
            begun.release()
            assert going.wait(PATIENCE)
            return []

        server.service.explain = slow  # type: ignore[method-assign]

        def ask() -> None:
            codes.append(server.http.post("/api/explain", json={"sql": "SHOW STREAMS"}).status_code)

        threads = [threading.Thread(target=ask) for _ in range(8)]
        for each in threads:
            each.start()
        assert begun.acquire(timeout=PATIENCE)
        wait_until(lambda: len(codes) == 5)  # one is read, two wait
        assert server.http.get("/api/streams").status_code == 200
        assert not begun.acquire(blocking=False)
        going.set()
        for each in threads:
            each.join()
        assert sorted(codes) == [200] * 3 + [429] * 5


def test_turns_are_given_in_the_order_in_which_one_came(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("windrow.server.access._LOOK", 0.001)

    class Client:
        def __init__(self, patience: int) -> None:
            self.looks, self.has_left, self._patience = 0, False, patience

        async def is_disconnected(self) -> bool:
            for _ in range(self._patience):  # it takes longest to see whether the first has left
                await asyncio.sleep(0.001)
            self.looks += 1
            return self.has_left

    async def all_of_them() -> list[int]:
        gate, turns = Gate(1, 8), []
        clients: list[Any] = [Client(6 - number) for number in range(6)]

        async def ask(number: int) -> None:
            async with gate.turn(clients[number]):
                turns.append(number)
                while number == 0 and any(each.looks < 5 for each in clients[1:]):
                    await asyncio.sleep(0.001)

        clients[3].has_left = True
        clients[3].looks = 5
        tasks = [asyncio.create_task(ask(number)) for number in range(6)]
        found = await asyncio.gather(*tasks, return_exceptions=True)
        assert [isinstance(each, BusyError) for each in found] == [number == 3 for number in range(6)]
        assert gate.present == 0
        return turns

    assert asyncio.run(all_of_them()) == [0, 1, 2, 4, 5]


def test_a_client_that_leaves_takes_its_select_along(server: Server) -> None:
    server.windrow.rows((1, 2.0, "a", 5), (1, 2.0, "a", 50))
    ended = threading.Event()

    def endless(once: object, isolation: object, watch: object) -> None:
        try:
            while True:
                watch.check()  # type: ignore[attr-defined]
                time.sleep(0.01)
        finally:
            ended.set()

    server.windrow._answer = endless
    with pytest.raises(Exception, match="timed out"):
        server.http.post("/api/select", json={"sql": "SELECT k FROM s [RANGE 9]"}, timeout=0.3)
    assert ended.wait(5)


def test_explain_says_what_statements_mean_and_does_none(server: Server) -> None:
    text = "CREATE QUERY q AS SELECT k FROM s [RANGE 5]; SELECT COUNT(*) AS n FROM s [RANGE 10 SLIDE 10]"
    first, second = server.http.post("/api/explain", json={"sql": text}).json()
    assert (first["kind"], first["name"], first["plan"]["plan"]["pattern"]) == ("query", "q", "WKS")
    assert second["kind"] == "select"
    assert text[second["span"]["start"] : second["span"]["end"]].startswith("SELECT COUNT")
    assert [each["name"] for each in server.http.get("/api/queries").json()] == ["sums"]


ROWS = [{"k": 1, "v": 2.5, "name": "a", "t": 5}, {"k": 2, "v": None, "name": None, "t": 6}]


def _bodies() -> list[tuple[str, bytes]]:
    table = pa.Table.from_pylist(ROWS)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return [
        ("application/x-ndjson", "\n".join(map(json.dumps, ROWS)).encode()),
        ("application/json", json.dumps(ROWS).encode()),
        ("text/csv", b"k,v,name,t\n1,2.5,a,5\n2,,,6\n"),
        ("application/vnd.apache.arrow.stream", sink.getvalue().to_pybytes()),
    ]


@pytest.mark.parametrize(("kind", "body"), _bodies(), ids=lambda each: each if isinstance(each, str) else "")
def test_rows_are_pushed_in_every_form(server: Server, kind: str, body: bytes) -> None:
    answer = server.http.post("/api/streams/s/rows", content=body, headers={"content-type": kind})
    assert answer.json() == {"stream": "s", "rows": 2, "commit": server.windrow.commit}
    server.windrow.promise("s", 100)
    found = server.http.post("/api/select", json={"sql": "SELECT k, v FROM s [RANGE 1000]"}).json()
    assert sorted((row["k"], row["v"]) for row in found["rows"]) == [(1, 2.5), (2, None)]


def test_a_push_with_the_same_key_is_one_push(server: Server) -> None:
    given = {"content": '{"k": 1, "v": 1, "t": 5}', "headers": {"content-type": "application/x-ndjson"}}
    given["headers"]["idempotency-key"] = "batch-17"  # type: ignore[index]
    first = server.http.post("/api/streams/s/rows", **given).json()  # type: ignore[arg-type]
    second = server.http.post("/api/streams/s/rows", **given).json()  # type: ignore[arg-type]
    assert first == second
    assert server.http.get("/api/streams").json()[0]["accepted"] == 1


def test_back_pressure_is_told(server: Server) -> None:
    server.windrow.is_full = True
    answer = server.http.post(
        "/api/streams/s/rows", content='{"k":1,"v":1,"t":5}', headers={"content-type": "application/jsonl"}
    )
    assert (answer.status_code, answer.json()["code"]) == (429, "busy")
    assert int(answer.headers["retry-after"]) >= 1


@pytest.mark.parametrize(
    ("kind", "body", "status", "code"),
    [
        ("application/x-ndjson", '{"k": 1', 400, "malformed-row"),
        ("application/x-ndjson", '{"k": 1, "t": 5}\n[1]', 400, "malformed-row"),
        ("application/x-ndjson", '{"k": 1, "tt": 5}', 400, "unknown-column"),
        ("application/x-ndjson", '{"k": 1}', 400, "null-wattr"),
        ("application/x-ndjson", '{"k": "x", "t": 5}', 400, "bad-value"),
        ("application/json", "[" * 100_000, 400, "malformed-row"),
        ("application/json", '{"k": NaN, "t": 5}', 400, "malformed-row"),
        ("text/csv", "k,t\n1\n", 400, "malformed-row"),
        ("text/csv", b"\xff\xfe", 400, "malformed-row"),
        ("application/vnd.apache.arrow.stream", b"not arrow", 400, "malformed-row"),
        ("text/plain", "hello", 415, "unknown-form"),
        ("application/x-ndjson", " " * (33 << 20), 413, "too-large"),
    ],
)
def test_rows_that_are_none_are_refused(server: Server, kind: str, body: str, status: int, code: str) -> None:
    answer = server.http.post("/api/streams/s/rows", content=body, headers={"content-type": kind})
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert server.http.get("/api/streams").json()[0]["accepted"] == 0


def test_answers_are_paged_forwards_and_backwards(server: Server) -> None:
    for start in range(0, 200, 10):
        server.windrow.rows((1, float(start), "a", start), (2, 1.0, "a", start + 1))
    everything = server.http.get("/api/queries/sums/results?limit=10000").json()
    assert not everything["more"]
    rows, place = [], "0"
    while True:
        page = server.http.get(f"/api/queries/sums/results?after={place}&limit=5").json()
        rows += page["rows"]
        place = page["next"]
        if not page["more"]:
            break
    assert rows == everything["rows"]
    back, place = [], "end"
    while True:
        page = server.http.get(f"/api/queries/sums/results?before={place}&limit=5").json()
        back += page["rows"]
        place = page["next"]
        if not page["more"]:
            break
    assert back == everything["rows"][::-1]
    assert server.http.get("/api/queries/sums/results?after=x").json()["code"] == "bad-place"
    text = server.http.get("/api/queries/sums/results?limit=2", headers={"accept": "text/csv"})
    assert text.headers["windrow-more"] == "true"
    assert text.text.splitlines()[0] == '"at","k","total","n"'


def test_what_was_declared_is_there_after_a_restart(tmp_path: Path) -> None:
    more = "CREATE QUERY counts AS SELECT COUNT(*) AS n FROM s [RANGE 10 SLIDE 10]"
    with serving(tmp_path) as server:
        server.http.post("/api/statements", json={"sql": more}).raise_for_status()
        server.http.post("/api/statements", json={"sql": more.replace("counts", "gone")}).raise_for_status()
        server.http.delete("/api/queries/gone").raise_for_status()
        server.windrow.rows((1, 1.0, "a", 5), (1, 1.0, "a", 25))
        before = server.http.get("/api/queries/counts/results").json()["rows"]
    with serving(tmp_path) as server:
        assert [each["name"] for each in server.http.get("/api/queries").json()] == ["sums", "counts"]
        assert server.http.get("/api/queries/counts/results").json()["rows"] == before != []
        server.windrow.rows((1, 1.0, "a", 45))
        after = server.http.get("/api/queries/counts/results").json()["rows"]
        assert [row["at"] for row in after] == [10, 30]


def test_a_query_of_the_same_name_has_answers_of_its_own(server: Server) -> None:
    server.windrow.rows((1, 1.0, "a", 5), (1, 1.0, "a", 25))
    assert server.http.get("/api/queries/sums/results").json()["rows"]
    server.http.delete("/api/queries/sums").raise_for_status()
    server.http.post("/api/statements", json={"sql": SUMS.replace("k, SUM", "k, MIN")}).raise_for_status()
    assert server.http.get("/api/queries/sums/results").json()["rows"] == []
    server.windrow.rows((1, 7.0, "a", 45), (1, 1.0, "a", 99))
    assert server.http.get("/api/queries/sums/results").json()["rows"][-1]["total"] == 7.0


def test_answers_with_a_sink_of_their_own_are_served_too(server: Server, tmp_path: Path) -> None:
    text = (
        f"CREATE QUERY filed AS SELECT COUNT(*) AS n FROM s [RANGE 10 SLIDE 10] INTO 'files://{tmp_path}/out'"
    )
    server.http.post("/api/statements", json={"sql": text}).raise_for_status()
    server.windrow.rows((1, 1.0, "a", 5), (1, 1.0, "a", 25))
    assert server.http.get("/api/queries/filed/results").json()["rows"] == [{"at": 10, "n": 1}]
    assert list((tmp_path / "out").rglob("*.parquet"))


def test_a_query_tells_what_its_plan_is_about(server: Server) -> None:
    twin = "CREATE QUERY twin AS SELECT k, MAX(v) AS top FROM s [RANGE 20 SLIDE 10] GROUP BY k"
    other = (
        "CREATE QUERY other AS SELECT ISTREAM(a.k) FROM s [RANGE 5] AS a, s [RANGE 5] AS b WHERE a.k = b.k"
    )
    server.http.post("/api/statements", json={"sql": f"{twin}; {other}"}).raise_for_status()
    found = {each["name"]: each for each in server.http.get("/api/queries").json()}
    assert (found["sums"]["keys"], found["other"]["keys"]) == (["k"], None)
    assert found["sums"]["summary"] == "SUM(v), COUNT(*) by k · past 20 every 10"
    window = {"stream": "s", "text": "s [RANGE 20 SLIDE 10]", "range": 20, "slide": 10, "origin": 0}
    assert found["sums"]["windows"] == [window]
    assert (found["sums"]["shared_with"], found["other"]["shared_with"]) == (1, 0)
    assert server.http.get("/api/queries/sums").json()["partners"] == ["twin"]


def test_what_is_typed_is_completed(server: Server) -> None:
    body = {"sql": "SELECT k, na FROM s [RANGE 5]", "offset": 12}
    found = server.http.post("/api/complete", json=body).json()
    assert (found["start"], found["items"][0]["text"]) == (10, "name")
    assert server.http.post("/api/complete", json={**body, "offset": -1}).status_code == 422
    assert server.http.post("/api/complete", json={"sql": "SELECT ", "offset": 10**9}).status_code == 200


def test_recent_rows_are_those_that_are_kept(tmp_path: Path) -> None:
    stream = "CREATE STREAM s (k BIGINT, v DOUBLE, name STRING, t BIGINT) WATTR t SLACK 3 KEEP 200"
    with serving(tmp_path, f"{stream};\n{SUMS};") as server:
        for number in range(100):
            server.windrow.rows((1, 1.0, "a", 10 * number))
        found = server.http.get("/api/streams/s/recent?span=100000").json()
        assert 0 < found["total"] < 60  # those of 200 ticks and of what was not let go of yet
        assert server.http.get("/api/streams/s/recent?span=100000").json() == found


def test_recent_rows_are_a_sample(server: Server) -> None:
    server.windrow.rows(*((k, float(k), "a", k) for k in range(1000)))
    found = server.http.get("/api/streams/s/recent?span=500&rows=100&column=v").json()
    assert found["total"] == 500
    assert len(found["rows"]) == 100
    assert set(found["rows"][0]) == {"t", "v"}


def test_a_bundled_stream_is_made_faster(server: Server) -> None:
    assert server.http.post("/api/streams/s/rate", json={"times": 3}).json()["rate"] == 1800
    for wrong in (0, -1, 1001, "three"):
        assert server.http.post("/api/streams/s/rate", json={"times": wrong}).status_code == 422
    assert server.http.post("/api/streams/none/rate", json={"times": 3}).status_code == 404


def test_a_share_of_windows_is_left_out_and_told(tmp_path: Path) -> None:
    script = (
        STREAM.replace("SLACK 3", "SLACK 3 SHEDDABLE")
        .replace("KEEP 100000", "SHEDDABLE")
        .replace("SHEDDABLE SHEDDABLE", "SHEDDABLE")
    )
    with serving(tmp_path, script=f"{script}; {SUMS} MAX GAP 2") as server:
        assert server.http.post("/api/shed", json={"share": 0.6}).json() == {"share": 0.6}
        for start in range(0, 600, 10):
            server.windrow.rows((1, 1.0, "a", start))
        one = server.http.get("/api/queries/sums").json()
        assert one["missing"] > 0
        assert one["gaps"][0].keys() >= {"first", "last", "windows"}
        assert server.http.post("/api/shed", json={"share": 2}).status_code == 422
        assert server.http.post("/api/shed", json={"share": None}).json() == {"share": None}


def test_metrics_are_prometheus_text(server: Server) -> None:
    server.windrow.rows((1, 1.0, "a", 5), (1, 1.0, "a", 25))
    server.http.post("/api/select", json={"sql": "SELECT k FROM s [RANGE 10]"}).raise_for_status()
    text = server.http.get("/metrics").text
    line = re.compile(
        r'[a-z_]+(\{[a-z_]+="[^"]*"(,[a-z_]+="[^"]*")*\})? [0-9.eE+-]+|# (HELP|TYPE) [a-z_]+ .+'
    )
    assert all(line.fullmatch(each) for each in text.splitlines())
    found = dict(each.rsplit(" ", 1) for each in text.splitlines() if not each.startswith("#"))
    assert found['windrow_rows_total{stream="s"}'] == "2"
    assert found['windrow_queries{status="running"}'] == "1"
    assert found['windrow_selects_total{outcome="done"}'] == "1"
    assert found['windrow_epoch_part_seconds_count{part="read"}'] == "1"
    assert float(found["windrow_state_bytes"]) > 0
    names = {each.split()[2] for each in text.splitlines() if each.startswith("# TYPE")}
    assert names >= {
        "windrow_late_rows_total",
        "windrow_shed_rows_total",
        "windrow_backlog_rows",
        "windrow_outbox_age_seconds",
        "windrow_sink_failures",
        "windrow_clients",
    }


def test_a_server_without_a_script_takes_everything_over_http(tmp_path: Path) -> None:
    with serving(tmp_path, script="") as server:
        assert server.http.get("/readyz").json()["status"] == "idle"
        server.http.post("/api/statements", json={"sql": SCRIPT}).raise_for_status()
        for _ in range(100):
            if server.http.get("/readyz").json()["status"] == "running":
                break
            time.sleep(0.02)
        server.windrow.rows((1, 1.0, "a", 5), (1, 1.0, "a", 25))
        assert server.http.get("/api/queries/sums/results").json()["rows"]


NAMES = ["a b", "a/b", "x/events", "/", "a?b", "a#b", "a%2Fb", "ä", "a\\b", "`", "'\"", "results"]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_in_a_path_is_any_name(server: Server, name: str) -> None:
    written = name.replace("`", "``")
    text = f"CREATE QUERY `{written}` AS SELECT COUNT(*) AS n FROM s [RANGE 10 SLIDE 10]"
    server.http.post("/api/statements", json={"sql": text}).raise_for_status()
    place = f"/api/queries/{quote(name, safe='')}"
    server.windrow.rows((1, 1.0, "a", 5), (1, 1.0, "a", 25))
    assert server.http.get(place).json()["name"] == name
    assert server.http.get(f"{place}/results").json()["query"] == name
    with server.http.stream("GET", f"{place}/events?after=0") as response:
        assert [each["data"]["query"] for each in events(response, 2)] == [name, name]
    assert server.http.delete(place).status_code == 204
    assert [each["name"] for each in server.http.get("/api/queries").json()] == ["sums"]


def test_openapi_names_every_route(server: Server) -> None:
    paths = server.http.get("/openapi.json").json()["paths"]
    assert set(paths) >= {
        "/healthz",
        "/readyz",
        "/metrics",
        "/api/streams",
        "/api/queries",
        "/api/queries/{name}",
        "/api/statements",
        "/api/select",
        "/api/queries/{name}/results",
        "/api/queries/{name}/events",
        "/api/streams/{name}/rows",
    }


def test_a_query_that_the_script_has_lost_keeps_its_answers_until_it_is_dropped(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        server.windrow.rows((1, 1.0, "a", 5), (1, 1.0, "a", 25))
        before = server.http.get("/api/queries/sums/results").json()["rows"]
    with serving(tmp_path, script=STREAM) as server:
        assert server.http.get("/api/queries/sums/results").status_code == 404
        assert server.windrow.undeclared == ["sums"]
    with serving(tmp_path) as server:
        assert server.http.get("/api/queries/sums/results").json()["rows"] == before != []
    with serving(tmp_path, script=STREAM) as server:
        assert server.http.delete("/api/queries/sums").status_code == 204
        assert server.windrow.undeclared == []
    with serving(tmp_path) as server:
        assert server.http.get("/api/queries/sums/results").json()["rows"] == []


def test_a_stream_without_a_source_would_end_the_run_and_is_refused(tmp_path: Path) -> None:
    with serving(tmp_path, script="", needs_sources=True) as server:
        answer = server.http.post("/api/statements", json={"sql": STREAM})
        assert (answer.status_code, answer.json()["code"]) == (400, "no-source")
        assert answer.json()["span"]["start"] == 0
        assert server.http.get("/api/streams").json() == []
