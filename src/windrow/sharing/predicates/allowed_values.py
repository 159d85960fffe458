"""Which values of one expression a conjunction of comparisons lets through.

A comparison with a constant is true for an interval of values, with some left out, and never for NULL. Whole
numbers and instants have closed intervals only, so that `a > 2` and `a >= 3` are the same.

>>> Allowed.of(">", 2, whole=True) == Allowed.of(">=", 3, whole=True)
True
>>> both = Allowed.of("<", 5, whole=True).meet(Allowed.of(">", 3, whole=True))
>>> both == Allowed.of("=", 4, whole=True), both.meet(Allowed.of("<>", 4, whole=True)).is_empty
(True, True)
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

#: a value's place in the order of values: NaN is the greatest
Place = tuple[bool, Any]


@dataclass(frozen=True)
class Allowed:
    """Values between two places, some left out; or NULL only."""

    low: Place | None = None
    high: Place | None = None
    low_is_in: bool = True
    high_is_in: bool = True
    without: frozenset[Place] = frozenset()
    null: bool = False
    impossible: bool = False

    @classmethod
    def of(cls, comparison: str, value: Any, *, whole: bool = False) -> Allowed:
        """What a comparison with a constant lets through; nothing if the constant is NULL."""
        if value is None:
            return NOTHING
        at = _place(value)
        match comparison:
            case "=":
                return cls(at, at)
            case "<>":
                return cls(without=frozenset([at]))
            case "<" | "<=":
                found = cls(high=at, high_is_in=comparison == "<=")
            case _:
                found = cls(low=at, low_is_in=comparison == ">=")
        return found._closed() if whole else found

    @property
    def is_empty(self) -> bool:
        """Whether no value at all is let through."""
        if self.impossible:
            return True
        if self.low is None or self.high is None:
            return False
        if self.low == self.high:
            return not (self.low_is_in and self.high_is_in) or self.low in self.without
        return self.low > self.high

    def meet(self, other: Allowed) -> Allowed:
        """What both let through."""
        if self.null != other.null:
            return NOTHING
        low, low_is_in = max(
            (_low(self), _low(other)), key=lambda end: (end[0] is not None, end[0] or (), not end[1])
        )
        high, high_is_in = min(
            (_high(self), _high(other)), key=lambda end: (end[0] is None, end[0] or (), end[1])
        )
        found = Allowed(
            low,
            high,
            low_is_in,
            high_is_in,
            self.without | other.without,
            self.null,
            self.impossible or other.impossible,
        )
        return NOTHING if found.is_empty else found._trimmed()

    def _closed(self) -> Allowed:
        found = self
        if found.low is not None and not found.low_is_in:
            found = replace(found, low=(False, found.low[1] + 1), low_is_in=True)
        if found.high is not None and not found.high_is_in:
            found = replace(found, high=(False, found.high[1] - 1), high_is_in=True)
        return found

    def _trimmed(self) -> Allowed:
        """Without mention of values that are outside anyway."""
        inside = frozenset(at for at in self.without if _is_between(self, at))
        return replace(self, without=inside)


def _place(value: Any) -> Place:
    if isinstance(value, float) and math.isnan(value):
        return True, 0
    return False, value


NOTHING = Allowed(impossible=True)
ONLY_NULL = Allowed(null=True)
NOT_NULL = Allowed()
TRUTH, UNTRUTH = Allowed.of("=", True), Allowed.of("=", False)


def _low(allowed: Allowed) -> tuple[Place | None, bool]:
    return allowed.low, allowed.low_is_in


def _high(allowed: Allowed) -> tuple[Place | None, bool]:
    return allowed.high, allowed.high_is_in


def _is_between(allowed: Allowed, at: Place) -> bool:
    above = allowed.low is None or at >= allowed.low
    return above and (allowed.high is None or at <= allowed.high)
