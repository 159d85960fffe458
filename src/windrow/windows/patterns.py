"""Update patterns: in which order, and how predictably, the rows of an edge expire.

    MON  rows never expire
    WKS  rows expire first in, first out, all after the same lifetime
    WK   the expiry of a row is known when it is born, but lifetimes differ
    STR  expiry depends on what comes later: only negative rows can announce it

The combinators below are the propagation rules of Golab's thesis, section 3.5.1, made safe for
windows of different lengths: a union of a one-minute and a five-minute window is WK, since its rows
do not live equally long. A label is never more optimistic than what is observed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum


class Pattern(IntEnum):
    """Ordered from the simplest to the most demanding."""

    MON = 0
    WKS = 1
    WK = 2
    STR = 3

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Label:
    """A pattern, why it holds, the common lifetime of WKS rows, and whether order of expiry is FIFO."""

    pattern: Pattern
    reason: str
    lifetime: int | None = None
    fifo: bool = False

    def __str__(self) -> str:
        return f"{self.pattern}: {self.reason}"


def of_window(label: Label, keeps_late_rows: bool) -> Label:
    """The label of the edge above a base window, by that of its kind."""
    if keeps_late_rows and label.pattern is not Pattern.MON:
        return Label(Pattern.WK, "late rows are kept, so they live shorter than the others")
    return label


#: the label of a window that rows never leave
NEVER_LEAVES = Label(Pattern.MON, "rows never leave this window", fifo=True)


#: the label of a stream, before any window
APPEND_ONLY = Label(Pattern.MON, "a stream only grows", fifo=True)


def by_extent(label: Label) -> Label:
    """σ and π that read the bounds of their windows: a row is another one in the next extent."""
    if label.pattern is Pattern.STR:
        return label
    return Label(Pattern.WK, "a row with the bounds of its extent lives until the next one", fifo=True)


def merged(labels: Sequence[Label]) -> Label:
    """∪ ALL: as demanding as its most demanding input (rule 2), WKS only with one common lifetime."""
    worst = max(labels, key=lambda label: label.pattern)
    if worst.pattern is Pattern.WKS and len({label.lifetime for label in labels}) > 1:
        return Label(Pattern.WK, "the inputs' rows live for different times")
    if worst.pattern is Pattern.MON:
        return Label(Pattern.MON, "no input's rows ever expire", fifo=True)
    return replace(worst, fifo=worst.pattern is Pattern.WKS)


def interfering(labels: Sequence[Label], what: str) -> Label:
    """⋈, δ and EXISTS expire results as soon as a part expires (rule 3)."""
    worst = max(labels, key=lambda label: label.pattern)
    if worst.pattern is Pattern.STR:
        return Label(Pattern.STR, worst.reason)
    if worst.pattern is Pattern.MON:
        return Label(Pattern.MON, "nothing below ever expires")
    return Label(Pattern.WK, f"{what}: expiry is known at birth, but is not in order of birth")


def strict(reason: str) -> Label:
    """Difference, NOT EXISTS and joins with a RELATION table (rule 4)."""
    return Label(Pattern.STR, reason)


#: the label of γ: a value lives until the next one replaces it
AGGREGATED = Label(Pattern.STR, "a group's value is replaced when it changes; no negative rows are needed")
