"""How many rows a window holds, from what arrives: the leaves of every estimate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windrow.algebra.plan import Scan, Window
from windrow.windows.cumulate import CumulateWindow
from windrow.windows.domain import ROW_NUM
from windrow.windows.landmark import LandmarkWindow
from windrow.windows.lifetime import LifetimeWindow
from windrow.windows.ranges import NowWindow, RangeWindow
from windrow.windows.rows import RowsWindow
from windrow.windows.session import SessionWindow
from windrow.windows.slide_by_tuple import SlideByTupleWindow

if TYPE_CHECKING:
    from collections.abc import Mapping

    from windrow.optimizer.cost.statistics import Statistics


def counts_rows(window: Window) -> bool:
    """Whether the instants of the window are row numbers: one row arrives per tick."""
    scans = (origin for origin in window.origins if isinstance(origin, Scan))
    return any(window.attribute_of(scan) == ROW_NUM for scan in scans)


def covered(window: Window) -> float:
    """The share of rows that are ever in the window: less than all where SLIDE leaves gaps.

    >>> from windrow.algebra.catalog import Stream
    >>> from windrow.algebra.schema import Field, Schema
    >>> from windrow.algebra.types import BIGINT
    >>> s = Scan(Stream("s", Schema((Field("ts", BIGINT),)), "ts"), "s")
    >>> covered(Window(s, RangeWindow(10, 40))), covered(Window(s, RangeWindow(10, 5)))
    (0.25, 1.0)
    """
    spec = window.spec
    if isinstance(spec, RangeWindow) and spec.slide is not None:
        return min(1.0, spec.range / spec.slide)
    return 1.0


def rows_within(window: Window, rate: float, values: Mapping[str, float], statistics: Statistics) -> float:
    """How many rows the window holds at an instant, of `rate` rows per unit of time."""
    spec = window.spec

    def during(ticks: float) -> float:
        return rate * statistics.units(ticks, window.domain)

    match spec:
        case RangeWindow() | SlideByTupleWindow():
            return during(spec.range)
        case CumulateWindow():
            return during((spec.size + spec.step) / 2)
        case NowWindow():
            return during(1)
        case LifetimeWindow():
            return rate * statistics.lifetime
        case SessionWindow():
            # a session lasts for as long as rows come within the gap: at least for one more gap
            return during(2 * spec.gap)
        case RowsWindow():
            alias = window.origins[0].alias
            partitions = 1.0
            for name in spec.partition_by:
                partitions *= values.get(f"{alias}.{name}", statistics.default_distinct)
            return spec.rows * partitions
        case LandmarkWindow(start=start, until=until) if start is not None and until is not None:
            return min(during(until - start + 1), rate * statistics.horizon)
        case _:
            return rate * statistics.horizon
