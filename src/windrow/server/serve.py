"""uvicorn around the application: where it listens, and how it ends."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterable
from typing import Self

import uvicorn

from windrow.errors import StateError
from windrow.server import access, app
from windrow.server.service import ClientLimits, Service
from windrow.session import Windrow

#: seconds that clients have when the server ends
_GRACE = 3


class Listener:
    """A server that listens already: its address is known before it answers. `run` blocks."""

    def __init__(
        self,
        service: Service,
        host: str = "127.0.0.1",
        port: int = 8642,
        tokens: access.AccessTokens | None = None,
        names: Iterable[str] = (),
    ) -> None:
        if not access.is_loopback(host) and not tokens:
            raise StateError(
                f"{host} can be reached by others, and there is no token",
                code="no-token",
                hint="give a file of tokens, and put a proxy that speaks TLS in front",
            )
        self._socket = _bound(host, port)
        self.port: int = self._socket.getsockname()[1]
        self.host = host
        hosts = frozenset(each.lower() for each in (host, *names)) if access.is_loopback(host) else None
        config = uvicorn.Config(
            app.create_app(service, tokens, hosts),
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=_GRACE,
            timeout_keep_alive=30,
            h11_max_incomplete_event_size=64 << 10,
            ws="none",
        )
        self._server = _Server(config)

    @property
    def url(self) -> str:
        shown = "127.0.0.1" if self.host in ("0.0.0.0", "::") else self.host
        return f"http://[{shown}]:{self.port}/" if ":" in shown else f"http://{shown}:{self.port}/"

    def run(self) -> None:
        self._server.run(sockets=[self._socket])

    def stop(self) -> None:
        self._server.should_exit = True

    @property
    def is_started(self) -> bool:
        return self._server.started


class _Server(uvicorn.Server):
    """Ends event streams before it waits for what is under way."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        assert isinstance(self.config.app, access.Guard)
        self.config.app.close()
        await super().shutdown(sockets)


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((host, port))
        found.listen(2048)  # who comes before the server answers waits
    except OSError as error:
        found.close()
        raise StateError(
            f"cannot listen on {host}, port {port}: {error.strerror or error}",
            code="no-port",
            hint="another server may listen there: choose another with --port, or 0 for any that is free",
        ) from error
    return found


class Background:
    """A server in a thread of this process, around an engine of yours; `close` closes both."""

    def __init__(
        self, windrow: Windrow, script: str = "", port: int = 0, limits: ClientLimits | None = None
    ) -> None:
        self.service = Service(windrow, limits, script=script)
        self._listener = Listener(self.service, port=port)
        self._thread = threading.Thread(target=self._listener.run, name="windrow server", daemon=True)
        self.service.start()
        self._thread.start()
        while not self._listener.is_started and self._thread.is_alive():
            time.sleep(0.01)
        #: where a browser finds it
        self.url = self._listener.url.rstrip("/")

    def close(self) -> None:
        """No more answers; the run ends, and the engine lets go of its state."""
        self._listener.stop()
        self._thread.join(2 * _GRACE)
        self.service.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
