"""From measured epochs to losses: how much of its windows each query that agreed gives up.

Fixed costs of an epoch stay whatever is dropped, and an epoch that takes long because of them is no overload:
it may take a few times as long as they do. Work on rows goes down with the rows that are dropped, which
takes the agreement of all who read a stream; work on answers goes down with the answers of each query for
itself. If even the longest gaps would hardly help, nothing is dropped: windows are not given up for nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from windrow.shedding.agreement import SheddingGroup, SheddingGroups
from windrow.shedding.controller import Admission, Bill, Controller, Member, QueryLoad
from windrow.shedding.load import Monitor, OperatorWork, Sample
from windrow.shedding.rules import early_share

#: epochs after a start in which nothing is dropped, as everything is done for the first time; unless they
#: get longer and longer
WARM_UP = 3
#: how quickly it is learnt what queries cost
_LEARN = 0.3
#: losses that differ by less are the same
_DIGITS = 4
#: savings below this share of the work are not worth a window
WORTH = 0.05


@dataclass(frozen=True, slots=True)
class Effort:
    """What an epoch took: seconds for rows and windows, seconds to hand answers over, rows that came, rows
    shed, and rows that are left waiting in the sources, as far as those tell.
    """

    rows: int = 0
    shed: int = 0
    on_rows: float = 0.0
    on_answers: float = 0.0
    backlog: int = 0
    #: seconds in which these rows came: since the epoch before began
    since: float = 0.0
    #: seconds that every epoch takes beyond these: to find out what is new, to plan, to commit
    around: float = 0.0
    #: what tasks did for each query, where they are computed one by one
    by_query: Mapping[str, OperatorWork] = field(default_factory=dict)
    #: and the seconds of each level of a query, from the lowest
    by_level: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        """All of it."""
        return self.on_rows + self.on_answers


@dataclass(frozen=True, slots=True)
class Overload:
    """The load as it is known, and what follows from it."""

    monitor: Monitor = field(default_factory=Monitor)
    controller: Controller = field(default_factory=Controller)
    admission: Admission = field(default_factory=Admission)
    #: what each query loses
    losses: Mapping[str, float] | None = None
    #: seconds in an epoch by query, and by its levels, smoothed
    spent: Mapping[str, float] = field(default_factory=dict)
    levels: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    def after(
        self, effort: Effort, limit: float, sharing: SheddingGroups, blocked: Collection[str]
    ) -> Overload:
        """One more epoch, which should take `limit` seconds, or some times what it takes without rows.

        `blocked` are streams that others read too.
        """
        saved = effort.shed / effort.rows if effort.rows else 0.0
        since = effort.since or limit
        sample = Sample(effort.rows, effort.seconds, since, effort.backlog, saved, effort.around)
        monitor = self.monitor.after(sample)
        falls_behind = effort.since > 0 and monitor.took > 2 * effort.since
        spent, levels = self._spent(effort), self._levels(effort)
        if monitor.epochs <= WARM_UP and not falls_behind:
            return replace(self, monitor=monitor, spent=spent, levels=levels)
        allowed = monitor.allowed(limit)
        on_rows = monitor.cost * monitor.waiting(limit)
        total = max(monitor.fixed + on_rows, 1e-9)
        answers = min(effort.on_answers, monitor.fixed)
        parts = _parts(spent, sharing)
        bills = [_bill(group, (on_rows, answers), parts, levels, blocked) for group in sharing.groups]
        most = sum(bill.most * bill.total for bill in bills) / total
        if most < WORTH:
            return Overload(monitor, losses={}, spent=spent, levels=levels)
        outlook = monitor.outlook(limit, *_savings(bills, on_rows, monitor.fixed))
        controller = self.controller.after(outlook, allowed, since, behind=monitor.behind)
        losses: dict[str, float] = {}
        for bill in bills:
            wanted = bill.losses(bill.most * controller.share)
            losses |= {name: round(p, _DIGITS) for name, p in wanted.items()}
        admission = self._admitted(monitor.load(allowed), sharing, bills, total, parts)
        return Overload(monitor, controller, admission, losses, spent, levels)

    def _spent(self, effort: Effort) -> dict[str, float]:
        """With what this epoch's tasks spent; of a query that had nothing to do, what is known stands."""
        found = dict(self.spent)
        for name, work in effort.by_query.items():
            if name not in self.admission.suspended:
                known = found.get(name, work.seconds)
                found[name] = known + _LEARN * (work.seconds - known)
        return found

    def _levels(self, effort: Effort) -> dict[str, tuple[float, ...]]:
        """The same of each level; a level that had nothing to do took no time."""
        found = dict(self.levels)
        for name, seconds in effort.by_level.items():
            known = found.get(name, seconds)
            known = known if len(known) == len(seconds) else seconds
            found[name] = tuple(k + _LEARN * (s - k) for k, s in zip(known, seconds, strict=True))
        return found

    def _admitted(
        self,
        offered: float,
        sharing: SheddingGroups,
        bills: list[Bill],
        total: float,
        parts: Mapping[str, float],
    ) -> Admission:
        queries = []
        for group, bill in zip(sharing.groups, bills, strict=True):
            load = offered * bill.total / total
            whole = sum(parts[each.name] for each in group.members)
            queries += [
                QueryLoad(each.name, load * parts[each.name] / whole, bill.most, each.priority)
                for each in group.members
            ]
        others = max(0.0, offered - sum(query.load for query in queries))
        return self.admission.after(others, queries)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "share": self.controller.share,
            "suspended": list(self.admission.suspended),
            "losses": dict(self.losses or {}),
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """What `to_json` wrote."""
        return cls(
            controller=Controller(stored.get("share", 0.0)),
            admission=Admission(tuple(stored["suspended"])),
            losses=stored["losses"],
        )


