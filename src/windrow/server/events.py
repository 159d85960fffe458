"""Server-sent events: answers as they are committed, to clients that each go at their own pace.

A client is a place in the log of answers. When a query has new answers, a bell rings; the client's task reads
on from its place, sends, and waits for the bell again. What is sent goes through the connection's own bounded
buffer; a client that takes nothing for a while is let go, and resumes by `Last-Event-ID` where it was.
"""

from __future__ import annotations

import asyncio
import time
from asyncio import AbstractEventLoop
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from windrow.server.answers import Place
from windrow.server.formats import as_json, as_json_rows, columns_of

if TYPE_CHECKING:
    from windrow.server.access import Receive, Scope, Send
    from windrow.server.answers import Part
    from windrow.server.service import Service

#: seconds between two signs of life
_ALIVE = 15.0
#: seconds between two looks at an engine for all who watch it: at least, and at most
LOOK, _IDLE = 0.25, 2.0
#: a look that takes long, since there are many queries, is followed by so many times as long without one
_SPARE = 15
#: texts of events that are kept for the next who wants the same
_CACHED = 256
#: rows of one query and commit that a page gets, which draws lines and no tables
_PAGE_ROWS = 300


class Bell:
    """Wakes tasks from any thread."""

    def __init__(self) -> None:
        self._loop: AbstractEventLoop | None = None
        self._rung = asyncio.Event()
        self.count = 0

    def belong_to(self, loop: AbstractEventLoop) -> None:
        """The loop of those who wait."""
        self._loop = loop

    def ring(self, *_: Any) -> None:
        """Wake all who wait."""
        if self._loop is not None and not self._loop.is_closed():
            with suppress(RuntimeError):  # it is being closed in this moment
                self._loop.call_soon_threadsafe(self.strike)

    def strike(self) -> None:
        """The same, in the loop of those who wait."""
        self.count += 1
        rung, self._rung = self._rung, asyncio.Event()
        rung.set()

    async def wait(self, heard: int, timeout: float) -> bool:
        """Until it has rung more often than `heard`; False if time is up first."""
        if self.count != heard:
            return True
        try:
            await asyncio.wait_for(self._rung.wait(), timeout)
        except TimeoutError:
            return False
        return True


def event(name: str, data: Any, id_: str | None = None) -> bytes:
    r"""One event.

    >>> event("end", {"query": "top"}, "17")
    b'id: 17\nevent: end\ndata: {"query":"top"}\n\n'
    """
    head = f"id: {id_}\n" if id_ is not None else ""
    return f"{head}event: {name}\ndata: ".encode() + as_json(data) + b"\n\n"


