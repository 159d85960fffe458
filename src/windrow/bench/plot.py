"""Charts as SVG, drawn here: a few lines on two axes need no library."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windrow.bench.chart import Chart, Point, Series

_WIDTH, _HEIGHT = 760, 440
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 200, 50, 60
#: told apart by readers who do not see all colours (Okabe and Ito)
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
_MOST_TICKS = 6
_STYLE = "text{font:13px sans-serif;fill:#444}.title{font-size:15px;fill:#222}.grid{stroke:#ddd}"


def svg(chart: Chart) -> str:
    """The chart as the text of an SVG file."""
    points = [point for series in chart.series for point in series.points]
    axis = LinearAxis if chart.is_linear else Axis
    across = axis([point.x for point in points], _LEFT, _WIDTH - _RIGHT)
    up = axis([value for point in points for value in (point.low, point.high)], _HEIGHT - _BOTTOM, _TOP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img">',
        f"<title>{escape(chart.title)}</title><style>{_STYLE}</style>",
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        _text(_LEFT, 28, chart.title, "title"),
        *_grid(chart, across, up),
    ]
    for number, series in enumerate(chart.series):
        parts += _line(series, number, across, up)
    return "\n".join([*parts, "</svg>", ""])


class Axis:
    """Values to pixels, by their logarithm.

    >>> axis = Axis([2, 50], 0, 200)
    >>> axis.ticks
    [1.0, 10.0, 100.0]
    >>> [axis.pixel(tick) for tick in axis.ticks]
    [0.0, 100.0, 200.0]
    """

    def __init__(self, values: Sequence[float], begin: float, end: float) -> None:
        positive = [value for value in values if value > 0] or [1.0]
        self._low = math.floor(math.log10(min(positive)))
        self._high = max(math.ceil(math.log10(max(positive))), self._low + 1)
        self._begin, self._end = begin, end

    @property
    def ticks(self) -> list[float]:
        """The powers of ten from end to end."""
        return [10.0**exponent for exponent in range(self._low, self._high + 1)]

    def pixel(self, value: float) -> float:
        """Where a value is; what is not positive is at the low end."""
        at = math.log10(value) if value > 0 else self._low
        share = (at - self._low) / (self._high - self._low)
        return round(self._begin + share * (self._end - self._begin), 1)


class LinearAxis(Axis):
    """Values to pixels, as they are, from 0 on.

    >>> axis = LinearAxis([2, 50], 0, 200)
    >>> axis.ticks
    [0.0, 10.0, 20.0, 30.0, 40.0, 50.0]
    >>> [axis.pixel(value) for value in (0, 25, 50)]
    [0.0, 100.0, 200.0]
    """

    def __init__(self, values: Sequence[float], begin: float, end: float) -> None:
        greatest = max([value for value in values if value > 0], default=1.0)
        power = 10.0 ** math.floor(math.log10(greatest))
        steps = (power / 5, power / 2, power, 2 * power)
        self._step = next(step for step in steps if greatest / step <= _MOST_TICKS)
        self._count = math.ceil(greatest / self._step - 1e-9)
        self._begin, self._end = begin, end

    @property
    def ticks(self) -> list[float]:
        """Multiples of a round number."""
        return [round(self._step * number, 12) for number in range(self._count + 1)]

    def pixel(self, value: float) -> float:
        """Where a value is."""
        share = max(0.0, value) / (self._step * self._count)
        return round(self._begin + share * (self._end - self._begin), 1)


def _grid(chart: Chart, across: Axis, up: Axis) -> list[str]:
    bottom, right = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
    parts = []
    for tick in across.ticks:
        x = across.pixel(tick)
        parts.append(f'<line class="grid" x1="{x}" y1="{_TOP}" x2="{x}" y2="{bottom}"/>')
        parts.append(_text(x, bottom + 20, f"{tick:,g}", anchor="middle"))
    for tick in up.ticks:
        y = up.pixel(tick)
        parts.append(f'<line class="grid" x1="{_LEFT}" y1="{y}" x2="{right}" y2="{y}"/>')
        parts.append(_text(_LEFT - 8, y + 4, f"{tick:,g}", anchor="end"))
    middle = (_TOP + bottom) / 2
    parts.append(_text((_LEFT + right) / 2, _HEIGHT - 16, chart.x_label, anchor="middle"))
    turned = _text(0, 0, chart.y_label, anchor="middle")
    parts.append(f'<g transform="translate(18 {middle}) rotate(-90)">{turned}</g>')
    return parts


def _line(series: Series, number: int, across: Axis, up: Axis) -> list[str]:
    colour = _COLOURS[number % len(_COLOURS)]
    places = [(across.pixel(point.x), up.pixel(point.y)) for point in series.points]
    path = " ".join(f"{x},{y}" for x, y in places)
    parts = [f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>']
    for (x, y), point in zip(places, series.points, strict=True):
        parts.append(f'<circle cx="{x}" cy="{y}" r="3.5" fill="{colour}"/>')
        parts.append(_whisker(x, point, up, colour))
    y = _TOP + 10 + 22 * number
    parts.append(f'<rect x="{_WIDTH - _RIGHT + 16}" y="{y - 10}" width="12" height="12" fill="{colour}"/>')
    parts.append(_text(_WIDTH - _RIGHT + 34, y, series.name))
    return parts


def _whisker(x: float, point: Point, up: Axis, colour: str) -> str:
    low, high = up.pixel(point.low), up.pixel(point.high)
    return f'<line x1="{x}" y1="{low}" x2="{x}" y2="{high}" stroke="{colour}"/>'


def _text(x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> str:
    style = f' class="{kind}"' if kind else ""
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}"{style}>{escape(text)}</text>'
