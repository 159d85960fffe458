"""What queries may be asked about: streams, tables and registered queries, in one name space with archives.

Names are found in any case and kept as they were declared.

>>> from windrow.algebra.expressions import Field, Schema
>>> from windrow.algebra.types import TIMESTAMP
>>> catalog = Catalog(Stream("Bids", Schema((Field("ts", TIMESTAMP),)), "ts"))
>>> catalog.find("bids").name
'Bids'
>>> catalog.find("bid")
Traceback (most recent call last):
windrow.errors.QueryError: no stream, table or query `bid` (did you mean `Bids`?)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias
from unicodedata import category

from windrow.algebra import Emit, Scan, Stream, Table, TableScan
from windrow.archive.layout import SaidOfLayout
from windrow.errors import QueryError, nearest


@dataclass(frozen=True)
class StandingQuery:
    """A registered query: its plan, where its answers go, and what it allows the engine to do.

    `max_gap` is how many windows in a row may be shed (None: no window), `every` the period of refreshes
    in ticks, `at_most` how old an answer may get when there is too much to do.
    """

    name: str
    plan: Emit
    sink: str | None = None
    priority: int = 0
    max_gap: int | None = None
    every: int | None = None
    at_most: int | None = None

    @property
    def reads(self) -> frozenset[str]:
        """The names of the streams and tables below, in small letters."""
        nodes = list(self.plan.walk())
        streams = {node.stream.name.lower() for node in nodes if isinstance(node, Scan)}
        return frozenset(streams | {node.table.name.lower() for node in nodes if isinstance(node, TableScan)})


@dataclass(frozen=True)
class StandingArchive:
    """The rows of a stream or a query, kept on disk under a key for `keep` ticks at most."""

    name: str
    source: str
    key: str
    keep: int
    #: of the layout
    said: SaidOfLayout = field(default_factory=SaidOfLayout)


#: what can stand in FROM
Readable: TypeAlias = Stream | Table | StandingQuery
Entry: TypeAlias = Readable | StandingArchive
#: from the kind of a declaration (STREAM, TABLE), its name and its source to names and types of columns
Inference: TypeAlias = Callable[[str, str, str], list[tuple[str, str]]]

_KINDS: dict[str, type[Entry]] = {
    "STREAM": Stream,
    "TABLE": Table,
    "QUERY": StandingQuery,
    "ARCHIVE": StandingArchive,
}


def kind_of(entry: Entry) -> str:
    """What an entry is called in a statement: STREAM, TABLE, QUERY or ARCHIVE."""
    return next(word for word, kind in _KINDS.items() if isinstance(entry, kind))


def _a(kind: str) -> str:
    return f"{'an' if kind == 'ARCHIVE' else 'a'} {kind.lower()}"


def _check_name(entry: Entry) -> None:
    """Any text can be a name, unless nobody could read it, or tell it from what the engine calls things."""
    kind, unreadable = kind_of(entry), [c for c in entry.name if category(c) in ("Cc", "Cs")]
    if unreadable:
        shown = "".join(repr(c)[1:-1] if c in unreadable else c for c in entry.name)
        raise QueryError(
            f"the name of {_a(kind)} cannot be `{shown}`: nobody can read {unreadable[0]!r}",
            code="bad-name",
            hint="leave control characters out",
        )
    if not entry.name:
        raise QueryError(f"{_a(kind)} needs a name", code="bad-name", hint="give it one")


class Catalog:
    """The declared things, by name."""

    def __init__(self, *entries: Entry, inference: Inference | None = None) -> None:
        #: tells the columns of a declaration that names none
        self.inference = inference
        self._entries: dict[str, Entry] = {}
        for entry in entries:
            self.add(entry)

    @property
    def streams(self) -> dict[str, Stream]:
        return {entry.name: entry for entry in self._entries.values() if isinstance(entry, Stream)}

    @property
    def tables(self) -> dict[str, Table]:
        return {entry.name: entry for entry in self._entries.values() if isinstance(entry, Table)}

    @property
    def queries(self) -> dict[str, StandingQuery]:
        return {entry.name: entry for entry in self._entries.values() if isinstance(entry, StandingQuery)}

    @property
    def archives(self) -> dict[str, StandingArchive]:
        return {entry.name: entry for entry in self._entries.values() if isinstance(entry, StandingArchive)}

    def copy(self) -> Catalog:
        return Catalog(*self._entries.values(), inference=self.inference)

    def adopt(self, other: Catalog) -> None:
        """Become equal to another catalog."""
        self._entries = dict(other._entries)

    def add(self, entry: Entry) -> None:
        """Declare something under a name that is still free."""
        _check_name(entry)
        taken = self._entries.get(entry.name.lower())
        if taken is not None:
            raise QueryError(
                f"there is {_a(kind_of(taken))} `{taken.name}` already",
                code="duplicate-name",
                hint=f"DROP {kind_of(taken)} {taken.name}, or choose another name",
            )
        self._entries[entry.name.lower()] = entry

    @property
    def names(self) -> list[str]:
        return [entry.name for entry in self._entries.values()]

    def entry(self, name: str) -> Entry | None:
        """What has a name, of whatever kind; None if nothing has."""
        return self._entries.get(name.lower())

    def find(self, name: str) -> Readable:
        """What a name in FROM stands for."""
        found = self.entry(name)
        if isinstance(found, StandingArchive):
            raise QueryError(
                f"`{found.name}` is an archive: it keeps rows of `{found.source}`, and is no source itself",
                code="unknown-source",
                hint=f"name `{found.source}` here; from Python, read w.archives['{found.name}']",
            )
        if found is None:
            known = [name for name in self.names if name not in self.archives]
            hint = nearest(name, known) or "declare it first, with CREATE STREAM or CREATE TABLE"
            raise QueryError(f"no stream, table or query `{name}`", code="unknown-source", hint=hint)
        return found

    def drop(self, kind: str, name: str) -> Entry:
        """Take a declaration back, unless a registered query still reads it."""
        found = self._entries.get(name.lower())
        if found is None or kind_of(found) != kind:
            hint = nearest(name, [entry.name for entry in self._entries.values() if kind_of(entry) == kind])
            if found is not None:
                hint = f"`{found.name}` is {_a(kind_of(found))}: DROP {kind_of(found)} {found.name}"
            raise QueryError(f"no {kind.lower()} `{name}` to drop", code="unknown-source", hint=hint)
        readers = sorted(query.name for query in self.queries.values() if name.lower() in query.reads)
        if readers and kind != "QUERY":
            raise QueryError(
                f"{kind.lower()} `{found.name}` is read by query `{readers[0]}`",
                code="still-read",
                hint=f"DROP QUERY {readers[0]} first",
            )
        kept = sorted(each.name for each in self.archives.values() if each.source.lower() == name.lower())
        if kept and kind != "ARCHIVE":
            raise QueryError(
                f"{kind.lower()} `{found.name}` is kept by archive `{kept[0]}`",
                code="still-read",
                hint=f"DROP ARCHIVE {kept[0]} first",
            )
        return self._entries.pop(name.lower())
