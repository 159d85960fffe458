"""Object stores for tests: a real S3 server, and a client that fails, answers late and lies.

The server is versitygw over a directory: `make test-integration` builds it into the environment. A URL in
WINDROW_OBJECT_STORE, of a bucket anywhere, is used instead: `az://tests?use_emulator=true` is Azurite.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryDirectory
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

#: where tests of state have theirs; on the server in `make test-integration`
KINDS: list[Any] = ["directory", "objects"]
if "WINDROW_INTEGRATION" in os.environ:
    KINDS.append(pytest.param("s3", marks=pytest.mark.integration))
_BUCKET = "windrow-tests"
_ELSEWHERE = "WINDROW_OBJECT_STORE"


@dataclass(frozen=True)
class S3Server:
    """A server that runs: where, and with which options. Credentials are in the environment."""

    bucket: str
    options: Mapping[str, object]

    @classmethod
    def at(cls, endpoint: str) -> S3Server:
        """One on this machine."""
        return cls(f"s3://{_BUCKET}", {"endpoint": endpoint, "region": "us-east-1"})

    def new_prefix(self, **options: object) -> str:
        """The URL of an empty prefix."""
        told = {**self.options, "patience": 20, **options}
        return f"{self.bucket}/{token_hex(6)}?" + "&".join(f"{name}={value}" for name, value in told.items())


@contextmanager
def s3_server() -> Iterator[S3Server]:
    """Start the server. One that does not start is a failure, one that could not be had a skip by name."""
    if _ELSEWHERE in os.environ:
        bucket, _, options = os.environ[_ELSEWHERE].partition("?")
        yield S3Server(bucket.rstrip("/"), dict(each.split("=", 1) for each in options.split("&") if each))
        return
    beside = Path(sys.executable).parent / "versitygw"
    program = str(beside) if beside.exists() else shutil.which("versitygw")
    if program is None:
        pytest.skip("the S3 server versitygw could not be downloaded, three times: see the output of make")
    access = {"AWS_ACCESS_KEY_ID": "windrow", "AWS_SECRET_ACCESS_KEY": token_hex(16)}
    before = {name: os.environ.get(name) for name in access}
    with TemporaryDirectory(prefix="windrow-s3-") as folder:
        (Path(folder) / "objects" / _BUCKET).mkdir(parents=True)
        (Path(folder) / "metadata").mkdir()
        port = _free_port()
        command = [program, "--port", f"127.0.0.1:{port}", "--quiet", "posix"]
        command += ["--sidecar", f"{folder}/metadata", f"{folder}/objects"]
        keys = {
            "ROOT_ACCESS_KEY": access["AWS_ACCESS_KEY_ID"],
            "ROOT_SECRET_KEY": access["AWS_SECRET_ACCESS_KEY"],
        }
        log = Path(folder) / "server.log"
        with log.open("wb") as said:
            process = subprocess.Popen(
                command, env={**os.environ, **keys}, stdout=said, stderr=said, start_new_session=True
            )
        os.environ.update(access)
        try:
            _wait_for(port, process, log)
            yield S3Server.at(f"http://127.0.0.1:{port}")
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()
            for name, value in before.items():
                os.environ.pop(name)
                os.environ.update({name: value} if value is not None else {})


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    """A real S3 server, for all tests that ask."""
    with s3_server() as server:
        yield server


def _wait_for(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    ends = time.monotonic() + 60
    while time.monotonic() < ends and process.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    pytest.fail(f"the S3 server does not start:\n{log.read_text()}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def faulty_proxy(server: S3Server, seed: int, often: int = 15) -> Iterator[S3Server]:
    """Stands before a server: of 100 requests it loses, refuses, delays and cuts off so many."""
    if _ELSEWHERE in os.environ:
        pytest.skip("the proxy that fails stands before a server on this machine only")
    chance, host = random.Random(seed), str(server.options["endpoint"]).removeprefix("http://")

    class Proxy(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            fault = chance.choice(_FAULTS) if chance.randrange(100) < often else ""
            if fault == "503":
                self.send_xml(503, "SlowDown")
                return
            if fault == "409" and "If-None-Match" in self.headers:
                self.send_xml(409, "ConditionalRequestConflict")
                return
            behind = HTTPConnection(host)
            behind.request(self.command, self.path, body, dict(self.headers))
            found = behind.getresponse()
            data = found.read()
            behind.close()
            if fault == "lost":  # the deed is done, and nobody hears of it
                self.close_connection = True
                return
            if fault == "slow":
                time.sleep(0.05)
            self.send_response(found.status)
            for name, value in found.getheaders():
                if name.lower() not in ("connection", "transfer-encoding", "date", "server"):
                    self.send_header(name, value)
            if found.getheader("Content-Length") is None:
                self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data[: len(data) // 2] if fault == "cut" else data)
            self.close_connection = fault == "cut"

        def send_xml(self, status: int, code: str) -> None:
            data = f"<Error><Code>{code}</Code></Error>".encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = answer  # noqa: N815

        def log_message(self, *_: Any) -> None:
            """Nobody reads it."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Proxy) as proxy:
        Thread(target=proxy.serve_forever, daemon=True).start()
        yield S3Server.at(f"http://127.0.0.1:{proxy.server_address[1]}")
        proxy.shutdown()


