"""Strategies for whole plans: how expiry is told, and how state is kept (thesis, 2.3.3 and 3.6).

    NT      negative rows everywhere: windows keep their rows and send a negative row when one expires
    DIRECT  rows carry their expiry; state is a list that is looked through for expired rows
    UPA     by update pattern: FIFO for WKS, a calendar for WK, hash with negative rows for STR

The answers are the same. Windows in which expiry cannot be known (ROWS, slide-by-tuple, SESSION) send
negative rows under every strategy. `windrow.kernels.relational.options` has all that can be asked for.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from windrow.algebra.patterns import Pattern
from windrow.kernels.relational.expiry_layouts import Calendar, Fifo, Hashed, Layout, Listed, Sorted
from windrow.kernels.relational.options import Options, Strategy

if TYPE_CHECKING:
    from windrow.algebra.patterns import Label
    from windrow.kernels.relational.operator import Operator

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

    def ending(self, operator: Operator) -> Layout:
        """How rows with a known end are kept by someone who tells of it when it comes, and of no other."""
        if self.strategy is Strategy.DIRECT:
            return Listed()
        label = self.labels.get(id(operator))
        in_order = label is not None and label.fifo and self.known(operator)
        return Fifo() if in_order else Calendar(self.buckets)

    def layout(self, operator: Operator) -> Layout:
        """How the rows of an operator are kept."""
        label = self.labels.get(id(operator))
        if not self.known(operator) or label is None:
            return Sorted(self.buckets) if id(operator) in self.mixed else Hashed()
        if self.strategy is Strategy.DIRECT:
            return Listed()
        if label.pattern is Pattern.MON:
            return Fifo()
        return Fifo() if label.fifo else Calendar(self.buckets)
