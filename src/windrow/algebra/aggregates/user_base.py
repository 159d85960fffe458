"""What user-defined aggregates have in common, whichever way they are computed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windrow.algebra.aggregates.base import AggregateFunction
from windrow.algebra.aggregates.definition import Definition
from windrow.algebra.aggregates.versions import VersionedName
from windrow.algebra.types import DataType, Kind
from windrow.errors import QueryError

if TYPE_CHECKING:
    from windrow.algebra.aggregates.base import Types


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
    from windrow.algebra.aggregates import user  # the classes are made there

    user.install_version(definition)
    found = user.find(VersionedName(definition.name, definition.fingerprint))
    assert found is not None
    return found() if types is None else found().bind(types)