def _savings(bills: Iterable[Bill], on_rows: float, fixed: float) -> tuple[float, float]:
    """The shares of the work on rows, and of the rest, that can be saved at most."""
    early, answers = (sum(each) for each in zip(*(bill.savable for bill in bills), strict=True))
    return early / on_rows if on_rows else 0.0, answers / fixed if fixed else 0.0


def _parts(spent: Mapping[str, float], sharing: SheddingGroups) -> dict[str, float]:
    """What part of all work each query is, by what was spent on it; like parts where nothing is known of one.

    Queries that lose nothing are part of the work too.
    """
    names = [*sharing.agreed, *(name for name, _ in sharing.refused)]
    known = {name: spent.get(name, 0.0) for name in names}
    if not all(known.values()):
        return dict.fromkeys(names, 1 / len(names))
    whole = sum(known.values())
    return {name: seconds / whole for name, seconds in known.items()}


def _bill(
    group: SheddingGroup,
    costs: tuple[float, float],
    parts: Mapping[str, float],
    levels: Mapping[str, tuple[float, ...]],
    blocked: Collection[str],
) -> Bill:
    """What a group can save, of the seconds for rows and for answers.

    Rows that are dropped at the input save all that is done with them. Where a query saves more by what it
    drops in the middle of its plan, that is work of its own, which goes with its own windows.
    """
    rows, answers = costs
    part = sum(parts[member.name] for member in group.members)
    streams = {stream for member in group.members for stream in member.sheddable}
    early = 0.0 if streams & set(blocked) else min(1.0, early_share(group.drop, 1.0))
    more = {
        member.name: rows
        * parts[member.name]
        * max(0.0, member.saved(levels.get(member.name, ()))[0] - early)
        for member in group.members
        if len(member.arcs) > 1
    }
    members = tuple(
        Member(
            member.name,
            group.drop.most,
            member.priority,
            answers * parts[member.name] + more.get(member.name, 0.0),
        )
        for member in group.members
    )
    return Bill(members, rows * part - sum(more.values()), early)
