"""Who may do what: hosts, tokens, roles, origins, sizes; and the headers every answer has.

On the loopback address everybody on this machine may do everything, unless there are tokens. Two things keep
web pages of others out: the `Host` has to be this machine (or a page could rename it), and what writes, or
follows, has to come from a page of ours or from no page at all. Elsewhere a token is needed: as
`Authorization: Bearer …`, or, for the page, as a cookie that scripts cannot read and other sites cannot send.

A `Gate` limits SELECTs: a few run, some wait, the others are told to come back.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ipaddress
import re
import secrets
from asyncio import timeout
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, MutableMapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response

from windrow.errors import QueryError, StateError
from windrow.server.formats import as_json

if TYPE_CHECKING:
    from starlette.requests import Request

    from windrow.server.service import ClientLimits


#: seconds between looks at whether one who waits has left
_LOOK = 0.5


class BusyError(Exception):
    """Too much at once; `seconds` is when to try again."""

    def __init__(self, message: str, seconds: int = 1) -> None:
        super().__init__(message)
        self.seconds = seconds


class Gate:
    """Lets `places` in at a time, while at most `waiting` wait."""

    def __init__(self, places: int, waiting: int) -> None:
        self._places = asyncio.Semaphore(places)
        #: how many there may be and are, in turn or waiting
        self._most, self.present = places + waiting, 0

    @asynccontextmanager
    async def turn(self, request: Request) -> AsyncIterator[None]:
        """A turn, to the end of the block; who has left while waiting gets none."""
        if self.present >= self._most:
            raise BusyError("there are too many requests of this kind at once", 1 + self._most // 8)
        self.present += 1
        try:
            await self._enter(request)
            try:
                yield
            finally:
                self._places.release()
        finally:
            self.present -= 1

    async def _enter(self, request: Request) -> None:
        """First come, first served."""
        entering = asyncio.ensure_future(self._places.acquire())
        try:
            while not (await asyncio.wait({entering}, timeout=_LOOK))[0]:
                if await request.is_disconnected():
                    raise BusyError("the client has left")
        except BaseException:
            if not entering.cancel():
                self._places.release()
            raise


Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

READ, WRITE = "read", "write"
COOKIE = "windrow"
_LEAST_TOKEN = 16
_LINE = re.compile(r"(?:(read|write)[ \t]+)?([\x21-\x7e]+)")
#: what may be asked without a token
OPEN = frozenset({"/healthz", "/login"})
#: what changes nothing, though it is posted
_ASKING = frozenset({"/api/select", "/api/explain", "/api/complete", "/login", "/logout"})
#: what a browser needs to show that a token is needed
_LOGIN_ASSETS = frozenset({"/page/page.css", "/page/login.css", "/favicon.svg"})
_BODY_SECONDS = 60.0
#: so much of what a refused client sends is still taken: twice what a push may have
_DRAIN_SECONDS, _DRAIN_BYTES = 5.0, 64 << 20
_SLASH = "\0"

CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": CONTENT_POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",  # with none, forms of our own page would come from nowhere
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address.

    >>> [is_loopback(each) for each in ("127.0.0.1", "localhost", "::1", "0.0.0.0", "example.org")]
    [True, True, True, False, False]
    """
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True)
class AccessTokens:
    """The tokens there are, each with its role. Without any, everybody may do everything.

    >>> tokens = AccessTokens.of(["read 0123456789abcdef", "write fedcba9876543210"])
    >>> tokens.role("0123456789abcdef"), tokens.role("fedcba9876543210"), tokens.role("guess")
    ('read', 'write', None)
    """

    #: SHA-256 of each token, and of what the page's cookie is for it; and its role
    _known: tuple[tuple[bytes, bytes, str], ...] = ()

    @classmethod
    def of(cls, lines: Iterable[str]) -> AccessTokens:
        """One on each line, after its role: `read …` or `write …`; without one it may write."""
        known = []
        for number, line in enumerate(lines, start=1):
            text = line.strip()
            if not text or text.startswith("#"):
                continue
            found = _LINE.fullmatch(text)
            if found is None or len(found[2]) < _LEAST_TOKEN:
                raise QueryError(
                    f"line {number} of the token file is no token",
                    code="bad-token",
                    hint=f"write `read TOKEN` or `write TOKEN`, with {_LEAST_TOKEN} characters or more:"
                    " python3 -c 'import secrets; print(secrets.token_urlsafe(32))' makes one",
                )
            role, token = found[1] or WRITE, found[2]
            known.append((_digest(token), _digest(cookie_of(token)), role))
        return cls(tuple(known))

    @classmethod
    def read(cls, path: Path) -> AccessTokens:
        """The tokens of a file that only its owner can read."""
        try:
            text, mode = path.read_text(encoding="utf-8"), path.stat().st_mode
        except (OSError, UnicodeDecodeError) as error:
            raise _bad_file(f"the token file {path} cannot be read: {error}") from error
        if mode & 0o077:
            raise _bad_file(f"others can read the token file {path}", f"chmod 600 {path}")
        found = cls.of(text.split("\n"))
        if not found:
            raise _bad_file(f"there is no token in {path}", "write `write TOKEN` into it")
        return found

    @classmethod
    def made(cls) -> tuple[AccessTokens, str]:
        text = secrets.token_urlsafe(32)
        return cls.of([text]), text

    def __bool__(self) -> bool:
        return bool(self._known)

    def role(self, token: str) -> str | None:
        """The role of a token. How long this takes says nothing about which characters are right."""
        return _matched(token, ((digest, role) for digest, _, role in self._known))

    def cookie_role(self, cookie: str) -> str | None:
        return _matched(cookie, ((digest, role) for _, digest, role in self._known))


