"""Completions: which words may follow at a place of a script, for shells, editors and the page.

Only tokens are looked at, since a statement that is being typed seldom parses.

>>> from windrow.language.catalog import Catalog
>>> from windrow.language.compile import compile_script
>>> catalog = Catalog()
>>> columns = "item BIGINT, price DOUBLE, ts TIMESTAMP"
>>> _ = compile_script(f"CREATE STREAM bids ({columns}) WATTR ts ORDERED FROM 'push:'", catalog)
>>> def words(text):
...     return [each.text for each in completions(text, len(text), catalog)]
>>> words("SELECT pr"), words("SELECT * FROM b"), words("SELECT * FROM bids [NOW] AS b WHERE b.i")
(['price', 'PRIORITY'], ['bids'], ['item'])
>>> words("SELECT MAX(price) FROM bids [RA"), words("SELECT * FROM bids [RANGE 5 MINU"), words("crea")
(['RANGE', 'RATTR'], ['MINUTES'], ['CREATE'])
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from windrow.algebra import aggregates
from windrow.algebra.catalog import Stream, Table
from windrow.algebra.functions import catalogue
from windrow.errors import QueryError
from windrow.language.catalog import StandingQuery
from windrow.language.tokens import Token, TokenKind, scan

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from windrow.language.catalog import Catalog

_STATEMENTS = (
    "ALTER ARCHIVE",
    "CREATE ARCHIVE",
    "CREATE OR REPLACE QUERY",
    "CREATE QUERY",
    "CREATE STREAM",
    "CREATE TABLE",
    "DESCRIBE",
    "DROP ARCHIVE",
    "DROP QUERY",
    "DROP STREAM",
    "DROP TABLE",
    "EXPLAIN",
    "EXPLAIN ANALYZE",
    "REFRESH QUERY",
    "SELECT",
    "SHOW ARCHIVES",
    "SHOW GAPS",
    "SHOW QUERIES",
    "SHOW STREAMS",
    "SHOW TABLES",
)
_CLAUSES = """
    SELECT DISTINCT FROM WHERE GROUP BY HAVING QUALIFY ORDER LIMIT ASC DESC UNION ALL EXCEPT INTERSECT AS ON
    JOIN LEFT RIGHT FULL OUTER CROSS AND OR NOT IN EXISTS BETWEEN LIKE IS NULL TRUE FALSE CASE WHEN THEN ELSE
    END OVER PARTITION CAST INTERVAL ISTREAM DSTREAM RSTREAM WSTREAM UNNEST INTO PRIORITY EVERY
"""
_WINDOW = """
    RANGE ROWS SLIDE LAG WATTR RATTR SATTR ORIGIN ZONE INTERNAL LANDMARK FROM UNTIL UNBOUNDED NOW LIFETIME
    SESSION CUMULATE PARTITION BY INCLUSIVE
"""
_UNITS = "MICROSECONDS MILLISECONDS SECONDS MINUTES HOURS DAYS WEEKS MONTHS YEARS ROWS"
_DECLARED = """
    AS SELECT WATTR SLACK ORDERED PER IDLE PUNCTUATED BY WHEN LATE DROP KEEP TO SHEDDABLE FROM FORMAT ZONE
    ALSO RESOLUTION WATERMARK FOR NRR RELATION KEY BIGINT INT DOUBLE STRING BOOLEAN DATE TIMESTAMP DECIMAL
