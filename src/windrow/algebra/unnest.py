"""UNNEST: for each row, one row per element of an array of its own."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from windrow.algebra import checks, patterns
from windrow.algebra.plan import Plan
from windrow.algebra.schema import Field, Schema
from windrow.algebra.types import INT, Kind
from windrow.errors import QueryError

if TYPE_CHECKING:
    from windrow.algebra.expressions import Expression
    from windrow.algebra.patterns import Label


@dataclass(frozen=True)
class Unnest(Plan):
    """The rows, each as often as its array has elements, with an element behind it: under one name, or a
    struct's fields under as many. `position` names a column for its place from 0 on. A row without elements
    vanishes or, `outer`, is there once with NULL."""

    input: Plan
    array: Expression
    names: tuple[str, ...]
    position: str | None = None
    outer: bool = False

    def __post_init__(self) -> None:
        checks.reads_only(self.input.schema, self.array)
        checks.no_internal_windows(self.input, "UNNEST")
        if self.array.type.kind is not Kind.ARRAY:
            raise QueryError(
                f"this is {self.array.type}, and only an ARRAY or a MAP has elements",
                code="not-an-array",
                hint="JSON in a text is made one by from_json(text, 'ARRAY<…>')",
            )
        if len(self.names) not in (1, len(self.array.type.element.fields)):
            fields = len(self.array.type.element.fields) or 1
            raise QueryError(
                f"an element has {fields} columns, and there are {len(self.names)} names",
                code="unnest-columns",
                hint="name one column, or one for each field",
            )

    @property
    def spreads(self) -> bool:
        """Whether the fields of each element are columns."""
        return len(self.names) > 1

    @cached_property
    def schema(self) -> Schema:
        element = self.array.type.element
        kinds = [kind for _, kind in element.fields] if self.spreads else [element]
        place = (Field(self.position, INT),) if self.position else ()
        parts = tuple(Field(name, kind) for name, kind in zip(self.names, kinds, strict=True))
        return Schema((*self.input.schema, *place, *parts))

    @property
    def label(self) -> Label:
        return patterns.neutral(self.input.label)
