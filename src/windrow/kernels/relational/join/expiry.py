"""When expired rows leave the state of a join: they match nothing any more, so it is a matter of cost alone.

Eager expiry opens the chunks in which something has expired at every step, lazy expiry only now and then and
holds more rows meanwhile (thesis, 5.2.1: Algorithm 2 against 3). What lies between the two is to drop chunks,
unopened, when all of their rows have expired.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from windrow.kernels.relational.expiry_layouts import purged
from windrow.kernels.relational.signed_rows import FOREVER

if TYPE_CHECKING:
    from windrow.kernels.relational.expiry_layouts import Chunks, Layout
    from windrow.kernels.relational.signed_rows import Columns

#: the instant up to which expired rows were last purged
PURGED = "purged"


@dataclass(frozen=True)
class Expiry:
    """`every` as in `Options.expire_every`."""

    every: int | None = None

    def is_due(self, meta: Mapping[str, int], floor: int) -> bool:
        """Whether anything leaves now."""
        return not self.every or floor >= FOREVER or floor - meta.get(PURGED, -FOREVER) >= self.every

    def after(self, meta: Mapping[str, int], floor: int) -> dict[str, int]:
        """What is to be remembered of a step."""
        if not self.every:
            return {}
        return {PURGED: floor if self.is_due(meta, floor) else meta.get(PURGED, -FOREVER)}

    def left(
        self, layout: Layout, chunks: Chunks, meta: Mapping[str, int], floor: int, columns: Columns
    ) -> Chunks:
        """Without what leaves now: rows that are over at `floor`."""
        if self.every is None:
            return layout.forget(chunks, floor)
        return purged(layout, chunks, floor + 1, columns) if self.is_due(meta, floor) else chunks

    @property
    def text(self) -> str:
        """What people read."""
        if self.every is None:
            return "expired rows leave by chunks"
        return (
            f"expired rows leave every {self.every} instants" if self.every else "expired rows leave at once"
        )
