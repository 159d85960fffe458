"""Who may do what: every route with every role, with no token or a wrong one; hosts, origins."""

from __future__ import annotations

import logging
import re
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest
from starlette.routing import Match
from tests.server.world import Server, serving
from tests.support.patience import PATIENCE

from windrow.errors import StateError, WindrowError
from windrow.server.access import COOKIE, AccessTokens, cookie_of
from windrow.server.page import Pages
from windrow.server.serve import Listener

READ, WRITE = "r" * 32, "w" * 32
#: every route: what is sent, and the least role
ROUTES = [
    ("GET", "/healthz", None, None),
    ("GET", "/favicon.svg", None, None),
    ("POST", "/login", None, None),
    ("POST", "/logout", None, "read"),
    ("GET", "/", None, "read"),
    ("GET", "/page/app.js", None, "read"),
    ("GET", "/readyz", None, "read"),
    ("GET", "/metrics", None, "read"),
    ("GET", "/openapi.json", None, "read"),
    ("GET", "/api/status", None, "read"),
    ("GET", "/api/streams", None, "read"),
    ("GET", "/api/streams/s/recent?span=10", None, "read"),
    ("GET", "/api/queries", None, "read"),
    ("GET", "/api/queries/sums", None, "read"),
    ("GET", "/api/queries/sums/results", None, "read"),
    ("GET", "/api/queries/sums/events", None, "read"),
    ("GET", "/api/events", None, "read"),
    ("POST", "/api/select", {"sql": "SELECT k FROM s [RANGE 5]"}, "read"),
    ("POST", "/api/explain", {"sql": "SELECT k FROM s [RANGE 5]"}, "read"),
    ("POST", "/api/complete", {"sql": "SELECT ", "offset": 7}, "read"),
    ("POST", "/api/statements", {"sql": "SHOW STREAMS"}, "write"),
    ("POST", "/api/shed", {"share": None}, "write"),
    ("POST", "/api/streams/s/rate", {"times": 3}, "write"),
    ("POST", "/api/streams/s/rows", [{"k": 1, "v": 1, "t": 1}], "write"),
    ("DELETE", "/api/queries/nothing", None, "write"),
    ("GET", "/no/such/route", None, "read"),
    ("PUT", "/api/queries", None, "write"),
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    tokens = AccessTokens.of([f"read {READ}", f"write {WRITE}"])
    with serving(tmp_path_factory.mktemp("state"), tokens=tokens) as found:
        found.windrow.rows((1, 1.0, "a", 5), (1, 1.0, "a", 50))
        yield found


@pytest.fixture(scope="module")
def loopback(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("state")) as found:
        yield found


@pytest.mark.part(5)
@pytest.mark.parametrize(("method", "path", "body", "role"), ROUTES, ids=lambda each: str(each)[:30])
@pytest.mark.parametrize("given", [None, "wrong" * 8, READ[:-1], READ, WRITE, "cookie"])
def test_every_route_with_every_token(
    server: Server, method: str, path: str, body: object, role: str | None, given: str | None
) -> None:
    headers = {} if given in (None, "cookie") else {"authorization": f"Bearer {given}"}
    if given == "cookie":
        headers = {"cookie": f"{COOKIE}={cookie_of(READ)}"}
    with server.http.stream(method, path, json=body, headers=headers) as answer:  # some have no end
        status = answer.status_code
    has = {READ: "read", "cookie": "read", WRITE: "write"}.get(given or "")
    if role is None or has == "write" or (has == "read" and role == "read"):
        assert status not in (401, 403) or path == "/login"  # which is sent no token
        assert status < 500
    else:
        assert status == (401 if has is None else 403)


def test_all_routes_are_among_those(server: Server) -> None:
    guard = server.listener._server.config.app
    asked = [{"type": "http", "method": method, "path": path.split("?")[0]} for method, path, *_ in ROUTES]
    for route in guard.app.routes:  # type: ignore[union-attr]
        methods = {each["method"] for each in asked if route.matches(each)[0] is Match.FULL}
        assert route.methods - {"HEAD"} <= methods, route.path


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS", "TRACE", "PATCH", "get", "PROPFIND"])
def test_other_methods_open_nothing(server: Server, method: str) -> None:
    for path in (
        "/",
        "/metrics",
        "/openapi.json",
        "/api/queries",
        "/api/queries/sums",
        "/api/events",
        "/no/such",
    ):
        answer = server.http.request(method, path)
        assert answer.status_code in (400, 401)
        assert "sums" not in answer.text


#: what is sent instead of `Authorization: Bearer TOKEN`
NOT_TOKENS = [
    {"authorization": READ},
    {"authorization": f"Basic {READ}"},
    {"authorization": "Bearer"},
    {"authorization": f"Bearer {READ} {READ}"},
    {"authorization": f"Bearer {READ}x"},
    {"authorization": f"Bearer {READ.upper()}"},
    {"authorization": f"Bearer {'r' * 60_000}"},
    {"authorization": b"Bearer \xff\xfe\xc3\x28"},
    {"authorization": "Bearer wrong", "cookie": f"{COOKIE}={cookie_of(READ)}"},
    {"cookie": f"{COOKIE}={READ}"},
    {"cookie": f"{COOKIE}="},
    {"cookie": f"{COOKIE}={cookie_of('wrong' * 8)}"},
    {"cookie": f'{COOKIE}="\\777;;=;{COOKIE}'},
    {"cookie": f"other={cookie_of(READ)}"},
    {"x-api-key": READ},
    {"proxy-authorization": f"Bearer {READ}"},
    {"x-forwarded-for": "127.0.0.1", "x-real-ip": "127.0.0.1", "forwarded": "for=127.0.0.1"},
    {
        "host": "localhost",
        "x-forwarded-host": "localhost",
        "x-original-url": "/healthz",
        "x-rewrite-url": "/healthz",
    },
]


@pytest.mark.parametrize("headers", NOT_TOKENS, ids=range(len(NOT_TOKENS)))
def test_what_is_no_token_opens_nothing(server: Server, headers: dict[str, str]) -> None:
    for path in ("/api/queries", f"/api/queries?token={READ}&access_token={READ}", "/api/events", "/metrics"):
        answer = server.http.get(path, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (401, "no-token")
        assert READ not in answer.text + str(answer.headers)


def test_nothing_of_the_engine_is_said_without_a_token(server: Server) -> None:
    answer = server.http.get("/api/queries/nothing")
    assert answer.json() == {
        "code": "no-token",
        "message": "this needs a token",
        "span": None,
        "hint": "send it as `Authorization: Bearer TOKEN`",
    }
    assert answer.headers["www-authenticate"].startswith("Bearer")


def test_who_is_refused_while_it_still_sends_gets_the_answer(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("windrow.server.access._DRAIN_SECONDS", PATIENCE)
    body = b" " * (512 << 10)  # more than is read ahead
    lines = "POST /api/statements HTTP/1.1", "Host: 127.0.0.1", f"Authorization: Bearer {READ}"
    head = "\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""])
    with socket.create_connection(("127.0.0.1", server.listener.port), timeout=PATIENCE) as client:
        client.sendall(head.encode() + body)
        answer = b""
        while part := client.recv(1 << 16):
            answer += part
    assert answer.startswith(b"HTTP/1.1 403 ")
    assert b"read-only" in answer


def test_the_page_asks_for_the_token_and_gets_a_cookie(server: Server) -> None:
    first = server.http.get("/", headers={"accept": "text/html"})
    assert first.status_code == 401
    assert 'action="/login"' in first.text
    assert server.http.post("/login", data={"token": "wrong" * 8}).status_code == 401
    answer = server.http.post("/login", data={"token": READ})
    assert answer.status_code == 303
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "samesite=strict" in cookie.lower()
    assert READ not in cookie
    with httpx.Client(base_url=server.url, trust_env=False, cookies=answer.cookies) as page:
        assert page.get("/api/queries").status_code == 200
        assert page.post("/api/statements", json={"sql": "SHOW STREAMS"}).status_code == 403


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1", "https://localhost:1"])
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/api/statements"),
        ("POST", "/api/select"),
        ("DELETE", "/api/queries/x"),
        ("POST", "/api/streams/s/rows"),
        ("POST", "/api/shed"),
        ("POST", "/login"),
        ("GET", "/api/events"),
        ("GET", "/api/queries/sums/events"),
    ],
)
def test_pages_of_other_sites_neither_write_nor_follow(
    loopback: Server, method: str, path: str, origin: str
) -> None:
    answer = loopback.http.request(method, path, headers={"origin": origin})
    assert (answer.status_code, answer.json()["code"]) == (403, "wrong-origin")
    answer = loopback.http.request(method, path, headers={"sec-fetch-site": "cross-site"})
    assert answer.status_code == 403


def test_our_own_page_may_write(loopback: Server) -> None:
    headers = {"origin": loopback.url, "sec-fetch-site": "same-origin"}
    answer = loopback.http.post("/api/statements", json={"sql": "SHOW STREAMS"}, headers=headers)
    assert answer.status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8642", "127.0.0.1.evil.example", "", "[::2]:1"]
)
def test_other_names_for_this_machine_are_refused(loopback: Server, host: str) -> None:
    answer = loopback.http.get("/api/queries", headers={"host": host})
    assert (answer.status_code, answer.json()["code"]) == (421, "wrong-host")


