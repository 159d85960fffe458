"""From a sharing plan to what is scheduled: its groups, with lengths and periods counted in updates.

An update of a group is that of its finest synopsis. A query's period is its SLIDE, or the longer one it asks
for with EVERY.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import gcd
from typing import TYPE_CHECKING

from windrow.sharing.scheduling.tasks import Query

if TYPE_CHECKING:
    from windrow.sharing.plans import SharingPlan


@dataclass(frozen=True)
class Asked:
    """What a query says about its refreshes, in ticks: EVERY … AT MOST …, PRIORITY."""

    every: int | None = None
    at_most: int | None = None
    priority: int = 0


def scheduled(
    plan: SharingPlan, asked: Mapping[str, Asked] | None = None, update: int | None = None
) -> dict[str, list[Query]]:
    """The queries of each group of a plan. Groups are named by their first query.

    With `update` all groups count their updates alike, one for so many ticks.
    """
    known = asked or {}
    return {
        group.queries[0]: [
            _query(plan, name, known.get(name, Asked()), update or _update(plan, group.queries))
            for name in group.queries
        ]
        for group in plan.groups
    }


def _update(plan: SharingPlan, queries: tuple[str, ...]) -> int:
    """The time between two updates of any synopsis that these queries use."""
    used = {name for query in queries for each in plan.shares[query].recipes.values() for name in each.all}
    return gcd(*(plan.synopses[name].grid.width for name in used))


def _query(plan: SharingPlan, name: str, asked: Asked, update: int) -> Query:
    question = plan.questions[name]
    period = max(question.slide, asked.every or 0)
    most = None if asked.at_most is None else max(1, asked.at_most // update)
    return Query(name, max(question.lengths) // update, max(1, period // update), asked.priority, most)