class Feeds:
    """The event streams of one server."""

    def __init__(self, service: Service) -> None:
        self._service = service
        #: a query has new answers; something has changed; there is a new look at the engine
        self.answers, self.changes, self.looks = Bell(), Bell(), Bell()
        self._look = b""
        service.answers.listeners.append(self.answers.ring)
        service.listeners.append(self.changes.ring)
        self._texts: OrderedDict[tuple[str, int, int, int], bytes] = OrderedDict()
        #: how many follow now
        self.clients = 0
        #: set when the server ends
        self.closed = asyncio.Event()

    def close(self) -> None:
        """No more events: who follows may come back, to this server or to the next."""
        self.closed.set()

    def belong_to(self, loop: AbstractEventLoop) -> None:
        """The loop all clients are served in."""
        self.answers.belong_to(loop)
        self.changes.belong_to(loop)

    async def keep_looking(self) -> None:
        """Look at the engine after its epochs, a few times a second at most, for all who watch."""
        service = self._service
        while True:
            heard, began = self.changes.count, time.monotonic()
            look = await asyncio.to_thread(service.watch.look)
            self._look = event("look", {**look, "run": service.runner.status}, str(look["commit"]))
            self.looks.strike()
            await asyncio.sleep(max(LOOK, _SPARE * (time.monotonic() - began)))
            await self.changes.wait(heard, _IDLE)

    async def of_query(self, name: str, after: Place | None) -> AsyncIterator[bytes]:
        """The answers of one query after a place; without one, those to come."""
        service, log = self._service, self._service.answers
        query = service.query(name)
        id_, known = query.id, query.name
        place = after if after is not None else await asyncio.to_thread(log.last, known)
        yield b"retry: 2000\n" + event(
            "open", {"query": known, "columns": columns_of(query.columns), "after": str(place)}
        )
        while True:
            heard = self.answers.count
            gone = await asyncio.to_thread(log.gone, known)
            if place < Place(gone):
                yield event("lost", {"query": known, "after": str(place), "gone": gone}, str(Place(gone)))
                place = Place(gone)
            parts = await asyncio.to_thread(log.after, known, place)
            for part in parts:
                yield await self._text(part)
                place = part.place
            if not parts:
                found = service.windrow.queries.get(known)
                if found is None or found.id != id_:
                    yield event("end", {"query": known, "reason": "dropped"})
                    return
                if not await self.answers.wait(heard, _ALIVE):
                    yield b": alive\n\n"

    async def _text(self, part: Part, most: int = 0) -> bytes:
        """The event of a part, for the first `most` rows if that is not 0; made once for all clients."""
        key = part.query, part.commit, part.number, most
        if key not in self._texts:
            self._texts[key] = await asyncio.to_thread(_text_of, part, most)
            while len(self._texts) > _CACHED:
                self._texts.popitem(last=False)
        return self._texts[key]

    async def of_all(self, after: Place | None) -> AsyncIterator[bytes]:
        """What a page shows: looks at the engine, and of every query's new answers the first rows.

        The ids of its events are commits: a page that comes back begins with the answers it has not seen.
        """
        service = self._service
        yield b"retry: 1000\n" + event("hello", await asyncio.to_thread(service.watch.history))
        places: dict[str, Place] = {}
        looked = -1
        while True:
            heard = self.answers.count
            if self.looks.count != looked:
                looked = self.looks.count
                yield self._look
            for name in list(service.windrow.queries):
                if name not in places:
                    last = await asyncio.to_thread(service.answers.last, name)
                    places[name] = after if after is not None else last
                async for text in self._new(name, places):
                    yield text
            await asyncio.sleep(LOOK)
            if self.answers.count == heard and not await self.looks.wait(looked, _ALIVE):
                yield b": alive\n\n"

    async def _new(self, name: str, places: dict[str, Place]) -> AsyncIterator[bytes]:
        """What a query has answered since; of a commit of many rows only the first."""
        for part in await asyncio.to_thread(self._service.answers.after, name, places[name], 5000):
            if part.number == 0:
                yield await self._text(part, _PAGE_ROWS)
            places[name] = Place(part.commit) if part.number == 0 else part.place


def _text_of(part: Part, most: int) -> bytes:
    table = part.table
    rows = as_json_rows(table.slice(0, most) if most else table)
    data = {"query": part.query, "commit": part.commit, "part": part.number, "last": part.is_last}
    if most:
        return event("answers", {**data, "rows": rows, "of": part.rows})
    return event("answers", {**data, "rows": rows}, str(part.place))


class EventStream(Response):
    """A response that sends events until they end or the client has left, or takes too long to take."""

    def __init__(
        self,
        events: AsyncIterator[bytes],
        seconds: float,
        closed: asyncio.Event,
        begin: Callable[[], None] = lambda: None,
        end: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(media_type="text/event-stream", headers={"x-accel-buffering": "no"})
        self._events, self._seconds, self._closed = events, seconds, closed
        self._begin, self._end = begin, end

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._begin()
        headers = [each for each in self.raw_headers if each[0] != b"content-length"]
        whiles = self._send(headers, send), _left(receive), self._closed.wait()
        tasks = {asyncio.ensure_future(each) for each in whiles}
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                if not isinstance(task.exception(), TimeoutError | OSError | None):
                    task.result()
        finally:
            self._end()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _send(self, headers: list[tuple[bytes, bytes]], send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        async for text in self._events:
            async with asyncio.timeout(self._seconds):
                await send({"type": "http.response.body", "body": text, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
