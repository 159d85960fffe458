"""/metrics without the server: an engine that a command runs, for Prometheus, on a port of its own.

Only figures are told, and nothing can be done; who may reach the port is decided by its host, loopback if
nobody says otherwise.
"""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Self

from windrow.errors import StateError
from windrow.server.metrics import CONTENT_TYPE, Metrics
from windrow.server.watch import Watch

if TYPE_CHECKING:
    from windrow.session import Windrow


class Scraped:
    """A server in a thread, as a context."""

    def __init__(self, windrow: Windrow, host: str, port: int) -> None:
        self._metrics = Metrics(windrow, Watch(windrow))
        try:
            self._server = ThreadingHTTPServer((host, port), _handler(self._metrics))
        except OSError as error:
            raise StateError(
                f"cannot listen on {host}, port {port}: {error.strerror or error}",
                code="no-port",
                hint="another program may listen there: choose another port with --metrics",
            ) from error
        self._server.daemon_threads = True
        self._thread = threading.Thread(
            target=self._server.serve_forever, name="windrow metrics", daemon=True
        )

    @property
    def url(self) -> str:
        """Where it is scraped."""
        host, port = self._server.server_address[:2]
        return f"http://{host!s}:{port}/metrics"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def _handler(metrics: Metrics) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path.partition("?")[0] != "/metrics":
                self.send_error(404, "only /metrics is here")
                return
            body = metrics.text().encode()
            self.send_response(200)
            self.send_header("Content-Type", CONTENT_TYPE)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """A scrape is no news."""

    return Handler
