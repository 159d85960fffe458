"""What a scheduler may be told: a level of isolation, an order of reading, and who gives way to whom."""

from __future__ import annotations

from dataclasses import dataclass

from windrow.archive.isolation.levels import LATEST, WINDOW, Level
from windrow.archive.isolation.orders import ReadOrder, by_slot, oldest_first, youngest_first


@dataclass(frozen=True, slots=True)
class Policy:
    """How queries and updates get along.

    `updates_wait`: a query that has begun keeps updates and other queries out. Otherwise updates happen at
    once, whoever reads. `undo`: expired sub-windows are kept for those who have read them, who take back
    their rows instead of beginning anew.
    """

    name: str
    level: Level
    order: ReadOrder
    updates_wait: bool = False
    undo: bool = False

    def __post_init__(self) -> None:
        if self.level not in (WINDOW, LATEST):
            raise ValueError(f"a scheduler keeps WINDOW or LATEST, not {self.level.name}")
        if self.undo and self.level is not LATEST:
            raise ValueError("a query that keeps to one window has nothing to undo")


#: one after the other: answers are about the latest window there is, as updates have to wait
SERIAL = Policy("Serial", LATEST, youngest_first, updates_wait=True)
#: answers are about the window that a query has found
SNAPSHOT = Policy("WS", WINDOW, oldest_first)
#: answers are about the window at the commit, read in a fixed order (Algorithm 7)
FIXED_ORDER = Policy("LWS", LATEST, by_slot)
#: the same, read by time to update (Algorithm 8)
TIME_TO_UPDATE = Policy("TTU", LATEST, youngest_first)
#: the same, with expired sub-windows kept: nobody begins anew
UNDOING = Policy("TTU-undo", LATEST, youngest_first, undo=True)
