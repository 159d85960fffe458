"""Server-sent events: answers as they are committed, to clients that each go at their own pace.

A client is a place in the log of answers. The newest answers of each query that somebody follows are read,
and written as events, once for all: its tail. A client takes what comes after its place from there; one that
is further behind reads the log until it has caught up. However many they are, sending takes a small share of
the time: after each round there is a rest, and the next has all that was committed meanwhile. What is sent
goes through the connection's own bounded buffer; a client that takes nothing for a while is let go, and
resumes by `Last-Event-ID` where it was.
"""

from __future__ import annotations

import asyncio
import time
from asyncio import AbstractEventLoop, Future
from collections import deque
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing, suppress
from functools import partial
from typing import Any

from starlette.responses import Response

from windrow.errors import WindrowError
from windrow.server import access, formats, watch
from windrow.server.answers import Part, ReadPosition
from windrow.server.service import Service

#: seconds between two signs of life
_ALIVE = 15.0
#: seconds between two looks at an engine for all who watch it: at least, and at most
LOOK, _IDLE = 0.25, 2.0
#: a look that takes long, since there are many queries, is followed by so many times as long without one
_SPARE = 15
#: the same for rounds of sending, and so many seconds at most
_REST, _LONGEST_REST = 19, 1.0
#: bytes of the newest events of all queries that are held for those who follow, and that one gets at a time
_TAIL_BYTES, _CHUNK_BYTES = 32 << 20, 256 << 10
#: so many places of clients have what comes after them made already
_PLACES = 8
#: rows of one query and commit that a page gets, which draws lines and no tables
_PAGE_ROWS = 300


class Bell:
    """Wakes tasks from any thread."""

    def __init__(self) -> None:
        #: of those who wait
        self.loop: AbstractEventLoop | None = None
        self._rung = asyncio.Event()
        self.count = 0

    def ring(self, *_: Any) -> None:
        if self.loop is not None and not self.loop.is_closed():
            with suppress(RuntimeError):  # it is being closed in this moment
                self.loop.call_soon_threadsafe(self.strike)

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
            async with asyncio.timeout(timeout):
                await self._rung.wait()
        except TimeoutError:
            return False
        return True


def event(name: str, data: Any, id_: str | None = None) -> bytes:
    r"""One event.

    >>> event("end", {"query": "top"}, "17")
    b'id: 17\nevent: end\ndata: {"query":"top"}\n\n'
    """
    head = f"id: {id_}\n" if id_ is not None else ""
    return f"{head}event: {name}\ndata: ".encode() + formats.as_json(data) + b"\n\n"


class Tail:
    """The newest events of a query, for all who follow it; of each commit the first `most` rows, if not 0.

    >>> tail = Tail("top", "top@1", ReadPosition(3))
    >>> tail.add([(ReadPosition(4), b"four"), (ReadPosition(5), b"five")])
    >>> tail.after(ReadPosition(3))
    (ReadPosition(commit=5, part=2147483647), b'fourfive')
    >>> tail.after(ReadPosition(5))
    (ReadPosition(commit=5, part=2147483647), b'')
    """

    def __init__(self, name: str, id_: str, start: ReadPosition, most: int = 0) -> None:
        self.name, self.id, self.most = name, id_, most
        #: it has all events after `start`, up to `last`
        self.start = self.last = start
        self._events: deque[tuple[ReadPosition, bytes]] = deque()
        self._bytes = 0
        self._next: dict[ReadPosition, tuple[ReadPosition, bytes]] = {}
        self.bell = Bell()
        self.followers = 0
        #: no more comes, since the query is gone, or since its answers cannot be read
        self.is_over = False
        self.error: Exception | None = None

    def add(self, written: Iterable[tuple[ReadPosition, bytes]], most_bytes: int = _TAIL_BYTES) -> None:
        """What was answered since, each with the place of who has it. The newest of so many bytes stay."""
        for self.last, text in written:
            self._events.append((self.last, text))
            self._bytes += len(text)
        while self._bytes > most_bytes and len(self._events) > 1:
            self.start, gone = self._events.popleft()
            self._bytes -= len(gone)
        self._next.clear()
        self.bell.strike()

    def after(self, place: ReadPosition) -> tuple[ReadPosition, bytes]:
        """What comes after a place that is not before `start`, and the place of who has it. Most who follow
        are at the same place, and get the same bytes."""
        if place >= self.last:
            return place, b""
        if place not in self._next:
            end, texts = place, bytearray()
            for each, text in self._events:
                if each > place:
                    if texts and len(texts) + len(text) > _CHUNK_BYTES:
                        break
                    end = each
                    texts += text
            if len(self._next) >= _PLACES:
                self._next.clear()
            self._next[place] = end, bytes(texts)
        return self._next[place]

    def end(self, error: Exception | None = None) -> None:
        self.is_over, self.error = True, error
        self.bell.strike()


