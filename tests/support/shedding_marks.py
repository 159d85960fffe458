"""Window drop as the paper prints it: marks on tuples, decoded by aggregates (Tatbul and Zdonik, sections 3.1
to 3.4).

This is their model, not Windrow's: windows begin at `first + k*slide` and are stamped with their beginning,
tuples come in order, there is one group, and at least one tuple per tick. A tuple carries a window
specification:

    -1     nothing is said
     0     no window may begin here
    tau    a window may begin here, and tuples before tau must be kept for it

Table 3 says what an aggregate does with it. It uses one variable, `keep_until`, for two things: until when
windows may open, and until when tuples are needed. As printed, a window that opens because it lies in a kept
range prolongs that range, and so the next one opens too, and so on for ever. Meant are two variables: here
`open_until` follows the specifications only, and what a window needs is kept by the window itself.

A window opens with a tuple. The beginnings of final windows are marked, and marks survive as fake tuples; but
an aggregate in the middle of three finds its beginnings only if the tuples there exist and no filter takes
them away.

Windrow's own rule is compared with this one in the tests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

UNSAID, DISALLOWED = -1, 0


@dataclass(frozen=True, slots=True)
class Tuple:
    """A tuple of the paper's stream. A fake one has no content: it only carries its specification."""

    t: int
    value: int
    spec: int = UNSAID
    fake: bool = False

    @property
    def allows(self) -> bool:
        """Whether a window may begin here; times are positive."""
        return self.spec > 0


@dataclass(frozen=True, slots=True)
class Windows:
    """Windows [first + k*slide, first + k*slide + length) for k >= 0."""

    length: int
    slide: int
    first: int = 1

    def begins(self, t: int) -> bool:
        """Whether a window begins at a time."""
        return t >= self.first and (t - self.first) % self.slide == 0

    def number(self, t: int) -> int:
        """Which window begins at a time."""
        return (t - self.first) // self.slide


def mark(stream: Iterable[Tuple], windows: Windows, drops: Callable[[int], bool]) -> list[Tuple]:
    """WinDrop: marks the tuples at which windows begin, and drops those that no kept window needs.

    `drops` decides by the number of a window. A tuple that says that no window begins must go on, as a fake
    one.

    >>> tuples = [Tuple(t, 1) for t in range(1, 10)]
    >>> marked = mark(tuples, Windows(5, 3), drops=lambda number: number > 0)
    >>> [(each.t, each.spec, each.fake) for each in marked]
    [(1, 6, False), (2, -1, False), (3, -1, False), (4, 0, False), (5, -1, False), (7, 0, True)]
    """
    kept: list[Tuple] = []
    keep_until = 0
    marked_at: int | None = None
    for each in stream:
        spec = UNSAID
        if windows.begins(each.t) and marked_at != each.t:
            marked_at = each.t
            spec = DISALLOWED if drops(windows.number(each.t)) else each.t + windows.length
            keep_until = max(keep_until, spec)
        if each.t < keep_until:
            kept.append(replace(each, spec=spec))
        elif spec != UNSAID:
            kept.append(replace(each, spec=spec, fake=True))
    return kept


def select(stream: Iterable[Tuple], predicate: Callable[[Tuple], bool]) -> list[Tuple]:
    """A filter: a tuple that fails but says something goes on as a fake one."""
    found = []
    for each in stream:
        if each.fake or predicate(each):
            found.append(each)
        elif each.spec != UNSAID:
            found.append(replace(each, fake=True))
    return found


def decode(stream: Sequence[Tuple], windows: Windows, function: Callable[[list[int]], int]) -> list[Tuple]:
    """An aggregate that obeys specifications (Table 3), and passes on what is meant for those after it."""
    opened: dict[int, int] = {}
    carried: list[Tuple] = []
    open_until = 0
    for each in sorted(stream, key=lambda tuple_: tuple_.t):
        spec = each.spec - (windows.length - 1) if each.allows else each.spec
        if each.allows:
            open_until = max(open_until, spec)
        if windows.begins(each.t):
            if each.t < open_until:
                opened[each.t] = max(spec, opened.get(each.t, UNSAID))
        elif spec != UNSAID:
            carried.append(Tuple(each.t, 0, spec, fake=True))
    answers = [_answer(stream, windows, begin, spec, function) for begin, spec in opened.items()]
    return sorted([*answers, *carried], key=lambda tuple_: tuple_.t)


def _answer(
    stream: Sequence[Tuple], windows: Windows, begin: int, spec: int, function: Callable[[list[int]], int]
) -> Tuple:
    """A window without tuples says what it has to say all the same."""
    inside = [each.value for each in stream if not each.fake and begin <= each.t < begin + windows.length]
    return Tuple(begin, function(inside) if inside else 0, spec, fake=not inside)


def decode_as_printed(stream: Sequence[Tuple], windows: Windows) -> list[int]:
    """The windows that Table 3 opens to the letter, with its one variable: once one is open, all after it
    are.

    >>> one_kept = [Tuple(1, 1, spec=9), *(Tuple(t, 1) for t in range(2, 40))]
    >>> decode_as_printed(one_kept, Windows(4, 2))[-1]
    39
    >>> [each.t for each in decode(one_kept, Windows(4, 2), sum)]
    [1, 3, 5]
    """
    opened: list[int] = []
    keep_until = 0
    for each in stream:
        if each.allows:
            keep_until = each.spec - (windows.length - 1)
        if windows.begins(each.t) and each.t < keep_until:
            opened.append(each.t)
            if not each.allows:
                keep_until = max(keep_until, each.t + windows.length)
    return opened