"""
_TABLE_FUNCTIONS = "TUMBLE HOP CUMULATE SESSION"


@dataclass(frozen=True)
class Completion:
    """A word that may stand at a place, what it is, and what else is to be said of it."""

    text: str
    kind: str
    detail: str = ""


def completions(text: str, cursor: int, catalog: Catalog) -> list[Completion]:
    """What the word that ends at the cursor may become; the likeliest first."""
    before = text[:cursor]
    word = word_before(text, cursor)
    try:
        tokens = _statement(scan(before[: len(before) - len(word)]).items)
    except QueryError:  # inside of a string or a quoted name
        return []
    found = dict.fromkeys(_possible(tokens, _words_after(text, cursor), catalog))
    return [each for each in found if each.text.lower().startswith(word.lower()) and each.text != word]


def word_before(text: str, cursor: int) -> str:
    """The part of a word that stands before the cursor.

    >>> word_before("SELECT pri", 10), word_before("SELECT ", 7), word_before("b.pri", 5)
    ('pri', '', 'pri')
    """
    start = cursor
    while start > 0 and (text[start - 1].isalnum() or text[start - 1] == "_"):
        start -= 1
    return text[start:cursor]


def _statement(tokens: Sequence[Token]) -> Sequence[Token]:
    """The tokens of the statement that the last one is in."""
    ends = [place for place, token in enumerate(tokens) if token.text == ";"]
    return tokens[ends[-1] + 1 :] if ends else tokens


def _words_after(text: str, cursor: int) -> Sequence[Token]:
    """What follows the cursor up to the end of the statement, if it can be read."""
    try:
        rest = scan(text[cursor:]).items
    except QueryError:
        return ()
    end = next((place for place, token in enumerate(rest) if token.text == ";"), len(rest))
    return rest[:end]


def _possible(tokens: Sequence[Token], after: Sequence[Token], catalog: Catalog) -> Iterator[Completion]:
    last = tokens[-1].word if tokens else ""
    if not tokens:
        firsts = dict.fromkeys(statement.split()[0] for statement in _STATEMENTS)
        yield from (Completion(first, "keyword") for first in firsts)
    elif last == "." and len(tokens) > 1:
        yield from _columns([_meant(tokens[-2].name, [*tokens, *after], catalog)], catalog)
    elif (rest := _second(tokens)) is not None:
        yield from (Completion(each, "keyword") for each in rest)
    elif _names_a_thing(tokens):
        yield from _sources(catalog, all_kinds=True)
    elif _opened(tokens) == "[":
        yield from _in_window(tokens, after, catalog)
    elif tokens[0].word == "CREATE" and "SELECT" not in {token.word for token in tokens}:
        yield from _words(_DECLARED)
    elif last in ("FROM", "JOIN", "TABLE") or (last == "," and _clause(tokens) == "FROM"):
        yield from _sources(catalog)
        yield from _words(_TABLE_FUNCTIONS, "function")
    else:
        yield from _columns(_read([*tokens, *after], catalog), catalog)
        yield from _functions()
        yield from _words(_CLAUSES)


def _words(text: str, kind: str = "keyword") -> Iterator[Completion]:
    return (Completion(word, kind) for word in text.split())


def _second(tokens: Sequence[Token]) -> list[str] | None:
    """What follows the first words of a statement, if these are the beginning of several."""
    said = " ".join(token.word for token in tokens)
    if said in ("SELECT", "EXPLAIN", "DESCRIBE"):
        return None
    rest = [each.removeprefix(said).strip() for each in _STATEMENTS if each.startswith(f"{said} ")]
    return list(dict.fromkeys(each.split()[0] for each in rest)) or None


def _names_a_thing(tokens: Sequence[Token]) -> bool:
    said = [token.word for token in tokens]
    return said[0] in ("DESCRIBE", "DROP", "REFRESH", "ALTER") or said[:2] == ["EXPLAIN", "ANALYZE"]


def _opened(tokens: Sequence[Token]) -> str:
    """The bracket that is open at the end, if any is."""
    open_: list[str] = []
    for token in tokens:
        if token.text in ("(", "["):
            open_.append(token.text)
        elif token.text in (")", "]") and open_:
            open_.pop()
    return open_[-1] if open_ else ""


def _clause(tokens: Sequence[Token]) -> str:
    """The clause of the SELECT that the last token is in."""
    clauses = ("SELECT", "FROM", "WHERE", "GROUP", "HAVING", "ORDER", "ON")
    return next((token.word for token in reversed(tokens) if token.word in clauses), "")


def _in_window(tokens: Sequence[Token], after: Sequence[Token], catalog: Catalog) -> Iterator[Completion]:
    last = tokens[-1]
    if last.kind is TokenKind.NUMBER:
        yield from _words(_UNITS, "unit")
    elif last.word in ("WATTR", "RATTR", "SATTR", "BY", "PATTR", ","):
        yield from _columns(_read([*tokens, *after], catalog), catalog)
        yield from _words("row_num arrival_ts", "column")
    else:
        yield from _words(_WINDOW)


def _sources(catalog: Catalog, *, all_kinds: bool = False) -> Iterator[Completion]:
    kinds = {"stream": [*catalog.streams], "table": [*catalog.tables], "query": [*catalog.queries]}
    if all_kinds:
        kinds["archive"] = [*catalog.archives]
    for kind, names in kinds.items():
        for name in names:
            shape = ", ".join(f"{column} {type_}" for column, type_ in _fields(name, catalog))
            yield Completion(name, kind, shape)


def _fields(name: str, catalog: Catalog) -> list[tuple[str, str]]:
    entry = catalog.entry(name)
    if isinstance(entry, Stream | Table):
        return [(field.name, str(field.type)) for field in entry.schema]
    if isinstance(entry, StandingQuery):
        return [(field.name, str(field.type)) for field in entry.plan.schema]
    return []


def _columns(names: Iterable[str], catalog: Catalog) -> Iterator[Completion]:
    for name in names:
        for column, kind in _fields(name, catalog):
            yield Completion(column, "column", f"{kind} of {name}")


def _read(tokens: Sequence[Token], catalog: Catalog) -> list[str]:
    """The things that a statement names; all streams and tables if it names none yet."""
    named = [token.name for token in tokens if token.is_name and catalog.entry(token.name) is not None]
    return list(dict.fromkeys(named)) or [*catalog.streams, *catalog.tables]


def _meant(alias: str, tokens: Sequence[Token], catalog: Catalog) -> str:
    """What an alias stands for: the source that it follows, with its window and AS between them."""
    if catalog.entry(alias) is not None:
        return alias
    source, depth = "", 0
    for token in tokens:
        depth += (token.text in ("(", "[")) - (token.text in (")", "]"))
        if depth == 0 and token.is_name and catalog.entry(token.name) is not None:
            source = token.name
        elif depth == 0 and source and token.is_name and token.name.lower() == alias.lower():
            return source
    return alias


def _functions() -> Iterator[Completion]:
    yield from (Completion(name, "aggregate") for name in aggregates.names())
    for function in catalogue():
        if function.name.isidentifier():
            yield Completion(function.name.upper(), "function", function.category)
