"""Micro-batches in several partitions, as Spark has them: any row in any of them, some of them empty."""

from __future__ import annotations

from random import Random

import pyarrow as pa

#: so many partitions at most
MOST = 4


class Partitions:
    """Cuts micro-batches at random; the same seed cuts the same batches the same way."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)

    def __call__(self, table: pa.Table) -> list[pa.Table]:
        count = self.random.randint(1, MOST)
        homes = [self.random.randrange(count) for _ in range(table.num_rows)]
        return [
            self._in_pieces(table.filter(pa.array([h == n for h in homes], pa.bool_()))) for n in range(count)
        ]

    def _in_pieces(self, table: pa.Table) -> pa.Table:
        """The same rows as one or two record batches."""
        place = self.random.randint(0, table.num_rows)
        return pa.concat_tables([part for part in (table[:place], table[place:]) if part.num_rows] or [table])
