"""Random queries that may shed, as SQL: nested, joined, united, grouped."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from windrow.algebra.plan import Emit
from windrow.engine.explain import declared
from windrow.language.compile import compile_query
from windrow.shedding.agreement import SheddableQuery

STREAMS = {
    "s": ("k BIGINT, v BIGINT, ts BIGINT", "WATTR ts SHEDDABLE"),
    "r": ("k BIGINT, v BIGINT, ts BIGINT", "WATTR ts SHEDDABLE"),
    "kept": ("k BIGINT, v BIGINT, ts BIGINT", "WATTR ts"),
}


def plan(text: str) -> Emit:
    return compile_query(text, declared(STREAMS, {}))


def candidate(name: str, text: str, max_gap: int | None = 2, priority: int = 0) -> SheddableQuery:
    return SheddableQuery(name, plan(text), max_gap, priority)


@dataclass(frozen=True)
class Size:
    """[RANGE range SLIDE slide ORIGIN origin]."""

    range: int
    slide: int
    origin: int = 0

    @property
    def bracket(self) -> str:
        return f"[RANGE {self.range} SLIDE {self.slide} ORIGIN {self.origin}]"


def sizes(*, gaps: bool = True, most: int = 9, origins: bool = True) -> st.SearchStrategy[Size]:
    """Windows; without `gaps` every row is in one of them."""
    origin = st.integers(-4, 4) if origins else st.just(0)
    made = st.builds(Size, st.integers(1, most), st.integers(1, 5), origin)
    return made if gaps else made.filter(lambda size: size.range >= size.slide)


@dataclass(frozen=True)
class Nested:
    """Aggregates of aggregates, the outermost first."""

    levels: tuple[Size, ...]
    stream: str = "s"
    grouped: bool = True
    having: bool = False

    @property
    def sql(self) -> str:
        return self._level(0)

    def _level(self, depth: int) -> str:
        size, last = self.levels[depth], depth == len(self.levels) - 1
        source = (
            f"{self.stream} {size.bracket}"
            if last
            else f"({self._level(depth + 1)}) {size.bracket} AS x{depth}"
        )
        key, group = ("k, ", " GROUP BY k") if self.grouped else ("", "")
        having = " HAVING COUNT(*) > 1" if self.having and last else ""
        return f"SELECT {key}SUM(v) + COUNT(*) AS v FROM {source}{group}{having}"


@st.composite
def nested(draw: st.DrawFn, *, gaps: bool = True, depth: int = 3, grid: Size | None = None) -> Nested:
    levels = draw(st.lists(sizes(gaps=gaps), min_size=1, max_size=depth))
    if grid is not None:
        outer = Size(levels[0].range, grid.slide, grid.origin)
        if not gaps and outer.range < outer.slide:
            outer = Size(outer.slide, grid.slide, grid.origin)
        levels[0] = outer
    if not gaps:
        widened = [levels[0]]
        for inner in levels[1:]:
            outer = widened[-1]
            widened[-1] = Size(max(outer.range, inner.slide), outer.slide, outer.origin)
            widened.append(inner)
        levels = widened
    return Nested(tuple(levels), grouped=draw(st.booleans()), having=draw(st.booleans()))


@st.composite
def shapes(draw: st.DrawFn) -> str:
    """Queries of other shapes, all with one answer per window."""
    size, other = draw(sizes()), draw(sizes())
    same = Size(other.range, size.slide, size.origin)
    grouped = f"SELECT k, SUM(v) AS v FROM s {size.bracket} GROUP BY k"
    count = "SELECT COUNT(*) AS n FROM"
    return draw(
        st.sampled_from(
            [
                f"SELECT a.k, b.v FROM s {size.bracket} AS a, r {same.bracket} AS b WHERE a.k = b.k",
                f"SELECT DISTINCT k FROM s {size.bracket}",
                f"SELECT k, v FROM s {size.bracket} EXCEPT ALL SELECT k, v FROM r {same.bracket}",
                f"{count} (SELECT ISTREAM(k, v) FROM s {other.bracket}) {size.bracket} AS x",
                f"{count} (SELECT ISTREAM(k, v) FROM s [RANGE {other.range}]) {size.bracket} AS x",
                f"SELECT COUNT(*) AS n FROM (SELECT a.k FROM s {other.bracket} AS a, r [RANGE 3 SLIDE 2] AS b"
                f" WHERE a.k = b.k) {size.bracket} AS x",
                f"SELECT * FROM ({grouped} UNION ALL SELECT k, v FROM r {same.bracket}) u",
            ]
        )
    )


rows = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(0, 60)), max_size=50)
