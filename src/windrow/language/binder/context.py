"""What the parts of the binder share while one query is bound.

A FROM clause holds queries, and queries hold FROM clauses; `Context.bind` closes that circle, so that
the files need not import each other in one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from windrow.algebra.operators import Union
from windrow.algebra.plan import Emit, Plan, StreamUnion, StreamWord

if TYPE_CHECKING:
    from windrow.language.binder.scope import Scope
    from windrow.language.catalog import Catalog
    from windrow.language.syntax import QueryExpression


@dataclass(frozen=True)
class Relation:
    """A bound query before it is made a stream, and the word that was written to make it one."""

    plan: Plan
    word: StreamWord
    #: the sides of UNION ALL, each with its own word
    sides: tuple[Relation, ...] = ()

    @classmethod
    def of(cls, emit: Emit) -> Relation:
        """What a query was before it was made a stream."""
        if not emit.is_union:
            return cls(emit.input, emit.word)
        sides = tuple(cls(branch.input, branch.word) for branch in emit.branches)
        return cls(Union(tuple(side.plan for side in sides)), sides[0].word, sides)

    @property
    def words(self) -> set[StreamWord]:
        """The words that are written on it."""
        return {side.word for side in self.sides} or {self.word}

    @property
    def streams(self) -> tuple[Emit, ...]:
        """The streams whose union this is where a stream is wanted: of UNION ALL with a word on each side, or
        over windows that all have a SLIDE, one for each side."""
        united = StreamWord.AUTO not in self.words or all(side.plan.is_periodic for side in self.sides)
        if not self.sides or not united:
            return (Emit(self.plan, self.word),)
        return tuple(Emit(side.plan, side.word) for side in self.sides)

    @property
    def stream(self) -> Emit:
        """The query that it is where a stream is wanted."""
        streams = self.streams
        return streams[0] if len(streams) == 1 else Emit(StreamUnion(streams))


@dataclass(frozen=True)
class Context:
    """The catalog, the names around this query, and the way to bind a nested one."""

    catalog: Catalog
    bind: Callable[[QueryExpression, Context], Relation]
    outer: Scope | None = None
    #: aliases, in small letters, that the plan has already used
    taken: frozenset[str] = frozenset()
    #: RSTREAM, if that is how the whole of which this query is a part becomes a stream
    word: StreamWord = StreamWord.AUTO
    #: whether any window of the plan that this query is a part of moves without a SLIDE
    moves: bool = False

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
