"""A history: operations in the order in which they happened, and what the queries have read in it.

>>> history = History.parse("rQ1[0] w3[0] c3 rQ1[1] rQ1[2] cQ1", subwindows=3)
>>> history.answers
(Answer(query='Q1', begin=0, end=5, versions=(0, 1, 2), latest=3),)
>>> print(history)
rQ1[0] w3[0] c3 rQ1[1] rQ1[2] cQ1
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from benchmarks.theory.isolation.operations import (
    Abort,
    Commit,
    Operation,
    Pass,
    Read,
    Unread,
    Write,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_OPERATION = re.compile(r"(?P<kind>[rwuca])(?P<who>[A-Za-z]*\d+)(?:\[(?P<slot>\d+)\])?")


@dataclass(frozen=True, slots=True)
class Answer:
    """A committed query: the places in the history where it begins and ends, and the versions it rests on.

    `latest` is the last update that had happened when it committed.
    """

    query: str
    begin: int
    end: int
    #: in ascending order
    versions: tuple[int, ...]
    latest: int

    @property
    def is_whole(self) -> bool:
        """Whether the versions are those of a window at some instant: neighbours without a gap."""
        first = self.versions[0]
        return self.versions == tuple(range(first, first + len(self.versions)))

    @property
    def is_latest(self) -> bool:
        """Whether they are those of the window at the instant of the commit."""
        return self.is_whole and self.versions[-1] == self.latest


@dataclass(frozen=True)
class History:
    """What happened to a window of so many sub-windows, after updates 0 to n-1 had filled it."""

    operations: tuple[Operation, ...]
    subwindows: int

    @classmethod
    def parse(cls, text: str, subwindows: int) -> History:
        """A history from its notation: queries have a letter and a number, updates a number."""
        return cls(tuple(_operation(word) for word in text.split()), subwindows)

    def __str__(self) -> str:
        return " ".join(map(str, self.operations))

    @cached_property
    def answers(self) -> tuple[Answer, ...]:
        """Every committed query, in the order of the commits."""
        return tuple(_answers(self.operations, self.subwindows))

    @cached_property
    def commits(self) -> dict[str | int, int]:
        """Where each transaction commits."""
        return {each.transaction: at for at, each in enumerate(self.operations) if isinstance(each, Commit)}


def _answers(operations: Sequence[Operation], subwindows: int) -> Iterator[Answer]:
    held = dict(enumerate(range(subwindows)))
    latest = subwindows - 1
    begun: dict[str, int] = {}
    read: dict[str, dict[tuple[int, int | None], int]] = {}
    for at, each in enumerate(operations):
        match each:
            case Write(update, slot):
                held[slot], latest = update, max(latest, update)
            case Read(query, slot, version):
                begun.setdefault(query, at)
                read.setdefault(query, {})[slot, version] = held[slot] if version is None else version
            case Unread(query, slot, version):
                del read[query][slot, version]
            case Abort(query):
                begun.pop(query, None)
                read.pop(query, None)
            case Commit(str() as query) if read.get(query):
                versions = tuple(sorted(read.pop(query).values()))
                yield Answer(query, begun.pop(query), at, versions, latest)
            case Commit() | Pass():
                pass


def _operation(word: str) -> Operation:
    found = _OPERATION.fullmatch(word)
    if not found:
        raise ValueError(f"`{word}` is no operation")
    kind, who, slot = found["kind"], found["who"], int(found["slot"] or 0)
    match kind:
        case "w":
            return Write(int(who), slot)
        case "r":
            return Read(who, slot)
        case "u":
            return Unread(who, slot)
        case "a":
            return Abort(who)
        case _:
            return Commit(int(who) if who.isdecimal() else who)
