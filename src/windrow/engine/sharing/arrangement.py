"""What queries share, decided for all of them together and recorded in the physical plan of each.

It depends on which queries are there. Up to the first rows nothing is kept yet, so it is found out anew
whenever queries came or went, as if all of them had come at once: the common subplans of those that run over
rows, and the synopses of those that are answered from them. From then on every query keeps what it has; one
that comes later joins what fits.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from logging import getLogger
from typing import TYPE_CHECKING, Any

from windrow.engine.records import StreamRecord
from windrow.engine.sharing.common_subplans import admission, general_unit, teamed
from windrow.engine.sharing.followers import is_exact
from windrow.engine.sharing.report import shared_parts
from windrow.engine.sharing.shared_state import Common
from windrow.kernels.clock import FOREVER
from windrow.physical.sharing import Sharing
from windrow.physical.units import GeneralUnit
from windrow.state.names import DRIVER
from windrow.windows.domain import INFINITY

if TYPE_CHECKING:
    from windrow.engine.engine import Engine
    from windrow.engine.records import QueryRecord
    from windrow.engine.sharing.shared_state import SharedRecipes
    from windrow.execution.relational import Host
    from windrow.physical import PhysicalPlan

_log = getLogger("windrow.engine")


class Arranging:
    """What the queries of an engine share."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        #: the queries that the last teams were made of
        self._teamed: frozenset[tuple[str, bool]] = frozenset()
        #: the version of what is in common that was planned anew
        self._planned = -1
        #: queries that came late, for which a join was looked for
        self._looked: set[str] = set()
        #: what was recorded last depends on this
        self._noted: Hashable = None

    def joined(self, record: QueryRecord) -> SharedRecipes | None:
        """A new query's place among the synopses; None if it keeps a state of its own."""
        engine = self._engine
        return (
            joined(engine.common, record, engine.streams, engine.last.number + 1) if engine.shares else None
        )

    def note(self, queries: dict[str, QueryRecord]) -> None:
        """Record in the plan of each query what it shares, if queries came, went or changed: with each epoch,
        and for whoever asks."""
        now = (
            self._engine.common.version,
            tuple((q.id, q.is_running, q.shares, q.member) for q in queries.values()),
        )
        if now == self._noted:
            return
        self._noted = now
        members = [each for each in queries.values() if each.is_running and each.member is not None]
        for name, record in queries.items():
            sharing = sharing_of(self._engine.common, record, members)
            if sharing != record.physical.sharing:
                queries[name] = record.among(sharing)

    def arrange(self) -> None:
        """An epoch begins."""
        if self._engine.shares:
            self._team_up()
            self._plan_anew()

    def admit(self) -> None:
        """An epoch is about to begin: queries that came after the first rows see those that joins hold."""
        engine = self._engine
        late = [each for each in self._beginning() if each.complete_from is not None and each.member is None]
        for record in late if engine.shares else ():
            if record.id not in self._looked:
                self._looked.add(record.id)
                self._admit(record)

    def _admit(self, late: QueryRecord) -> None:
        """Let a query begin over a join that runs, if there is one that fits."""
        engine = self._engine
        hosts = [each for each in engine.queries.values() if each.is_running and not each.is_fresh]
        for host in sorted(hosts, key=_complete):
            if host.shares or _complete(host) > _complete(late):
                continue
            if (found := admission(late, host)) is not None:
                if host.member is None:
                    self._take_in(host)
                    host = engine.queries[host.query.name]
                mine, theirs, was = found
                self._begin_over(late.joining(mine), host.joining(theirs), was)
                return

    def _take_in(self, record: QueryRecord) -> None:
        """Rows that wait for a query under its own name are taken in, and nothing is answered."""
        engine, draft = self._engine, self._engine._draft()
        name = record.query.name
        work = [replace(draft._work(record), lifetimes=engine.archives.wants_lifetimes(name))]
        if work[0].deltas:
            draft.close(work, [], engine.jobs.close(draft.tasks(work, [], engine._place())))
            engine._commit(draft)

    def _begin_over(self, late: QueryRecord, host: QueryRecord, was: Host) -> None:
        """Give both the join in common, and commit it. If that fails, each goes on by itself."""
        engine, draft = self._engine, self._engine._draft()
        both = {record.query.name: record for record in (host, late)}
        draft.queries |= both
        work = [replace(draft._work(record), deltas=(), host=was) for record in both.values()]
        reports = engine.jobs.close(draft.tasks(work, [], engine._place()))
        if any(report.faults for report in reports):
            _log.warning("query %s keeps a state of its own: %s", late.query.name, reports)
            return
        draft.close(work, [], reports)
        unit, clock = (
            general_unit(host.bundle),
            work[0].clock.now + general_unit(host.bundle).program.builder.lag,
        )
        begin = max(clock, (host.complete_from or -FOREVER) + (unit.memory or 0))
        begin -= general_unit(late.bundle).memory or 0
        known: dict[str, Any] = {"absorbed": host.absorbed, "latest": host.latest, "is_fresh": False}
        draft.queries[host.query.name] = replace(draft.queries[host.query.name], **known)
        draft.queries[late.query.name] = replace(
            draft.queries[late.query.name],
            **known,
            complete_from=begin if abs(begin) < FOREVER // 2 else None,
        )
        engine._commit(draft)

    def _beginning(self) -> list[QueryRecord]:
        """The queries that have seen nothing yet."""
        engine = self._engine
        filed = [ref.metadata for ref in engine.last.chunks.get(DRIVER, ()) if "stream" in ref.metadata]

        def begins(record: QueryRecord) -> bool:
            new = {each["stream"] for each in filed if int(each["commit"]) > record.absorbed}
            return record.is_running and record.is_fresh and new.isdisjoint(record.streams)

        return [each for each in engine.queries.values() if not each.shares and begins(each)]

    def _team_up(self) -> None:
        """Find out what queries that have seen nothing yet have in common."""
        engine, found = self._engine, self._beginning()
        beginning = frozenset((each.id, each.bundle.carries_ends) for each in found)
        if beginning == self._teamed:
            return
        members, self._teamed = teamed(found, engine.last.number + 1), beginning
        for record in found:
            member = members.get(record.id)
            if member != record.member:
                engine.queries[record.query.name] = record.joining(member)

    def _plan_anew(self) -> None:
        """Find out which synopses serve queries best of streams that had no rows yet."""
        engine = self._engine
        if engine.common.version == self._planned:
            return
        self._planned = engine.common.version
        ledgers = self._without_rows()
        if not ledgers:
            return
        common, mine = engine.common.copy(), {each.id: each for each in engine.queries.values()}
        found: dict[str, tuple[str, ...]] = {}
        for ledger, stream in ledgers.items():
            bundles = {name: mine[name].bundle for name in common.members(ledger)}
            found |= common.settle(ledger, bundles, engine.streams[stream])
        # whoever looks meanwhile finds either what was, or all that is new
        engine.common, self._planned = common, common.version
        for name, shares in found.items():
            engine.queries[mine[name].query.name] = replace(mine[name], shares=shares)

    def _without_rows(self) -> dict[str, str]:
        """The ledgers that have nothing yet, with their streams. Those of queries that may still be declared
        stay as they are."""
        engine = self._engine
        awaited = {engine.common.kept[label].ledger for label in engine.shares_elsewhere}
        streams = {ledger: engine.common.ledger(ledger).stream.name for ledger in engine.common.ledgers}
        return {
            ledger: name
            for ledger, name in streams.items()
            if ledger not in awaited and not self._has_moved(name)
        }

    def _has_moved(self, name: str) -> bool:
        record = self._engine.streams[name]
        clock = record.known.progress_on(record.stream, record.stream.wattr)
        return record.greatest is not None or clock != -INFINITY


