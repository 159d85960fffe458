"""Streams, tables and archives from Python: the words of CREATE … as arguments; and what statements register.

>>> options(wattr="ts", slack="5 seconds", late="keep")
'WATTR `ts` SLACK 5 SECONDS LATE KEEP'
>>> options(wattr="ts", ordered_per="bidder", idle="30 seconds")
'WATTR `ts` ORDERED PER `bidder` IDLE 30 SECONDS'

Arguments of the Python API, checked when a call is made: a wrong one is told by name, with the way out.

Without that, a number in the place of a text fails somewhere inside, with an error about our code. The
annotations say what is taken; those of foreign classes are left to whoever uses the value.

>>> @checked
... def stream(name: str, slack: str | int | None = None) -> None: ...
>>> stream("bids", slack=[5])
Traceback (most recent call last):
windrow.errors.QueryError: `slack` of stream() is a text or a whole number, not a list (it is given: [5])
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from functools import wraps
from numbers import Integral, Real
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar, cast

from windrow.algebra import Schema, Stream, Table
from windrow.algebra.functions.sql_text import backquoted
from windrow.archive.layout import SaidOfLayout
from windrow.engine.records import QueryRecord
from windrow.errors import QueryError, StateError, nearest
from windrow.language import catalog, compile
from windrow.language.binder import bound_statements as bound
from windrow.language.binder.bound_statements import BoundStatement
from windrow.sinks import Sink, check_sink
from windrow.spark.sources import check_url, table_source, urls
from windrow.windows.domain import Domain, Quantity

_Function = TypeVar("_Function", bound=Callable[..., Any])


class _Kind(NamedTuple):
    """A kind of argument: what it is called, and whether a value is of it."""

    title: str
    fits: Callable[[Any], bool]


def _of(title: str, *classes: type) -> _Kind:
    return _Kind(title, lambda value: isinstance(value, classes))


def _are_texts(value: Any) -> bool:
    """A text is a sequence of texts as well, which is never what is meant."""
    is_list = isinstance(value, Sequence) and not isinstance(value, str | bytes)
    return is_list and all(isinstance(each, str) for each in value)


_ARGUMENTS = {
    "str": _of("a text", str),
    "int": _of("a whole number", Integral),
    "float": _of("a number", Real),
    "bool": _of("True or False", bool),
    "None": _of("None", type(None)),
    "Path": _of("a path", Path),
    "tuple": _of("a tuple", tuple),
    "Mapping": _of("a dictionary", Mapping),
    "Callable": _Kind("a function", callable),
    "Sequence": _Kind("a list of texts", _are_texts),
}
#: the parameters of a generic type
_PARAMETERS = re.compile(r"\[(?:[^\[\]]|\[[^\[\]]*\])*\]")


def checked(function: _Function) -> _Function:
    """The same function, whose arguments are checked by their annotations first."""
    signature = inspect.signature(function)
    names = function.__globals__
    kinds = {name: _kinds(each.annotation, names) for name, each in signature.parameters.items()}
    known = {name: found for name, found in kinds.items() if found}
    takes = [name for name in signature.parameters if name != "self"]
    takes_any = any(each.kind is each.VAR_KEYWORD for each in signature.parameters.values())

    @wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        check_known(f"{function.__name__}()", () if takes_any else named, takes)
        given = signature.bind(*arguments, **named).arguments
        for name, found in known.items():
            if name in given:
                _check(function.__name__, name, given[name], found)
        return function(*arguments, **named)

    return cast("_Function", call)


def check_known(what: str, given: Iterable[str], known: Sequence[str]) -> None:
    """Arguments that are passed on under their names: each is one that is known."""
    for name in given:
        if name not in known:
            raise QueryError(
                f"{what} has no argument `{name}`", code="bad-argument", hint=nearest(name, known)
            )


def _kinds(annotation: Any, names: Mapping[str, Any]) -> tuple[_Kind, ...]:
    """What an annotation allows, where its module knows these names; nothing if that cannot be told.

    >>> [kind.title for kind in _kinds("str | Callable[[pa.Table, int], None] | None", {})]
    ['a text', 'a function', 'None']
    >>> _kinds("SparkSession | None", {}), _kinds("Any", {"Any": Any})
    ((), ())
    """
    found = []
    for name in _PARAMETERS.sub("", str(annotation)).split("|"):
        known = names.get(name.strip())
        if name.strip() in _ARGUMENTS:
            found.append(_ARGUMENTS[name.strip()])
        elif isinstance(known, type) and known is not Any:
            found.append(_of(f"a {known.__name__}", known))
        else:
            return ()
    return tuple(found)


def _check(function: str, name: str, value: Any, kinds: Sequence[_Kind]) -> None:
    if any(kind.fits(value) for kind in kinds):
        return
    wanted = " or ".join(kind.title for kind in kinds if kind.title != "None")
    found, shown = type(value).__name__, repr(value)
    article = "an" if found[0].lower() in "aeiou" else "a"
    raise QueryError(
        f"`{name}` of {function}() is {wanted}, not {article} {found}",
        code="bad-argument",
        hint=f"it is given: {shown if len(shown) <= 60 else f'{shown[:57]}…'}",
    )


_KINDS = ("nrr", "relation")


@checked
def options(
    *,
    wattr: str | None = None,
    resolution: str | float | Decimal | None = None,
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
        words.append(f"WATTR {backquoted(wattr)}")
    if resolution is not None:
        words.append(f"RESOLUTION {Decimal(str(resolution)):f}")
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
    words += [f"ORDERED PER {backquoted(ordered_per)}"] if ordered_per else []
    words += [f"IDLE {idle.upper()}"] if idle else []
    words += [f"PUNCTUATED BY {punctuated_by}"] if punctuated_by else []
    words += [f"PER {backquoted(per)}"] if per else []
    words += [f"WHEN {when}"] if when else []
    if late and late.lower() in ("drop", "keep"):
        words.append(f"LATE {late.upper()}")
    elif late:
        words.append("LATE TO '" + late.replace("\\", "\\\\").replace("'", "''") + "'")
    words += ["SHEDDABLE"] if sheddable else []
    words += [f"KEEP {str(keep).upper()}"] if keep is not None else []
    return " ".join(words)


def archive_text(
    name: str,
    on: str,
    key: str,
    keep: str | int,
    partitions: tuple[int, ...] | None = None,
    *,
    rebuild: bool | None = None,
    allocation: str | None = None,
    expect: str | None = None,
) -> str:
    """CREATE ARCHIVE with these words.

    >>> archive_text("past", "top", "item", "7 days", (2, 3), rebuild=True)
    'CREATE ARCHIVE `past` ON `top` KEY `item` LAYOUT 2 BY 3 REBUILD KEEP 7 DAYS'
    >>> archive_text("past", "top", "item", "7 days", allocation="shuffled", expect="9 probes per update")
    'CREATE ARCHIVE `past` ON `top` KEY `item` ALLOCATION SHUFFLED EXPECT 9 PROBES PER UPDATE KEEP 7 DAYS'
    """
    words = ["CREATE ARCHIVE", backquoted(name), "ON", backquoted(on), "KEY", backquoted(key)]
    if partitions is not None:
        if len(partitions) != 2 or not all(isinstance(count, int) for count in partitions):
            text = f"`partitions` is two whole numbers, not {partitions}"
            raise QueryError(text, code="bad-options", hint="as in (2, 2)")
        words.append("LAYOUT {} BY {}".format(*partitions))
    words += [] if rebuild is None else ["REBUILD" if rebuild else "NOREBUILD"]
    words += [] if allocation is None else [f"ALLOCATION {allocation.upper().replace('-', '_')}"]
    words += [] if expect is None else [f"EXPECT {expect.upper()}"]
    return " ".join([*words, f"KEEP {str(keep).upper()}"])


def declared_table(name: str, schema: Schema, kind: str, key: Sequence[str]) -> Table:
    """The declaration of a table with these columns.

    >>> from windrow.algebra.expressions import Field, Schema
    >>> from windrow.algebra.types import BIGINT
    >>> declared_table("items", Schema((Field("item", BIGINT),)), "relation", ["item"]).kind.value
    'RELATION'
    """
    if kind.lower() not in _KINDS:
        raise QueryError(
            f"a table is `nrr` or `relation`, not `{kind}`", code="bad-options", hint=nearest(kind, _KINDS)
        )
    keys = f" KEY ({', '.join(map(backquoted, key))})" if key else ""
    return compile.declare_table(name, _columns(schema), f"{kind.upper()}{keys}")


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
    return compile.declare_stream(name, _columns(schema), text)


def _columns(schema: Schema) -> str:
    return ", ".join(f"{backquoted(field.name)} {field.type}" for field in schema)


class Registry(Protocol):
    """An engine, to statements: what they register with."""

    queries: dict[str, QueryRecord]

    def add_stream(self, stream: Stream, late_sink: Sink | None = ...) -> object: ...
    def add_table(self, table: Table) -> object: ...
    def add_query(self, query: catalog.StandingQuery, sink: Sink | None = ...) -> object: ...
    def add_archive(self, archive: catalog.StandingArchive) -> None: ...
    def alter_archive(self, name: str, said: SaidOfLayout) -> None: ...
    def refresh_query(self, name: str) -> object: ...
    def drop(self, kind: str, name: str) -> None: ...


def register(engine: Registry, statement: BoundStatement, sink: Sink | None = None) -> None:
    """Have an engine do what a statement registers or drops; refused is what could not run.

    What is merely checked is registered too, with an engine that is never run. `sink`
    takes the answers of the query, or the late rows of the stream; without it, the one that is declared does.
    """
    match statement:
        case bound.DeclareStream(stream):
            if stream.source is not None:
                check_url(stream.source, stream)
            for url in filter(None, (stream.late_sink, urls.malformed_sink(stream.source))):
                check_sink(url)
            engine.add_stream(stream, sink)
        case bound.DeclareTable(table):
            if table.source is not None:
                table_source.table_url(table)
            engine.add_table(table)
        case bound.RegisterQuery(query):
            if query.sink is not None:
                check_sink(query.sink)
            _add_query(engine, statement, sink)
        case bound.DeclareArchive(archive):
            engine.add_archive(archive)
        case bound.RelayArchive(name, layout):
            engine.alter_archive(name, layout)
        case bound.RefreshQuery(query):
            engine.refresh_query(query.name)
        case bound.Dropped(kind, name):
            engine.drop(kind, name)


def _add_query(engine: Registry, statement: bound.RegisterQuery, sink: Sink | None) -> None:
    """A query; one that replaces another lets go of it, also of one that only the state directory knows."""
    query = statement.query
    if statement.replaces and query.name in engine.queries:
        engine.drop("QUERY", query.name)
    try:
        engine.add_query(query, sink)
    except StateError as error:
        if not statement.replaces or error.code != "query-changed":
            raise
        engine.drop("QUERY", query.name)
        engine.add_query(query, sink)
