"""What the parts of the binder share while one query is bound.

A FROM clause holds queries, and queries hold FROM clauses; `Context.bind` closes that circle, so that
the files need not import each other in one.

Which pseudo columns a query reads, found in its text before its plan is made.

`row_num` and `arrival_ts` are columns of every stream, but a scan brings them along only for a query
that names them. A name in an EXISTS belongs to the query around it if its alias does.

`window_start` and `window_end`: facts of the extent an answer is about.

They are instants where the windows slide in time, and numbers where the attribute is a number or the
window counts rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields, replace
from typing import TypeAlias

from windrow.algebra import catalog, checks, expressions, operators as ops
from windrow.algebra.plan import Emit, Plan, StreamUnion, StreamWord, Window
from windrow.language import syntax
from windrow.language.binder.scope import Scope
from windrow.language.catalog import Catalog
from windrow.language.syntax import QueryExpression, walk
from windrow.windows.domain import Domain

# ------------------------------------------------------------ what the parts share


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
        return cls(ops.Union(tuple(side.plan for side in sides)), sides[0].word, sides)

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


# ------------------------------------------------------------ pseudo columns


@dataclass(frozen=True)
class Leaves:
    """The windows of a SELECT, before anything is made of them."""

    leaves: tuple[Window, ...]


def bounds_over(plan: Plan | Leaves) -> Callable[[str], expressions.WindowBound]:
    """What makes the bounds of the windows below."""

    def make(which: str) -> expressions.WindowBound:
        leaves = plan.leaves
        counted = any(leaf.spec.reports_positions for leaf in leaves)
        domains = {leaf.domain for leaf in leaves}
        domain = domains.pop() if len(domains) == 1 and not counted else Domain.NUMBER
        bound = expressions.WindowBound(which, catalog.instant_type(domain), domain.step)
        checks.window_bounds_are_defined(plan, [bound])
        return bound

    return make


#: (alias or None, pseudo column), in small letters
Reads: TypeAlias = frozenset[tuple[str | None, str]]


def pseudo_reads(select: syntax.Select) -> Reads:
    """The pseudo columns named anywhere in a SELECT, with the alias they were named by."""
    found: set[tuple[str | None, str]] = set()
    for part in parts(select):
        found |= set(_names(part))
        for node in walk(part):
            if isinstance(node, syntax.ExistsTest | syntax.InTest | syntax.ScalarQuery):
                found |= {(alias, name) for alias, name in _around(node.query) if alias is not None}
    return frozenset(found)


def pseudo_of(source: syntax.FromEntry, alias: str, reads: Reads) -> tuple[str, ...]:
    """Those that a source must bring, its own LIFETIME included."""
    if source.window is not None and source.window.lifetime is not None:
        reads |= frozenset(_names(source.window.lifetime))
    return tuple(
        name for name in catalog.PSEUDO_COLUMNS if (None, name) in reads or (alias.lower(), name) in reads
    )


def _around(query: syntax.QueryExpression) -> set[tuple[str | None, str]]:
    """What a nested query names that is not its own."""
    if isinstance(query, syntax.SetOperation):
        return _around(query.left) | _around(query.right)
    assert isinstance(query, syntax.Select)
    own = {(source.alias or source.name or "").lower() for source in query.sources}
    return {(alias, name) for alias, name in pseudo_reads(query) if alias is not None and alias not in own}


def _names(part: syntax.Node) -> Iterator[tuple[str | None, str]]:
    for node in walk(part):
        if (
            isinstance(node, syntax.Name)
            and node.parts[-1].lower() in catalog.PSEUDO_COLUMNS
            and len(node.parts) <= 2
        ):
            alias = node.parts[0].lower() if len(node.parts) == 2 else None
            yield alias, node.parts[-1].lower()


def parts(select: syntax.Select) -> Iterator[syntax.Node]:
    """Everything but FROM."""
    for field in fields(select):
        value = getattr(select, field.name)
        for item in value if isinstance(value, tuple) else (value,):
            part = item[0] if isinstance(item, tuple) else item
            if isinstance(part, syntax.FromEntry):
                yield from part.on
            elif isinstance(part, syntax.Node):
                yield part
