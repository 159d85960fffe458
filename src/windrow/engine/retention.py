"""What is kept for queries that come later: sub-windows of streams with KEEP, and last answers.

A sub-window is forgotten as a whole, when none of its rows is still to be kept. Every commit makes new ones,
one for each task that read rows, so small ones are put together: eight of a size become one of the next, as
long as none of them has to stay much longer for that. An epoch does as much of it as the files it brings make
necessary, and rewrites a few times at most what it writes. So there are seven files of each size, and of the
greatest size so many as KEEP has eighths, however many epochs go by.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from windrow.engine.output.outbox import asking
from windrow.engine.records import StreamRecord
from windrow.execution import delta_file, kept_rows
from windrow.state.manifest import ChunkRef
from windrow.windows.domain import INFINITY, Instant

#: so many files of a size are put together, up to so many bytes
TOGETHER, MOST_BYTES = 8, 16 << 20
#: what is put together is at most this part of all that is kept
_PARTS = 8
#: an epoch rewrites so many times as much as it brings, and one file of the most bytes
_TIMES = 4
SIZE = "size"


def tidied(
    record: StreamRecord, kept: Sequence[ChunkRef], place: delta_file.WriteTarget
) -> tuple[StreamRecord, list[ChunkRef]]:
    """A stream and all sub-windows, after those of this stream were seen to."""
    mine = of_stream(kept, record.stream.name)
    others = [ref for ref in kept if ref.metadata["stream"] != record.stream.name]
    if record.stream.keep is None:
        return replace(record, kept_from=None), others
    left = [ref for ref in mine if not _is_old(record, ref, mine)]
    gone = [kept_rows.span_of(ref)[1] + 1 for ref in mine if ref not in left]
    assert record.kept_from is not None
    record = replace(record, kept_from=max([record.kept_from, *gone]))
    return record, others + _put_together(record, left, place)


def of_stream(kept: Sequence[ChunkRef], stream: str) -> list[ChunkRef]:
    """The sub-windows of one stream, the one whose rows end first first."""
    mine = [ref for ref in kept if ref.metadata["stream"] == stream]
    return sorted(mine, key=lambda ref: (kept_rows.span_of(ref)[1], ref.name))


def present(record: StreamRecord) -> Instant:
    """The last instant about which all rows are known; after the end, that of the last row."""
    if record.known.sealed:
        return -INFINITY if record.greatest is None else record.greatest
    return record.known.progress.progress - 1


def _is_old(record: StreamRecord, ref: ChunkRef, all_refs: Sequence[ChunkRef]) -> bool:
    """Whether no row of a sub-window has to be kept."""
    keep, now, last = record.stream.keep, present(record), kept_rows.span_of(ref)[1]
    assert keep is not None
    if keep.ticks is not None:
        return last <= now - keep.ticks
    later = [
        other
        for other in all_refs
        if last < kept_rows.span_of(other)[0] and kept_rows.span_of(other)[1] <= now
    ]
    return sum(other.rows for other in later) >= (keep.rows or 0)


def _put_together(
    record: StreamRecord, refs: list[ChunkRef], place: delta_file.WriteTarget
) -> list[ChunkRef]:
    """All sub-windows, after as many merges as the new ones among them make necessary."""
    new = [ref for ref in refs if ref.metadata["commit"] == place.commit]
    merges = len(new) // (TOGETHER - 1) + 1
    left = MOST_BYTES + _TIMES * sum(ref.bytes for ref in new)
    for _ in range(merges):
        same = _mergeable(record, refs)
        left -= sum(ref.bytes for ref in same)
        if not same or left < 0:
            break
        with kept_rows.KeptWriter(place, record.stream, **{SIZE: _size(same[0]) + 1}) as writer:
            for ref in same:
                writer.add(kept_rows.read_kept(place.store, ref, record.stream))
        assert writer.ref is not None
        gone = {ref.name for ref in same}
        refs = [*(ref for ref in refs if ref.name not in gone), writer.ref]
    return refs


def _mergeable(record: StreamRecord, refs: Sequence[ChunkRef]) -> list[ChunkRef]:
    """Files of the least size of which enough end about the same time; none if there are none."""
    small = [ref for ref in refs if ref.bytes <= MOST_BYTES // 2]
    small.sort(key=lambda ref: (kept_rows.span_of(ref)[1], ref.name))
    for size in sorted({_size(ref) for ref in small}):
        same = [ref for ref in small if _size(ref) == size]
        for first in range(len(same) - TOGETHER + 1):
            run = same[first : first + TOGETHER]
            if _fits(record, run):
                return run
    return []


def _size(ref: ChunkRef) -> int:
    return int(ref.metadata.get(SIZE, 0))


def _fits(record: StreamRecord, refs: Sequence[ChunkRef]) -> bool:
    """Whether files, in the order of their ends, can be put together: all then stay as long as the last."""
    keep = record.stream.keep
    assert keep is not None
    if sum(ref.bytes for ref in refs) > MOST_BYTES:
        return False
    if keep.ticks is not None:
        return kept_rows.span_of(refs[-1])[1] - kept_rows.span_of(refs[0])[1] <= keep.ticks // _PARTS
    return sum(ref.rows for ref in refs) <= (keep.rows or 0) // _PARTS


def last_answers(
    before: Sequence[ChunkRef], outbox: Sequence[ChunkRef], queries: Collection[str]
) -> tuple[ChunkRef, ...]:
    """The files with the newest answers of each query, given those of the commit before and the new ones.

    They were written to be delivered; naming them a while longer is all it takes to have them.
    """
    answered = {query for ref in outbox for section in ref.operators for query in asking(ref, section)}
    new = answered.intersection(queries)
    left = []
    for refs, wanted in ((before, {*queries} - new), (outbox, new)):
        for ref in refs:
            left.append(ref.without({each for each in ref.operators if wanted.isdisjoint(asking(ref, each))}))
    return tuple(ref for ref in left if ref is not None)
