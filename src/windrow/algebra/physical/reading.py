"""Who reads a result again after it was passed on; if nobody does, it is not kept."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from windrow.algebra.operators import Aggregate, Distinct, Filter, Project, TableJoin, Union
from windrow.algebra.patterns import Pattern
from windrow.algebra.physical.grouping import why_no_rows
from windrow.algebra.physical.layouts import WHY, Implementation, Layout, Physical, stored
from windrow.algebra.plan import Emit, Plan, StreamWord

if TYPE_CHECKING:
    from windrow.algebra.patterns import Label


@dataclass(frozen=True)
class Around:
    """Where a node stands: in which query, and below which of its operators, the nearest last."""

    emit: Emit
    above: tuple[Plan, ...] = ()

    def under(self, node: Plan) -> Around:
        return replace(self, above=(*self.above, node))

    @property
    def reader(self) -> Plan:
        """The nearest operator above that does more than look at single rows."""
        passing = (Filter, Project, Union)
        return next((node for node in reversed(self.above) if not isinstance(node, passing)), self.emit)

    @property
    def why_unread(self) -> str | None:
        """Why nothing above reads a result again; None if something does."""
        reader = self.reader
        match reader:
            case Aggregate():
                return why_no_rows(reader, self.emit)
            case Distinct() if reader.input.label.pattern is not Pattern.STR:
                return "the δ above keeps what it needs"
            case TableJoin() if not reader.is_retroactive:
                return "the lookup above keeps its own results"
            case Emit() if reader.label.pattern is Pattern.MON and reader.meaning is StreamWord.ISTREAM:
                return "rows are passed on and never withdrawn"
        return None


def kept(implementation: Implementation, label: Label, around: Around, detail: str = "") -> Physical:
    """The choice for an operator whose result is kept as its label says, if it is read again at all."""
    unread = around.why_unread
    layout = Layout.NONE if unread else stored(label)
    return Physical(implementation, layout, unread or WHY[layout], detail)
