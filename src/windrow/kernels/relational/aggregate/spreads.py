"""Spreads of doubles that stay the same are told as staying the same.

The variance of some doubles depends in its last digits on the order in which they were combined, and a window
that moves combines the same values in one order after another. Where changes are told, that would be a row
that leaves and another that comes, though nothing has changed. So a value that lies within `CLOSE` of the one
before it counts as that one. No answer is further than `FAR` from the value computed, which is a tenth of
what executors may differ by.

Sums and means need no such care: they are exact where doubles are, and a change in the last digit may be one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]
    Doubles = npt.NDArray[np.float64]

#: relative distances
CLOSE, FAR = 1e-11, 1e-10


def steadied(shown: Doubles, owners: Ints, values: Doubles, group: Ints) -> Doubles:
    """Values of groups, each group's in order of time, after what was last shown of some groups.

    NaN stands for no value, and is never close to anything.

    >>> flickering = np.array([2.0, 2.0 + 4e-16, 3.0, 2.0 - 4e-16])
    >>> steadied(np.array([2.0 + 8e-16]), np.array([7]), flickering, np.array([7, 7, 7, 7])).tolist()
    [2.000000000000001, 2.000000000000001, 3.0, 1.9999999999999996]
    """
    every = np.concatenate([shown, values])
    order = np.argsort(np.concatenate([owners, group]), kind="stable")
    code, sorted_ = np.concatenate([owners, group])[order], every[order]
    if not len(every):
        return values
    follows = np.append(False, (code[1:] == code[:-1]) & _within(sorted_[1:], sorted_[:-1], CLOSE))
    heads = _heads(follows)
    strays = follows & ~_within(sorted_, sorted_[heads], FAR)
    while strays.any():
        first = np.unique(heads[strays], return_index=True)[1]
        follows[np.flatnonzero(strays)[first]] = False
        heads = _heads(follows)
        strays = follows & ~_within(sorted_, sorted_[heads], FAR)
    found = np.empty(len(every))
    found[order] = sorted_[heads]
    return found[len(shown) :]


def _heads(follows: npt.NDArray[np.bool_]) -> Ints:
    """The place at which each value's run begins."""
    return np.maximum.accumulate(np.where(follows, 0, np.arange(len(follows))))


def _within(values: Doubles, others: Doubles, distance: float) -> npt.NDArray[np.bool_]:
    with np.errstate(invalid="ignore"):
        return np.asarray(np.abs(values - others) <= distance * np.abs(others))
