"""The routes. Each reads its request, calls one method of the service in a thread, and writes the answer."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from importlib.metadata import version
from importlib.resources import files
from typing import Annotated, Any

import pyarrow as pa
from fastapi import FastAPI, Header, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import RedirectResponse, Response
from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException

from windrow.engine.adhoc.select import Asked
from windrow.errors import StateError, WindrowError
from windrow.language.binder.once import Once
from windrow.redaction import redacted
from windrow.server import formats, page, watch
from windrow.server.access import COOKIE, AccessTokens, BusyError, Gate, Guard, cookie_of, name_of, told
from windrow.server.answers import ReadPosition
from windrow.server.events import EventStream, Feeds
from windrow.server.metrics import CONTENT_TYPE, Metrics, figures_of_clients
from windrow.server.service import Caller, Service, shown_as_json

_log = logging.getLogger("windrow.server")
#: seconds between looks at whether a client that waits for an answer has left
_PATIENCE = 0.02
_STATUS = {
    "busy": 429,
    "unknown-source": 404,
    "duplicate-name": 409,
    "too-long": 408,
    "too-large": 413,
    "too-many-rows": 413,
    "too-many-bytes": 413,
    "cancelled": 400,
    "not-pushable": 409,
    "answers-lost": 503,
    "spark-gone": 503,
}


#: a name in a path; a slash in it is written %2F
Name = Annotated[str, AfterValidator(name_of)]


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Statements(Strict):
    """Statements, separated by `;`."""

    sql: str = Field(min_length=1, examples=["SHOW QUERIES"])


class Unfinished(Statements):
    """Statements that are being written, and where."""

    offset: int = Field(ge=0, examples=[12])


class Share(Strict):
    """How many windows are left out."""

    share: float | None = Field(default=None, ge=0, le=1, examples=[0.5])


class Times(Strict):
    """A multiple of the declared rate."""

    times: float = Field(gt=0, le=1000, examples=[3])


class SpanModel(BaseModel):
    """Where in a text."""

    start: int
    end: int
    line: int
    column: int


class Problem(BaseModel):
    """What is wrong, where, and the way out."""

    code: str
    message: str
    span: SpanModel | None
    hint: str | None


class ColumnModel(BaseModel):
    """A column of answers."""

    name: str
    type: str


class Rows(BaseModel):
    """Rows of an answer."""

    columns: list[ColumnModel]
    rows: list[dict[str, Any]]


class Selected(Rows):
    """The answer of a SELECT: the commit and the instant it is about."""

    commit: int | None
    at: str | None


class Page(Rows):
    """Committed answers: `next` is the place to go on from, `more` whether there are more already, `newest`
    the last commit among them; `lost`: some after the place that was asked for are not kept any more."""

    query: str
    next: str
    more: bool
    lost: bool
    newest: int | None


class Pushed(BaseModel):
    """Rows that a commit holds."""

    stream: str
    rows: int
    commit: int


_PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"model": Problem, "description": text}
    for status, text in {
        400: "The statement, the rows or the question is at fault.",
        401: "A token is needed.",
        403: "The token may not do this, or the request comes from another site's page.",
        404: "There is nothing of that name.",
        406: "None of the forms that are accepted is written here.",
        408: "It took too long.",
        409: "It does not go with what is there.",
        413: "Too large.",
        415: "Rows of that form are not read here.",
        421: "The server does not answer under that name.",
        422: "The request is not of the form that is asked for.",
        429: "Too much at once; try again after the seconds of Retry-After.",
        503: "The engine does not run.",
    }.items()
}
_FORMS: dict[str, dict[str, Any]] = {formats.CSV: {}, formats.ARROW: {}}
_ROWS_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            formats.LINES: {"schema": {"type": "string"}},
            formats.JSON: {"schema": {"type": "array", "items": {"type": "object"}}},
            formats.CSV: {"schema": {"type": "string"}},
            formats.ARROW: {"schema": {"type": "string", "format": "binary"}},
        },
    }
}


def create_app(
    service: Service, tokens: AccessTokens | None = None, hosts: frozenset[str] | None = frozenset()
) -> Guard:
    """The server as an ASGI application. `hosts` are names it answers to besides the loopback's."""
    feeds = Feeds(service)
    metrics = Metrics(
        service.windrow, service.watch, lambda: figures_of_clients(service.counts, feeds.clients)
    )
    known = tokens or AccessTokens()

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        feeds.answers.loop = feeds.changes.loop = asyncio.get_running_loop()
        tasks = [asyncio.create_task(_unending(each)) for each in (feeds.keep_looking, feeds.keep_reading)]
        yield
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    app = FastAPI(
        title="Windrow",
        version=version("windrow"),
        description="Standing queries over sliding windows: declare, ask, follow.",
        docs_url=None,  # those pages are made of scripts from elsewhere
        redoc_url=None,
        lifespan=lifespan,
        responses=_PROBLEMS,
    )
    _add_errors(app)
    pages = page.Pages(files("windrow.server") / "page")
    _add_operations(app, service, metrics)
    _add_statements(app, service)
    _add_queries(app, service, feeds)
    _add_rows(app, service)
    _add_page(app, pages, known)
    return Guard(app, service.limits, known, hosts, pages.login, feeds.closed.set)


