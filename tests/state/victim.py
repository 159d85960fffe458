"""An engine's life in short, for tests that end it early. Runs in a process of its own."""

from __future__ import annotations

import os
import re
import sys
import time
from pathlib import Path
from typing import Any

from tests.state.support import commit_values, merge_chunks, store_at, with_chunk, write_next

from windrow.state.crash import VARIABLE
from windrow.state.history import sweep
from windrow.state.log import CommitLog
from windrow.state.names import new_chunk_name
from windrow.state.shard import plan_compaction

ROUNDS = 6


def hold(root: str, ready: Any) -> None:
    """Own the directory until killed."""
    log = CommitLog.open(store_at(root))
    commit_values(log, [1, 2, 3])
    ready.set()
    time.sleep(60)


def live(root: str, crash_at: str | None = None) -> None:
    """Commit the numbers up to ROUNDS, one per commit, from wherever the last life ended."""
    if crash_at:
        os.environ[VARIABLE] = crash_at
    log = CommitLog.open(store_at(root))
    while (number := log.last.decisions.get("round", 0)) < ROUNDS:
        _round(log, number + 1)
        _note(root, number + 1)
        sweep(log, keep=2)
    log.close()


def fork_and_reopen(root: str) -> None:
    """Close and open again while a forked child, which had the lock when it was forked, still runs."""
    log = CommitLog.open(store_at(root))
    read, write = os.pipe()
    child = os.fork()
    if child == 0:  # waits for its end, and does not touch the log
        os.close(write)
        os.read(read, 1)
        os._exit(0)
    log.close()
    CommitLog.open(store_at(root)).close()
    os.close(write)
    os.waitpid(child, 0)


def noted(root: str) -> int:
    """The last round whose commit has returned."""
    note = _notes(root)
    return len(note.read_bytes()) if note.exists() else 0


def _round(log: CommitLog, number: int) -> None:
    added = write_next(log, [number])
    chunks = with_chunk(log.last, added)
    for group in plan_compaction(chunks[0], most_files=2):
        name = new_chunk_name(log.last.number + 1, log.owner.epoch, 0)
        merged = merge_chunks(log.store, group, name)
        left = tuple(ref for ref in chunks[0] if ref not in group)
        chunks = {**chunks, 0: (merged, *left)}
    log.commit(log.last.successor(chunks=chunks, decisions={"round": number}))


def _note(root: str, number: int) -> None:
    """Remember, outside of the state, how far the commits have returned."""
    _notes(root).write_bytes(b"x" * number)


def _notes(root: str) -> Path:
    """Beside a directory; of an object store, beside its cache."""
    found = re.search(r"[?&]cache=([^&]+)", root)
    return Path(found[1] if found else root).with_suffix(".noted")


if __name__ == "__main__":
    live(*sys.argv[1:])
