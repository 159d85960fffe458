"""History: the commits of a state directory, read without owning it, and swept when nobody needs them.

Commits are numbered without gaps. The oldest are removed in order, so those that are there are the last ones.
A list of them is a first guess, as it may be behind: the last is found by reading upward, and where the kept
ones begin is noted by the sweep. Anything else (a gap, a manifest that does not decode, traces of commits
that are not there) is an error: state is never silently taken for empty or for older than it is.

The sweep removes what no kept commit names. Manifests go first, oldest first, each durably before the next;
then the files that no manifest left names. So at every point the manifests that are there follow each other
without a gap, and all they name is there: a sweep that is interrupted is simply continued by the next one.

A file nobody names may still be wanted: by the commit that is about to name it. Such a file was made by this
owner for a commit that is not older than the floor, and the log refuses to name any other. So everything else
can go, even while tasks write and commits happen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from windrow.errors import StateError
from windrow.state import names
from windrow.state.manifest import Manifest
from windrow.state.store import RESTORE, Store, damaged

if TYPE_CHECKING:
    from windrow.state.log import CommitLog


#: a listing taken while commits come and go may show a gap, or a manifest just removed: look again
_ATTEMPTS = 5


@dataclass(frozen=True)
class History:
    store: Store

    def numbers(self) -> range:
        for _ in range(_ATTEMPTS):
            listed = [
                number for name in self.store.list(names.COMMITS) if (number := names.commit_number(name))
            ]
            floor = read_floor(self.store)  # after the list: what it removes was noted before
            found = {number for number in listed if number >= floor}
            first = min(found, default=floor)
            last = max(found, default=first - 1)
            while self._is_there(last + 1):
                last += 1
                found.add(last)
            gaps = [number for number in range(first, last) if number not in found]
            lost = [number for number in gaps if not self._is_there(number)]
            if not lost:
                return range(first, last + 1)
        raise _lost(self.store.place(names.commit_name(lost[-1])), f"commit {last} is there")

    def _is_there(self, number: int) -> bool:
        return self.store.size(names.commit_name(number)) is not None

    def read(self, number: int) -> Manifest:
        name = names.commit_name(number)
        place = self.store.place(name)
        try:
            manifest = Manifest.decode(self.store.read(name), place)
        except StateError as error:
            if error.code != "file-missing":
                raise
            hint = "only the last commits are kept; ask for a later one"
            raise StateError(f"commit {number} is not kept", code="commit-missing", hint=hint) from error
        if manifest.number != number:
            raise damaged(place, f"it is the manifest of commit {manifest.number}")
        return manifest

    def latest(self) -> Manifest | None:
        """The last commit; None if there was never one."""
        for _ in range(_ATTEMPTS - 1):
            numbers = self.numbers()
            if not numbers:
                return None
            try:
                return self.read(numbers[-1])
            except StateError as error:
                if error.code != "commit-missing":
                    raise
        return self.read(self.numbers()[-1])

    def check_nothing_lost(self, last: Manifest | None) -> None:
        """Whether the directory agrees with its last manifest: no chunk too many, none missing.

        A chunk is made for the commit after the last one, so one made for a later commit than that tells
        that manifests were removed.
        """
        number = last.number if last else 0
        listed = {**self.store.list(names.CHUNKS), **self.store.list(names.OUTBOX)}
        for name in listed:
            parsed = names.ChunkName.parse(name)
            if parsed and parsed.commit > number + 1:
                lost = self.store.place(names.commit_name(parsed.commit - 1))
                raise _lost(lost, f"{self.store.place(name)} was made after it")
        for name, ref in (last.files if last else {}).items():
            size = listed[name] if name in listed else self.store.size(name)
            if size is None:
                raise StateError(
                    f"{self.store.place(name)} is missing, and commit {number} names it",
                    code="chunk-missing",
                    hint=RESTORE,
                )
            if size != ref.bytes:
                cut = f"it has {size} bytes, and was committed with {ref.bytes}"
                raise damaged(self.store.place(name), cut)


def _lost(place: str, evidence: str) -> StateError:
    return StateError(f"{place} is missing, but {evidence}", code="commit-lost", hint=RESTORE)


def read_floor(store: Store) -> int:
    """The oldest commit that is kept, as the last sweep has noted it; 1 if nobody has removed any."""
    try:
        noted = store.read(names.FLOOR)
    except StateError as error:
        if error.code != "file-missing":
            raise
        return 1
    return int(noted) if noted.isdigit() else 1


#: earlier owners that are remembered, for whoever wonders what happened
_OWNERS_KEPT = 8


def sweep(log: CommitLog, keep: int = 8) -> tuple[str, ...]:
    """Keep the last `keep` commits and what readers hold; remove the others, and what only they name: these
    files."""
    if keep < 1:
        raise ValueError("the last commit is always kept")
    log.check_owner()
    floor = log.leases.raise_floor(log.last.number - keep + 1)
    _remove_commits(log, floor)
    orphans = _find_orphans(log, floor)
    log.store.remove(*orphans)
    for name in log.store.list(names.OWNERS):
        if (epoch := names.owner_epoch(name)) and epoch <= log.owner.epoch - _OWNERS_KEPT:
            log.store.remove(*(name.replace(".json", end) for end in (".released", ".lease", ".json")))
    return orphans


def discard(log: CommitLog) -> None:
    """Remove what was written for a commit that has failed: nobody is going to name it. Where the manifest is
    there all the same, it is for the next start to decide, and everything stays."""
    number, owner = log.last.number + 1, log.owner.epoch
    if log.is_in_doubt or log.store.size(names.commit_name(number)) is not None:
        return
    made = _made(log.store)
    log.store.remove(*(name for name, m in made.items() if (m.commit, m.owner) == (number, owner)))


def _made(store: Store) -> dict[str, names.ChunkName]:
    """The chunks that are there, with what their names tell. Files of unknown names are nobody's business."""
    found = (*store.list(names.CHUNKS), *store.list(names.OUTBOX))
    return {name: made for name in found if (made := names.ChunkName.parse(name)) is not None}


def _find_orphans(log: CommitLog, floor: int) -> tuple[str, ...]:
    """The files that no commit from `floor` on names, nor can ever name."""
    coming = (log.owner.epoch, floor)
    candidates = [name for name, made in _made(log.store).items() if (made.owner, made.commit) < coming]
    named = log.named_since(floor) if candidates else ()
    return tuple(name for name in candidates if name not in named)


def _remove_commits(log: CommitLog, floor: int) -> None:
    """Remove manifests below the floor, which is noted first: who comes later begins to read there."""
    listed = map(names.commit_number, log.store.list(names.COMMITS))
    old = sorted(number for number in listed if number is not None and number < floor)
    if old:
        log.store.put(names.FLOOR, b"%d" % floor)
    for number in old:
        log.store.remove(names.commit_name(number))