async def _unending(work: Callable[[], Awaitable[None]]) -> None:
    """What all clients wait for goes on, whatever happens once."""
    while True:
        try:
            await work()
        except Exception:  # noqa: BLE001  nobody is there to be told: it is logged, and tried again
            _log.exception("what clients follow is read again")
            await asyncio.sleep(1)


# ------------------------------------------------------------ errors


def refused(error: WindrowError) -> Response:
    """An error as an answer."""
    status = _STATUS.get(error.code, 400)
    if isinstance(error, StateError) and error.code not in _STATUS:
        status = 409
    headers = {"retry-after": "1"} if status == 429 else {}
    return Response(formats.as_json(watch.problem(error)), status, headers, formats.JSON)


def _add_errors(app: FastAPI) -> None:
    @app.exception_handler(WindrowError)
    async def ours(_: Request, error: WindrowError) -> Response:
        return refused(error)

    @app.exception_handler(BusyError)
    async def busy(_: Request, error: BusyError) -> Response:
        return told(429, "busy", str(error), "try again later", {"retry-after": str(error.seconds)})

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        place = ".".join(str(each) for each in first.get("loc", ()))
        is_json = "json" in request.headers.get("content-type", formats.JSON)
        hint = None if is_json else f"send it with the header `content-type: {formats.JSON}`"
        return told(422, "bad-request", redacted(f"{place}: {first.get('msg', 'is not valid')}")[:400], hint)

    @app.exception_handler(HTTPException)
    async def plain(_: Request, error: HTTPException) -> Response:
        code = {404: "no-route", 405: "no-method"}.get(error.status_code, "bad-request")
        return told(error.status_code, code, str(error.detail), None, dict(error.headers or {}))

    @app.exception_handler(Exception)
    async def unknown(request: Request, error: Exception) -> Response:
        _log.error("%s %s failed", request.method, request.url.path, exc_info=error)
        return told(500, "engine", "the server has failed at this", "its log says how")


def _caller(request: Request) -> Caller:
    address = request.client.host if request.client is not None else "-"
    return Caller(request.scope.get("state", {}).get("role") or "-", address)


# ------------------------------------------------------------ routes


