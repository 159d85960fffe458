"""Layouts: how an archive is cut into sub-indices, by what is said of it or by the least work.

To be chosen are how many parts there are by insertion and by expiry, whether a sub-index that changes is
written anew, and how periods are dealt out. More parts make updates cheaper and searches dearer, rebuilding
the other way round: so a declared mix of searches, scans and updates decides, by what each was measured to
take.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from windrow.archive.declaration import PERIODS


@dataclass(frozen=True, slots=True)
class Mix:
    """How an archive is expected to be read: so many searches by key and so many scans per so many updates.

    >>> print(Mix(probes=40, scans=1)), print(Mix(probes=1, updates=10))
    EXPECT 40 PROBES, 1 SCAN PER UPDATE
    EXPECT 1 PROBE PER 10 UPDATES
    (None, None)
    """

    probes: int = 0
    scans: int = 0
    updates: int = 1

    def __str__(self) -> str:
        counts = (self.probes, "PROBE"), (self.scans, "SCAN")
        asked = [f"{number} {what}{'S' * (number != 1)}" for number, what in counts if number]
        per = "UPDATE" if self.updates == 1 else f"{self.updates} UPDATES"
        return f"EXPECT {', '.join(asked or ['0 PROBES'])} PER {per}"


@dataclass(frozen=True, slots=True)
class GridLayout:
    """How an archive is laid out: G parts by insertion, E by expiry, written anew or not, dealt out how.

    >>> print(GridLayout((4, 4), rebuild=True))
    LAYOUT 4 BY 4 REBUILD
    """

    partitions: tuple[int, int] = (2, 2)
    rebuild: bool = False
    allocation: str = "round-robin"

    def __str__(self) -> str:
        made, expired = self.partitions
        dealt = "" if self.allocation == "round-robin" else f" ALLOCATION {self.allocation.upper()}"
        return f"LAYOUT {made} BY {expired} {'REBUILD' if self.rebuild else 'NOREBUILD'}{dealt}"

    def touched(self, *, is_equal: bool) -> tuple[int, int]:
        """How many sub-indices an update may change, of how many; `is_equal`: all rows live equally long,
        so that what comes together expires together, in one part of each side.

        >>> GridLayout((4, 4)).touched(is_equal=False), GridLayout((1, 4)).touched(is_equal=True)
        ((7, 16), (1, 4))
        """
        made, expired = self.partitions
        if is_equal:
            return 1, max(made, expired)
        return made + expired - 1, made * expired


#: what an archive is made for if its stream does not say how many rows come
ASSUMED_ROWS = 100_000
#: milliseconds, measured by `windrow bench archive`: to write a row, to write a file, to open a file for a
#: search, to read a row in a scan
_ROW, _FILE, _OPEN, _READ = 0.00055, 2.3, 0.8, 0.00011
#: without rebuilding: files that a search opens per sub-index, as if each were whole; how often a row is
#: written until it expires; rows on the disk for each that is valid
_PIECES, _WRITTEN, _KEPT = 2.5, 1.5, 1.3


@dataclass(frozen=True, slots=True)
class Work:
    """About what an update, a search and a scan take, in milliseconds."""

    update: float
    probe: float
    scan: float

    @classmethod
    def of(cls, layout: GridLayout, rows: int, *, is_equal: bool) -> Work:
        """With so many valid rows, of which an update brings a period's share.

        >>> Work.of(GridLayout(rebuild=True), 400_000, is_equal=False).update > 100
        True
        """
        touched, count = layout.touched(is_equal=is_equal)
        new = rows / PERIODS * (1 if is_equal else 2)  # of lives of any length, half are over halfway
        opened = count * (1.0 if layout.rebuild else _PIECES)
        if layout.rebuild:
            update = _ROW * (rows * touched / count + new) + _FILE * touched
        else:
            update = _ROW * new * _WRITTEN + _FILE * (1 if is_equal else layout.partitions[1])
        on_disk = rows * (1.0 if layout.rebuild else _KEPT)
        return cls(update, _OPEN * (1 + opened), _OPEN * (1 + opened) + _READ * on_disk)

    def for_mix(self, mix: Mix) -> float:
        """What one update takes, and the searches and scans that come with it."""
        return self.update + (mix.probes * self.probe + mix.scans * self.scan) / mix.updates


def candidates(*, is_equal: bool) -> tuple[GridLayout, ...]:
    """The layouts that are measured: grids, or cut by expiry alone where rows live equally long."""
    shapes = [(1, 4), (1, 8), (1, 16)] if is_equal else [(2, 2), (3, 3), (4, 4), (5, 5)]
    return tuple(GridLayout(shape, rebuild) for rebuild in (False, True) for shape in shapes)


def chosen(mix: Mix, rows: int, *, is_equal: bool, rebuild: bool | None = None) -> GridLayout:
    """The layout with the least work for a mix; `rebuild` may be settled already.

    >>> print(chosen(Mix(probes=1), 40_000, is_equal=False))
    LAYOUT 2 BY 2 NOREBUILD
    >>> print(chosen(Mix(probes=10), 40_000, is_equal=False))
    LAYOUT 2 BY 2 REBUILD
    >>> print(chosen(Mix(probes=1, updates=10), 400_000, is_equal=False, rebuild=True))
    LAYOUT 5 BY 5 REBUILD
    """
    fitting = [each for each in candidates(is_equal=is_equal) if rebuild in (None, each.rebuild)]
    return min(fitting, key=lambda layout: Work.of(layout, rows, is_equal=is_equal).for_mix(mix))


@dataclass(frozen=True, slots=True)
class SaidOfLayout:
    """What a statement says of the layout of an archive; None: nothing, so that it is chosen."""

    partitions: tuple[int, int] | None = None
    rebuild: bool | None = None
    allocation: str | None = None
    mix: Mix | None = None

    def to_json(self) -> dict[str, Any]:
        """For the manifest."""
        shape = None if self.partitions is None else list(self.partitions)
        return {**asdict(self), "partitions": shape}


@dataclass(frozen=True)
class Laid:
    """How an archive is laid out, and why: for which mix, if one was said, and for how many rows."""

    layout: GridLayout = GridLayout()
    mix: Mix | None = None
    why: str = "the default: nothing is said of how it is laid out or read"
    rows: int = ASSUMED_ROWS

    @classmethod
    def by(cls, said: SaidOfLayout, before: Laid, rows: int | None, *, is_equal: bool) -> Laid:
        """What is said now takes the place of what was said before; a new mix chooses what is not said."""
        old, mix, known = before.layout, said.mix or before.mix, rows or ASSUMED_ROWS
        allocation = said.allocation or old.allocation
        if said.mix is None or said.partitions is not None:
            rebuild = old.rebuild if said.rebuild is None else said.rebuild
            layout = GridLayout(said.partitions or old.partitions, rebuild, allocation)
            return cls(layout, mix, before.why if said == SaidOfLayout() else "as declared", known)
        best = chosen(said.mix, known, is_equal=is_equal, rebuild=said.rebuild)
        best = replace(best, allocation=allocation)
        about = f"{known:,} rows" + (", assumed: its stream says no EXPECT" if rows is None else "")
        return cls(best, mix, f"the least work for {said.mix} and {about}", known)

    def to_json(self) -> dict[str, Any]:
        """For the manifest."""
        mix = None if self.mix is None else asdict(self.mix)
        parts = {**asdict(self.layout), "partitions": list(self.layout.partitions)}
        return {**parts, "mix": mix, "why": self.why, "rows": self.rows}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Laid:
        """What `to_json` wrote; what is not there is as it was before it could be said."""
        mix = None if stored.get("mix") is None else Mix(**stored["mix"])
        known = cls()
        layout = GridLayout(
            (stored["partitions"][0], stored["partitions"][1]),
            stored["rebuild"],
            stored.get("allocation", known.layout.allocation),
        )
        return cls(layout, mix, stored.get("why", "as declared"), stored.get("rows", known.rows))

    def facts(self, *, is_equal: bool) -> list[tuple[str, str]]:
        """For EXPLAIN ARCHIVE: how, why, what an update touches, and what other layouts would come to."""
        touched, count = self.layout.touched(is_equal=is_equal)
        dealt = {"round-robin": "by turns"}.get(self.layout.allocation, self.layout.allocation)
        lives = "all rows live equally long" if is_equal else "rows live for as long as each says"
        found = [
            ("layout", str(self.layout)),
            ("why", self.why),
            ("update", f"touches {touched} of {count} sub-indices, periods dealt out {dealt}; {lives}"),
        ]
        if self.mix is None:
            return found
        work = self._work(self.layout, is_equal=is_equal)
        others = {each: self._work(each, is_equal=is_equal) for each in candidates(is_equal=is_equal)}
        found.append(
            ("work", f"about {work:,.0f} ms per update, with {str(self.mix).removeprefix('EXPECT ')}")
        )
        return found + [
            ("instead", f"{each}: about {took:,.0f} ms")
            for each, took in sorted(others.items(), key=lambda item: item[1])
            if each != replace(self.layout, allocation="round-robin")
        ]

    def _work(self, layout: GridLayout, *, is_equal: bool) -> float:
        assert self.mix is not None
        return Work.of(layout, self.rows, is_equal=is_equal).for_mix(self.mix)
