"""What epochs take, and what commits hold: figures for whoever watches an engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from windrow.state.manifest import Manifest

#: of so many epochs it is known what they took
MOST_EPOCHS = 512
#: between the id of a query and the name of its operator, in the names of what chunks hold
_OF = "\0"


@dataclass(frozen=True, slots=True)
class EpochTimes:
    """One epoch: `read` are seconds for new rows, `close` for windows and answers."""

    #: counts the epochs of this process, from 1
    number: int
    #: the last commit when it was over
    commit: int
    #: when it began: microseconds since 1970
    began: int
    rows: int
    shed: int
    #: rows that were left waiting in the sources, as far as those tell
    backlog: int
    read: float
    close: float
    commit_seconds: float
    deliver: float

    @property
    def seconds(self) -> float:
        """All of it."""
        return self.read + self.close + self.commit_seconds + self.deliver


@dataclass(frozen=True, slots=True)
class Footprint:
    """What a commit holds."""

    commit: int
    files: int
    state_bytes: int
    #: of each query or shared state, by id
    bytes_by_owner: dict[str, int]
    outbox_bytes: int
    #: the oldest commit with answers that a sink does not have yet; None if there are none
    outbox_since: int | None


def footprint_of(manifest: Manifest) -> Footprint:
    """How much a commit names."""
    refs = [ref for chunks in manifest.chunks.values() for ref in chunks]
    owners: dict[str, int] = {}
    for ref in refs:
        for operator, facts in ref.operators.items():
            owner = operator.partition(_OF)[0]
            owners[owner] = owners.get(owner, 0) + facts.bytes
    waiting = [entry for entry in manifest.outbox if entry.pending]
    return Footprint(
        manifest.number,
        len(refs),
        sum(ref.bytes for ref in refs),
        owners,
        sum(entry.ref.bytes for entry in waiting),
        min((entry.commit for entry in waiting), default=None),
    )
