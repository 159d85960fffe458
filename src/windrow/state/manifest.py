"""A manifest: everything that is true after one commit.

It is the only thing a commit writes by name, so it decides alone what exists. It is never changed; the next
one is made from it by `successor`. The file is one line of JSON:

    {"format":7,"checksum":"…","body":{…}}

with the body in canonical form (sorted keys, no spaces), and the checksum over format and body.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any, ClassVar, NamedTuple, Self

from windrow.state.store import damaged, too_new, too_old
from windrow.windows.domain import INFINITY, Instant, read_instant, write_instant


@dataclass(frozen=True)
class Facts:
    """How much there is, and about which instants, both ends included.

    What the instants are (of insertion, of expiry) is the layout's business. Where they are unknown they are
    infinite, which is always safe: such a part is always needed and never expires.

    >>> Facts(10, 640, 3, 8).merged(Facts(5, 320, 7, 12))
    Facts(rows=15, bytes=960, lowest=3, highest=12)
    """

    rows: int
    bytes: int
    lowest: Instant = -INFINITY
    highest: Instant = INFINITY

    def merged(self, other: Facts) -> Facts:
        return Facts(
            self.rows + other.rows,
            self.bytes + other.bytes,
            min(self.lowest, other.lowest),
            max(self.highest, other.highest),
        )

    def to_json(self) -> list[Any]:
        """Plain JSON values, shortly: a manifest holds many."""
        # the format has a last place for rows that take back others, of which there are none
        return [self.rows, self.bytes, write_instant(self.lowest), write_instant(self.highest), 0]

    @classmethod
    def from_json(cls, stored: list[Any]) -> Facts:
        """What `to_json` wrote.

        >>> Facts.from_json(Facts(10, 640).to_json()) == Facts(10, 640)
        True
        """
        rows, size, lowest, highest, _ = stored
        return cls(rows, size, read_instant(lowest), read_instant(highest))


class StoredForm(NamedTuple):
    """How what is no plain JSON value is written, and read again."""

    write: Callable[[Any], Any]
    read: Callable[[Any], Any]


class StoredEntry:
    """A dataclass that is written as a JSON object, by the names of its fields. The class is declared with
    the forms of those that are no plain values."""

    _forms: ClassVar[Mapping[str, StoredForm]]

    def __init_subclass__(cls, **forms: StoredForm) -> None:
        cls._forms = forms

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return vars(self) | {name: form.write(getattr(self, name)) for name, form in self._forms.items()}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """What `to_json` wrote."""
        return cls(**{**stored, **{name: form.read(stored[name]) for name, form in cls._forms.items()}})


def _by_name(kind: type[StoredEntry | Facts]) -> StoredForm:
    return StoredForm(
        lambda entries: {name: entry.to_json() for name, entry in entries.items()},
        lambda stored: {name: kind.from_json(entry) for name, entry in stored.items()},
    )


def _listed(kind: type[StoredEntry]) -> StoredForm:
    return StoredForm(
        lambda entries: [entry.to_json() for entry in entries],
        lambda stored: tuple(kind.from_json(entry) for entry in stored),
    )


_INSTANT = StoredForm(write_instant, read_instant)


@dataclass(frozen=True)
class ChunkRef(StoredEntry, operators=_by_name(Facts)):
    """A chunk file, as a manifest names it: enough to find it unopened, to trust it, and to drop it.

    It holds sections of several operators. Each of these parts has its own facts, so that it can expire while
    the file stays for the others; `operators` are those still live, and a file without any is named no more.
    """

    name: str
    bytes: int
    #: the root of the file's checksums; see `windrow.state.chunk`
    checksum: str
    rows: int
    operators: Mapping[str, Facts] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def without(self, operators: Collection[str]) -> ChunkRef | None:
        """The same file for the other operators, or None if there are none.

        >>> ref = ChunkRef("chunks/a", 99, "", 3, {"join": Facts(1, 40), "sum": Facts(2, 59)})
        >>> sorted(ref.without({"sum"}).operators), ref.without({"sum", "join"})
        (['join'], None)
        """
        left = {operator: facts for operator, facts in self.operators.items() if operator not in operators}
        return replace(self, operators=left) if left else None

    @property
    def live_bytes(self) -> int:
        """How much of the file is still live: all of one without parts."""
        return sum(facts.bytes for facts in self.operators.values()) or self.bytes


STATUSES = ("running", "paused", "stopped", "failed")


@dataclass(frozen=True)
class SourceFile:
    """A file a source has read; one that changes or vanishes afterwards is an error."""

    path: str
    size: int
    #: nanoseconds since the epoch
    modified: int


_FILES = StoredForm(
    lambda files: [[file.path, file.size, file.modified] for file in files],
    lambda stored: tuple(SourceFile(*file) for file in stored),
)


@dataclass(frozen=True)
class SourceState(StoredEntry, files=_FILES):
    """Which source it was, and how far it has been read: the same one must come back after a restart."""

    fingerprint: str = ""
    #: how far, as the source counts: rows, offsets of partitions, files
    offsets: Mapping[str, Any] = field(default_factory=dict)
    #: the files of a table, which is read whole
    files: tuple[SourceFile, ...] = ()


@dataclass(frozen=True)
class StreamState(StoredEntry, source=StoredForm(SourceState.to_json, SourceState.from_json)):
    """How far a stream has got. Tables are streams of changes, and have the same."""

    #: as `windrow.windows.progress.Progress.to_json` writes it
    progress: Mapping[str, Any] = field(default_factory=dict)
    accepted: int = 0
    late: int = 0
    shed: int = 0
    #: all rows ever seen, the base of the next row's number
    rows_seen: int = 0
    #: the end was declared: more rows are refused
    sealed: bool = False
    source: SourceState = SourceState()
    #: the declaration, and whatever else belongs to it
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_unread(self) -> bool:
        """Whether no row and no watermark has come, and no change and no punctuation of a table."""
        came = self.rows_seen or self.sealed or self.source != SourceState()
        watermark = self.progress.get("progress", write_instant(-INFINITY))
        punctuated = self.progress.get("promised", write_instant(INFINITY))
        is_still = watermark == write_instant(-INFINITY) and punctuated == write_instant(INFINITY)
        is_unchanged = self.options.get("last") is None
        return not came and is_still and is_unchanged and not self.progress.get("sources")


@dataclass(frozen=True)
class QueryState(StoredEntry, emitted=_INSTANT, complete_from=_INSTANT):
    """A registered query, and up to where its answers have been given.

    >>> query = QueryState("SELECT 1", "f00d", emitted=17)
    >>> QueryState.from_json(query.to_json()) == query
    True
    """

    text: str
    #: of the plan: if it differs after a restart, the stored state belongs to another plan
    fingerprint: str
    options: Mapping[str, Any] = field(default_factory=dict)
    #: everything about instants up to this one was emitted
    emitted: Instant = -INFINITY
    #: from this instant on the answers are complete
    complete_from: Instant = -INFINITY
    status: str = "running"
    error: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        if self.status not in STATUSES:
            raise ValueError(f"a query cannot be `{self.status}`, only one of {', '.join(STATUSES)}")


@dataclass(frozen=True)
class OutboxEntry(
    StoredEntry, ref=StoredForm(ChunkRef.to_json, ChunkRef.from_json), pending=StoredForm(list, tuple)
):
    """A file of output, until every sink has it. Its parts are named like the sinks they are for."""

    #: the commit that made it: sinks use the number to tell a repetition
    commit: int
    ref: ChunkRef
    pending: tuple[str, ...] = ()

    def delivered(self, sinks: Collection[str]) -> OutboxEntry | None:
        """What remains after these sinks have theirs, or None if that is nothing.

        >>> entry = OutboxEntry(7, ChunkRef("outbox/a", 1, "", 1), pending=("console", "files"))
        >>> entry.delivered({"files"}).pending, entry.delivered({"files", "console"})
        (('console',), None)
        """
        left = tuple(sink for sink in self.pending if sink not in sinks)
        return replace(self, pending=left) if left else None


#: 2: states of users' aggregates are plain values; 3: names of folders and of what the engine files itself;
#: 4: positions of sources instead of batches of Spark's; 5: physical plans of queries, and
#: declarations, in canonical text; 6: what the intervals hold that queries share
FORMAT = 7

_ENVELOPE = re.compile(rb'\{"format":([0-9]{1,9}),"checksum":"([0-9a-f]{32})","body":(.*)\}\n', re.DOTALL)


_STREAMS, _REFS = _by_name(StreamState), _listed(ChunkRef)
_CHUNKS = StoredForm(
    lambda chunks: {str(shard): _REFS.write(refs) for shard, refs in chunks.items()},
    lambda stored: {int(shard): _REFS.read(refs) for shard, refs in stored.items()},
)


@dataclass(frozen=True)
class Manifest(
    StoredEntry,
    streams=_STREAMS,
    tables=_STREAMS,
    queries=_by_name(QueryState),
    chunks=_CHUNKS,
    outbox=_listed(OutboxEntry),
):
    """The state after commit `number`, made under owner epoch `owner`.

    >>> first = Manifest().successor(shards=2)
    >>> first.number, Manifest.decode(first.encode(), "commits/1") == first
    (1, True)
    """

    number: int = 0
    owner: int = 0
    #: how many shards there are; 0 as long as it is not decided
    shards: int = 0
    streams: Mapping[str, StreamState] = field(default_factory=dict)
    tables: Mapping[str, StreamState] = field(default_factory=dict)
    queries: Mapping[str, QueryState] = field(default_factory=dict)
    #: the live chunks of each shard, oldest first; under `names.DRIVER` those of the engine as a whole
    chunks: Mapping[int, tuple[ChunkRef, ...]] = field(default_factory=dict)
    outbox: tuple[OutboxEntry, ...] = ()
    #: what was decided by the wall clock, by shedding, by scheduling: a replay repeats it
    decisions: Mapping[str, Any] = field(default_factory=dict)

    def successor(self, **changes: Any) -> Manifest:
        """The next manifest: the same but for the changes, and for the decisions, which are of one epoch."""
        return replace(self, **{"number": self.number + 1, "decisions": {}, **changes})

    @property
    def is_unread(self) -> bool:
        """Whether it has declarations and nothing else: whoever starts again may declare otherwise.

        >>> [Manifest(streams={"s": StreamState(rows_seen=rows)}).is_unread for rows in (0, 1)]
        [True, False]
        """
        declared = [*self.streams.values(), *self.tables.values()]
        came = self.chunks or self.outbox or self.decisions.keys() - {"state_id", "synopses"}
        return bool(declared) and not came and all(each.is_unread for each in declared)

    @property
    def files(self) -> dict[str, ChunkRef]:
        state = [ref for refs in self.chunks.values() for ref in refs]
        return {ref.name: ref for ref in [*state, *(entry.ref for entry in self.outbox)]}

    def encode(self) -> bytes:
        """The contents of the file; equal manifests are written alike."""
        body = json.dumps(self.to_json(), sort_keys=True, separators=(",", ":"), allow_nan=False).encode()
        return b'{"format":%d,"checksum":"%s","body":%s}\n' % (FORMAT, _checksum(FORMAT, body), body)

    @classmethod
    def decode(cls, data: bytes, place: str) -> Manifest:
        """What `encode` wrote; `place` is named in errors."""
        found = _ENVELOPE.fullmatch(data)
        if not found:
            raise damaged(place, "it is cut off, or not a manifest at all")
        version, checksum, body = int(found[1]), found[2], found[3]
        if _checksum(version, body) != checksum:
            raise damaged(place, "it does not match its checksum")
        if version != FORMAT:
            raise (too_new if version > FORMAT else too_old)(place, version, FORMAT)
        try:
            return cls.from_json(json.loads(body))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise damaged(place, f"its contents make no sense ({error})") from error


def _checksum(version: int, body: bytes) -> bytes:
    return blake2b(b"%d\n" % version + body, digest_size=16).hexdigest().encode()