class Feeds:
    """The event streams of one server."""

    def __init__(self, service: Service) -> None:
        self._service = service
        #: a query may have new answers, or be gone; something has changed; pages have something new to show
        self.answers, self.changes, self.pages = Bell(), Bell(), Bell()
        self._look = b""
        service.answers.listeners.append(self._ring)
        service.listeners.extend((self.answers.ring, self.changes.ring))
        self._tails: dict[tuple[str, int], Tail] = {}
        #: queries that have answers their tails may not have yet
        self._fresh: set[str] = set()
        self._behind: dict[tuple[Tail, ReadPosition], Future[list[tuple[ReadPosition, bytes]]]] = {}
        self._catching_up = asyncio.Semaphore(1)
        #: how many follow now
        self.clients = 0
        #: set when the server ends: who follows may come back, to this server or to the next
        self.closed = asyncio.Event()

    async def keep_looking(self) -> None:
        """Look at the engine after its epochs, a few times a second at most, for all who watch."""
        service = self._service
        while True:
            heard, began = self.changes.count, time.monotonic()
            look = await asyncio.to_thread(service.watch.look)
            self._look = event("look", {**look, "run": service.runner.status}, str(look["commit"]))
            self.pages.strike()
            await asyncio.sleep(max(LOOK, _SPARE * (time.monotonic() - began)))
            await self.changes.wait(heard, _IDLE)

    # ------------------------------------------------------------ tails

    def _ring(self, name: str) -> None:
        """A query has new answers; called in the thread that delivers them."""
        self._fresh.add(name)
        self.answers.ring()

    async def keep_reading(self) -> None:
        """Read what queries answer, once for all who follow them."""
        while True:
            heard, began, worked = self.answers.count, time.monotonic(), time.thread_time()
            fresh = {self._fresh.pop() for _ in range(len(self._fresh))}  # others may be added meanwhile
            ids = self._ids()
            for tail in list(self._tails.values()):
                if tail.name in fresh:
                    await self._read(tail)
                if ids.get(tail.name) != tail.id:
                    self._end(tail)
            # those who were woken send now; as long as that takes, and some times as long, nobody is woken
            while (passed := time.monotonic() - began) < _rest(time.thread_time() - worked):
                await asyncio.sleep(_rest(time.thread_time() - worked) - passed)
            await self.answers.wait(heard, _IDLE)

    def _ids(self) -> dict[str, str]:
        """The queries that are there, each with its id. One that is dropped in this moment is not."""
        found = {}
        for name, query in watch.steady(lambda: dict(self._service.windrow.queries)).items():
            with suppress(WindrowError):
                found[name] = query.id
        return found

    async def _read(self, tail: Tail) -> None:
        try:
            while written := await asyncio.to_thread(self._written, tail, tail.last):
                tail.add(written, _TAIL_BYTES // len(self._tails or (tail,)))
                if tail.most:
                    self.pages.strike()
        except Exception as error:  # noqa: BLE001  those who follow this one are told, the others go on
            self._end(tail, error)

    def _written(self, tail: Tail, place: ReadPosition) -> list[tuple[ReadPosition, bytes]]:
        """Some of the events after a place, each with the place of who has it."""
        log, name, told = self._service.answers, tail.name, []
        if place < (gone := ReadPosition(log.gone(name))):
            lost = {"query": name, "after": str(place), "gone": gone.commit}
            told, place = [(gone, b"" if tail.most else event("lost", lost, str(gone)))], gone
        parts = log.after(name, place)
        if tail.most:
            return told + [
                (ReadPosition(each.commit), _text_of(each, tail.most)) for each in parts if not each.number
            ]
        return told + [(each.place, _text_of(each, 0)) for each in parts]

    def _end(self, tail: Tail, error: Exception | None = None) -> None:
        if self._tails.get((tail.name, tail.most)) is tail:
            del self._tails[tail.name, tail.most]
        tail.end(error)

    async def _follow(self, name: str, id_: str, most: int = 0) -> tuple[Tail, ReadPosition]:
        """The tail of a query, until `_leave`; and the place of who has everything."""
        last = await asyncio.to_thread(self._service.answers.last, name)
        tail = self._tails.get((name, most))
        if tail is None or tail.id != id_:
            if tail is not None:
                self._end(tail)
            tail = self._tails[name, most] = Tail(name, id_, last, most)
            self._fresh.add(name)  # what came since `last` was read
            self.answers.strike()
        tail.followers += 1
        return tail, last

    def _leave(self, tail: Tail) -> None:
        tail.followers -= 1
        if not tail.followers:
            self._end(tail)

    async def _next(self, tail: Tail, place: ReadPosition) -> tuple[ReadPosition, bytes]:
        """Some of the events after a place, and the place of who has them; no bytes if there are none yet."""
        while place < tail.start:
            key = tail, place
            if key not in self._behind:  # those who come back after a restart are at the same place
                self._behind[key] = asyncio.ensure_future(self._catch_up(tail, place))
                self._behind[key].add_done_callback(partial(self._behind.pop, key))
            written = await asyncio.shield(self._behind[key])
            place = written[-1][0]
            if text := b"".join(each for _, each in written):
                return place, text
        return tail.after(place)

    async def _catch_up(self, tail: Tail, place: ReadPosition) -> list[tuple[ReadPosition, bytes]]:
        """The same for one that is before the tail; if the log has nothing there, where the tail began."""
        async with self._catching_up:  # one at a time: epochs need the machine too
            start = tail.start
            return await asyncio.to_thread(self._written, tail, place) or [(start, b"")]

    # ------------------------------------------------------------ clients

    async def of_query(self, name: str, after: ReadPosition | None) -> AsyncGenerator[bytes, None]:
        """The answers of one query after a place; without one, those to come."""
        query = self._service.query(name)
        columns = formats.columns_of(query.columns)
        tail, last = await self._follow(query.name, query.id)
        try:
            place = after if after is not None else last
            opened = {"query": tail.name, "columns": columns, "after": str(place)}
            yield b"retry: 2000\n" + event("open", opened)
            while True:
                heard = tail.bell.count
                place, text = await self._next(tail, place)
                if text:
                    yield text
                elif tail.error is not None:
                    raise tail.error
                elif tail.is_over:
                    yield event("end", {"query": tail.name, "reason": "dropped"})
                    return
                elif not await tail.bell.wait(heard, _ALIVE):
                    yield b": alive\n\n"
        finally:
            self._leave(tail)

    async def of_all(self, after: ReadPosition | None) -> AsyncGenerator[bytes, None]:
        """What a page shows: looks at the engine, and of every query's new answers the first rows.

        The ids of its events are commits: a page that comes back begins with the answers it has not seen.
        """
        service = self._service
        yield b"retry: 1000\n" + event("hello", await asyncio.to_thread(service.watch.history))
        tails: dict[str, Tail] = {}
        places: dict[str, ReadPosition] = {}
        shown = b""
        try:
            while True:
                heard = self.pages.count
                if self._look != shown:
                    shown = self._look
                    yield shown
                for name, id_ in self._ids().items():
                    if name not in tails:
                        tails[name], last = await self._follow(name, id_, _PAGE_ROWS)
                        places.setdefault(name, ReadPosition(after.commit) if after is not None else last)
                    text = b"?"
                    while text:
                        places[name], text = await self._next(tails[name], places[name])
                        if text:
                            yield text
                for name, tail in list(tails.items()):
                    if tail.error is not None:
                        raise tail.error
                    if tail.is_over:
                        self._leave(tails.pop(name))
                await asyncio.sleep(LOOK)
                if not await self.pages.wait(heard, _ALIVE):
                    yield b": alive\n\n"
        finally:
            for tail in tails.values():
                self._leave(tail)


def _rest(worked: float) -> float:
    """Seconds of a round of sending with the rest after it, if it has kept this thread busy for so long."""
    return min((1 + _REST) * worked, _LONGEST_REST)


def _text_of(part: Part, most: int) -> bytes:
    table = part.table
    rows = formats.as_json_rows(table.slice(0, most) if most else table)
    data = {"query": part.query, "commit": part.commit, "part": part.number, "last": part.is_last}
    if most:
        return event("answers", {**data, "rows": rows, "of": part.rows})
    return event("answers", {**data, "rows": rows}, str(part.place))


class EventStream(Response):
    """A response that sends events until they end or the client has left, or takes too long to take."""

    def __init__(self, events: AsyncGenerator[bytes, None], seconds: float, feeds: Feeds) -> None:
        super().__init__(media_type="text/event-stream", headers={"x-accel-buffering": "no"})
        self._events, self._seconds, self._feeds = events, seconds, feeds

    async def __call__(self, scope: access.Scope, receive: access.Receive, send: access.Send) -> None:
        self._feeds.clients += 1
        headers = [each for each in self.raw_headers if each[0] != b"content-length"]
        whiles = self._send(headers, send), _left(receive), self._feeds.closed.wait()
        tasks = {asyncio.ensure_future(each) for each in whiles}
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                if not isinstance(task.exception(), TimeoutError | OSError | None):
                    task.result()
        finally:
            self._feeds.clients -= 1
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _send(self, headers: list[tuple[bytes, bytes]], send: access.Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        async with aclosing(self._events) as events:
            async for text in events:
                async with asyncio.timeout(self._seconds):
                    await send({"type": "http.response.body", "body": text, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _left(receive: access.Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