def test_every_answer_has_a_content_policy_without_inline_code(server: Server) -> None:
    for path in ("/", "/healthz", "/api/queries", "/no/such/thing"):
        headers = server.http.get(path, headers={"authorization": f"Bearer {READ}"}).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"


def test_bodies_have_a_size(loopback: Server) -> None:
    answer = loopback.http.post("/api/select", json={"sql": "x" * (2 << 20)})
    assert (answer.status_code, answer.json()["code"]) == (413, "too-large")

    def endless() -> Iterator[bytes]:
        for _ in range(100):
            yield b"x" * 65536

    answer = loopback.http.post("/api/select", content=endless())
    assert answer.status_code == 413


ATTACKS = [
    "../../etc/passwd",
    "..%2f..%2fetc%2fpasswd",
    "%2e%2e/%2e%2e/etc/passwd",
    "....//etc/passwd",
    "a%00b",
    "'; DROP QUERY sums; --",
    "sums`; DROP QUERY `sums",
    "<script>alert(1)</script>",
    "%0d%0aset-cookie:%20x=y",
    "${env:HOME}",
    "{{7*7}}",
    "\u202esums",
    "a" * 4000,
]


@pytest.mark.part(3)
@pytest.mark.parametrize("attack", ATTACKS, ids=range(len(ATTACKS)))
def test_names_in_paths_get_in_nowhere(loopback: Server, attack: str) -> None:
    from urllib.parse import quote

    for path in ("/page/{}", "/api/queries/{}", "/api/queries/{}/results", "/api/streams/{}/recent?span=5"):
        for name in (quote(attack, safe=""), quote(attack, safe="/%")):
            answer = loopback.http.get(path.format(name))
            assert answer.status_code in (400, 404, 422)
            assert "set-cookie" not in answer.headers
            assert "root:" not in answer.text
            assert "text/html" not in answer.headers["content-type"]
    assert loopback.http.delete(f"/api/queries/{quote(attack, safe='')}").status_code in (400, 404)
    assert [each["name"] for each in loopback.http.get("/api/queries").json()] == ["sums"]


