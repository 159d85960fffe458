"""WID's classes of windows, by what *wids* must know of other rows (WID 4 and 6).

A window declares two facts: whether the extents of a row depend on rows that came before it, and with
which attribute values a row that comes after it can still change them. The class follows.

>>> from windrow.windows.ranges import RangeWindow
>>> from windrow.windows.rows import RowsWindow
>>> from windrow.windows.slide_by_tuple import SlideByTupleWindow
>>> q1 = RangeWindow(300, 60)
>>> q2 = RowsWindow(1000, 10, arrival_order=True)
>>> q3 = SlideByTupleWindow(300, 1)
>>> q4 = RowsWindow(1000, 10, partition_by=("seg_id",), arrival_order=True)
>>> q5 = SlideByTupleWindow(300, 5, by_rank=True)
>>> [classify(q).name for q in (q1, q2, q3, q4, q5)]
['CF', 'CF', 'FCB', 'FCF', 'FCU']

Rows numbered by their attribute are not context free, as those numbered on arrival are: a row that comes
late shifts the count of all that follow it.

>>> classify(RowsWindow(1000, 10)).name
'FCU'
"""

from __future__ import annotations

from enum import Enum

from windrow.windows.domain import INFINITY
from windrow.windows.element import Element
from windrow.windows.spec import WindowSpec


class WindowClass(Enum):
    """From the least context to the most."""

    CF = "context free: the row itself tells its extents"
    FCF = "forward-context free: the row and those before it tell its extents"
    FCB = "forward-context bounded: later rows within a range of values can change its extents"
    FCU = "forward-context unbounded: any later row can change its extents"


def classify(spec: WindowSpec) -> WindowClass:
    """The class of a window, from the context its *wids* needs."""
    reach = spec.later_context(Element(0, 1))
    if reach is not None:
        return WindowClass.FCU if INFINITY in (-reach[0], reach[1]) else WindowClass.FCB
    return WindowClass.FCF if spec.needs_earlier else WindowClass.CF