def _add_operations(app: FastAPI, service: Service, metrics: Metrics) -> None:
    @app.get("/healthz", tags=["operations"])
    async def healthz() -> dict[str, str]:
        """Whether the process answers."""
        return {"status": "ok"}

    @app.get("/readyz", tags=["operations"])
    async def readyz() -> Response:
        """Whether the queries run, or could as soon as there is something to read."""
        status, error = service.runner.status, service.runner.error
        body = {
            "status": status,
            "commit": service.windrow.commit,
            "error": watch.problem(error) if error else None,
        }
        return Response(formats.as_json(body), 503 if status == "failed" else 200, media_type=formats.JSON)

    @app.get("/metrics", tags=["operations"], response_class=Response)
    async def scrape() -> Response:
        """For Prometheus."""
        return Response(await asyncio.to_thread(metrics.text), media_type=CONTENT_TYPE)

    @app.get("/api/status", tags=["operations"])
    async def status() -> dict[str, Any]:
        """The whole engine at a glance."""
        look = await asyncio.to_thread(service.watch.look)
        counted = {key: look[key] for key in ("commit", "is_running", "problems")}
        return {**counted, "run": service.runner.status, "version": version("windrow")}


def _add_statements(app: FastAPI, service: Service) -> None:
    limits = service.limits
    gate = Gate(limits.selects_at_once, limits.selects_waiting)
    #: what is typed is read one text at a time: a long one takes a second of the engine's processor
    typed = Gate(1, limits.texts_waiting)

    async def answered(query: str | Once, request: Request) -> pa.Table:
        """A SELECT when its turn has come; given up when the client has left."""
        began, outcome = time.perf_counter(), "done"
        try:
            async with gate.turn(request):
                asked = await asyncio.to_thread(service.ask, query)
                return await _waited(asked, request)
        except BusyError:
            outcome = "busy"
            raise
        except WindrowError as error:
            outcome = error.code
            raise
        finally:
            service.note_select(query, _caller(request), began, outcome)

    @app.post("/api/statements", tags=["statements"])
    async def statements(body: Statements, request: Request) -> list[dict[str, Any]]:
        """Do any statements: all of them, or, if one fails, none. Gives what they show, in order."""
        shown = await asyncio.to_thread(service.statements, body.sql, _caller(request))
        found = [await answered(each, request) if isinstance(each, Once) else each for each in shown]
        return [await asyncio.to_thread(shown_as_json, each) for each in found]

    @app.post("/api/explain", tags=["statements"])
    async def explain(body: Statements, request: Request) -> list[dict[str, Any]]:
        """What statements mean and how they would run. None of them is done."""
        async with typed.turn(request):
            return await asyncio.to_thread(service.explain, body.sql)

    @app.post("/api/complete", tags=["statements"])
    async def complete(body: Unfinished, request: Request) -> dict[str, Any]:
        """What can be typed at a place: names, columns, functions, window forms, the likeliest first."""
        async with typed.turn(request):
            return await asyncio.to_thread(service.complete, body.sql, body.offset)

    @app.post(
        "/api/select", tags=["statements"], response_model=Selected, responses={200: {"content": _FORMS}}
    )
    async def select(
        body: Statements, request: Request, accept: Annotated[str | None, Header()] = None
    ) -> Response:
        """Ask once, about now. The answer is JSON, CSV or Arrow, as `Accept` says."""
        form = _form(accept)
        table = await answered(body.sql, request)
        about = {key.decode(): value.decode() for key, value in (table.schema.metadata or {}).items()}
        commit, at = about.get("windrow.commit"), about.get("windrow.at")
        headers = {f"windrow-{key.partition('.')[2]}": value for key, value in about.items()}
        known = {"commit": int(commit) if commit else None, "at": at}
        return await asyncio.to_thread(_written, table, form, known, headers)

    @app.post("/api/shed", tags=["statements"])
    async def shed(body: Share, request: Request) -> dict[str, Any]:
        """Leave out this share of windows of all queries with MAX GAP; null: as the load demands."""
        await asyncio.to_thread(service.shed, body.share, _caller(request))
        return {"share": body.share}


async def _waited(asked: Asked, request: Request) -> pa.Table:
    """The answer; a client that leaves takes its question along."""
    while not asked.is_done:
        if await request.is_disconnected():
            asked.cancel()
        await asyncio.sleep(_PATIENCE)
    return await asyncio.to_thread(asked.result)


def _form(accept: str | None) -> str:
    form = formats.chosen(accept)
    if form is None:
        raise HTTPException(406, f"answers are {', '.join(formats.WRITTEN)}")
    return form


