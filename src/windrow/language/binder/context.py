"""What the parts of the binder share while one query is bound.

A FROM clause holds queries, and queries hold FROM clauses; `Context.bind` closes that circle, so that
the files need not import each other in one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from windrow.algebra.plan import Plan, StreamWord

if TYPE_CHECKING:
    from collections.abc import Iterable

    from windrow.language.binder.scope import Scope
    from windrow.language.catalog import Catalog
    from windrow.language.syntax import Query


@dataclass(frozen=True)
class Relation:
    """A bound query before it is made a stream, and the word that was written to make it one."""

    plan: Plan
    word: StreamWord


@dataclass(frozen=True)
class Context:
    """The catalog, the names around this query, and the way to bind a nested one."""

    catalog: Catalog
    bind: Callable[[Query, Context], Relation]
    outer: Scope | None = None
    #: aliases, in small letters, that the plan has already used
    taken: frozenset[str] = frozenset()
    #: RSTREAM, if that is how the whole of which this query is a part becomes a stream
    word: StreamWord = StreamWord.AUTO

    def under(self, word: StreamWord) -> Context:
        """The context of the parts of a query that says this word."""
        if word is StreamWord.AUTO:
            return self
        return replace(self, word=word if word is StreamWord.RSTREAM else StreamWord.AUTO)

    def nested(self, as_stream: bool = False) -> Context:
        """The context of a query in FROM: it sees nothing of the query around it."""
        word = StreamWord.AUTO if as_stream else self.word
        return replace(self, outer=None, taken=frozenset(), word=word)

    def inside(self, scope: Scope, aliases: Iterable[str]) -> Context:
        """The context of an EXISTS: it sees the query around it, and must not reuse its aliases."""
        return replace(self, outer=scope, taken=self.taken | {alias.lower() for alias in aliases})

    def free(self, alias: str, more: Iterable[str] = ()) -> str:
        """The alias, numbered if it is taken already."""
        taken = self.taken | {name.lower() for name in more}
        candidates = [alias, *(f"{alias}_{number}" for number in range(2, len(taken) + 3))]
        return next(name for name in candidates if name.lower() not in taken)
