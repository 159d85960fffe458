"""Names that know which definition they mean.

The name of a user-defined aggregate can be given to another definition. A plan must not change its meaning
then, and must not be taken for the plan of the new definition: its calls keep a name with a version.

>>> old, new = VersionedName("gm", "a1"), VersionedName("gm", "b2")
>>> old == new, old.upper(), str(old), {old: 1}.get(VersionedName("gm", "a1"))
(False, 'GM', 'gm', 1)
"""

from __future__ import annotations

from typing import Any


class VersionedName(str):
    """A name, printed as such; two are equal if their versions are."""

    __slots__ = ("version",)
    version: str

    def __new__(cls, name: str, version: str) -> VersionedName:
        made = super().__new__(cls, name)
        made.version = version
        return made

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VersionedName) and (str(self), self.version) == (str(other), other.version)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((str(self), self.version))

    def __repr__(self) -> str:
        return f"{str(self)!r}@{self.version}"

    def __reduce__(self) -> tuple[Any, ...]:
        return VersionedName, (str(self), self.version)