def _written(table: pa.Table, form: str, known: dict[str, Any], headers: dict[str, str]) -> Response:
    if form == formats.CSV:
        return Response(formats.as_csv(table), 200, headers, f"{formats.CSV}; charset=utf-8; header=present")
    if form == formats.ARROW:
        return Response(formats.as_arrow(table), 200, headers, formats.ARROW)
    body = {**known, "columns": formats.columns_of(table.schema), "rows": formats.as_json_rows(table)}
    return Response(formats.as_json(body), 200, headers, formats.JSON)


def _add_queries(app: FastAPI, service: Service, feeds: Feeds) -> None:
    limits = service.limits

    @app.get("/api/queries", tags=["queries"])
    async def queries() -> list[dict[str, Any]]:
        """The standing queries, and how they do."""
        return (await asyncio.to_thread(service.watch.look))["queries"]  # type: ignore[no-any-return]

    @app.get("/api/queries/{name}", tags=["queries"])
    async def query(name: Name) -> dict[str, Any]:
        """One query: progress, plan, state, cost, sharing, gaps."""
        return await asyncio.to_thread(service.details, name)

    @app.delete("/api/queries/{name}", tags=["queries"], status_code=204)
    async def drop(name: Name, request: Request) -> None:
        """Stop a query and forget its state and its answers."""
        await asyncio.to_thread(service.drop, name, _caller(request))

    @app.get(
        "/api/queries/{name}/results",
        tags=["queries"],
        response_model=Page,
        responses={200: {"content": _FORMS}},
    )
    async def results(
        name: Name,
        after: Annotated[str, Query(max_length=40, description="a commit, or `next` of a page")] = "0",
        before: Annotated[str | None, Query(max_length=40, description="backwards from here; `end`")] = None,
        limit: Annotated[int, Query(ge=1, le=10_000)] = 1000,
        accept: Annotated[str | None, Header()] = None,
    ) -> Response:
        """Committed answers, oldest first after a place, or newest first before one."""
        form = _form(accept)
        end = ReadPosition(1 << 50)
        back = end if before == "end" else None if before is None else ReadPosition.parse(before)
        return await asyncio.to_thread(_page, service, form, name, ReadPosition.parse(after), back, limit)

    def following(events: AsyncGenerator[bytes, None]) -> EventStream:
        if feeds.clients >= limits.followers:
            raise BusyError(f"{feeds.clients} clients follow answers, and no more may", 5)
        return EventStream(events, limits.follower_seconds, feeds)

    @app.get("/api/queries/{name}/events", tags=["queries"], response_class=Response)
    async def events(
        name: Name,
        after: Annotated[
            str | None, Query(max_length=40, description="a commit; without it, from now on")
        ] = None,
        last_event_id: Annotated[str | None, Header(max_length=40)] = None,
    ) -> Response:
        """Server-sent events, one for each commit with answers (in parts of 1000 rows)."""
        service.query(name)
        place = last_event_id or after
        return following(feeds.of_query(name, None if place is None else ReadPosition.parse(place)))

    @app.get("/api/events", tags=["queries"], response_class=Response)
    async def everything(
        after: Annotated[str | None, Query(max_length=40)] = None,
        last_event_id: Annotated[str | None, Header(max_length=40)] = None,
    ) -> Response:
        """What the page shows: how the engine does, and the first rows of new answers of all queries."""
        place = last_event_id or after
        return following(feeds.of_all(None if place is None else ReadPosition.parse(place)))


def _page(
    service: Service, form: str, name: str, after: ReadPosition, before: ReadPosition | None, limit: int
) -> Response:
    query, parts, more = service.page(name, after, before, limit)
    tables = [part.table.cast(query.columns) for part in parts]
    lost = False
    if before is not None:
        tables = [table.take(list(range(table.num_rows - 1, -1, -1))) for table in tables]
        end = ReadPosition(parts[-1].commit, parts[-1].number) if parts else before
    else:
        end = parts[-1].place if parts else after
        lost = after < ReadPosition(service.answers.gone(query.name)) and after.commit > 0
    table = pa.concat_tables([query.columns.empty_table(), *tables])
    headers = {"windrow-next": str(end), "windrow-more": str(more).lower()}
    newest = max((part.commit for part in parts), default=None)
    known = {"query": query.name, "next": str(end), "more": more, "lost": lost, "newest": newest}
    return _written(table, form, known, headers)


