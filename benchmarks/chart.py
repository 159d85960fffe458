"""What a plot shows, apart from how it is drawn."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Point:
    """A median with its spread."""

    x: float
    y: float
    low: float
    high: float


@dataclass(frozen=True)
class Series:
    """The line of one contestant."""

    name: str
    points: tuple[Point, ...]


@dataclass(frozen=True)
class Chart:
    """Lines over one pair of axes: both logarithmic, since what is compared are ratios, or both linear."""

    name: str
    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    is_linear: bool = False
