"""Values as people read them, on a terminal: one on its line, and those of a column below each other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from typing import Any

#: of a number with a fraction
_DIGITS = 7


def value(cell: Any) -> str:
    """One value of an answer, on one line.

    >>> from datetime import UTC
    >>> value(61.25), value(None), value(datetime(2026, 1, 1, 0, 5, tzinfo=UTC)), value(2.0)
    ('61.25', 'NULL', '2026-01-01 00:05:00', '2')
    """
    match cell:
        case None:
            return "NULL"
        case bool():
            return str(cell).lower()
        case float():
            return f"{cell:.6g}"
        case datetime():
            return cell.strftime("%Y-%m-%d %H:%M:%S.%f").rstrip("0").removesuffix(".")
    return printable(str(cell))


def column_values(cells: Sequence[Any]) -> list[str]:
    """The values of a column. Fractions have as many places as each other, so that points stand below points.

    >>> column_values([65.4729, 58.617, 7.0]), column_values([0.5, None, 1e-9])
    (['65.4729', '58.6170', '7.0000'], ['0.5', 'NULL', '1e-09'])
    >>> column_values([-0.2, 2.0, 101.5])
    ['-0.2', '2.0', '101.5']
    >>> column_values([1234.5, 0.123456])
    ['1234.500', '0.123']
    """
    texts = [value(cell) for cell in cells]
    fractions = {
        cell: text.partition(".")[2]
        for cell, text in zip(cells, texts, strict=True)
        if isinstance(cell, float) and math.isfinite(cell)
    }
    if not any(fractions.values()) or any("e" in value(cell) for cell in fractions):
        return texts
    most = max(map(abs, fractions))
    places = min(max(map(len, fractions.values())), max(0, _DIGITS - len(str(int(most)))))
    is_small = any(
        len(text) > places and 0 < abs(cell) < 10.0 ** (1 - places) for cell, text in fractions.items()
    )
    if is_small:  # it would hardly be seen
        return texts
    return [
        f"{cell:.{places}f}" if isinstance(cell, float) and math.isfinite(cell) else text
        for cell, text in zip(cells, texts, strict=True)
    ]


def printable(text: str) -> str:
    r"""The text without characters that would command a terminal.

    >>> printable("naïve \x1b[31m red\n")
    'naïve \\x1b[31m red\\n'
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
