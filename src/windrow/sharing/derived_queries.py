"""Queries that need nothing of their own: all they ask is combined from synopses that others brought (SS4).

A query of that kind costs no intervals, only more to combine when it is answered. Synopses that are too short
for it are made longer, as for anybody who shares them. What is combined is named by a recipe:

>>> recipe(Relevant(("p1", "p4"), ("p7",)))
'p1+p4-p7'
>>> relevant_of("p1+p4-p7")
Relevant(added=('p1', 'p4'), subtracted=('p7',))
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from windrow.kernels.shared.shared_state import terms_of
from windrow.sharing.predicates import Relevant
from windrow.sharing.questions import MOST_INTERVALS
from windrow.sharing.rules import MOST_PROBED, combined, holds_windows

if TYPE_CHECKING:
    from windrow.sharing.questions import Need, QueryNeeds
    from windrow.sharing.synopses import Family, Held, Wanted


def cover_of(
    question: QueryNeeds, known: Callable[[Family], Iterable[Held]], most: int = MOST_PROBED
) -> dict[Need, Relevant[str]] | None:
    """Where all needs of a question can be taken from; None if anything would have to be added."""
    found: dict[Need, Relevant[str]] = {}
    for need in question.needs:
        wanted = question.wanted(need)
        relevant = None if need.datum.is_complex else _relevant(wanted, known(wanted.family), most)
        if relevant is None:
            return None
        found[need] = relevant
    return found


def recipe(relevant: Relevant[str]) -> str:
    """What is combined, as one name."""
    return "+".join(relevant.added) + "".join(f"-{name}" for name in relevant.subtracted)


def relevant_of(text: str) -> Relevant[str]:
    """What `recipe` wrote."""
    terms = terms_of(text)
    return Relevant(
        tuple(name for name, added in terms if added), tuple(name for name, added in terms if not added)
    )


def _relevant(wanted: Wanted, known: Iterable[Held], most: int) -> Relevant[str] | None:
    usable = [held for held in known if held.is_aligned(wanted) and _is_bearable(held, wanted)]
    same = [held for held in usable if holds_windows(held, wanted)]
    if same:
        return Relevant((max(same, key=lambda held: held.grid.width).name,))
    return combined(wanted, {held.name: held.predicate for held in usable}, most)


def _is_bearable(held: Held, wanted: Wanted) -> bool:
    return max(held.intervals(wanted)) <= MOST_INTERVALS
