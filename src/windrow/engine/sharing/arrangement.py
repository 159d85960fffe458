"""Before the first rows come: queries are arranged as if all of them had come at once.

What queries share depends on which of them are there. Up to the first rows nothing is kept yet, so it is
found out anew whenever queries came or went: the teams of those that run over rows, and the synopses of those
that are answered from them. From then on every query keeps what it has.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from windrow.engine.sharing.common_subplans import teamed
from windrow.state.names import DRIVER
from windrow.windows.domain import INFINITY

if TYPE_CHECKING:
    from windrow.engine.engine import Engine
    from windrow.engine.records import QueryRecord


class Arranging:
    """What the queries of an engine share, until rows come."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        #: the queries that the last teams were made of
        self._teamed: frozenset[tuple[str, bool]] = frozenset()
        #: the version of what is in common that was planned anew
        self._planned = -1

    def arrange(self) -> None:
        """An epoch begins."""
        if self._engine.shares:
            self._team_up()
            self._plan_anew()

    def _team_up(self) -> None:
        """Find out what queries that have seen nothing yet have in common."""
        engine = self._engine
        filed = [ref.metadata for ref in engine.last.chunks.get(DRIVER, ()) if "stream" in ref.metadata]

        def begins(record: QueryRecord) -> bool:
            new = {each["stream"] for each in filed if int(each["commit"]) > record.absorbed}
            return record.is_running and record.is_fresh and new.isdisjoint(record.streams)

        found = [each for each in engine.queries.values() if not each.shares and begins(each)]
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