def _add_rows(app: FastAPI, service: Service) -> None:
    @app.get("/api/streams", tags=["streams"])
    async def streams() -> list[dict[str, Any]]:
        """The streams, and how far they are."""
        return (await asyncio.to_thread(service.watch.look))["streams"]  # type: ignore[no-any-return]

    @app.get("/api/streams/{name}/recent", tags=["streams"])
    async def recent(
        name: Name,
        span: Annotated[int, Query(ge=1, le=10**15, description="in ticks: microseconds for times")],
        rows: Annotated[int, Query(ge=1, le=2000)] = 400,
        column: Annotated[str | None, Query(max_length=300)] = None,
    ) -> dict[str, Any]:
        """Some of the rows below the watermark, of a stream that keeps its rows: for a picture."""
        return await asyncio.to_thread(service.recent, name, span, rows, column)

    @app.post("/api/streams/{name}/rows", tags=["streams"], response_model=Pushed, openapi_extra=_ROWS_BODY)
    async def push(
        name: Name,
        request: Request,
        content_type: Annotated[str | None, Header()] = None,
        idempotency_key: Annotated[str | None, Header(max_length=200)] = None,
    ) -> Response:
        """Rows for a stream that is declared FROM 'push:'. Answered when a commit holds them."""
        service.stream(name)
        kind = (content_type or "").partition(";")[0].strip().lower()
        form = formats.READ.get(kind)
        if form is None:
            hint = f"say `content-type: {next(iter(formats.READ))}`; known are {', '.join(formats.READ)}"
            return told(415, "unknown-form", f"rows of `{kind[:80]}` are not read", hint)
        body = await request.body()
        try:
            found = await asyncio.to_thread(service.push, name, form, body, idempotency_key, _caller(request))
        except WindrowError as error:
            service.counts["push_refused"] += 1
            return refused(error)
        service.counts["push"] += 1
        return Response(formats.as_json(found), media_type=formats.JSON)

    @app.post("/api/streams/{name}/rate", tags=["streams"])
    async def quicken(name: Name, body: Times, request: Request) -> dict[str, Any]:
        """A bundled stream comes at its declared rate so many times: to see what an overload does."""
        return await asyncio.to_thread(service.quicken, name, body.times, _caller(request))


def _add_page(app: FastAPI, pages: page.Pages, tokens: AccessTokens) -> None:
    @app.get("/", include_in_schema=False)
    async def home() -> Response:
        return pages.respond("index.html", None)

    @app.get("/favicon.svg", include_in_schema=False)
    async def icon() -> Response:
        return pages.respond("favicon.svg", None)

    @app.get("/page/{path:path}", include_in_schema=False)
    async def asset(path: str, if_none_match: Annotated[str | None, Header()] = None) -> Response:
        return pages.respond(path, if_none_match)

    @app.post("/login", include_in_schema=False)
    async def login(request: Request) -> Response:
        """Exchange a token for the page's cookie."""
        token = pages.token_of(await request.body())
        if tokens.role(token) is None:
            return Response(pages.login_again, 401, media_type="text/html")
        response = RedirectResponse("/", 303)
        secure = request.headers.get("x-forwarded-proto", request.url.scheme) == "https"
        response.set_cookie(
            COOKIE,
            cookie_of(token),
            max_age=30 * 86400,
            httponly=True,
            samesite="strict",
            secure=secure,
            path="/",
        )
        return response

    @app.post("/logout", include_in_schema=False)
    async def logout() -> Response:
        response = RedirectResponse("/", 303)
        response.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")
        return response
