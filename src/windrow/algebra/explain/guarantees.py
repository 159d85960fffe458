"""What comes out of a query, when it is final, and what its sink guarantees, in plain sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windrow.algebra.explain.brackets import policy
from windrow.algebra.finality import is_final_by_group
from windrow.algebra.plan import Emit, Scan, StreamWord, TableScan

if TYPE_CHECKING:
    from windrow.algebra.catalog import Stream

_WORDS = {
    StreamWord.AUTO: "rows that join ('+') and leave ('-') the answer, told apart by the column `op`",
    StreamWord.ISTREAM: "rows that join the answer, at the instant they do",
    StreamWord.DSTREAM: "rows that leave the answer, at the instant they do",
    StreamWord.RSTREAM: "the whole answer, at each instant it changed",
    StreamWord.ISTREAM_RESTORE: "at each refresh, all results born since the last, also those gone again",
    StreamWord.RSTREAM_RESTORE: "at each refresh, the answer, and what was born and gone since the last",
}
_SINKS = {
    "console": "printed as it becomes final; a restart may print the last commit again",
    "memory": "kept in this process while it runs, each answer once; lost with the process",
    "files": "exactly once: a file appears with its commit, and a commit is never written twice",
    "delta": "exactly once: each commit is one Delta transaction that names its number",
    "kafka": "at least once, with the commit number in the headers to tell repeats by",
}
_NO_SINK = "none is named: kept for results(), or printed by `windrow run`"


def word_meaning(emit: Emit) -> str:
    """What the stream word of a query means here."""
    if emit.is_union:
        return "; ".join(f"branch {n}: {word_meaning(each)}" for n, each in enumerate(emit.branches, 1))
    if emit.meaning is StreamWord.RSTREAM and emit.reports_sessions:
        return "the answer of each session, when it has ended"
    if emit.meaning is StreamWord.RSTREAM and emit.is_periodic:
        return "the answer of each extent, when it closes"
    return _WORDS[emit.meaning]


def why_word(emit: Emit) -> str | None:
    """Why no stream word means this one; None if one is written."""
    if emit.is_union:
        found = [why_word(branch) for branch in emit.branches]
        return found[0] if len(set(found)) == 1 else None
    if emit.word is not StreamWord.AUTO:
        return None
    if emit.reports_extents:
        return "every window has a SLIDE" if emit.is_periodic else "sessions are reported as they end"
    if emit.meaning is StreamWord.ISTREAM:
        return "nothing ever leaves the answer"
    return "not every window has a SLIDE, and answers expire"


def finality(emit: Emit) -> str:
    """When an answer is final and therefore emitted; the clock is the least punctuation of all inputs, or of
    those of a branch."""
    if emit.is_union:
        return "; ".join(
            f"branch {n}, by the clock of {_listed(each)}: {finality(each)}"
            for n, each in enumerate(emit.branches, 1)
        )
    per = next((s.progress.per for s in streams_of(emit) if _final_by_group(emit, s)), None)
    return _final(emit) + (f"; each `{per}` has a clock of its own" if per else "")


def _listed(emit: Emit) -> str:
    return ", ".join(name for name, _ in clocks(emit))


def _final(emit: Emit) -> str:
    if emit.reports_sessions and getattr(emit.leaves[0].spec, "inclusive", False):
        return "a session, when the clock has passed its end, a gap after its last row"
    if emit.reports_sessions:
        return "a session, when the clock reaches its end, a gap after its last row"
    if emit.word.restores:
        return "a refresh, when the clock reaches it"
    if not emit.is_periodic:
        return "a change, when the clock has passed its instant"
    if all(leaf.spec.grid is not None for leaf in emit.leaves):
        return "an extent, when the clock reaches its end"
    return "an extent, when the clock has passed the row that closes it"


def _final_by_group(emit: Emit, stream: Stream) -> bool:
    return stream.progress.per is not None and is_final_by_group(emit, stream, stream.progress.per)


def clocks(emit: Emit) -> tuple[tuple[str, str], ...]:
    """What holds the clock: each stream with its policy, each table."""
    streams = {s.name: policy(s) or "no punctuation: at the end of its input" for s in streams_of(emit)}
    tables = {
        node.table.name: f"{node.table.kind.value} table: as of its last change"
        for node in emit.walk()
        if isinstance(node, TableScan)
    }
    return (*streams.items(), *tables.items())


def streams_of(emit: Emit) -> tuple[Stream, ...]:
    """The streams a query reads, nested queries included, each once."""
    return tuple({node.stream.name: node.stream for node in emit.walk() if isinstance(node, Scan)}.values())


def guarantee(sink: str | None) -> str:
    """What a sink promises about the answers it is given.

    >>> guarantee("kafka://broker:9092/alerts")
    'at least once, with the commit number in the headers to tell repeats by'
    """
    scheme = (sink or "").partition(":")[0].lower()
    return _SINKS.get(scheme, _NO_SINK if sink is None else f"not known: no sink is called `{scheme}:`")
