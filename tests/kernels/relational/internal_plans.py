"""Random plans in which results outlive their windows, or are restored.

INTERNAL windows stand beside external ones, with every operator above them; projections drop what would tell
restored results apart.
"""

from __future__ import annotations

from typing import Any

from tests.kernels.relational.more_plans import Drawer

from windrow.algebra.operators import Project, Union
from windrow.algebra.plan import Emit, Plan, Scan, StreamWord, Window
from windrow.windows.landmark import LandmarkWindow
from windrow.windows.ranges import RangeWindow
from windrow.windows.spec import WindowSpec


def few_values(drawer: Drawer, rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Rows with few keys and numbers, so that many meet and many are equal."""
    return [(drawer.pick([0, 1]), drawer.pick([1, 2]), drawer.pick([0.5, 1.5]), *row[3:]) for row in rows]


class Staying(Drawer):
    """Plans with some INTERNAL windows, over few values, so that equal rows are common."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.internal = True
        self.share = self.pick([0.3, 0.6, 0.9])

    def spec(self, alias: str) -> WindowSpec:
        self.internal = self.random.random() < self.share
        return super().spec(alias)

    def leaf(self) -> Plan:
        if self.random.random() < 0.85:
            return super().leaf()
        parts = []
        for stream in self.streams:
            alias = self.alias()
            scan = Scan(stream, alias)
            names = [f"{alias}.{name}" for name in ("k", "v", "x", "ts")]
            parts.append(Project(scan, tuple((name, scan.schema.column(name)) for name in names)))
        internal = self.random.random() < self.share
        length = self.random.randint(1, 9)
        slide = self.random.randint(1, 6) if self.periodic else None
        moving = RangeWindow(length, slide, 0, internal=internal)
        fixed = LandmarkWindow(None, None, slide, internal=internal)
        return Window(Union(tuple(parts)), self.pick([moving, fixed]))

    def query(self) -> Emit:
        word = self.pick([StreamWord.AUTO, StreamWord.ISTREAM, StreamWord.DSTREAM, StreamWord.RSTREAM])
        return Emit(self.relation(self.random.randint(1, 2)), word)

    def rows(self, size: int, around: int) -> list[tuple[Any, ...]]:
        return few_values(self, super().rows(size // 2, around))


class Restored(Drawer):
    """Plans with RESTORE whose projections drop what tells results apart."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.internal = False
        self.slide = self.random.randint(1, 6)

    def spec(self, alias: str) -> WindowSpec:
        return RangeWindow(self.random.randint(1, 9), self.slide)

    def query(self) -> Emit:
        plan = self.relation(self.random.randint(1, 3))
        if self.random.random() < 0.7:
            names = self.random.sample(list(plan.schema.names), 1)
            plan = Project(plan, tuple((f"o{i}", plan.schema.column(n)) for i, n in enumerate(names)))
        return Emit(plan, self.pick([StreamWord.ISTREAM_RESTORE, StreamWord.RSTREAM_RESTORE]))

    def rows(self, size: int, around: int) -> list[tuple[Any, ...]]:
        return few_values(self, super().rows(size // 2, around))
