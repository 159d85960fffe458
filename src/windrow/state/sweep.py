"""Removing what no kept commit names.

Manifests go first, oldest first, each durably before the next; then the files that no manifest left names. So
at every point the manifests that are there follow each other without a gap, and all they name is there: a
sweep that is interrupted is simply continued by the next one.

A file nobody names may still be wanted: by the commit that is about to name it. Such a file was made by this
owner for a commit that is not older than the floor, and the log refuses to name any other. So everything else
can go, even while tasks write and commits happen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from windrow.state import names
from windrow.state.history import write_floor

if TYPE_CHECKING:
    from windrow.state.log import CommitLog
    from windrow.state.store import Store

#: earlier owners that are remembered, for whoever wonders what happened
_OWNERS_KEPT = 8


@dataclass(frozen=True)
class RemovedFiles:
    """What was removed."""

    commits: tuple[int, ...] = ()
    files: tuple[str, ...] = ()
    bytes: int = 0


def sweep(log: CommitLog, keep: int = 8) -> RemovedFiles:
    """Keep the last `keep` commits and what readers hold; remove the others, and what only they name."""
    if keep < 1:
        raise ValueError("the last commit is always kept")
    log.check_owner()
    store = log.store
    floor = log.leases.raise_floor(log.last.number - keep + 1)
    commits = _remove_commits(log, floor)
    orphans = find_orphans(log, floor)
    store.remove(*orphans)
    _forget_owners(store, log.owner.epoch)
    return RemovedFiles(commits, tuple(orphans), sum(orphans.values()))


def discard(log: CommitLog) -> None:
    """Remove what was written for a commit that has failed: nobody is going to name it. Where the manifest is
    there all the same, it is for the next start to decide, and everything stays."""
    number, owner = log.last.number + 1, log.owner.epoch
    if log.is_in_doubt or log.store.size(names.commit_name(number)) is not None:
        return
    made = {
        name: names.ChunkName.parse(name)
        for folder in (names.CHUNKS, names.OUTBOX)
        for name in log.store.list(folder)
    }
    log.store.remove(*(name for name, m in made.items() if m and (m.commit, m.owner) == (number, owner)))


def find_orphans(log: CommitLog, floor: int) -> dict[str, int]:
    """The files that no commit from `floor` on names, nor can ever name; with their sizes."""
    found = {**log.store.list(names.CHUNKS), **log.store.list(names.OUTBOX)}
    candidates = {name: size for name, size in found.items() if _is_past(name, log.owner.epoch, floor)}
    if not candidates:
        return {}
    named = log.named_since(floor)
    return {name: size for name, size in candidates.items() if name not in named}


def _is_past(name: str, owner: int, floor: int) -> bool:
    """Whether no commit to come can name the file anew. Files of unknown names are nobody's business."""
    made = names.ChunkName.parse(name)
    return made is not None and (made.owner < owner or (made.owner == owner and made.commit < floor))


def _remove_commits(log: CommitLog, floor: int) -> tuple[int, ...]:
    """Remove manifests below the floor, which is noted first: who comes later begins to read there."""
    listed = map(names.commit_number, log.store.list(names.COMMITS))
    old = tuple(sorted(number for number in listed if number is not None and number < floor))
    if old:
        write_floor(log.store, floor)
    for number in old:
        log.store.remove(names.commit_name(number))
    return old


def _forget_owners(store: Store, current: int) -> None:
    epochs = {name: names.owner_epoch(name) for name in store.list(names.OWNERS)}
    for name in [name for name, epoch in epochs.items() if epoch and epoch <= current - _OWNERS_KEPT]:
        store.remove(*(name.replace(".json", end) for end in (".released", ".lease", ".json")))
