"""Bound statements: what is left for an engine to do once text and names are understood."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from windrow.algebra import Emit, Stream, Table
from windrow.archive.layout import SaidOfLayout
from windrow.errors import QueryError
from windrow.language.binder.once import Once
from windrow.language.catalog import StandingArchive, StandingQuery


@dataclass(frozen=True)
class DeclareStream:
    """CREATE STREAM: the catalog has it already."""

    stream: Stream


@dataclass(frozen=True)
class DeclareTable:
    """CREATE TABLE: the catalog has it already."""

    table: Table


@dataclass(frozen=True)
class RegisterQuery:
    """CREATE [OR REPLACE] QUERY: the catalog has it already; start it, in place of one of its name."""

    query: StandingQuery
    replaces: bool = False


@dataclass(frozen=True)
class Nothing:
    """CREATE … IF NOT EXISTS of what is there, DROP … IF EXISTS of what is not: nothing is left to do."""

    kind: str
    name: str


@dataclass(frozen=True)
class DescribeEntry:
    """DESCRIBE: show the columns of something declared."""

    entry: Stream | Table | StandingQuery | StandingArchive


@dataclass(frozen=True)
class DeclareArchive:
    """CREATE ARCHIVE: the catalog has it already; fill it from now on."""

    archive: StandingArchive


@dataclass(frozen=True)
class RelayArchive:
    """ALTER ARCHIVE: what is said of the layout of an archive takes the place of what was said before."""

    name: str
    layout: SaidOfLayout


@dataclass(frozen=True)
class Dropped:
    """DROP STREAM, TABLE, QUERY or ARCHIVE: the catalog has forgotten it; stop it. `name` as declared."""

    kind: str
    name: str


@dataclass(frozen=True)
class ShowAll:
    """SHOW STREAMS, …; `kind` is STREAM, TABLE, QUERY, ARCHIVE or GAPS."""

    kind: str


@dataclass(frozen=True)
class ExplainQuery:
    """EXPLAIN: show the plan. `once` is the same asked by itself, if that means something."""

    plan: Emit
    once: Once | None = None


@dataclass(frozen=True)
class ExplainLayout:
    """EXPLAIN ARCHIVE: show how an archive is laid out, and why."""

    name: str


@dataclass(frozen=True)
class AnalyzeQuery:
    """EXPLAIN ANALYZE: show the plan of a standing query, and what its state is."""

    query: StandingQuery


@dataclass(frozen=True)
class RefreshQuery:
    """REFRESH QUERY: plan a standing query anew, by what is known now."""

    query: StandingQuery


@dataclass(frozen=True)
class RunOnce:
    """A bare SELECT: answer it once, over the live windows. `plan` is that of the same query standing.

    What only standing queries can say has no answer at once, but a plan to show: `refusal` tells why.
    """

    plan: Emit
    once: Once | None = None
    refusal: QueryError | None = None


BoundStatement: TypeAlias = (
    DeclareStream
    | DeclareTable
    | RegisterQuery
    | DeclareArchive
    | RelayArchive
    | Dropped
    | Nothing
    | ShowAll
    | DescribeEntry
    | ExplainQuery
    | ExplainLayout
    | AnalyzeQuery
    | RefreshQuery
    | RunOnce
)
