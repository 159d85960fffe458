"""What a manifest says of each stream, table, query and piece of output. Plain values, written as JSON."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from windrow.state.refs import ChunkRef, read_instant, write_instant
from windrow.windows.domain import INFINITY, Instant

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

STATUSES = ("running", "paused", "stopped", "failed")


@dataclass(frozen=True)
class SourceFile:
    """A file a source has read; one that changes or vanishes afterwards is an error."""

    path: str
    size: int
    #: nanoseconds since the epoch
    modified: int


@dataclass(frozen=True)
class SourceState:
    """Which source it was, and how far it has been read: the same one must come back after a restart."""

    fingerprint: str = ""
    #: how far, as the source counts: rows, offsets of partitions, files
    offsets: Mapping[str, Any] = field(default_factory=dict)
    #: the files of a table, which is read whole
    files: tuple[SourceFile, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {**flat(self), "files": [[file.path, file.size, file.modified] for file in self.files]}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> SourceState:
        """What `to_json` wrote."""
        return cls(**{**stored, "files": tuple(SourceFile(*file) for file in stored["files"])})


@dataclass(frozen=True)
class StreamState:
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

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {**flat(self), "source": self.source.to_json()}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> StreamState:
        """What `to_json` wrote."""
        return cls(**{**stored, "source": SourceState.from_json(stored["source"])})


@dataclass(frozen=True)
class QueryState:
    """A registered query, and up to where its answers have been given."""

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

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        instants = {name: write_instant(getattr(self, name)) for name in ("emitted", "complete_from")}
        return {**flat(self), **instants}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> QueryState:
        """What `to_json` wrote.

        >>> query = QueryState("SELECT 1", "f00d", emitted=17)
        >>> QueryState.from_json(query.to_json()) == query
        True
        """
        instants = {name: read_instant(stored[name]) for name in ("emitted", "complete_from")}
        return cls(**{**stored, **instants})


@dataclass(frozen=True)
class OutboxEntry:
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

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {"commit": self.commit, "ref": self.ref.to_json(), "pending": list(self.pending)}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> OutboxEntry:
        """What `to_json` wrote."""
        return cls(stored["commit"], ChunkRef.from_json(stored["ref"]), tuple(stored["pending"]))


def flat(entry: Any) -> dict[str, Any]:
    """The fields of a dataclass by name, each as it is."""
    return {item.name: getattr(entry, item.name) for item in fields(entry)}
