"""What waits in the outbox, looked through once for all sinks.

A query whose answers are those of another reads the other's section; what was read and put in order for one
of them is given to all. Files are opened once, however many sections they have, and answers that lie in
packs are put in order pack by pack.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from windrow.engine.delivery import in_order
from windrow.engine.packed import Packed
from windrow.engine.published import published
from windrow.spark.sinks import Delivery
from windrow.state.reading import open_chunk

if TYPE_CHECKING:
    import pyarrow as pa

    from windrow.state.entries import OutboxEntry
    from windrow.state.reading import Chunk
    from windrow.state.refs import ChunkRef
    from windrow.state.store import Store

#: of each section that several queries read, the others
READERS = "readers"
#: answers of at most this many rows are kept for the next who reads them
MOST_KEPT = 1 << 22


def with_readers(ref: ChunkRef, readers: Mapping[str, Collection[str]]) -> Mapping[str, Any]:
    """What is to be known of an outbox file: also who else reads its sections."""
    mine = {name: list(readers[name]) for name in ref.operators if name in readers}
    return {**ref.metadata, READERS: mine} if mine else ref.metadata


def pending(outbox: Iterable[OutboxEntry], section: str) -> dict[int, list[OutboxEntry]]:
    """What is still to be delivered of a section, by commit, oldest first."""
    found: dict[int, list[OutboxEntry]] = {}
    for entry in outbox:
        if section in entry.pending:
            found.setdefault(entry.commit, []).append(entry)
    return dict(sorted(found.items()))


def stored_as(ref: ChunkRef, section: str) -> str | None:
    """The section of a file that has the rows of one: itself, or that of the query it reads; None: none."""
    if section in ref.operators:
        return section
    others = ref.metadata.get(READERS, {}).items()
    return next((stored for stored, readers in others if section in readers), None)


class Outgoing:
    """The outbox of a commit, without what has been delivered since."""

    def __init__(
        self, store: Store, outbox: Iterable[OutboxEntry], delivered: Mapping[str, Collection[str]]
    ) -> None:
        self._store = store
        self._open: dict[str, Chunk] = {}
        self._waiting: dict[str, dict[int, list[OutboxEntry]]] = {}
        #: where the answers of a section are, if that is another section
        self._stored: dict[tuple[str, str], str] = {}
        self._kept: dict[Any, list[pa.Table]] = {}
        self._packed: dict[Any, Packed] = {}
        for entry in outbox:
            for section, readers in entry.ref.metadata.get(READERS, {}).items():
                self._stored |= {(entry.ref.name, reader): section for reader in readers}
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
        places = [(entry.ref.name, self._stored.get((entry.ref.name, section), section)) for entry in entries]
        pairs = zip(entries, places, strict=True)
        shared = any(place in entry.ref.metadata.get(READERS, {}) for entry, (_, place) in pairs)

        def tables() -> Iterator[pa.Table]:
            key = tuple(places)
            if key in self._kept and self._kept[key][0].schema == schema:
                yield from self._kept[key]
                return
            packed = self._of_packs(entries, [place for _, place in places], schema)
            if packed is not None:
                yield packed
                return
            parts = [self._file(entry).read(place) for entry, (_, place) in zip(entries, places, strict=True)]
            made = (published(frame.to_arrow(), schema) for frame in in_order(parts))
            if shared and sum(part.num_rows for part in parts) <= MOST_KEPT:
                self._kept = {**({} if self._size() > MOST_KEPT else self._kept), key: list(made)}
                yield from self._kept[key]
            else:
                yield from made

        return Delivery(query, commit, schema, tables)

    def _of_packs(self, entries: list[OutboxEntry], places: list[str], schema: pa.Schema) -> pa.Table | None:
        """The rows of a section in order; None if they are not all in packs, or these are large."""
        files = [self._file(entry) for entry in entries]
        found = [(file, file.pack_of(place)) for file, place in zip(files, places, strict=True)]
        packs = [(file, pack) for file, pack in found if pack is not None]
        if len(packs) < len(found) or len({*places}) > 1:
            return None
        names = tuple((entry.ref.name, pack) for entry, (_, pack) in zip(entries, packs, strict=True))
        key = names, tuple(schema.types)
        if key not in self._packed:
            if sum(file.sections[pack].facts.rows for file, pack in packs) > MOST_KEPT:
                return None
            if sum(each.rows for each in self._packed.values()) > MOST_KEPT:
                self._packed = {}
            self._packed[key] = Packed(packs, schema)
        return self._packed[key].table((places[0],), schema)

    def _size(self) -> int:
        return sum(table.num_rows for tables in self._kept.values() for table in tables)

    def _file(self, entry: OutboxEntry) -> Chunk:
        if entry.ref.name not in self._open:
            self._open[entry.ref.name] = open_chunk(self._store, entry.ref)
        return self._open[entry.ref.name]
