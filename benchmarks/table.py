"""Tables for the terminal and for documents. Their cells are text already, so both show the same figures."""

from __future__ import annotations

from dataclasses import dataclass

_NUMERIC = frozenset("0123456789.,–-()×≥≤ %")
_UNITS = (" s", " ms", " MB", " B")


@dataclass(frozen=True)
class Table:
    """Rows of text below the names of their columns."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def text(self) -> str:
        """For a terminal.

        >>> print(Table("Times", ("who", "time"), (("windrow", "1.25 s"), ("scan", "10.50 s"))).text())
        Times
        who         time
        -------  -------
        windrow   1.25 s
        scan     10.50 s
        """
        lines = (self.columns, *self.rows)
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        right = self._right()
        drawn = [_line(line, widths, right) for line in lines]
        rule = "  ".join("-" * width for width in widths)
        return "\n".join([self.title, drawn[0], rule, *drawn[1:]])

    def markdown(self) -> str:
        """For a document.

        >>> print(Table("Times", ("who", "time"), (("a|b", "1.25 s"),)).markdown())
        | who | time |
        |---|---:|
        | a\\|b | 1.25 s |
        """
        rule = "|".join("---:" if right else "---" for right in self._right())
        lines = [_cells(self.columns), f"|{rule}|", *map(_cells, self.rows)]
        return "\n".join(lines)

    def _right(self) -> list[bool]:
        """Which columns hold numbers, which are easier to compare at the right."""
        if not self.rows:
            return [False] * len(self.columns)
        return [all(map(_is_number, column)) for column in zip(*self.rows, strict=True)]


def _line(cells: tuple[str, ...], widths: list[int], right: list[bool]) -> str:
    padded = [
        cell.rjust(width) if at_right else cell.ljust(width)
        for cell, width, at_right in zip(cells, widths, right, strict=True)
    ]
    return "  ".join(padded).rstrip()


def _cells(cells: tuple[str, ...]) -> str:
    escaped = (cell.replace("|", "\\|") for cell in cells)
    return f"| {' | '.join(escaped)} |"


def _is_number(cell: str) -> bool:
    for unit in _UNITS:
        cell = cell.replace(unit, "")
    return set(cell) <= _NUMERIC
