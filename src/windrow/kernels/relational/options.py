"""What can be chosen about how a plan is run: its cost changes, its answers never do.

None stands for "as the plan and its labels say"; every other value forces a choice, to compare it.

>>> Options().buckets, Options(evaluation=Evaluation.EAGER).evaluation.value
(10, 'eager')
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from windrow.errors import QueryError


class Strategy(Enum):
    """How expiry is told."""

    NT = "NT"
    DIRECT = "DIRECT"
    UPA = "UPA"


class Evaluation(Enum):
    """When results are computed (thesis, 5.2)."""

    #: as rows come, also those of a report that is not yet due
    EAGER = "eager"
    #: when a report is due, for all rows since the last one; only periodic queries can wait
    LAZY = "lazy"


class Tables(Enum):
    """How partners are found."""

    HASH = "hash tables per window"
    LOOPS = "nested loops"


class Negation(Enum):
    """How the results of a negation leave (thesis, 3.5.2)."""

    #: on their own when they expire; a negative row only where a match comes first
    CALENDAR = "calendar"
    #: every one by a negative row
    NEGATIVE = "negative rows"


class Ends(Enum):
    """Who keeps the end of a result until it comes (`windrow.kernels.relational.join.ends`)."""

    #: a result carries its end, and whoever reads it keeps both
    CARRIED = "carried"
    #: the operator tells it when it comes, from the rows that it keeps anyway
    TOLD = "told"


class Counted(Enum):
    """How results over count-based windows leave (Patroumpas and Sellis 2011, 4.2)."""

    #: results are kept, with an order of expiry for each window
    CATALOGUES = "catalogues"
    #: expired rows look for their partners again
    NEGATIVE = "negative rows"


@dataclass(frozen=True, slots=True)
class Options:
    """The physical choices of one plan."""

    strategy: Strategy = Strategy.UPA
    #: of each batch of rows in a calendar
    buckets: int = 10
    #: None: lazy if the query is periodic
    evaluation: Evaluation | None = None
    #: expired rows leave the state of a join every so many instants, 0: at once; None: chunk by chunk, as
    #: soon as all rows of one have expired
    expire_every: int | None = None
    #: None: hash tables where the predicate has an equality
    tables: Tables | None = None
    #: None: as the share of results that leave early says
    negation: Negation | None = None
    #: None: told where nobody above keeps results, carried elsewhere
    ends: Ends | None = None
    #: None: negative rows where only changes read results, else catalogues where every input is a window
    counted: Counted | None = None
    #: whether joins of three and more inputs change their order as rates and values are observed
    reorder: bool = True
    #: whether aggregates over slide-by-tuple windows keep bins instead of rows, where they can
    bins: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "strategy", Strategy(self.strategy))
        if self.buckets < 1:
            raise QueryError(
                f"a calendar has at least one bucket, not {self.buckets}",
                code="bad-value",
                hint="leave `buckets` out, or give a number from 1 on",
            )
        if self.expire_every is not None and self.expire_every < 0:
            raise QueryError(
                f"rows cannot be purged every {self.expire_every} instants",
                code="bad-value",
                hint="0 purges at once, a larger number at intervals, None chunk by chunk",
            )
