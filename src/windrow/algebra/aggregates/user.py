"""The user-defined aggregates of this process, by name.

A name means its latest definition; a versioned name, as plans keep it, the one it was bound to. Worker
processes get theirs by `install(definitions(names))`, as often as one likes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from windrow.algebra.aggregates.base import AggregateFunction, Differential, Gray, Types
from windrow.algebra.aggregates.definition import Definition, VersionedName
from windrow.algebra.aggregates.in_order import InOrder
from windrow.algebra.types import DataType, Kind
from windrow.errors import QueryError


class UserAggregate(AggregateFunction):
    """An aggregate by a definition; each definition has a class of its own."""

    definition: Definition

    @property
    def function(self) -> str:
        return VersionedName(self.definition.name.lower(), self.definition.fingerprint)

    def _result_type(self, types: Types) -> DataType:
        for given, wanted in zip(types, self.takes or (), strict=False):
            if given not in (wanted, DataType(Kind.NULL)):
                raise QueryError(
                    f"{self.definition.name} takes {wanted}, not {given}",
                    code="bad-argument-type",
                    hint=f"write CAST(… AS {wanted})",
                )
        return self.definition.returns

    def _key(self) -> tuple[Any, ...]:
        return self.name, self.definition.fingerprint, self.types

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.definition, self.types)


def _restored(definition: Definition, types: Types | None) -> AggregateFunction:
    made = install_version(definition)()
    return made if types is None else made.bind(types)


#: the number of rows, and the state of the user's code; none for no rows
Kept = tuple[int, bytes]


class MergedAggregate(UserAggregate):
    """With `merge`: the state of each pane is kept, and states are merged. NULL arguments are passed on.

    The state is the user's, and how many rows it is of. Which rows come first must not matter to the value:
    rows reach a state in the order of their arrival. It is kept as bytes, so that code which changes it in
    place changes a copy.
    """

    differential = Differential.FULL
    gray = Gray.ALGEBRAIC

    def identity(self) -> Kept:
        return 0, b""

    def lift(self, args: tuple[Any, ...], order: tuple[Any, ...] = ()) -> Kept:
        own = self.definition
        return 1, own.stored(own.stepped(own.started(), [args]), "step")

    def combine(self, a: Kept, b: Kept) -> Kept:
        if not a[0] or not b[0]:
            return a if a[0] else b
        return a[0] + b[0], self.definition.merged(a[1], b[1])

    def subtract(self, a: Kept, b: Kept) -> Kept:
        left = a[0] - b[0]
        if not b[0] or not left:
            return a if left else self.identity()
        return left, self.definition.without(a[1], b[1])

    def lower(self, state: Kept) -> Any:
        own = self.definition
        return own.result(own.loaded(state[1]) if state[0] else own.started())

    def invertible_for(self, types: Types) -> bool:
        return self.definition.inverse is not None


class FoldedAggregate(UserAggregate, InOrder):
    """Without `merge`: all rows are kept, and folded anew for each answer, in the order of FIRST and LAST.

    NULL arguments are passed on. This costs a call of `step` for each row of each window, where `merge` costs
    one for each row and one for each pane.
    """

    def folded(self, rows: Iterable[tuple[Any, ...]]) -> Any:
        return self.definition.folded(rows)


UserDefined = type[MergedAggregate] | type[FoldedAggregate]

_CURRENT: dict[str, UserDefined] = {}
_VERSIONS: dict[tuple[str, str], UserDefined] = {}


def names() -> tuple[str, ...]:
    """The names there are, as they were written, sorted."""
    return tuple(sorted(kind.definition.name for kind in _CURRENT.values()))


def find(name: str) -> UserDefined | None:
    """The aggregate of a name, in any case; of a versioned name, that version."""
    key = str(name).upper()
    return _VERSIONS.get((key, name.version)) if isinstance(name, VersionedName) else _CURRENT.get(key)


def versioned(name: str) -> str:
    """A name of an aggregate, bound to the current definition where it is the user's."""
    found = find(name)
    return (
        name if found is None else VersionedName(found.definition.name.lower(), found.definition.fingerprint)
    )


def definitions(names: Iterable[str]) -> tuple[Definition, ...]:
    """The definitions behind some names, to ship them elsewhere; names of built-in aggregates have none."""
    found = (find(name) for name in names)
    return tuple(dict.fromkeys(kind.definition for kind in found if kind is not None))


def install(definitions: Iterable[Definition]) -> None:
    """Make definitions known; each replaces the current one of its name. Again is the same as once."""
    for definition in definitions:
        _CURRENT[definition.name.upper()] = install_version(definition)


def install_version(definition: Definition) -> UserDefined:
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
