"""The files of the live page, read once."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from importlib.resources.abc import Traversable
from urllib.parse import parse_qs

from starlette.responses import Response

_KINDS = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "txt": "text/plain; charset=utf-8",
}


class Pages:
    """All files of a folder by path. What is not among them is not there, whatever a path looks like."""

    def __init__(self, folder: Traversable) -> None:
        self._files = dict(_found(folder, ""))
        self._tags = {
            name: f'"{blake2b(body, digest_size=12).hexdigest()}"' for name, body in self._files.items()
        }
        #: shown instead of the page if a token is needed, and after a wrong one
        self.login = self._files.get("login.html", b"")
        self.login_again = self.login.replace(
            b"<!--again-->", b"<p role=alert>That is not a token of this server.</p>"
        )

    def respond(self, path: str, known: str | None) -> Response:
        """A file; nothing but its tag, if the browser has it."""
        body = self._files.get(path)
        if body is None:
            return Response("there is no such page", 404, media_type="text/plain")
        headers = {"etag": self._tags[path], "cache-control": "no-cache"}
        if known is not None and self._tags[path] in known:
            return Response(status_code=304, headers=headers)
        return Response(body, 200, headers, _KINDS[path.rpartition(".")[2]])

    def token_of(self, body: bytes) -> str:
        found = parse_qs(body.decode("utf-8", "replace"), max_num_fields=10).get("token", [""])
        return found[0].strip()


def _found(folder: Traversable, within: str) -> Iterator[tuple[str, bytes]]:
    for each in folder.iterdir():
        if each.is_dir():
            yield from _found(each, f"{within}{each.name}/")
        elif each.name.rpartition(".")[2] in _KINDS:
            yield f"{within}{each.name}", each.read_bytes()
