"""The techniques by their names in the thesis' table 8.1: how tasks are made, and which run together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from windrow.sharing.scheduling.conservative import due_together
from windrow.sharing.scheduling.costs import Costs
from windrow.sharing.scheduling.earliest import Left, alone
from windrow.sharing.scheduling.hybrid import hybrid
from windrow.sharing.scheduling.late import late_together
from windrow.sharing.scheduling.late_pending import late_and_pending
from windrow.sharing.scheduling.tasks import Groups, Task, by_group, by_period

Together = Callable[[Sequence[Task], Left], list[Task]]


@dataclass(frozen=True)
class Technique:
    """A way to schedule."""

    about: str
    tasks: Callable[[Groups, Costs], list[Task]]
    together: Together


TECHNIQUES = {
    "No-S": Technique("no sharing", lambda groups, _: by_period(groups), alone),
    "AS": Technique("aggressive", lambda groups, _: by_group(groups), alone),
    "CS": Technique("conservative", lambda groups, _: by_period(groups), due_together),
    "HS": Technique("hybrid", hybrid, due_together),
    "H-LS": Technique("hybrid, late sharing", hybrid, late_together),
    "H-LP": Technique("hybrid, late-pending sharing", hybrid, late_and_pending),
}
