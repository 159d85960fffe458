"""Windows that nobody asks for any more: they are not computed, and what follows them is the same as ever.

A long run of such windows is left out before anything is done for it. A short one is computed with its
neighbours, since many small blocks cost more than a few windows too many, and leaves before it is turned into
answers.
"""

from __future__ import annotations

from collections.abc import Collection

Range = tuple[int, int]

#: a run of unwanted windows is left out if it has so many cells, windows × groups
WORTH = 1 << 12


def runs_of(windows: Range, unwanted: Collection[int], groups: int) -> list[Range]:
    """The windows from one up to the other, without the long runs of those that are unwanted.

    >>> runs_of((0, 10), {0, 1, 4, 5, 6, 9}, groups=WORTH // 2)
    [(2, 4), (7, 10)]
    >>> runs_of((0, 10), {0, 1, 4, 5, 6, 9}, groups=1)
    [(0, 10)]
    """
    found: list[Range] = []
    begin, gone = windows[0], 0
    for w in range(windows[0], windows[1] + 1):
        if w < windows[1] and w in unwanted:
            gone += 1
            continue
        if gone * groups >= WORTH:
            found.append((begin, w - gone))
            begin = w
        gone = 0
    found.append((begin, windows[1]))
    return [part for part in found if part[0] < part[1]]
