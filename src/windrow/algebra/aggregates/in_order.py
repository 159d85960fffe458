"""Aggregates that look at all rows in their order: by the windowing attribute, then by all columns.

ARRAY_AGG is the array of the values, STRING_AGG(x, separator) joins texts, LISTAGG with a comma; NULL is left
out. With DISTINCT each value is there once, in the order of the values.

>>> joined = StringAgg(", ")
>>> rows = [("b", 2), ("a", 1), (None, 0)]
>>> joined.lower(joined.fold(joined.lift((text,), (place,)) for text, place in rows))
'a, b'
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any

from windrow.algebra.aggregates import base, multiset
from windrow.algebra.aggregates.order import restored, sortable
from windrow.algebra.types import STRING, DataType, Kind, array
from windrow.errors import QueryError


class InOrder(multiset.Counting):
    """The state counts (place in the row order, arguments). NULL arguments are passed on."""

    ordered = True

    @abstractmethod
    def folded(self, rows: Iterable[tuple[Any, ...]]) -> Any:
        """The value over rows of arguments, in their order."""

    def lift(self, args: tuple[Any, ...], order: tuple[Any, ...] = ()) -> multiset.Multiset:
        return (((sortable(order), sortable(args)), 1),)

    def of_counts(self, counts: multiset.Counts) -> Any:
        return self.folded(
            restored(args) for (_, args), count in sorted(counts.items()) for _ in range(count)
        )


class ArrayAgg(InOrder):
    """An array, empty over no values."""

    name = "ARRAY_AGG"

    def folded(self, rows: Iterable[tuple[Any, ...]]) -> tuple[Any, ...]:
        return tuple(value for (value,) in rows if value is not None)

    def _result_type(self, types: base.Types) -> DataType:
        return array(types[0])


class StringAgg(InOrder):
    """A text, NULL over no values."""

    name = "STRING_AGG"
    parameters: tuple[str, ...] = ("separator",)

    def __init__(self, *params: Any) -> None:
        super().__init__(*params)
        (self.separator,) = self.params
        if not isinstance(self.separator, str):
            raise QueryError(
                f"{self.name} joins texts with a text, not with {self.separator!r}",
                code="bad-aggregate",
                hint=f"write {self.name}(x, ', ')",
            )

    def folded(self, rows: Iterable[tuple[Any, ...]]) -> str | None:
        texts = [value for (value,) in rows if value is not None]
        return self.separator.join(texts) if texts else None

    def _result_type(self, types: base.Types) -> DataType:
        if types[0].kind not in (Kind.STRING, Kind.NULL):
            raise QueryError(
                f"{self.name} joins texts, not {types[0]}",
                code="bad-argument-type",
                hint="CAST the argument to STRING",
            )
        return STRING


class ListAgg(StringAgg):
    """STRING_AGG with a comma, unless another separator is given."""

    name = "LISTAGG"
    parameters = ()
    options = (("separator", ","),)
