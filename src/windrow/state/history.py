"""Reading the commits of a state directory; anybody may, at any time, without owning it.

Commits are numbered without gaps. The oldest are removed in order, so those that are there are the last ones.
Anything else (a gap, a manifest that does not decode, traces of commits that are not there) is an error:
state is never silently taken for empty or for older than it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from windrow.errors import StateError
from windrow.state.manifest import Manifest
from windrow.state.names import CHUNKS, COMMITS, OUTBOX, ChunkName, commit_name, commit_number
from windrow.state.store import RESTORE, damaged

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windrow.state.store import Store

#: a listing taken while commits come and go may show a gap, or a manifest just removed: look again
_ATTEMPTS = 5


@dataclass(frozen=True)
class History:
    """The commits that are there."""

    store: Store

    def numbers(self) -> range:
        """The numbers of the commits that are kept."""
        for _ in range(_ATTEMPTS):
            found = {
                number for name in self.store.list(COMMITS) if (number := commit_number(name)) is not None
            }
            if not found:
                return range(0)
            numbers = range(min(found), max(found) + 1)
            gaps = set(numbers) - found
            if not gaps:
                return numbers
        raise _lost(self.store.place(commit_name(max(gaps))), f"commit {numbers[-1]} is there")

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
        sizes = {**self.store.list(CHUNKS), **self.store.list(OUTBOX)}
        for name in sizes:
            parsed = ChunkName.parse(name)
            if parsed and parsed.commit > number + 1:
                lost = self.store.place(commit_name(parsed.commit - 1))
                raise _lost(lost, f"{self.store.place(name)} was made after it")
        for name, ref in (last.files if last else {}).items():
            if name not in sizes:
                raise StateError(
                    f"{self.store.place(name)} is missing, and commit {number} names it",
                    code="chunk-missing",
                    hint=RESTORE,
                )
            if sizes[name] != ref.bytes:
                cut = f"it has {sizes[name]} bytes, and was committed with {ref.bytes}"
                raise damaged(self.store.place(name), cut)


def _lost(place: str, evidence: str) -> StateError:
    return StateError(f"{place} is missing, but {evidence}", code="commit-lost", hint=RESTORE)
