"""The picture of the landing page: rows, windows, the watermark and the answers, as the oracle gives them.

    python tools/window_picture.py        writes docs/images/window-light.svg and window-dark.svg

>>> [(answer.row[0], answer.at) for answer in played().take()]
[(2, 5), (5, 10), (6, 15)]
"""

from __future__ import annotations

from pathlib import Path

from windrow.testing import Harness

#: rows in the order in which they arrive: when they happened, in seconds
ARRIVALS = (1, 3, 6, 9, 7, 11, 14, 13, 2, 16, 19)
RANGE, SLIDE, SLACK, LAST = 10, 5, 3, 20
COLOURS = {
    "light": {"ink": "#1f2933", "faint": "#8a97a5", "final": "#0b7285", "open": "#c77700", "late": "#c92a2a"},
    "dark": {"ink": "#e6edf3", "faint": "#8494a5", "final": "#3bc9db", "open": "#ffb84d", "late": "#ff8787"},
}
_LEFT, _STEP, _AXIS, _LANE = 150, 32, 118, 44


def played() -> Harness:
    """The oracle, given all rows, each a micro-batch of its own."""
    harness = Harness(
        f"SELECT COUNT(*) AS n FROM s [RANGE {RANGE} SLIDE {SLIDE}]",
        {"s": ("t BIGINT", f"WATTR t SLACK {SLACK}")},
    )
    for second in ARRIVALS:
        harness.push("s", [(second,)])
    return harness


def svg(theme: str) -> str:
    """The picture in one of `COLOURS`."""
    colour = COLOURS[theme]
    oracle = played()
    late = {row[0] for row in oracle.late("s")}
    given = {change.at: change.row[0] for change in oracle.take()}
    watermark = max(ARRIVALS) - SLACK
    ends = range(SLIDE, LAST + 1, SLIDE)
    foot = _AXIS + 56 + _LANE * len(ends)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 960 {foot + 44}" font-family="sans-serif"'
        ' font-size="15" role="img" aria-label="Rows on a line of time, the watermark behind the newest row,'
        ' and windows: those that end before the watermark are answered, the others are open">',
        _text(16, _AXIS + 5, "rows, by their time", colour["ink"]),
        _line(_LEFT, _AXIS, _x(LAST + 3), _AXIS, colour["faint"]),
    ]
    parts += [
        _text(_x(t), _AXIS + 26, f"{t} s", colour["faint"], "middle") for t in range(0, LAST + 1, SLIDE)
    ]
    for second in ARRIVALS:
        is_late = second in late
        fill, edge = ("none", colour["late"]) if is_late else (colour["ink"], colour["ink"])
        parts.append(
            f'<circle cx="{_x(second)}" cy="{_AXIS}" r="7" fill="{fill}" stroke="{edge}" stroke-width="2"/>'
        )
    for second in late:
        parts.append(_text(_x(second), _AXIS - 20, "late: came after 14", colour["late"], "middle"))
    x = _x(watermark)
    parts += [
        _line(x, 42, x, foot, colour["final"], "6 4"),
        _text(x, 32, f"watermark: {max(ARRIVALS)} s − SLACK {SLACK} s", colour["final"], "middle"),
        _text(x - 10, 60, "complete", colour["final"], "end"),
        _text(x + 10, 60, "rows may still come", colour["open"]),
        _text(_x(max(ARRIVALS)), _AXIS - 20, "newest", colour["ink"], "middle"),
    ]
    for lane, end in enumerate(ends):
        y = _AXIS + 56 + _LANE * lane
        is_final = end in given
        shade = colour["final"] if is_final else colour["open"]
        start = max(0, end - RANGE)
        parts.append(
            f'<rect x="{_x(start)}" y="{y - 14}" width="{_x(end) - _x(start)}" height="28" rx="5"'
            f' fill="{shade}" fill-opacity="{0.18 if is_final else 0}" stroke="{shade}" stroke-width="1.5"'
            + ("" if is_final else ' stroke-dasharray="5 4"')
            + "/>"
        )
        label = f"window [{end - RANGE}, {end})"
        parts.append(_text(16, y + 5, label, colour["ink"]))
        told = f"at {end} s: {given[end]} rows, final" if is_final else "open: no answer yet"
        parts.append(_text(_x(end) - 8, y + 5, told, shade, "end"))
    parts.append(
        _text(
            16,
            foot + 24,
            f"WATTR t SLACK {SLACK} SECONDS … COUNT(*) FROM s [RANGE {RANGE} SECONDS SLIDE {SLIDE} SECONDS]",
            colour["faint"],
            family="monospace",
        )
    )
    return "\n".join([*parts, "</svg>"]) + "\n"


def _x(second: int) -> int:
    return _LEFT + _STEP * second


def _line(x1: int, y1: int, x2: int, y2: int, colour: str, dashes: str = "") -> str:
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    return f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="{colour}" stroke-width="2"{dashed}/>'


def _text(x: int, y: int, words: str, colour: str, anchor: str = "start", family: str = "") -> str:
    font = f' font-family="{family}"' if family else ""
    return f'<text x="{x}" y="{y}" fill="{colour}" text-anchor="{anchor}"{font}>{words}</text>'


if __name__ == "__main__":
    for name in COLOURS:
        Path("docs", "images", f"window-{name}.svg").write_text(svg(name), encoding="utf-8")
