"""Reading the commits of a state directory; anybody may, at any time, without owning it.

Commits are numbered without gaps. The oldest are removed in order, so those that are there are the last ones.
A list of them is a first guess, as it may be behind: the last is found by reading upward, and where the kept
ones begin is noted by the sweep. Anything else (a gap, a manifest that does not decode, traces of commits
that are not there) is an error: state is never silently taken for empty or for older than it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from windrow.errors import StateError
from windrow.state.manifest import Manifest
from windrow.state.names import CHUNKS, COMMITS, FLOOR, OUTBOX, ChunkName, commit_name, commit_number
from windrow.state.store import RESTORE, Store, damaged

if TYPE_CHECKING:
    from collections.abc import Iterator


#: a listing taken while commits come and go may show a gap, or a manifest just removed: look again
_ATTEMPTS = 5


@dataclass(frozen=True)
class History:
    """The commits that are there."""

    store: Store

    def numbers(self) -> range:
        """The numbers of the commits that are kept."""
        for _ in range(_ATTEMPTS):
            listed = [number for name in self.store.list(COMMITS) if (number := commit_number(name))]
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
        raise _lost(self.store.place(commit_name(lost[-1])), f"commit {last} is there")

    def _is_there(self, number: int) -> bool:
        return self.store.size(commit_name(number)) is not None

    def read(self, number: int) -> Manifest:
        """The manifest of one commit."""
        name = commit_name(number)
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

    def __iter__(self) -> Iterator[Manifest]:
        """All manifests that are kept, oldest first."""
        return (self.read(number) for number in self.numbers())

    def check_nothing_lost(self, last: Manifest | None) -> None:
        """Whether the directory agrees with its last manifest: no chunk too many, none missing.

        A chunk is made for the commit after the last one, so one made for a later commit than that tells
        that manifests were removed.
        """
        number = last.number if last else 0
        listed = {**self.store.list(CHUNKS), **self.store.list(OUTBOX)}
        for name in listed:
            parsed = ChunkName.parse(name)
            if parsed and parsed.commit > number + 1:
                lost = self.store.place(commit_name(parsed.commit - 1))
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
        noted = store.read(FLOOR)
    except StateError as error:
        if error.code != "file-missing":
            raise
        return 1
    return int(noted) if noted.isdigit() else 1


def write_floor(store: Store, number: int) -> None:
    """Note the oldest commit that is kept, before those below it are removed."""
    store.put(FLOOR, b"%d" % number)
