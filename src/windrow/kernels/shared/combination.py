"""States that are combined from those of several entries: rows of one condition and of another, or without.

`p1+p4-p7` are the rows that p1 or p4 counts, less those of p7. Entries may be on sheets of different
intervals; a value that is encoded (the greatest text) is encoded for all of them at once, so that it is
comparable.

>>> terms_of("p1+p4-p7")
(('p1', True), ('p4', True), ('p7', False))
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import polars as pl

from windrow.kernels.columnar.combiners import subtract

if TYPE_CHECKING:
    from windrow.kernels.aggregates.partials import Decoder, Partial
    from windrow.kernels.columnar.combiners import Combiner, Lanes

_TERM = re.compile(r"([+-]?)([^+-]+)")


@lru_cache(maxsize=4096)
def terms_of(recipe: str) -> tuple[tuple[str, bool], ...]:
    """The entries that are combined, and whether each is added or subtracted."""
    return tuple((name, sign != "-") for sign, name in _TERM.findall(recipe))


def place_of(recipe: str, entry: str) -> str:
    """What the states of an entry are called that are encoded for a recipe."""
    return entry if recipe == entry else f"{recipe}:{entry}"


@dataclass(frozen=True)
class Encoded:
    """The lanes of each entry of a recipe, and the way back that they have in common."""

    lanes: Mapping[str, list[Lanes]]
    decoder: Decoder


def encoded(shape: Partial, tables: Mapping[str, pl.DataFrame]) -> Encoded:
    """Entries of one shape, each in the table of its sheet, encoded as one."""
    parts = [_relabelled(table, entry, shape.label) for entry, table in tables.items()]
    lanes, decoder = shape.encode(pl.concat(parts))
    found: dict[str, list[Lanes]] = {}
    begin = 0
    for entry, table in tables.items():
        rows = slice(begin, begin + table.height)
        found[entry] = [tuple(lane[rows] for lane in group) for group in lanes]
        begin += table.height
    return Encoded(found, decoder)


def combined(combiners: Sequence[Combiner], states: Sequence[tuple[list[Lanes], bool]]) -> list[Lanes]:
    """The states of several entries as one."""
    (found, _), *others = states
    for more, is_added in others:
        found = [
            combiner.combine(a, b) if is_added else subtract(a, b)
            for combiner, a, b in zip(combiners, found, more, strict=True)
        ]
    return found


def _relabelled(table: pl.DataFrame, entry: str, label: str) -> pl.DataFrame:
    mine = [name for name in table.columns if name.startswith(f"{entry}.")]
    return table.select(pl.col(name).alias(f"{label}{name.removeprefix(entry)}") for name in mine)
