"""LIFETIME windows: every row says how long it lives, so rows need not expire in order of arrival."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from windrow.windows.domain import Element, Instant
from windrow.windows.patterns import Label, Pattern
from windrow.windows.spec import OwnInterval, require_positive


@dataclass(frozen=True)
class LifetimeWindow(OwnInterval):
    """Valid [t, t + lifetime*scale); a lifetime that is NULL or not positive is no validity at all.

    `expression` is evaluated elsewhere; its value comes with each element, in units of `scale` ticks.

    >>> window = LifetimeWindow("ttl", scale=60)
    >>> window.interval(Element(100, lifetime=2)), window.interval(Element(100, lifetime=0))
    (Interval(vs=100, ve=220), None)
    """

    expression: Any
    scale: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive("the unit of LIFETIME", self.scale)

    label = Label(Pattern.WK, "every row brings its own lifetime")

    def extent(self, w: int, rows: Sequence[Element]) -> list[Element]:
        return [row for row in rows if 0 <= w - row.t < (row.lifetime or 0) * self.scale]

    def span(self, row: Element) -> tuple[int, Instant]:
        return row.t, row.t + self._ticks(row)

    def spans(self, t: Any, lifetimes: Any = None) -> tuple[Any, Any]:
        assert lifetimes is not None
        return t, t + lifetimes.clip(0) * self.scale

    def _ticks(self, row: Element) -> int:
        return max(row.lifetime or 0, 0) * self.scale
