"""What waits in the outbox, looked through once for all sinks.

A query whose answers are those of another reads the other's section: all of it, or what is about its own
instants; what was read and put in order for one of them is given to all. Files are opened once, however many
sections they have, and answers that lie in packs are put in order pack by pack.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from windrow.engine.output.delivery import in_order
from windrow.engine.output.row_order import Packed
from windrow.engine.output.schema import published
from windrow.kernels.shared.request import Follower
from windrow.sinks import Delivery
from windrow.state.reader import open_chunk

if TYPE_CHECKING:
    import pyarrow as pa

    from windrow.state.manifest import OutboxEntry
    from windrow.state.reader import Chunk
    from windrow.state.refs import ChunkRef
    from windrow.state.store import Store

#: of each section that several queries read, the others
READERS = "readers"
#: of each section that others read in part, these
FOLLOWERS = "followers"
#: answers of at most this many rows are kept for the next who reads them
MOST_KEPT = 1 << 22


def with_readers(ref: ChunkRef, readers: Mapping[str, Collection[str]]) -> Mapping[str, Any]:
    """What is to be known of an outbox file: also who else reads its sections."""
    mine = {name: list(readers[name]) for name in ref.operators if name in readers}
    return {**ref.metadata, READERS: mine} if mine else ref.metadata


def with_followers(
    ref: ChunkRef, followers: Mapping[str, Collection[Follower]], rows: Mapping[str, int]
) -> ChunkRef:
    """An outbox file that knows who finds rows of its own among those of others."""
    mine = {
        section: [each.to_json() for each in followers[section] if rows.get(each.query)]
        for section in ref.operators
        if section in followers
    }
    mine = {section: some for section, some in mine.items() if some}
    return replace(ref, metadata={**ref.metadata, FOLLOWERS: mine}) if mine else ref


def asking(ref: ChunkRef, section: str) -> tuple[str, ...]:
    """The queries whose answers are in a section: its own, and those that read it too."""
    following = ref.metadata.get(FOLLOWERS, {}).get(section, ())
    return (section, *ref.metadata.get(READERS, {}).get(section, ()), *(query for query, *_ in following))


def pending(outbox: Iterable[OutboxEntry], section: str) -> dict[int, list[OutboxEntry]]:
    """What is still to be delivered of a section, by commit, oldest first."""
    found: dict[int, list[OutboxEntry]] = {}
    for entry in outbox:
        if section in entry.pending:
            found.setdefault(entry.commit, []).append(entry)
    return dict(sorted(found.items()))


@dataclass(frozen=True)
class Stored:
    """Where rows are: a section of a file, all of it or what a follower takes."""

    section: str
    follower: Follower | None = None

    def read(self, chunk: Chunk) -> pa.Table:
        """The rows."""
        return self.chosen(chunk.read(self.section))

    def chosen(self, table: pa.Table) -> pa.Table:
        """The rows, of all those of the section."""
        return table if self.follower is None else self.follower.rows(table)

    @property
    def key(self) -> tuple[Any, ...]:
        """The same for all that take the same rows."""
        return self.section, None if self.follower is None else self.follower.instants


def stored_as(ref: ChunkRef, section: str) -> Stored | None:
    """Where the rows of a section are: in itself, or in that of the query it reads; None: nowhere."""
    if section in ref.operators:
        return Stored(section)
    for stored, readers in ref.metadata.get(READERS, {}).items():
        if section in readers:
            return Stored(stored)
    for stored, followers in ref.metadata.get(FOLLOWERS, {}).items():
        for follower in map(Follower.from_json, followers):
            if follower.query == section:
                return Stored(stored, follower)
    return None


class Outgoing:
    """The outbox of a commit, without what has been delivered since."""

    def __init__(
        self, store: Store, outbox: Iterable[OutboxEntry], delivered: Mapping[str, Collection[str]]
    ) -> None:
        self.store = store
        self._open: dict[str, Chunk] = {}
        self._waiting: dict[str, dict[int, list[OutboxEntry]]] = {}
        #: where the answers of a section are, if that is another section
        self.stored: dict[tuple[str, str], Stored] = {}
        self._sections: dict[tuple[str, str], pa.Table] = {}
        self._kept: dict[Any, list[pa.Table]] = {}
        self._packed: dict[Any, Packed] = {}
        for entry in outbox:
            for section, readers in entry.ref.metadata.get(READERS, {}).items():
                self.stored |= {(entry.ref.name, reader): Stored(section) for reader in readers}
            for section, followers in entry.ref.metadata.get(FOLLOWERS, {}).items():
                for each in map(Follower.from_json, followers):
                    self.stored[entry.ref.name, each.query] = Stored(section, each)
            gone = delivered.get(entry.ref.name, ())
            for section in entry.pending:
                if section not in gone:
                    commits = self._waiting.setdefault(section, {})
                    commits.setdefault(entry.commit, []).append(entry)

    def pending(self, section: str) -> list[tuple[int, list[OutboxEntry]]]:
        """What is still to be delivered of a section, by commit, oldest first."""
        return sorted(self._waiting.get(section, {}).items(), key=lambda each: each[0])

    def delivery(
        self, query: str, section: str, commit: int, entries: list[OutboxEntry], schema: pa.Schema
    ) -> Delivery:
        """The rows of a section that came with one commit."""
        places = [self.stored.get((entry.ref.name, section), Stored(section)) for entry in entries]
        pairs = list(zip(entries, places, strict=True))
        shared = any(place.section in entry.ref.metadata.get(READERS, {}) for entry, place in pairs)
        shared = shared or any(place.follower is not None for place in places)

        def tables() -> Iterator[pa.Table]:
            key = tuple((entry.ref.name, *place.key) for entry, place in pairs)
            if key in self._kept and self._kept[key][0].schema == schema:
                yield from self._kept[key]
                return
            packed = self._of_packs(pairs, schema)
            if packed is not None:
                yield packed
                return
            parts = [place.chosen(self._section(entry, place.section)) for entry, place in pairs]
            made = (published(frame.to_arrow(), schema) for frame in in_order(parts))
            if shared and sum(part.num_rows for part in parts) <= MOST_KEPT:
                self._kept = {**({} if self._size() > MOST_KEPT else self._kept), key: list(made)}
                yield from self._kept[key]
            else:
                yield from made

        return Delivery(query, commit, schema, tables)

    def _of_packs(self, pairs: list[tuple[OutboxEntry, Stored]], schema: pa.Schema) -> pa.Table | None:
        """The rows of a section in order; None if they are not all in packs, or these are large."""
        stored = pairs[0][1]
        found = [(entry.ref.name, self._file(entry), place.section) for entry, place in pairs]
        packs = [(name, file, file.pack_of(section)) for name, file, section in found]
        if any(pack is None for *_, pack in packs) or any(place.key != stored.key for _, place in pairs):
            return None
        key = tuple((name, pack) for name, _, pack in packs)
        if key not in self._packed:
            some = [(file, pack) for _, file, pack in packs if pack is not None]
            if sum(file.sections[pack].facts.rows for file, pack in some) > MOST_KEPT:
                return None
            if sum(each.rows for each in self._packed.values()) > MOST_KEPT:
                self._packed = {}
            self._packed[key] = Packed(some, schema)
        rows = self._packed[key].table((stored.section,), schema)
        return None if rows is None else stored.chosen(rows)

    def _size(self) -> int:
        return sum(table.num_rows for tables in self._kept.values() for table in tables)

    def _section(self, entry: OutboxEntry, section: str) -> pa.Table:
        """A section of a file; one that others read in part is kept for them."""
        key = entry.ref.name, section
        if section not in entry.ref.metadata.get(FOLLOWERS, {}):
            return self._file(entry).read(section)
        if key not in self._sections:
            if sum(table.num_rows for table in self._sections.values()) > MOST_KEPT:
                self._sections = {}
            self._sections[key] = self._file(entry).read(section)
        return self._sections[key]

    def _file(self, entry: OutboxEntry) -> Chunk:
        if entry.ref.name not in self._open:
            self._open[entry.ref.name] = open_chunk(self.store, entry.ref)
        return self._open[entry.ref.name]