#: requests that no library would send: a first line, and all that follows `Host: localhost`
RAW: list[tuple[bytes, bytes]] = [
    (b"GET http://evil.example/api/queries HTTP/1.1", b""),
    (b"GET //evil.example/api/queries HTTP/1.1", b""),
    (b"GET /page/../../../../etc/passwd HTTP/1.1", b""),
    (b"GET /page/..%5c..%5cetc%5cpasswd HTTP/1.1", b""),
    (b"GET /page/app.js/../../serve.py HTTP/1.1", b""),
    (b"GET /healthz/../api/queries HTTP/1.1", b""),
    (b"GET /healthz%00/api/queries HTTP/1.1", b""),
    (b"GET /healthz;/api/queries HTTP/1.1", b""),
    (b"GET /api/queries\xff\xfe HTTP/1.1", b""),
    (b"GET /" + b"a" * 200_000 + b" HTTP/1.1", b""),
    (b"GET /api/queries HTTP/9.9", b""),
    (b"GET /api/queries HTTP/1.1", b"X: a\x00b\r\n"),
    (b"GET /api/queries HTTP/1.1", b"Host: evil.example\r\n"),
    (b"GET /api/queries HTTP/1.1", b"X: " + b"a" * 200_000 + b"\r\n"),
    (b"GET /api/queries HTTP/1.1", b"X: a\r\n" * 20_000),
    (b"POST /api/statements HTTP/1.1", b"Content-Length: -5\r\n\r\nhello"),
    (b"POST /api/statements HTTP/1.1", b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!"),
    (b"POST /api/statements HTTP/1.1", b"Content-Length: \xb2\r\n\r\nhello"),
    (
        b"POST /login HTTP/1.1",
        b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
        b"DELETE /api/queries/sums HTTP/1.1\r\nHost: localhost\r\n",
    ),
    (b"POST /login HTTP/1.1", b"Transfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n"),
    (b"POST /healthz HTTP/1.1", b"X-HTTP-Method-Override: GET\r\nContent-Length: 0\r\n"),
    (b"CONNECT evil.example:443 HTTP/1.1", b""),
    (
        b"GET /api/events HTTP/1.1",
        b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n",
    ),
    (b"PRI * HTTP/2.0", b"SM\r\n"),
    (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(64), b""),
]


@pytest.mark.parametrize(("line", "rest"), RAW, ids=range(len(RAW)))
def test_broken_requests_get_in_nowhere(server: Server, line: bytes, rest: bytes) -> None:
    told = b""
    with socket.create_connection(("127.0.0.1", server.listener.port), timeout=30) as client:
        with suppress(OSError):
            client.sendall(line + b"\r\nHost: localhost\r\n" + rest + b"\r\n")
            client.shutdown(socket.SHUT_WR)
        with suppress(OSError):
            while more := client.recv(1 << 16):
                told += more
    statuses = [int(each) for each in re.findall(rb"HTTP/1\.1 (\d+)", told)]  # none where it hangs up
    assert all(400 <= each < 500 for each in statuses)
    for secret in (b"Traceback", b"root:", b"sums", b"windrow/server", READ.encode(), WRITE.encode()):
        assert secret not in told
    answer = server.http.get("/api/queries", headers={"authorization": f"Bearer {READ}"})
    assert [each["name"] for each in answer.json()] == ["sums"]


#: values of headers that are read, each of them with a request that is allowed
HEADERS = [
    "accept",
    "content-type",
    "idempotency-key",
    "last-event-id",
    "if-none-match",
    "range",
    "cookie",
    "x-forwarded-proto",
]
VALUES = [
    b"",
    b"../../etc/passwd",
    b"'; DROP QUERY sums; --",
    b"<script>alert(1)</script>",
    b"${env:WINDROW_SECRET}",
    b"{{7*7}}%s%n",
    b"\xff\xfe\xc3\x28",
    b"-1",
    b"99999999999999999999999999",
    b"1-1-1",
    b"nan",
    b"*/*;q=nan, a/b;q=1e999, ;;;,,,",
    b"bytes=0-99999999999",
    b"x" * 30_000,
]


@pytest.mark.thorough
@pytest.mark.parametrize("name", HEADERS)
def test_headers_get_in_nowhere(loopback: Server, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINDROW_SECRET", "hunter2secret")
    requests: list[tuple[str, str, object]] = [
        ("GET", "/page/app.js", None),
        ("GET", "/api/queries/sums/results", None),
        ("GET", "/api/queries/sums/events", None),
        ("POST", "/api/select", {"sql": "SELECT COUNT(*) AS n FROM s [RANGE 5]"}),
        ("POST", "/api/streams/s/rows", [{"k": 1, "v": 1, "t": 1}]),
    ]
    for value in VALUES:
        for method, path, body in requests:
            with loopback.http.stream(method, path, json=body, headers={name: value}) as answer:
                assert answer.status_code < 500
                told = str(answer.headers) + ("" if path.endswith("/events") else answer.read().decode())
            assert not re.search("hunter2secret|Traceback|root:|text/html", told)
    assert [each["name"] for each in loopback.http.get("/api/queries").json()] == ["sums"]


#: statements of one who may read: nothing outside is looked at, not even for whether it is there
OUTSIDE = [
    "CREATE TABLE x (a STRING) NRR FROM 'files://{there}'",
    "CREATE STREAM x (a STRING, t BIGINT) WATTR t ORDERED FROM 'files://{there}'",
    "CREATE STREAM x (a STRING, t BIGINT) WATTR t ORDERED FROM 'delta://{there}'",
    "CREATE STREAM x (a STRING, t BIGINT) WATTR t ORDERED FROM 'kafka://{host}/t'",
    "CREATE STREAM x (a STRING, t BIGINT) WATTR t ORDERED FROM 'kafka://{host}/t?kafka.sasl.password=${{env:WINDROW_SECRET}}'",
    "CREATE QUERY x AS SELECT k FROM s [RANGE 5] INTO 'files://{there}/out'",
    "CREATE QUERY x AS SELECT k FROM s [RANGE 5] INTO 'kafka://{host}/t'",
    "CREATE QUERY x AS SELECT k FROM s [RANGE 5] INTO 'delta://{there}'",
    "CREATE ARCHIVE x OF s (k) FROM 'files://{there}'",
    "DROP QUERY sums",
    "DROP STREAM s",
    "SHOW QUERIES; DROP QUERY sums",
    "EXPLAIN sums; CREATE QUERY x AS SELECT k FROM s [RANGE 5]",
]


@pytest.mark.part(3)
@pytest.mark.parametrize("attack", OUTSIDE, ids=range(len(OUTSIDE)))
def test_who_may_read_reaches_nothing_outside(
    server: Server, attack: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WINDROW_SECRET", "hunter2secret")
    (tmp_path / "there").write_text("not for readers")
    with socket.create_server(("127.0.0.1", 0)) as outside:
        outside.settimeout(0.0)
        host = f"127.0.0.1:{outside.getsockname()[1]}"
        for path in ("/api/select", "/api/explain", "/api/complete"):
            told = []
            for name in ("there", "gone!"):  # as long: places in the text are the same
                text = attack.format(there=tmp_path / name, host=host)
                body = {"sql": text, "offset": len(text)} if path == "/api/complete" else {"sql": text}
                answer = server.http.post(path, json=body, headers={"authorization": f"Bearer {READ}"})
                assert answer.status_code < 500
                told.append((answer.status_code, answer.text.replace(name, "")))
            assert told[0] == told[1]
            assert not re.search("hunter2secret|not for readers|Traceback", told[0][1])
        with pytest.raises(BlockingIOError):
            outside.accept()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["there"]
    queries = server.http.get("/api/queries", headers={"authorization": f"Bearer {READ}"}).json()
    assert [each["name"] for each in queries] == ["sums"]
    assert list(server.windrow.streams) == ["s"]
    assert list(server.windrow.tables) == []


SQL_ATTACKS = [
    "SELECT k FROM s [RANGE 5]; DROP QUERY sums",
    "SELECT reflect('java.lang.Runtime', 'getRuntime') FROM s [RANGE 5]",
    "SELECT java_method('java.lang.System', 'exit', 1) FROM s [RANGE 5]",
    "SELECT * FROM parquet.`/etc/passwd`",
    "SELECT input_file_name() FROM s [RANGE 5]",
    "ADD JAR '/tmp/x.jar'",
    "SET spark.sql.x = 1",
    "SELECT k FROM s [RANGE 5] WHERE " + "(" * 5000 + "1=1" + ")" * 5000,
    "SELECT " + "1+" * 20000 + "1 FROM s [RANGE 5]",
    "SELECT a.k FROM s [RANGE 5] a" + "".join(f" JOIN s [RANGE 5] b{n} ON b{n}.k = a.k" for n in range(500)),
    "\x00",
    "--",
    ";;;",
    "'",
    "SELECT '\ud83d' FROM s [RANGE 5]".encode("utf-8", "surrogatepass").decode("utf-8", "replace"),
]


#: all but a DROP where statements are done: who may write may drop
ATTACKED = [
    pytest.param(path, attack, id=f"{path} {number}")
    for path in ("/api/select", "/api/explain", "/api/statements")
    for number, attack in enumerate(SQL_ATTACKS)
    if path != "/api/statements" or "DROP" not in attack
]


@pytest.mark.parametrize(("path", "attack"), ATTACKED)
def test_statements_get_in_nowhere(loopback: Server, path: str, attack: str) -> None:
    answer = loopback.http.post(path, json={"sql": attack})
    assert answer.status_code < 500
    assert "Traceback" not in answer.text
    assert [each["name"] for each in loopback.http.get("/api/queries").json()] == ["sums"]


def test_secrets_of_urls_are_told_to_nobody(loopback: Server, caplog: pytest.LogCaptureFixture) -> None:
    text = (
        "CREATE STREAM k (a BIGINT, t BIGINT) WATTR t ORDERED"
        " FROM 'kafka://b:9092/t?kafka.sasl.password=hunter2secret&kafka.bootstrap.nonsense=1'"
    )
    with caplog.at_level(logging.INFO, logger="windrow"):
        answer = loopback.http.post("/api/statements", json={"sql": text})
    told = answer.text + loopback.http.get("/api/streams").text
    said = caplog.text + "".join(str(vars(each)) for each in caplog.records)
    assert "hunter2secret" not in told + said


def test_every_statement_has_an_audit_line(loopback: Server, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="windrow.audit"):
        loopback.http.post("/api/statements", json={"sql": "SHOW\nSTREAMS"})
        loopback.http.post("/api/statements", json={"sql": "SHOW NOTHING"})
        loopback.http.post("/api/select", json={"sql": "SELECT k FROM s [RANGE 5]"})
    lines = [record for record in caplog.records if record.name == "windrow.audit"]
    assert [record.getMessage() for record in lines] == ["statement", "statement", "select"]
    assert lines[0].statement == "SHOW STREAMS"  # type: ignore[attr-defined]
    assert (lines[0].outcome, lines[0].role) == ("done", "write")  # type: ignore[attr-defined]
    assert lines[1].outcome != "done"  # type: ignore[attr-defined]


def test_another_host_does_not_start_without_a_token(loopback: Server) -> None:
    with pytest.raises(StateError, match="no token") as found:
        Listener(loopback.service, "0.0.0.0", 0)
    assert "TLS" in (found.value.hint or "")


def test_token_files_are_private_and_well_formed(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    path.write_text(f"# who\nread {READ}\n{WRITE}\n")
    path.chmod(0o644)
    with pytest.raises(StateError, match="others can read"):
        AccessTokens.read(path)
    path.chmod(0o600)
    tokens = AccessTokens.read(path)
    assert (tokens.role(READ), tokens.role(WRITE)) == ("read", "write")
    path.write_text("read short\n")
    with pytest.raises(WindrowError, match="line 1 of the token file"):
        AccessTokens.read(path)
    path.write_text("\n")
    with pytest.raises(StateError, match="no token"):
        AccessTokens.read(path)


def test_the_log_of_answers_is_private(loopback: Server) -> None:
    path = loopback.windrow.folder / "answers" / "answers.db"
    assert path.stat().st_mode & 0o077 == 0


def test_the_page_is_small_and_loads_nothing_from_elsewhere() -> None:
    folder = Path(__file__).parents[2] / "src/windrow/server/page"
    assert sum(map(len, Pages(folder)._files.values())) < 400_000
    for path in folder.rglob("*"):
        if path.suffix in (".html", ".css", ".js") and "vendor" not in path.parts:
            text = path.read_text()
            assert "http://" not in text.replace("http://www.w3.org/", "")
            assert "https://" not in text
    for path in folder.glob("*.html"):
        text = path.read_text()
        assert "<style" not in text
        assert "style=" not in text
        assert "onclick" not in text
        assert "<script>" not in text