def _complete(record: QueryRecord) -> float:
    """From when on the answers of a query over rows are complete."""
    unit, begin = record.bundle.unit, record.complete_from
    memory = unit.memory if isinstance(unit, GeneralUnit) else None
    return -INFINITY if begin is None else begin + (memory or 0)


def joined(
    common: Common, record: QueryRecord, streams: Mapping[str, StreamRecord], commit: int
) -> SharedRecipes | None:
    """The place of a query among synopses; None if it keeps a state of its own."""
    if len(record.streams) > 1 or record.bundle.aggregates:
        return None
    (name,) = record.streams
    plan = record.physical.emit
    return common.join(record.bundle, plan, streams[name], commit, is_exact=is_exact(record))


def sharing_of(common: Common, record: QueryRecord, members: Sequence[QueryRecord]) -> Sharing:
    """What a query has in common with others; `members` are those that run with common subplans."""
    if not record.is_running:
        return Sharing()
    if not record.shares:
        parts = tuple(shared_parts(record, members))
        return Sharing(parts=parts, alone="" if parts else common.alone.get(record.id, ""))
    queries = len(common.members(common.ledger_of(record.shares)))
    counts = bool(common.asker(record.id).tallies)
    return Sharing(common.plan.synopses_of(record.id), queries, counts)


def arranged(records: Iterable[QueryRecord]) -> dict[str, PhysicalPlan]:
    """The plans of queries that come all at once, before there are rows, by their names."""
    common, mine = Common(), {record.id: record for record in records}
    streams = {
        name: StreamRecord.new(each) for record in mine.values() for name, each in record.streams.items()
    }
    for record in list(mine.values()):
        place = joined(common, record, streams, 1)
        if place is not None:
            mine[record.id] = replace(record, shares=place.shares)
    for ledger in common.ledgers:
        bundles = {name: mine[name].bundle for name in common.members(ledger)}
        stream = streams[common.ledger(ledger).stream.name]
        for name, shares in common.settle(ledger, bundles, stream).items():
            mine[name] = replace(mine[name], shares=shares)
    places = teamed([record for record in mine.values() if not record.shares], 1)
    together = [record.joining(places.get(record.id)) for record in mine.values() if not record.shares]
    mine |= {record.id: record for record in together}
    members = [record for record in together if record.member is not None]
    sharing = {record.id: sharing_of(common, record, members) for record in mine.values()}
    return {record.query.name: record.among(sharing[record.id]).running for record in mine.values()}
