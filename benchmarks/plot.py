"""Charts as SVG files, drawn by Matplotlib: the same chart is the same file."""

from __future__ import annotations

from importlib.util import find_spec
from io import StringIO
from typing import TYPE_CHECKING, Any

from windrow.errors import WindrowError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from benchmarks.chart import Chart, Series

_INCHES = (8.4, 4.6)
#: told apart by readers who do not see all colours (Okabe and Ito)
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
_SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "windrow",  # the same names of parts in every run
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "font.size": 10,
}


def need_matplotlib() -> None:
    """Say so where plots cannot be drawn."""
    if find_spec("matplotlib") is None:
        raise WindrowError(
            "the benchmarks draw with Matplotlib, which is not installed",
            code="no-matplotlib",
            hint="pip install 'windrow[bench]'",
        )


def svg(chart: Chart) -> str:
    """The chart as the text of an SVG file."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(_SETTINGS):
        figure = Figure(figsize=_INCHES, layout="constrained")
        axes = figure.add_subplot(title=chart.title, xlabel=chart.x_label, ylabel=chart.y_label)
        for number, series in enumerate(chart.series):
            _draw(axes, series, _COLOURS[number % len(_COLOURS)])
        _scale(axes, chart)
        if chart.series:
            axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
        text = StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None, "Title": chart.title})
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines()) + "\n"


def _draw(axes: Axes, series: Series, colour: str) -> None:
    """A line through the medians, with a whisker from the least to the greatest."""
    x, y = [point.x for point in series.points], [point.y for point in series.points]
    below = [max(0.0, point.y - point.low) for point in series.points]
    above = [max(0.0, point.high - point.y) for point in series.points]
    axes.errorbar(
        x, y, (below, above), label=series.name, color=colour, gid=series.name, marker="o", markersize=4
    )


def _scale(axes: Axes, chart: Chart) -> None:
    if chart.is_linear:
        axes.set_ylim(bottom=0)
        axes.set_xlim(left=0)
        return
    if any(point.x > 0 for series in chart.series for point in series.points):
        axes.set_xscale("log", nonpositive="clip")
        axes.set_yscale("log", nonpositive="clip")
