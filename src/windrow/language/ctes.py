"""WITH: each use of a name is replaced by its query. Windows stand where the name is used."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from windrow.errors import QueryError, Span
from windrow.language.syntax import Query

#: names used inside names multiply
MAX_COPIES = 200


@dataclass
class Ctes:
    """The names WITH has given so far, with how many queries each stands for."""

    queries: dict[str, Query] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    copies: int = 0

    def use(self, name: str, span: Span) -> Query | None:
        """The query a name in FROM stands for, if WITH has given it."""
        query = self.queries.get(name.lower())
        if query is None:
            return None
        self.copies += self.sizes[name.lower()]
        if self.copies > MAX_COPIES:
            raise QueryError(
                f"WITH makes more than {MAX_COPIES} copies of queries here",
                code="too-deep",
                span=span,
                hint="register the shared part with CREATE QUERY",
            )
        return query

    def define(self, name: str, query: Query, copies_before: int) -> None:
        """From here on the name stands for the query."""
        self.queries[name.lower()] = query
        self.sizes[name.lower()] = 1 + self.copies - copies_before

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Names given inside are forgotten after it."""
        queries, sizes = dict(self.queries), dict(self.sizes)
        try:
            yield
        finally:
            self.queries, self.sizes = queries, sizes
