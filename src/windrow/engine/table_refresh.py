"""Keeps tables what their sources say: looks whether there is news, and makes it a change."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from windrow.engine.tables import TableUpdate

if TYPE_CHECKING:
    from windrow.engine.engine import Engine
    from windrow.spark.sources.table_source import TableSource

#: seconds between two looks
PERIOD = 1.0


class Refreshing:
    """The tables of an engine and where they come from; more may be declared while it runs."""

    def __init__(self, engine: Engine, sources: Mapping[str, TableSource]) -> None:
        self._engine, self._sources = engine, sources
        self._looked = -float("inf")

    def begin(self) -> None:
        """A run begins: what is there is looked at, however short ago that was done."""
        self._looked = -float("inf")

    def refresh(self) -> None:
        """Take over what is new, unless it was looked for a moment ago. On return a commit holds it."""
        if time.monotonic() - self._looked < PERIOD:
            return
        for name in list(self._sources):
            self.look_at(name)
        self._looked = time.monotonic()

    def look_at(self, name: str) -> None:
        """Take over what is new in one table."""
        source, record = self._sources.get(name), self._engine.tables.get(name)
        if source is not None and record is not None:
            news = source.news(record.read)
            with self._engine.lock:
                if news is not None and name in self._engine.tables:  # it may have been dropped meanwhile
                    self._engine.change([TableUpdate(name, content=news.rows, read=news.read)])
