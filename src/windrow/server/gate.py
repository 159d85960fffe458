"""Turns for SELECTs: a few run, some wait, the others are told to come back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.requests import Request

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
        self._most, self.waiting = waiting, 0

    @asynccontextmanager
    async def turn(self, request: Request) -> AsyncIterator[None]:
        """A turn, to the end of the block; who has left while waiting gets none."""
        if self._places.locked() and self.waiting >= self._most:
            raise BusyError("there are too many SELECTs at once", 1 + self._most // 8)
        self.waiting += 1
        try:
            await self._enter(request)
        finally:
            self.waiting -= 1
        try:
            yield
        finally:
            self._places.release()

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
