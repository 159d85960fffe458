"""The drawings of the documents, each in a light and a dark form; what they show is asked of the oracle.

    python tools/pictures.py        writes docs/images/window-light.svg, window-dark.svg, panes-light.svg, …

>>> [(answer.row[0], answer.at) for answer in played().take()]
[(2, 5), (5, 10), (6, 15)]
>>> drawn_lives("SELECT a FROM s [RANGE 6]")[:2]
[(1, 1, 7), (2, 2, 8)]
"""

from __future__ import annotations

from collections.abc import Callable
from math import gcd
from pathlib import Path

import windrow as wr
from windrow.shedding.rules import WinDrop
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


def window(colour: dict[str, str]) -> str:
    """The landing page: rows, windows, the watermark and the answers."""
    oracle = played()
    late = {row[0] for row in oracle.late("s")}
    given = {change.at: change.row[0] for change in oracle.take()}
    watermark = max(ARRIVALS) - SLACK
    ends = range(SLIDE, LAST + 1, SLIDE)
    foot = _AXIS + 56 + _LANE * len(ends)
    parts = [
        _text(16, _AXIS + 5, "rows, by their time", colour["ink"]),
        _line(_LEFT, _AXIS, _x(LAST + 3), _AXIS, colour["faint"]),
    ]
    parts += [
        _text(_x(t), _AXIS + 26, f"{t} s", colour["faint"], "middle") for t in range(0, LAST + 1, SLIDE)
    ]
    for second in ARRIVALS:
        is_late = second in late
        parts.append(_dot(second, _AXIS, colour["late" if is_late else "ink"], is_filled=not is_late))
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
        parts.append(_bar(start, end, y, shade, is_filled=is_final))
        label = f"window [{end - RANGE}, {end})"
        parts.append(_text(16, y + 5, label, colour["ink"]))
        told = f"at {end} s: {given[end]} rows, final" if is_final else "open: no answer yet"
        parts.append(_text(_x(end) - 8, y + 5, told, shade, "end"))
    sql = f"WATTR t SLACK {SLACK} SECONDS … COUNT(*) FROM s [RANGE {RANGE} SECONDS SLIDE {SLIDE} SECONDS]"
    parts.append(_note(foot + 24, sql, colour))
    return _svg(
        parts,
        foot + 44,
        "Rows on a line of time, the watermark behind the newest row,"
        " and windows: those that end before the watermark are answered, the others are open",
    )


# ------------------------------------------------------------ panes


def panes(colour: dict[str, str]) -> str:
    """Windows that overlap, put together from panes; what each has is what the oracle counts."""
    rows, length, slide = (1, 2, 4, 6, 7, 9, 11, 13, 14, 17, 19), 12, 4
    pane = gcd(length, slide)
    of_pane, of_window = _counts(rows, pane, pane), _counts(rows, length, slide)
    top, lane = 40, 42
    parts = [_text(16, top + 5, "rows", colour["ink"]), _line(_LEFT, top, _x(21), top, colour["faint"])]
    parts += [_dot(second, top, colour["ink"]) for second in rows]
    y = top + lane
    parts.append(_text(16, y + 5, f"panes of {pane}", colour["ink"]))
    for end in range(pane, 21, pane):
        parts.append(_bar(end - pane, end, y, colour["open"]))
        middle = (_x(end - pane) + _x(end)) // 2
        parts.append(_text(middle, y + 5, f"{of_pane.get(end, 0)}", colour["ink"], "middle"))
    for place, end in enumerate(range(length, 21, slide)):
        y = top + lane * (place + 2) + 12
        own = [of_pane.get(each, 0) for each in range(end - length + pane, end + 1, pane)]
        assert sum(own) == of_window[end], "the panes of a window make it up"
        parts += [
            _text(16, y + 5, f"window [{end - length}, {end})", colour["ink"]),
            _bar(end - length, end, y, colour["final"]),
            _text(
                _x(end) - 8, y + 5, f"{' + '.join(map(str, own))} = {of_window[end]}", colour["ink"], "end"
            ),
        ]
    return _svg(
        [*parts, _note(y + 44, f"COUNT(*) FROM s [RANGE {length} SLIDE {slide}]", colour)],
        y + 60,
        "Each row is counted in one pane; three windows that overlap are sums of three panes each",
    )


