"""The window count function of Tatbul and Zdonik (Definition 1), for their own start-anchored windows.

There, windows of length ω open every δ from the first tuple's time θ on: [θ + k·δ, θ + k·δ + ω), k ≥ 0, with
ω ≥ δ. Windrow's windows are anchored at their ends and exist on both sides of any origin; for those, see
`windrow.windows.panes`.
"""

from __future__ import annotations


def window_count(t: int, first: int, length: int, slide: int) -> int:
    """To how many consecutive windows tuples with time t belong.

    Length 7, slide 3: at the start windows open one by one; then two and three windows alternate.

    >>> [window_count(t, first=0, length=7, slide=3) for t in range(12)]
    [1, 1, 1, 2, 2, 2, 3, 2, 2, 3, 2, 2]
    """
    whole = length // slide
    opened = (t - first) // slide
    if opened < whole:
        return opened + 1
    oldest_closes = first + (opened - whole) * slide + length
    return whole + 1 if t < oldest_closes else whole
