"""What rows look like: named, typed fields. Names are unique within a relation."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from windrow.algebra.expressions import Column
from windrow.errors import QueryError, nearest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windrow.algebra.types import DataType


@dataclass(frozen=True)
class Field:
    """One column."""

    name: str
    type: DataType


@dataclass(frozen=True)
class Schema:
    """The columns of a relation, in order.

    >>> from windrow.algebra.types import BIGINT, STRING
    >>> schema = Schema((Field("item", BIGINT), Field("name", STRING)))
    >>> schema.index("name"), schema.column("item").type
    (1, BIGINT)
    """

    fields: tuple[Field, ...]

    def __post_init__(self) -> None:
        for name in self._positions:
            if name == "*" or (name[:1] == "^" and name[-1:] == "$"):
                raise QueryError(
                    f"a column cannot be called `{name}`: that stands for many columns",
                    code="bad-name",
                    hint="rename it, with AS or in the source",
                )
        if len(self._positions) != len(self.fields):
            names = [field.name for field in self.fields]
            twice = next(name for name in names if names.count(name) > 1)
            raise QueryError(
                f"two columns are called `{twice}`", code="duplicate-column", hint="rename one with AS"
            )

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {field.name: position for position, field in enumerate(self.fields)}

    def __iter__(self) -> Iterator[Field]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)

    def __contains__(self, name: str) -> bool:
        return name in self._positions

    def __add__(self, other: Schema) -> Schema:
        return Schema(self.fields + other.fields)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(field.name for field in self.fields)

    @property
    def types(self) -> tuple[DataType, ...]:
        return tuple(field.type for field in self.fields)

    def index(self, name: str) -> int:
        """The position of a column."""
        if name not in self._positions:
            raise QueryError(f"no column `{name}`", code="unknown-column", hint=nearest(name, self.names))
        return self._positions[name]

    def column(self, name: str) -> Column:
        """A reference to a column, typed."""
        return Column(name, self.fields[self.index(name)].type)

    def prefixed(self, alias: str) -> Schema:
        """The same columns under `alias.name`."""
        return Schema(tuple(Field(f"{alias}.{field.name}", field.type) for field in self.fields))

    def accepts(self, other: Schema) -> bool:
        """Whether rows of `other` may stand where rows of this schema stand (UNION, EXCEPT)."""
        return self.types == other.types