def _counts(rows: tuple[int, ...], length: int, slide: int) -> dict[int, int]:
    harness = Harness(
        f"SELECT COUNT(*) AS n FROM s [RANGE {length} SLIDE {slide}]", {"s": ("t BIGINT", "WATTR t ORDERED")}
    )
    harness.push("s", [(row,) for row in rows])
    harness.finish()
    return {change.at: change.row[0] for change in harness.take()}


# ------------------------------------------------------------ update patterns

#: what is drawn of each pattern, and in a few words
PATTERNS = {
    "SELECT a FROM s [UNBOUNDED]": "never expires: append",
    "SELECT a FROM s [RANGE 6]": "first in, first out: a queue",
    "SELECT a FROM s [LIFETIME life]": "each at a known time: a calendar",
    "SELECT a FROM s [RANGE 8] WHERE NOT EXISTS (SELECT * FROM r [RANGE 4] r WHERE r.a = s.a)": (
        "another row decides: look it up"
    ),
}
_STREAMS = {
    "s": ("a BIGINT, life BIGINT, t BIGINT", "WATTR t ORDERED"),
    "r": ("a BIGINT, t BIGINT", "WATTR t ORDERED"),
}


def patterns(colour: dict[str, str]) -> str:
    """How the rows of four answers expire, one kind of each update pattern."""
    parts, y = [], 30
    for query, words in PATTERNS.items():
        label = str(wr.explain(query, _STREAMS).plan.pattern)
        sql, _, rest = query.partition(" WHERE ")
        parts += [
            _text(16, y + 5, label, colour["final"]),
            _text(70, y + 5, words, colour["ink"]),
            _note(y + 6, f"{sql}{' WHERE NOT EXISTS (…)' if rest else ''}", colour, x=330),
        ]
        for place, (_, born, dies) in enumerate(drawn_lives(query)):
            line = y + 26 + 15 * place
            end = 20 if dies is None else dies
            parts.append(_line(_x(born), line, _x(end), line, colour["open" if label == "STR" else "final"]))
            parts.append(_dot(born, line, colour["ink"], radius=4))
            mark = "→" if dies is None else "×"
            parts.append(_text(_x(end) + 6, line + 5, mark, colour["late"] if dies else colour["ink"]))
        y = line + 42
    return _svg(
        parts,
        y - 10,
        "Four answers: rows that never expire, that expire in order, at a known time, or by others",
    )


def drawn_lives(query: str) -> list[tuple[int, int, int | None]]:
    """Row, birth and end of all rows of an answer over a few rows."""
    names = {name: declared for name, declared in _STREAMS.items() if f"FROM {name} " in query}
    harness = Harness(query, names)
    harness.push("s", [(1, 10, 1), (2, 3, 2), (3, 5, 4), (4, 12, 5)])
    if "r" in names:
        harness.push("r", [(3, 7)])
    harness.finish()
    lives: list[tuple[int, int, int | None]] = []
    for change in harness.take():
        row = change.row[0]
        if change.op == "+":
            lives.append((row, change.at, None))
        else:
            open_ = next(life for life in lives if life[0] == row and life[2] is None)
            lives[lives.index(open_)] = (row, open_[1], change.at)
    return sorted(lives, key=lambda life: (life[0], life[1]))


# ------------------------------------------------------------ WinDrop


