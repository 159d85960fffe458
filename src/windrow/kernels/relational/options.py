"""What can be chosen about how a plan is run: its cost changes, its answers never do.

None stands for "as the plan and its labels say"; every other value forces a choice, to compare it.

>>> Options().buckets, Options(evaluation=Evaluation.EAGER).evaluation.value
(10, 'eager')

Strategies for whole plans: how expiry is told, and how state is kept (thesis, 2.3.3 and 3.6).

    NT      negative rows everywhere: windows keep their rows and send a negative row when one expires
    DIRECT  rows carry their expiry; state is a list that is looked through for expired rows
    UPA     by update pattern: FIFO for WKS, a calendar for WK, hash with negative rows for STR

The answers are the same. Windows in which expiry cannot be known (ROWS, slide-by-tuple, SESSION) send
negative rows under every strategy. `windrow.kernels.relational.options` has all that can be asked for.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from windrow.errors import QueryError
from windrow.kernels.relational.expiry_layouts import Calendar, ExpiryLayout, ExpiryList, Fifo, Hashed, Sorted
from windrow.windows.patterns import Label, Pattern

if TYPE_CHECKING:
    from windrow.kernels.relational.operator import Operator


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
    """Who keeps the end of a result until it comes (`windrow.kernels.relational.join.partners`)."""

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


__all__ = ["Choice", "Options", "Strategy"]


@dataclass
class Choice:
    """The options for one plan, and the label of each operator's output."""

    options: Options = field(default_factory=Options)
    labels: dict[int, Label] = field(default_factory=dict)
    #: operators of which some rows end when they say, and negative rows take the others away
    mixed: set[int] = field(default_factory=set)

    @property
    def strategy(self) -> Strategy:
        return self.options.strategy

    @property
    def buckets(self) -> int:
        return self.options.buckets

    def label(self, operator: Operator, label: Label) -> None:
        """The rows of an operator expire in this way."""
        self.labels[id(operator)] = label

    def pass_on(self, below: Operator, above: Operator) -> None:
        """An operator that leaves expiry alone has the rows of the one below."""
        if id(below) in self.mixed:
            self.mixed.add(id(above))

    def known(self, operator: Operator) -> bool:
        """Whether every row of an operator carries its expiry, so that no negative rows come."""
        label = self.labels.get(id(operator))
        if label is None or label.pattern is Pattern.STR:
            return False
        return self.strategy is not Strategy.NT or label.pattern is Pattern.MON

    def ends(self, operator: Operator) -> bool:
        """Whether some rows of an operator end at an instant that they carry."""
        label = self.labels.get(id(operator))
        ends = label is not None and label.pattern is not Pattern.MON
        return id(operator) in self.mixed or (ends and self.known(operator))

    def ending(self, operator: Operator) -> ExpiryLayout:
        """How rows with a known end are kept by someone who tells of it when it comes, and of no other."""
        if self.strategy is Strategy.DIRECT:
            return ExpiryList()
        label = self.labels.get(id(operator))
        in_order = label is not None and label.fifo and self.known(operator)
        return Fifo() if in_order else Calendar(self.buckets)

    def layout(self, operator: Operator) -> ExpiryLayout:
        """How the rows of an operator are kept."""
        label = self.labels.get(id(operator))
        if not self.known(operator) or label is None:
            return Sorted(self.buckets) if id(operator) in self.mixed else Hashed()
        if self.strategy is Strategy.DIRECT:
            return ExpiryList()
        if label.pattern is Pattern.MON:
            return Fifo()
        return Fifo() if label.fifo else Calendar(self.buckets)