def _bad_file(message: str, hint: str | None = None) -> StateError:
    return StateError(message, code="bad-token-file", hint=hint)


def cookie_of(token: str) -> str:
    """What the page's cookie holds: it proves the token, and is not the token."""
    return hmac.new(token.encode(), b"windrow page cookie", hashlib.sha256).hexdigest()


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def _matched(given: str, known: Iterable[tuple[bytes, str]]) -> str | None:
    digest, role = _digest(given), None
    for each, its_role in known:
        if hmac.compare_digest(digest, each):
            role = its_role
    return role


class RefusedError(Exception):
    """A request that goes no further, with its answer."""

    def __init__(self, status: int, code: str, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.code, self.response = code, told(status, code, message, hint)


def told(
    status: int, code: str, message: str, hint: str | None = None, headers: Mapping[str, str] | None = None
) -> Response:
    """What is wrong, as an answer."""
    body = as_json({"code": code, "message": message, "span": None, "hint": hint})
    return Response(body, status, headers, "application/json")


@dataclass
class Guard:
    """Stands before the routes."""

    app: App
    limits: ClientLimits
    tokens: AccessTokens = field(default_factory=AccessTokens)
    #: names this server answers to; None: any, as it asks for tokens
    hosts: frozenset[str] | None = None
    #: the page that asks for a token
    login_page: bytes = b""
    #: ends what would never end by itself
    close: Callable[[], None] = lambda: None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        scope["path"] = path_of(scope["path"], scope.get("raw_path") or b"")
        try:
            self._check_host(headers)
            role = self._role(scope, headers)
            self._check_role(scope, role)
            self._check_origin(scope, headers)
            scope.setdefault("state", {})["role"] = role
            body = await self._body(scope, headers, receive)
        except RefusedError as refusal:
            await _drain(receive)
            response = refusal.response
            if refusal.code == "no-token":
                if scope["path"] == "/" and "text/html" in headers.get("accept", "") and self.login_page:
                    response = Response(self.login_page, response.status_code, media_type="text/html")
                response.headers["www-authenticate"] = 'Bearer realm="windrow"'
            response.headers["connection"] = "close"
            await response(scope, receive, _with_headers(scope, send))
            return
        await self.app(scope, _replayed(body, receive), _with_headers(scope, send))

    # ------------------------------------------------------------ checks

    def _check_host(self, headers: Headers) -> None:
        """A page elsewhere may give this machine a name of its own, and would be of our origin then."""
        name = _host_name(headers.get("host", ""))
        if self.hosts is not None and name not in self.hosts and not is_loopback(name):
            raise RefusedError(
                421,
                "wrong-host",
                "this server does not answer under that name",
                "use 127.0.0.1 or localhost, or start it with --host",
            )

    def _role(self, scope: Scope, headers: Headers) -> str | None:
        if not self.tokens:
            return WRITE
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            return self.tokens.role(token.strip())
        cookie = _cookie(headers.get("cookie", ""))
        return self.tokens.cookie_role(cookie) if cookie is not None else None

    def _check_role(self, scope: Scope, role: str | None) -> None:
        path = scope["path"]
        if path in OPEN or path in _LOGIN_ASSETS:
            return
        if role is None:
            raise RefusedError(
                401, "no-token", "this needs a token", "send it as `Authorization: Bearer TOKEN`"
            )
        if role != WRITE and needs_write(scope["method"], path):
            raise RefusedError(403, "read-only", "this token may read only", "use one whose role is `write`")

    def _check_origin(self, scope: Scope, headers: Headers) -> None:
        """What writes or follows comes from a page of ours, or from no page."""
        follows = scope["path"].endswith("/events")
        if scope["method"] in ("GET", "HEAD", "OPTIONS") and not follows:
            return
        origin, site = headers.get("origin"), headers.get("sec-fetch-site", "none")
        is_ours = origin is None or origin.partition("://")[2].lower() == headers.get("host", "").lower()
        if not is_ours or site not in ("none", "same-origin"):
            raise RefusedError(403, "wrong-origin", "this comes from a page of another site")

    async def _body(self, scope: Scope, headers: Headers, receive: Receive) -> bytes:
        """All of the body, if it is not too large, and does not take too long to come."""
        if scope["method"] in ("GET", "HEAD", "DELETE", "OPTIONS"):
            return b""
        rows = scope["path"].endswith("/rows")
        most = self.limits.push_bytes if rows else self.limits.statement_bytes
        told = headers.get("content-length", "0")
        if not told.isdigit() or int(told[:18]) > most:
            raise _too_large(most)
        parts, size = [], 0
        try:
            async with timeout(_BODY_SECONDS):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise RefusedError(400, "gone", "the client has left")
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    if size > most:
                        raise _too_large(most)
                    if not message.get("more_body", False):
                        return b"".join(parts)
        except TimeoutError:
            raise RefusedError(
                408, "too-slow", f"the body did not come within {_BODY_SECONDS:.0f} s"
            ) from None


async def _drain(receive: Receive) -> None:
    """Take what a refused client still sends, within limits. The connection is closed after the answer, and
    who sends to a closed connection is told of that instead of the answer.
    """
    size = 0
    with suppress(TimeoutError):
        async with timeout(_DRAIN_SECONDS):
            while size < _DRAIN_BYTES:
                message = await receive()
                size += len(message.get("body", b""))
                if not message.get("more_body", False):
                    return


def path_of(path: str, raw: bytes) -> str:
    """The decoded path, in which a slash within a name is another character: no name holds a NUL.

    >>> path_of("/api/queries/a/b/results", b"/api/queries/a%2Fb/results")
    '/api/queries/a\\x00b/results'
    """
    if b"%2f" not in raw.lower():
        return path
    parts = raw.decode("latin-1").split("/")
    return "/".join(unquote(part).replace("/", _SLASH) for part in parts)


def name_of(part: str) -> str:
    return part.replace(_SLASH, "/")


def needs_write(method: str, path: str) -> bool:
    """Whether a request changes something.

    >>> needs_write("GET", "/api/queries"), needs_write("POST", "/api/select"), needs_write("DELETE", "/x")
    (False, False, True)
    """
    return method not in ("GET", "HEAD", "OPTIONS") and path not in _ASKING


def _too_large(most: int) -> RefusedError:
    return RefusedError(413, "too-large", f"a body has at most {most} bytes here", "send less at a time")


def _host_name(host: str) -> str:
    """
    >>> _host_name("localhost:8642"), _host_name("[::1]:8642")
    ('localhost', '::1')
    """
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0].lower()


def _cookie(header: str) -> str | None:
    try:
        found = SimpleCookie(header).get(COOKIE)
    except CookieError:
        return None
    return found.value if found is not None else None


def _replayed(body: bytes, receive: Receive) -> Receive:
    """The body once more, then what comes after it: that the client has left."""
    is_given = False

    async def again() -> Message:
        nonlocal is_given
        if not is_given:
            is_given = True
            return {"type": "http.request", "body": body, "more_body": False}
        return await receive()

    return again


def _with_headers(scope: Scope, send: Send) -> Send:
    async def guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(raw=list(message.get("headers", ())))
            is_asset = scope["path"].startswith("/page/")
            for name, value in (_HEADERS if is_asset else {**_HEADERS, "cache-control": "no-store"}).items():
                headers.setdefault(name, value)
            message = {**message, "headers": headers.raw}
        await send(message)

    return guarded
