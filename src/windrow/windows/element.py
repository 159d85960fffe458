"""What a window knows of a row, and what it says about one: a half-open interval of validity [vs, ve).

Intervals carry every window kind through the algebra in one form. A row that is never in its window has
no interval.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import copysign
from typing import Any

from windrow.windows.domain import INFINITY, Instant


@dataclass(frozen=True)
class Element:
    """A row as windows see it.

    `t` is the windowing attribute, `row_num` the arrival position from 1, `key` the PARTITION BY values,
    `order` a sort key of all columns (it settles ties of `t`), `lifetime` what the LIFETIME expression gave,
    in its own unit. A late row that is kept is not visible earlier than `not_before`.
    """

    t: int
    row_num: int = 0
    key: tuple[Any, ...] = ()
    order: tuple[Any, ...] = ()
    lifetime: int | None = None
    not_before: Instant = -INFINITY


@dataclass(frozen=True, order=True)
class Interval:
    """The instants from `vs` up to, not including, `ve`.

    >>> 4 in Interval(4, 9), 9 in Interval(4, 9)
    (True, False)
    """

    vs: int
    ve: Instant

    def __contains__(self, instant: Instant) -> bool:
        return self.vs <= instant < self.ve


@dataclass(frozen=True)
class Report:
    """One extent that is reported by itself: when, its bounds, its partition, its rows in window order."""

    at: int
    start: int
    end: int
    key: tuple[Any, ...]
    elements: tuple[Element, ...]


def visible(element: Element, vs: int, ve: Instant) -> Interval | None:
    """[vs, ve) cut to what a kept late row may show; an empty interval vanishes.

    >>> visible(Element(3), 3, 3), visible(Element(3, not_before=5), 3, 8)
    (None, Interval(vs=5, ve=8))
    """
    if element.not_before > vs:
        if element.not_before >= ve:
            return None
        vs = int(element.not_before)
    return Interval(vs, ve) if vs < ve else None


def sort_key(values: Iterable[Any]) -> tuple[tuple[Any, ...], ...]:
    """A key that sorts column values: NULL first, NaN last, and -0.0 before the 0.0 it equals.

    >>> sorted([(2.0,), (float("nan"),), (0.0,), (None,), (-0.0,)], key=sort_key)
    [(None,), (-0.0,), (0.0,), (2.0,), (nan,)]
    """
    return tuple((0, 0) if v is None else (2, 0) if v != v else (1, v, _sign_of_zero(v)) for v in values)


def _sign_of_zero(value: Any) -> float:
    return copysign(1, value) if isinstance(value, float) and value == 0 else 0


def place_of(element: Element, rows: Sequence[Element]) -> int:
    """Where in `rows` this very element is, or else one equal to it."""
    for place, row in enumerate(rows):
        if row is element:
            return place
    return rows.index(element)