def windrop(colour: dict[str, str]) -> str:
    """Which rows are needless where a run of windows is left out."""
    drop = WinDrop(window=6, slide=2, batch=4)
    ends = range(4, 21, drop.slide)
    dropped = [end for end in ends if 8 <= end < 8 + drop.slide * drop.batch]
    kept = [end for end in ends if end not in dropped]
    needless = [t for t in range(21) if not any(end - drop.window <= t < end for end in kept if end <= 20)]
    within = [t for t in needless if t < max(kept)]
    assert len(within) == drop.early_ticks, "the rule of the paper"
    top, lane = 46, 30
    parts = [
        _text(16, top + 5, "rows", colour["ink"]),
        _line(_LEFT, top, _x(21), top, colour["faint"]),
        *(
            _dot(t, top, colour["late" if t in within else "ink"], is_filled=t not in within)
            for t in range(20)
        ),
        _text(_x(within[0]) - 8, top - 18, "in no window that is kept: dropped", colour["late"]),
    ]
    for place, end in enumerate(ends):
        y = top + lane * (place + 1) + 8
        is_kept, start = end in kept, max(0, end - drop.window)
        shade = colour["final" if is_kept else "faint"]
        parts.append(_bar(start, end, y, shade, is_filled=is_kept, height=20))
        told = f"at {end}: exact" if is_kept else f"at {end}: left out"
        parts.append(_text(16, y + 5, told, colour["ink"] if is_kept else colour["faint"]))
    sql = f"… FROM s [RANGE {drop.window} SLIDE {drop.slide}] … MAX GAP {drop.batch}"
    return _svg(
        [*parts, _note(y + 40, sql, colour)],
        y + 56,
        "A run of windows is left out; rows that lie in none of the windows that are kept are dropped",
    )


# ------------------------------------------------------------ shapes


def _svg(parts: list[str], height: int, words: str) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 960 {height}" font-family="sans-serif"'
        f' font-size="15" role="img" aria-label="{words}">'
    )
    return "\n".join([head, *parts, "</svg>"]) + "\n"


def _dot(second: int, y: int, colour: str, *, is_filled: bool = True, radius: int = 7) -> str:
    fill = colour if is_filled else "none"
    return (
        f'<circle cx="{_x(second)}" cy="{y}" r="{radius}" fill="{fill}" stroke="{colour}" stroke-width="2"/>'
    )


def _bar(start: int, end: int, y: int, colour: str, *, is_filled: bool = True, height: int = 28) -> str:
    return (
        f'<rect x="{_x(start)}" y="{y - height // 2}" width="{_x(end) - _x(start)}" height="{height}" rx="5"'
        f' fill="{colour}" fill-opacity="{0.18 if is_filled else 0}" stroke="{colour}" stroke-width="1.5"'
        + ("" if is_filled else ' stroke-dasharray="5 4"')
        + "/>"
    )


def _note(y: int, words: str, colour: dict[str, str], x: int = 16) -> str:
    return _text(x, y, words, colour["faint"], family="monospace")


def _x(second: int) -> int:
    return _LEFT + _STEP * second


def _line(x1: int, y1: int, x2: int, y2: int, colour: str, dashes: str = "") -> str:
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    return f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="{colour}" stroke-width="2"{dashed}/>'


def _text(x: int, y: int, words: str, colour: str, anchor: str = "start", family: str = "") -> str:
    font = f' font-family="{family}"' if family else ""
    return f'<text x="{x}" y="{y}" fill="{colour}" text-anchor="{anchor}"{font}>{words}</text>'


PICTURES: dict[str, Callable[[dict[str, str]], str]] = {
    "window": window,
    "panes": panes,
    "patterns": patterns,
    "windrop": windrop,
}


def files() -> dict[str, str]:
    """All drawings, by the names of their files."""
    return {
        f"{name}-{theme}.svg": draw(COLOURS[theme]) for name, draw in PICTURES.items() for theme in COLOURS
    }


if __name__ == "__main__":
    for name, picture in files().items():
        Path("docs", "images", name).write_text(picture, encoding="utf-8")
