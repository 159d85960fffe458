"""What a query has in common with others, as its physical plan records it: what, and by which rules.

It is decided for all registered queries together (`windrow.engine.sharing.arrangement`). A state depends on
it no more than on a cost: it is recorded, and not part of what operators are recognised by.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Shared:
    """Something that a query has in common with so many others, and the rules that allow it."""

    what: str
    others: int
    rules: tuple[str, ...] = ()

    def __str__(self) -> str:
        """In a few words.

        >>> str(Shared("⋈", 2)), str(Shared("states of ⋈", 1, ("SS3", "CS4")))
        ('⋈ with 2', 'states of ⋈ with 1 by SS3, CS4')
        """
        return f"{self.what} with {self.others:,}" + self._by

    @property
    def _by(self) -> str:
        return f" by {', '.join(self.rules)}" if self.rules else ""

    @property
    def of_synopsis(self) -> str:
        """A synopsis, as a sentence."""
        if not self.others:
            return f"keeps synopsis {self.what} for itself" + (f",{self._by}" if self.rules else "")
        return f"shares synopsis {self.what} with {_counted(self.others)}{self._by}"

    @property
    def of_part(self) -> str:
        """A part of a plan, as a sentence."""
        if self.rules:
            return f"shares {self.what} with {_counted(self.others)}{self._by}"
        others = _counted(self.others, "other ")
        if self.what == "rows":
            return f"its rows are filed once, for it and {others} with the same windows"
        return f"runs {self.what} once, for it and {others}: the same part of their plans"


@dataclass(frozen=True)
class Sharing:
    """All that a query has in common with others."""

    #: the synopses that it is answered from, one by one
    synopses: tuple[Shared, ...] = ()
    #: how many queries are answered from those of its stream and grouping, with itself
    queries: int = 0
    #: whether values are counted there
    counts_values: bool = False
    #: the parts of its plan that run once for others too
    parts: tuple[Shared, ...] = ()
    #: why it keeps a state of its own, if it has nothing in common with others
    alone: str = ""

    @property
    def lines(self) -> list[str]:
        """For EXPLAIN."""
        found = [*(each.of_synopsis for each in self.synopses), *(each.of_part for each in self.parts)]
        return found or ([f"keeps a state of its own: {self.alone}"] if self.alone else [])

    @property
    def close(self) -> str:
        """How a query is answered from synopses."""
        found = f"matrices of intervals and groups, made once for {_counted(self.queries)}"
        found += " of this stream and grouping"
        more = "; values are counted once for all of them, with a sum for each length of windows"
        return found + (more if self.counts_values else "")

    @property
    def others(self) -> int:
        """With how many other queries it has something in common, at most."""
        return max((each.others for each in (*self.synopses, *self.parts)), default=0)

    @property
    def brief(self) -> str | None:
        """In a few words, for SHOW QUERIES; None if a query is alone.

        >>> Sharing((Shared("p1", 2, ("SS1",)), Shared("p2", 2, ("SS1",)), Shared("p3", 0)), 3).brief
        'p1, p2 with 2 by SS1; p3'
        """
        alike: dict[tuple[int, tuple[str, ...]], list[str]] = {}
        for each in self.synopses:
            alike.setdefault((each.others, each.rules), []).append(each.what)
        together = [Shared(", ".join(names), *known) for known, names in alike.items()]
        found = [str(each) if each.others else each.what for each in together]
        return "; ".join([*found, *map(str, self.parts)]) or None

    def to_json(self) -> dict[str, Any]:
        """For the manifest."""
        return {
            **({"synopses": list(map(_written, self.synopses))} if self.synopses else {}),
            **({"queries": self.queries} if self.queries else {}),
            **({"counts_values": True} if self.counts_values else {}),
            **({"parts": list(map(_written, self.parts))} if self.parts else {}),
            **({"alone": self.alone} if self.alone else {}),
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Sharing:
        """What `to_json` wrote."""
        lists = {name: tuple(map(_read, stored.get(name, ()))) for name in ("synopses", "parts")}
        return cls(**{**stored, **lists})


def _written(shared: Shared) -> list[Any]:
    return [shared.what, shared.others, list(shared.rules)]


def _read(stored: list[Any]) -> Shared:
    what, others, rules = stored
    return Shared(what, others, tuple(rules))


def _counted(queries: int, which: str = "") -> str:
    return f"1 {which}query" if queries == 1 else f"{queries:,} {which}queries"
