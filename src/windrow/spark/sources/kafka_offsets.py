"""Arithmetic on a topic's offsets: which rows to take next, and whether they are still there."""

from __future__ import annotations

from windrow.errors import SourceError

Offsets = dict[int, int]
#: the first offsets that are still there, and those after the last
Bounds = tuple[Offsets, Offsets]


def check_still_there(start: Offsets, first: Offsets, last: Offsets, place: str) -> None:
    """Refuse to go on if rows after `start` are gone, or if the topic is not the one that was read before."""
    for partition, offset in start.items():
        if partition not in last or offset > last[partition]:
            raise SourceError(
                f"`{place}` ends before row {offset} of partition {partition}, which was read already: the"
                " topic was deleted and made anew, or cut",
                code="lost-rows",
                hint="start afresh with a new state directory",
            )
    for partition, offset in first.items():
        wanted = start.get(partition, 0)
        if wanted < offset:
            raise SourceError(
                f"rows {wanted} to {offset - 1} of partition {partition} of `{place}` are gone"
                " before they were read: they are past the topic's retention",
                code="lost-rows",
                hint="give the topic a longer retention, or start with a new state directory",
            )


def limited(start: Offsets, last: Offsets, most: int) -> Offsets:
    """An end at or before `last` with about `most` rows up to it, from every partition in proportion.

    >>> limited({0: 0, 1: 5}, {0: 90, 1: 15}, 10)
    {0: 9, 1: 6}
    """
    waiting = {partition: offset - start.get(partition, 0) for partition, offset in last.items()}
    total = sum(waiting.values())
    if total <= most:
        return last
    return {
        partition: start.get(partition, 0) + min(rows, max(1, most * rows // total))
        for partition, rows in waiting.items()
    }