_FAULTS = ("503", "409", "lost", "slow", "cut")


class RequestError(Exception):
    """What the library raises where the network or the server failed."""


class AlreadyExistsError(Exception):
    """What the library raises for 412, and for the 409 of a server that was asked twice at once."""


@dataclass
class FaultyClient:
    """A client of an object store that fails, answers after the deed, and lists what was there before.

    No more than two calls in a row fail: whoever asks again gets through.
    """

    client: Any
    chance: random.Random
    #: what happens how often: of 100 calls
    often: int = 20
    failures: int = 0
    in_a_row: int = 0
    #: what lists were true of, earlier
    _lists: dict[str, list[Any]] = field(default_factory=dict)

    def put(self, path: str, data: Any, mode: str = "overwrite", **how: Any) -> Any:
        match self._fault("503", "lost", "409", "lost 409"):
            case "503":
                raise RequestError("503 Slow Down")
            case "409" if mode == "create":
                raise AlreadyExistsError("409 ConditionalRequestConflict")
            case "lost":
                self.client.put(path, bytes(data), mode=mode, **how)
                raise RequestError("the answer did not come in time")
            case "lost 409" if mode == "create":
                self.client.put(path, bytes(data), mode=mode, **how)
                raise AlreadyExistsError("the library has asked again by itself")
        return self.client.put(path, bytes(data), mode=mode, **how)

    def get(self, path: str, **how: Any) -> Any:
        self._maybe()
        return self.client.get(path, **how)

    def head(self, path: str) -> Any:
        self._maybe()
        return self.client.head(path)

    def delete(self, paths: Any) -> Any:
        if self._fault("lost", "503") == "503":
            raise RequestError("503 Slow Down")
        return self.client.delete(paths)

    def list_with_delimiter(self, *prefix: str) -> Any:
        self._maybe()
        return self.client.list_with_delimiter(*prefix)

    def list(self, prefix: str | None = None, **how: Any) -> FaultyClient._List:
        self._maybe()
        known = self._lists.setdefault(prefix or "", [[]])
        known.append(self.client.list(prefix, **how).collect())
        del known[:-4]
        return self._List(self.chance.choice(known) if self.often else known[-1])

    @dataclass
    class _List:
        found: Any

        def collect(self) -> Any:
            """As the library has it."""
            return self.found

    def _maybe(self) -> None:
        if self._fault("503") is not None:
            raise RequestError("503 Slow Down")

    def _fault(self, *kinds: str) -> str | None:
        if self.in_a_row >= 2 or self.chance.randrange(100) >= self.often:
            self.in_a_row = 0
            return None
        self.in_a_row += 1
        self.failures += 1
        return self.chance.choice(kinds)
