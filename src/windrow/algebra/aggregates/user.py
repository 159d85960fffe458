"""The user-defined aggregates of this process, by name.

A name means its latest definition; a versioned name, as plans keep it, the one it was bound to. Worker
processes get theirs by `install(definitions(names))`, as often as one likes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from windrow.algebra.aggregates.user_folded import FoldedAggregate
from windrow.algebra.aggregates.user_merged import MergedAggregate
from windrow.algebra.aggregates.versions import VersionedName

if TYPE_CHECKING:
    from windrow.algebra.aggregates.definition import Definition

UserAggregate = type[MergedAggregate] | type[FoldedAggregate]

_CURRENT: dict[str, UserAggregate] = {}
_VERSIONS: dict[tuple[str, str], UserAggregate] = {}


def names() -> tuple[str, ...]:
    """The names there are, as they were written, sorted."""
    return tuple(sorted(kind.definition.name for kind in _CURRENT.values()))


def find(name: str) -> UserAggregate | None:
    """The aggregate of a name, in any case; of a versioned name, that version."""
    key = str(name).upper()
    return _VERSIONS.get((key, name.version)) if isinstance(name, VersionedName) else _CURRENT.get(key)


def definitions(names: Iterable[str]) -> tuple[Definition, ...]:
    """The definitions behind some names, to ship them elsewhere; names of built-in aggregates have none."""
    found = (find(name) for name in names)
    return tuple(dict.fromkeys(kind.definition for kind in found if kind is not None))


def install(definitions: Iterable[Definition]) -> None:
    """Make definitions known; each replaces the current one of its name. Again is the same as once."""
    for definition in definitions:
        _CURRENT[definition.name.upper()] = install_version(definition)


def install_version(definition: Definition) -> UserAggregate:
    """Make a definition known to plans that are bound to it, and to nobody else."""
    key = definition.name.upper(), definition.fingerprint
    if key not in _VERSIONS:
        base = FoldedAggregate if definition.merge is None else MergedAggregate
        facts = {
            "definition": definition,
            "name": key[0],
            "arity": definition.arity,
            "takes": definition.takes,
        }
        _VERSIONS[key] = type(definition.name, (base,), facts)
    return _VERSIONS[key]


def forget(name: str) -> None:
    """Take a name back; plans that are bound to it keep their definition."""
    _CURRENT.pop(name.upper(), None)
