"""Who asks for others: of queries whose answers are among those of one of them, only that one is computed.

Equal queries read its answers whole. Queries that are the same but less often (CS8) follow it: they read what
is about their own instants. A query that does not answer every window (EVERY, MAX GAP) neither follows nor is
followed, since what it leaves out others would miss. A query that came late asks for itself as long as there
are windows that are complete for others and not for it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from windrow.kernels.shared.shared_state import Follower, WindowRequest

if TYPE_CHECKING:
    from windrow.engine.records import QueryRecord
    from windrow.execution.reports import Closed
    from windrow.execution.shared import SharedWork
    from windrow.windows.domain import Instant


@dataclass
class Led:
    """The queries that ask, and those who read what others ask for."""

    askers: list[WindowRequest] = field(default_factory=list)
    #: of each query that equal ones read, these
    readers: dict[str, list[str]] = field(default_factory=dict)

    def leader_of(self, query: str) -> str | None:
        """The query whose answers another one reads; None if it asks by itself."""
        for asker in self.askers:
            followers = (follower.query for follower in asker.followers)
            if query in self.readers.get(asker.query, ()) or query in followers:
                return asker.query
        return None


def led(
    records: Iterable[QueryRecord], asking: Callable[[str], tuple[WindowRequest, Hashable]], answered: Instant
) -> Led:
    """Who asks; `asking` tells what a query asks for, and what is the same for those that differ only in when
    they do. Windows that end after `answered` are still to come."""
    found = Led()
    leaders: dict[Hashable, list[WindowRequest]] = {}
    for record, asker, same in sorted(_known(records, asking, answered), key=lambda known: _order(known[1])):
        alike = leaders.setdefault(_alike(record, same), [])
        leader = next((place for place, each in enumerate(alike) if _leads(each, asker)), None)
        if leader is None:
            alike.append(asker)
        elif _is_equal(alike[leader], asker):
            found.readers.setdefault(alike[leader].query, []).append(record.id)
        else:
            more = (*alike[leader].followers, _follower(asker))
            alike[leader] = replace(alike[leader], followers=more)
    found.askers = [asker for alike in leaders.values() for asker in alike]
    return found


def failed_leaders(shared: Iterable[SharedWork], reports: Iterable[Closed]) -> set[str]:
    """The queries with followers that cannot be answered: what is wrong may be in windows of theirs alone."""
    failed = {name for report in reports for name in report.faults}
    return {asker.query for work in shared for asker in work.turn.askers if asker.followers} & failed


def is_exact(record: QueryRecord) -> bool:
    """Whether a query answers every window that ends."""
    return record.query.every is None and record.query.max_gap is None


def _known(
    records: Iterable[QueryRecord], asking: Callable[[str], tuple[WindowRequest, Hashable]], answered: Instant
) -> Iterable[tuple[QueryRecord, WindowRequest, Hashable]]:
    for record in records:
        asker, same = asking(record.id)
        begin, newest = record.complete_from, record.query.every is not None
        is_past = begin is not None and answered - asker.range >= begin
        yield record, replace(asker, complete_from=None if is_past else begin, newest=newest), same


def _alike(record: QueryRecord, same: Hashable) -> Hashable:
    """The queries that may be one: of those that leave windows out, only equal ones that do it together."""
    if is_exact(record):
        return same
    if record.query.max_gap is not None:
        return "alone", record.id
    return "together", record.bundle.fingerprint, record.complete_from


def _order(asker: WindowRequest) -> tuple[int, bool, int]:
    """The most frequent first, then those that begin first."""
    return asker.slide, asker.complete_from is not None, asker.complete_from or 0


def _leads(leader: WindowRequest, other: WindowRequest) -> bool:
    aligned = other.slide % leader.slide == 0 and (other.origin - leader.origin) % leader.slide == 0
    if leader.complete_from is None or other.complete_from is None:
        return aligned and leader.complete_from is None
    return aligned and leader.complete_from <= other.complete_from


def _is_equal(leader: WindowRequest, other: WindowRequest) -> bool:
    return leader.slide == other.slide and leader.complete_from == other.complete_from


def _follower(asker: WindowRequest) -> Follower:
    begin = None if asker.complete_from is None else asker.complete_from + asker.range
    return Follower(asker.query, asker.slide, asker.origin, begin)
