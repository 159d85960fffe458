"""Streams, tables and archives from Python: the words of CREATE … as arguments; and what statements register.

>>> options(wattr="ts", slack="5 seconds", late="keep")
'WATTR `ts` SLACK 5 SECONDS LATE KEEP'
>>> options(wattr="ts", ordered_per="bidder", idle="30 seconds")
'WATTR `ts` ORDERED PER `bidder` IDLE 30 SECONDS'
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation
from inspect import signature
from typing import TYPE_CHECKING

from windrow.engine.arguments import checked
from windrow.errors import QueryError, StateError, nearest
from windrow.language.binder.bound_statements import (
    DeclareArchive,
    DeclareStream,
    DeclareTable,
    Dropped,
    RefreshQuery,
    RegisterQuery,
)
from windrow.language.compile import declare_stream, declare_table
from windrow.sinks import check_sink
from windrow.spark.sources import check_url
from windrow.spark.sources.table_source import files_of
from windrow.windows.domain import Domain
from windrow.windows.units import Quantity

if TYPE_CHECKING:
    from windrow.algebra.catalog import Stream, Table
    from windrow.algebra.schema import Schema
    from windrow.engine.engine import Engine
    from windrow.language.binder.bound_statements import BoundStatement
    from windrow.sinks import Sink

_KINDS = ("nrr", "relation")


@checked
def options(
    *,
    wattr: str | None = None,
    slack: str | float | None = None,
    ordered: bool = False,
    ordered_per: str | None = None,
    idle: str | None = None,
    punctuated_by: str | None = None,
    per: str | None = None,
    when: str | None = None,
    late: str | None = None,
    sheddable: bool = False,
    keep: str | float | None = None,
) -> str:
    """The options of CREATE STREAM as text."""
    words: list[str] = []
    if wattr is not None:
        words.append(f"WATTR {_quoted(wattr)}")
    chosen = {"slack": slack, "ordered": ordered, "ordered_per": ordered_per, "punctuated_by": punctuated_by}
    given = [name for name, value in chosen.items() if value not in (None, False)]
    if len(given) > 1:
        raise QueryError(
            f"`{given[0]}` and `{given[1]}` both say how far a stream is",
            code="bad-options",
            hint="give one of them",
        )
    words += [f"SLACK {str(slack).upper()}"] if slack is not None else []
    words += ["ORDERED"] if ordered else []
    words += [f"ORDERED PER {_quoted(ordered_per)}"] if ordered_per else []
    words += [f"IDLE {idle.upper()}"] if idle else []
    words += [f"PUNCTUATED BY {punctuated_by}"] if punctuated_by else []
    words += [f"PER {_quoted(per)}"] if per else []
    words += [f"WHEN {when}"] if when else []
    words += [_late(late)] if late else []
    words += ["SHEDDABLE"] if sheddable else []
    words += [f"KEEP {str(keep).upper()}"] if keep is not None else []
    return " ".join(words)


#: the arguments of `w.stream` that are options of CREATE STREAM
STREAM_OPTIONS = tuple(signature(options).parameters)


def archive_text(
    name: str, on: str, key: str, keep: str | int, partitions: tuple[int, ...], *, rebuild: bool
) -> str:
    """CREATE ARCHIVE with these words.

    >>> archive_text("past", "top", "item", "7 days", (2, 3), rebuild=True)
    'CREATE ARCHIVE `past` ON `top` KEY `item` PARTITIONS 2 x 3 REBUILD KEEP 7 DAYS'
    """
    if len(partitions) != 2 or not all(isinstance(count, int) for count in partitions):
        raise QueryError(
            f"`partitions` is two whole numbers, not {partitions}", code="bad-options", hint="as in (2, 2)"
        )
    made, expired = partitions
    words = ["CREATE ARCHIVE", _quoted(name), "ON", _quoted(on), "KEY", _quoted(key)]
    words += [f"PARTITIONS {made} x {expired}", "REBUILD" if rebuild else "NOREBUILD"]
    return " ".join([*words, f"KEEP {str(keep).upper()}"])


def declared_table(name: str, schema: Schema, kind: str, key: Sequence[str]) -> Table:
    """The declaration of a table with these columns.

    >>> from windrow.algebra.schema import Field, Schema
    >>> from windrow.algebra.types import BIGINT
    >>> declared_table("items", Schema((Field("item", BIGINT),)), "relation", ["item"]).kind.value
    'RELATION'
    """
    if kind.lower() not in _KINDS:
        raise QueryError(
            f"a table is `nrr` or `relation`, not `{kind}`", code="bad-options", hint=nearest(kind, _KINDS)
        )
    columns = ", ".join(f"{_quoted(field.name)} {field.type}" for field in schema)
    keys = f" KEY ({', '.join(map(_quoted, key))})" if key else ""
    return declare_table(name, columns, f"{kind.upper()}{keys}")


def period(text: str) -> float:
    """A span of time in seconds.

    >>> period("250 milliseconds")
    0.25
    """
    number, _, unit = text.strip().partition(" ")
    try:
        return Quantity(Decimal(number), unit.strip()).ticks(Domain.TIME) / 1_000_000
    except InvalidOperation:
        raise QueryError(
            f"`{text}` is no span of time", code="bad-options", hint="write it as in '5 seconds'"
        ) from None


def declared_stream(name: str, schema: Schema, text: str) -> Stream:
    """The declaration of a stream with these columns and options."""
    columns = ", ".join(f"{_quoted(field.name)} {field.type}" for field in schema)
    return declare_stream(name, columns, text)


def register(engine: Engine, statement: BoundStatement, sink: Sink | None = None) -> None:
    """Have an engine do what a statement registers or drops; refused is what could not run.

    What is merely checked is registered too, with an engine that is never run. `sink`
    takes the answers of the query, or the late rows of the stream; without it, the one that is declared does.
    """
    match statement:
        case DeclareStream(stream):
            if stream.source is not None:
                check_url(stream.source)
            if stream.late_sink is not None:
                check_sink(stream.late_sink)
            engine.add_stream(stream, sink)
        case DeclareTable(table):
            if table.source is not None:
                files_of(table)
            engine.add_table(table)
        case RegisterQuery(query):
            if query.sink is not None:
                check_sink(query.sink)
            _add_query(engine, statement, sink)
        case DeclareArchive(archive):
            engine.add_archive(archive)
        case RefreshQuery(query):
            engine.refresh_query(query.name)
        case Dropped(kind, name):
            _drops(engine)[kind](name)


def _add_query(engine: Engine, statement: RegisterQuery, sink: Sink | None) -> None:
    """A query; one that replaces another lets go of it, also of one that only the state directory knows."""
    query = statement.query
    if statement.replaces and query.name in engine.queries:
        engine.drop_query(query.name)
    try:
        engine.add_query(query, sink)
    except StateError as error:
        if not statement.replaces or error.code != "query-changed":
            raise
        engine.forget_query(query.name)
        engine.add_query(query, sink)


def _drops(engine: Engine) -> dict[str, Callable[[str], None]]:
    """What is dropped runs no more."""
    return {
        "QUERY": engine.drop_query,
        "ARCHIVE": engine.drop_archive,
        "STREAM": engine.drop_stream,
        "TABLE": engine.drop_table,
    }


def _late(late: str) -> str:
    if late.lower() in ("drop", "keep"):
        return f"LATE {late.upper()}"
    return "LATE TO '" + late.replace("\\", "\\\\").replace("'", "''") + "'"


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
