"""From text to plan: the front door of the language.

>>> catalog = Catalog(declare_stream("bids", "item BIGINT, price DOUBLE, ts TIMESTAMP"))
>>> plan = compile_query("SELECT item, MAX(price) AS top FROM bids [RANGE 5 MINUTES] GROUP BY item", catalog)
>>> plan.schema.names, plan.meaning.name
(('item', 'top'), 'AUTO')
>>> compile_query("SELECT prise FROM bids [NOW]", catalog)
Traceback (most recent call last):
windrow.errors.QueryError: error[unknown-column]: no column `prise`
  --> 1:8
  |
1 | SELECT prise FROM bids [NOW]
  |        ^^^^^
  = did you mean `price`?
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

from windrow.errors import QueryError, Span
from windrow.language.binder.bound_statements import BoundStatement, DeclareStream, DeclareTable
from windrow.language.binder.queries import bind_query
from windrow.language.binder.statements import bind_statement
from windrow.language.catalog import Catalog
from windrow.language.once import Once, bind_once
from windrow.language.parse import parse_query, parse_script
from windrow.language.shape import has_room, roomy, too_deep
from windrow.language.syntax import SelectOnce

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windrow.algebra.catalog import Stream, Table
    from windrow.algebra.plan import Emit

__all__ = ["Catalog", "compile_once", "compile_query", "compile_script", "declare_stream", "declare_table"]

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_KEY = re.compile(r"\bKEY\s*\([^)]*\)", re.IGNORECASE)


@roomy
def compile_query(text: str, catalog: Catalog) -> Emit:
    """The plan of one query."""
    with _about(text):
        return bind_query(parse_query(text), catalog)


@roomy
def compile_once(text: str, catalog: Catalog) -> Once:
    """A SELECT that is answered once; what follows it (WITH ISOLATION, PRIORITY) may be there."""
    with _about(text):
        (*others, statement) = parse_script(text) or (None,)
        if others or not isinstance(statement, SelectOnce):
            raise QueryError("one SELECT is expected here", code="syntax", hint="write SELECT …")
        return bind_once(statement, catalog)


@roomy
def compile_script(text: str, catalog: Catalog) -> list[BoundStatement]:
    """All statements of a script. Its declarations change the catalog, or, if one fails, none does."""
    working = catalog.copy()
    with _about(text):
        bound = [bind_statement(statement, working) for statement in parse_script(text)]
    catalog.adopt(working)
    return bound


def declare_stream(name: str, columns: str, options: str | None = None) -> Stream:
    """A stream from the text of its columns and options, as they stand in CREATE STREAM.

    Without WATTR it is ordered by its only time column; without a time column, by its last integer.

    >>> declare_stream("s", "a BIGINT, ts TIMESTAMP", "SLACK 2 SECONDS LATE DROP").wattr
    'ts'
    """
    (bound,) = compile_script(f"CREATE STREAM {_quoted(name)} ({columns}) {options or ''}", Catalog())
    assert isinstance(bound, DeclareStream)
    return bound.stream


def declare_table(name: str, columns: str, options: str | None = None) -> Table:
    """A table from the text of its columns and options: NRR (the default) or RELATION, and KEY (…).

    >>> declare_table("items", "item BIGINT, name STRING", "RELATION KEY (item)").key
    ('item',)
    """
    written = options or ""
    key = _KEY.search(written)
    kind = _KEY.sub("", written).strip() or "NRR"
    inside = f"{columns}, {key[0]}" if key else columns
    (bound,) = compile_script(f"CREATE TABLE {_quoted(name)} ({inside}) {kind}", Catalog())
    assert isinstance(bound, DeclareTable)
    return bound.table


def _quoted(name: str) -> str:
    return name if _IDENTIFIER.fullmatch(name) else "`" + name.replace("`", "``") + "`"


@contextmanager
def _about(text: str) -> Iterator[None]:
    """Errors raised inside show the text they are about."""
    try:
        yield
    except QueryError as error:
        error.located(text)
        raise
    except RecursionError:
        if not has_room():
            raise
        raise too_deep(Span(0, len(text))).located(text) from None
