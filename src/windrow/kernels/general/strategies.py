"""Strategies for whole plans: how expiry is told, and how state is kept (thesis, 2.3.3 and 3.6).

    NT      negative rows everywhere: windows keep their rows and send a negative row when one expires
    DIRECT  rows carry their expiry; state is a list that is looked through for expired rows
    UPA     by update pattern: FIFO for WKS, a calendar for WK, hash with negative rows for STR

The answers are the same. Windows in which expiry cannot be known (ROWS, slide-by-tuple, SESSION) send
negative rows under every strategy.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from windrow.algebra.patterns import Pattern
from windrow.kernels.general.layouts import Calendar, Fifo, Hashed, Layout, Listed

if TYPE_CHECKING:
    from windrow.algebra.patterns import Label
    from windrow.kernels.general.operator import Operator


class Strategy(Enum):
    """How expiry is told."""

    NT = "NT"
    DIRECT = "DIRECT"
    UPA = "UPA"


@dataclass
class Choice:
    """A strategy for one plan, and the label of each operator's output."""

    strategy: Strategy = Strategy.UPA
    #: of each batch of rows in a calendar
    buckets: int = 8
    labels: dict[int, Label] = field(default_factory=dict)

    def label(self, operator: Operator, label: Label) -> None:
        """The rows of an operator expire in this way."""
        self.labels[id(operator)] = label

    def known(self, operator: Operator) -> bool:
        """Whether every row of an operator carries its expiry, so that no negative rows come."""
        label = self.labels.get(id(operator))
        if label is None or label.pattern is Pattern.STR:
            return False
        return self.strategy is not Strategy.NT or label.pattern is Pattern.MON

    def layout(self, operator: Operator) -> Layout:
        """How the rows of an operator are kept."""
        label = self.labels.get(id(operator))
        if not self.known(operator) or label is None:
            return Hashed()
        if self.strategy is Strategy.DIRECT:
            return Listed()
        if label.pattern is Pattern.MON:
            return Fifo()
        return Fifo() if label.fifo else Calendar(self.buckets)
