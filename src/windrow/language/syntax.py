"""The syntax tree: what was written, with its place in the text, before any name has a meaning.

It is Windrow's own: whatever parses the text (our grammar for window brackets and stream words,
sqlglot for the SQL around them) ends here, and binding starts here.

Where things stand: spans of nodes from the spans of their parts. What is below a node: walks and changes.

Also sets of words, which half of the language needs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, fields, replace
from decimal import Decimal
from typing import Any, TypeVar

from windrow.algebra.plan import StreamWord
from windrow.errors import Span
from windrow.language.tokens import Placed, Tokens
from windrow.windows.clause import WindowClause
from windrow.windows.domain import Quantity


def words(text: str) -> frozenset[str]:
    """The words of a text, as a set.

    >>> sorted(words("RANGE ROWS"))
    ['RANGE', 'ROWS']
    """
    return frozenset(text.split())


def hull(places: Iterable[Span | Placed]) -> Span:
    """The least span that holds all of them.

    >>> hull([Span(4, 6), Span(1, 2)])
    Span(start=1, end=6)
    """
    every = [place if isinstance(place, Span) else place.span for place in places]
    return Span(min(span.start for span in every), max(span.end for span in every))


def grown(
    span: Span, tokens: Tokens, left: Sequence[Collection[str]] = (), right: Sequence[Collection[str]] = ()
) -> Span:
    """The span with the keywords and signs beside it that belong to it, one of each set, nearest first."""
    start, end = span.start, span.end
    before = tokens.before(start)
    for words_before in left:
        if tokens.word(before) not in words_before:
            break
        start, before = tokens[before].start, before - 1
    after = tokens.at(end)
    for words_after in right:
        if tokens.word(after) not in words_after:
            break
        end, after = tokens[after].end, after + 1
    return Span(start, end)


def enclosed(span: Span, tokens: Tokens) -> Span:
    """The span with the parentheses directly around it."""
    before, after = tokens.before(span.start), tokens.at(span.end)
    if tokens.word(before) == "(" and tokens.partner.get(before) == after:
        return Span(tokens[before].start, tokens[after].end)
    return span


def closed(span: Span, tokens: Tokens) -> Span:
    """The span up to the end of all parentheses that are opened in it."""
    inside = range(tokens.at(span.start), tokens.at(span.end))
    closing = [tokens.partner[index] for index in inside if tokens.word(index) == "("]
    return Span(span.start, max([span.end, *(tokens[index].end for index in closing)]))


@dataclass(frozen=True)
class Node:
    """Anything that was written."""

    span: Span


#: the keys of an ORDER BY, each with whether it is descending
Keys = tuple[tuple[Node, bool], ...]
AnyNode = TypeVar("AnyNode", bound=Node)


def meaning(node: Any) -> Any:
    """A piece of syntax without its places, to compare."""
    if isinstance(node, Node):
        return type(node), [meaning(getattr(node, part.name)) for part in fields(node) if part.name != "span"]
    return [meaning(each) for each in node] if isinstance(node, tuple) else node


def children(node: Node) -> list[Node]:
    """The parts of a node that are syntax themselves, in the order of the text."""
    return [child for part in fields(node) for child in _inside(getattr(node, part.name))]


def _inside(value: Any) -> Iterator[Node]:
    if isinstance(value, Node):
        yield value
    elif isinstance(value, tuple):
        for each in value:
            yield from _inside(each)


def walk(node: Node, *, into_queries: bool = False) -> Iterator[Node]:
    """The node and all below it, in the order of the text; nested queries are entered only if asked for."""
    yield node
    for child in children(node):
        if into_queries or not isinstance(child, QueryExpression):
            yield from walk(child, into_queries=into_queries)


def rebuilt(node: AnyNode, change: Callable[[Node], Node], *, into_queries: bool = False) -> AnyNode:
    """The node with `change` applied to each part of it that is syntax; nested queries stay as they are,
    unless asked for."""

    def changed(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(changed(each) for each in value)
        stays = not isinstance(value, Node) or (isinstance(value, QueryExpression) and not into_queries)
        return value if stays else change(value)

    return replace(node, **{part.name: changed(getattr(node, part.name)) for part in fields(node)})


# Expressions.


@dataclass(frozen=True)
class Name(Node):
    """`price` or `bids.price`; quoted parts come unquoted."""

    parts: tuple[str, ...]


@dataclass(frozen=True)
class Star(Node):
    """`*` or `bids.*`, perhaps EXCEPT (a, b), or REPLACE (x AS a)."""

    qualifier: str | None = None
    without: tuple[Name, ...] = ()
    instead: tuple[SelectItem, ...] = ()


@dataclass(frozen=True)
class Constant(Node):
    """A literal: `kind` is NUMBER (value is its text), STRING, BOOLEAN, NULL, TIMESTAMP, DATE (text) or
    INTERVAL (value is microseconds) or BINARY."""

    value: Any
    kind: str


@dataclass(frozen=True)
class Apply(Node):
    """An operator or function by its registry name (`+`, `and`, `case`, `upper`, `sum`, …), applied.
    `order` has the keys of an ORDER BY inside an aggregate, each with whether it is descending."""

    function: str
    args: tuple[Node, ...]
    distinct: bool = False
    where: Node | None = None
    order: Keys = ()


@dataclass(frozen=True)
class CastTo(Node):
    """CAST or, `safe`, TRY_CAST."""

    arg: Node
    type_text: str
    safe: bool = False


@dataclass(frozen=True)
class ExistsTest(Node):
    """`[NOT] EXISTS (SELECT …)`."""

    query: QueryExpression
    negated: bool


@dataclass(frozen=True)
class InTest(Node):
    """`x [NOT] IN (SELECT …)`, or `(x, y) [NOT] IN (SELECT …)`."""

    args: tuple[Node, ...]
    query: QueryExpression
    negated: bool = False


@dataclass(frozen=True)
class ScalarQuery(Node):
    """`(SELECT …)` where a value stands."""

    query: QueryExpression


@dataclass(frozen=True)
class FrameSyntax(Node):
    """`RANGE BETWEEN 1 HOUR PRECEDING AND CURRENT ROW`: how far before a row it starts, None if UNBOUNDED,
    and where it stops, a bare 0 for the row itself."""

    by_rows: bool
    start: Quantity | None
    stop: Quantity


@dataclass(frozen=True)
class OverCall(Node):
    """`ROW_NUMBER() OVER (PARTITION BY … ORDER BY …)`; `order` has each key with whether it is descending.
    `call` is what stands before OVER, `frame` None where none is written."""

    call: Apply
    partition: tuple[Node, ...]
    order: Keys
    frame: FrameSyntax | None = None
    ignores_null: bool = False

    @property
    def function(self) -> str:
        """The name before OVER, in capitals."""
        return self.call.function.upper()


@dataclass(frozen=True)
class WStream(Node):
    """`WSTREAM(items)[window]`, as the whole select list or as the argument of an aggregate."""

    items: tuple[SelectItem, ...]
    window: WindowSyntax


# Queries.


@dataclass(frozen=True)
class WindowSyntax(Node):
    """A window bracket. LIFETIME's expression is syntax; all else is in the clause.

    `points` says of ORIGIN, FROM and UNTIL where they stand and whether they are written as times.
    """

    clause: WindowClause
    lifetime: Node | None = None
    points: tuple[PointSyntax, ...] = ()


@dataclass(frozen=True)
class PointSyntax(Node):
    """A point of the attribute: a quoted time, an amount of time since 1970, or a bare number."""

    word: str
    is_time: bool


@dataclass(frozen=True)
class SelectItem(Node):
    """An expression of the select list and its alias."""

    expression: Node
    alias: str | None


@dataclass(frozen=True)
class FromEntry(Node):
    """An entry of FROM: a named stream, table or query, or a nested query; with its window.

    `function` is TUMBLE, HOP, CUMULATE or SESSION, if the window is written so. Where any join of a SELECT is
    outer, `join` is LEFT, RIGHT or FULL for those that are, and `on` has the conditions of each join.
    `as_of` is the time of FOR SYSTEM_TIME AS OF.
    """

    name: str | None
    query: QueryExpression | None
    alias: str | None
    window: WindowSyntax | None
    function: str | None = None
    join: str = ""
    on: tuple[Node, ...] = ()
    as_of: Node | None = None


@dataclass(frozen=True)
class Unnesting(Node):
    """`UNNEST(x) AS t(a, b)`, `LATERAL VIEW [OUTER] explode(x) t AS a`, or explode in a select list; its
    `function` is UNNEST, EXPLODE or POSEXPLODE. With ORDINALITY the last column counts from 1."""

    function: str
    array: Node
    alias: str | None = None
    columns: tuple[str, ...] = ()
    outer: bool = False
    ordinality: bool = False


@dataclass(frozen=True)
class QueryExpression(Node):
    """A SELECT or a set operation."""


@dataclass(frozen=True)
class EmitClause(Node):
    """EMIT CHANGES, EMIT FINAL or EMIT ON WINDOW CLOSE at the end of a query: what its writer relies on."""

    final: bool


@dataclass(frozen=True)
class Select(QueryExpression):
    """One SELECT. JOIN … ON and comma joins are both in `sources`, their conditions in `on`."""

    items: tuple[SelectItem, ...]
    sources: tuple[FromEntry, ...]
    word: StreamWord
    distinct: bool = False
    unnests: tuple[Unnesting, ...] = ()
    on: tuple[Node, ...] = ()
    where: Node | None = None
    group_by: tuple[Node, ...] = ()
    having: Node | None = None
    qualify: Node | None = None
    order_by: Keys = ()
    limit: Node | None = None
    emits: EmitClause | None = None


@dataclass(frozen=True)
class SetOperation(QueryExpression):
    """`left UNION ALL right` and its like; `kind` is UNION, EXCEPT or INTERSECT.

    `distinct` says that ALL was not written.
    """

    kind: str
    left: QueryExpression
    right: QueryExpression
    distinct: bool = False
    emits: EmitClause | None = None


# Statements.


@dataclass(frozen=True)
class Statement(Node):
    """A statement of a script."""


@dataclass(frozen=True)
class ColumnDef(Node):
    """`name TYPE [FORMAT 'form'] [ZONE 'zone']` of a CREATE, or `name [TYPE] AS expression`: the type may be
    empty."""

    name: str
    type_text: str
    form: str | None = None
    computed: Node | None = None
    zone: str | None = None


@dataclass(frozen=True)
class ProgressSyntax(Node):
    """SLACK, ORDERED or PUNCTUATED, with its parts. `amount` is the SLACK, `idle` the IDLE quantity."""

    kind: str
    amount: Any = None
    per: str | None = None
    idle: Any = None
    mark: Node | None = None
    when: Node | None = None


@dataclass(frozen=True)
class StreamOptions(Statement):
    """What follows the columns of a stream."""

    _: KW_ONLY
    wattr: str | None = None
    #: what one tick of a WATTR is that is a DOUBLE or a DECIMAL
    resolution: Decimal | None = None
    progress: ProgressSyntax | None = None
    late: str = "DROP"
    late_sink: str | None = None
    sheddable: bool = False
    source: str | None = None
    keep: Quantity | None = None
    #: rows per second, and how many different values columns have
    expected: tuple[int, tuple[tuple[str, int], ...]] | None = None
    #: ALSO: further attributes with their policies
    also: tuple[tuple[str, ProgressSyntax], ...] = ()


@dataclass(frozen=True)
class CreateStream(StreamOptions):
    """CREATE STREAM."""

    name: str
    columns: tuple[ColumnDef, ...]
    if_missing: bool = False


@dataclass(frozen=True)
class CreateTable(Statement):
    """CREATE TABLE."""

    name: str
    columns: tuple[ColumnDef, ...]
    key: tuple[str, ...]
    kind: str
    source: str | None
    if_missing: bool = False


@dataclass(frozen=True)
class CreateQuery(Statement):
    """CREATE [OR REPLACE] QUERY; `every` and `at_most` are the quantities of EVERY … AT MOST."""

    name: str
    query: QueryExpression
    sink: str | None
    priority: int
    max_gap: int | None
    every: Any = None
    at_most: Any = None
    if_missing: bool = False
    replaces: bool = False


@dataclass(frozen=True)
class Drop(Statement):
    """DROP QUERY | STREAM | TABLE | ARCHIVE [IF EXISTS] name."""

    kind: str
    name: str
    if_there: bool = False


@dataclass(frozen=True)
class NamedStatement(Statement):
    """A statement that is about a name, and says no more."""

    name: str


class Describe(NamedStatement):
    """DESCRIBE name."""


@dataclass(frozen=True)
class Show(Statement):
    """SHOW QUERIES | STREAMS | TABLES | ARCHIVES | GAPS."""

    kind: str


@dataclass(frozen=True)
class Explain(Statement):
    """EXPLAIN query."""

    query: QueryExpression


class ExplainArchive(NamedStatement):
    """EXPLAIN ARCHIVE name."""


class Analyze(NamedStatement):
    """EXPLAIN ANALYZE name."""


class Refresh(NamedStatement):
    """REFRESH QUERY name."""


@dataclass(frozen=True)
class SelectOnce(Statement):
    """A bare SELECT: run once over the live windows. `isolation` is LATEST or WINDOW, if it is given."""

    query: QueryExpression
    isolation: str | None = None
    priority: int = 0
