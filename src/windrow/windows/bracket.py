"""A window as written in brackets: its words, and the stream they stand on.

`WindowClause` holds the words and nothing else; `ClauseScope` looks up what they name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from windrow.errors import QueryError, nearest
from windrow.windows.domain import ROW_NUM, Domain
from windrow.windows.units import Quantity


@dataclass(frozen=True)
class WindowClause:
    """The written parts of a bracket. `range` is also the number of ROWS, the gap of SESSION and the size of
    CUMULATE."""

    kind: str
    range: Quantity | None = None
    slide: Quantity | None = None
    #: RANGE: how long ago the window ended
    lag: Quantity | None = None
    wattr: str | None = None
    rattr: str | None = None
    sattr: str | None = None
    #: SATTR rank(sattr)
    sattr_rank: bool = False
    partition_by: tuple[str, ...] = ()
    #: points as written; once it is resolved, instants
    origin: Any = None
    start: Any = None
    until: Any = None
    lifetime: object | None = None
    #: ticks per unit of the LIFETIME expression
    lifetime_scale: int = 1
    #: RANGE: by whose clocks days, weeks, months and years are
    zone: str | None = None
    #: SESSION: rows exactly the gap apart belong together
    inclusive: bool = False
    internal: bool = False


#: what each part is called in the text; `range` under the name of its kind
WORDS = {
    "range": "RANGE",
    "slide": "SLIDE",
    "lag": "LAG",
    "rattr": "RATTR",
    "sattr": "SATTR",
    "partition_by": "PARTITION BY",
    "origin": "ORIGIN",
    "start": "FROM",
    "until": "UNTIL",
    "lifetime": "LIFETIME",
    "inclusive": "INCLUSIVE",
    "zone": "ZONE",
}
#: the parts each kind understands; WATTR and INTERNAL are looked at by all
PARTS = {
    "RANGE": {"range", "slide", "lag", "rattr", "sattr", "partition_by", "origin", "zone"},
    "ROWS": {"range", "slide", "partition_by", "origin"},
    "LANDMARK": {"slide", "origin", "start", "until"},
    "UNBOUNDED": set(),
    "NOW": set(),
    "LIFETIME": {"lifetime"},
    "SESSION": {"range", "partition_by", "inclusive"},
    "CUMULATE": {"range", "slide", "origin"},
}
_INSTEAD = {
    ("LIFETIME", "slide"): "each row says how long it lives, so there is no extent to slide",
    ("UNBOUNDED", "slide"): "write [LANDMARK SLIDE ...] for all rows so far, reported periodically",
    ("NOW", "slide"): "write [RANGE s SLIDE s] for the rows since the last report",
    ("SESSION", "slide"): "a session is reported when it ends",
    ("ROWS", "rattr"): "ROWS counts rows; write WATTR for the attribute that orders them",
    ("ROWS", "sattr"): "write SLIDE n ROWS; SATTR is for RANGE windows that slide by rows",
}


def refuse_strange_parts(clause: WindowClause) -> None:
    for part, word in WORDS.items():
        if part in PARTS[clause.kind] or getattr(clause, part) in (None, (), False):
            continue
        known = ", ".join(WORDS[p] for p in WORDS if p in PARTS[clause.kind] - {"range", "lifetime"})
        hint = _INSTEAD.get((clause.kind, part), f"{clause.kind} takes {known or 'no further parts'}")
        if part == "lag":
            hint = "LAG is for RANGE windows, as in [RANGE 5 MINUTES LAG 1 HOUR]"
        raise QueryError(f"a {clause.kind} window takes no {word}", code="window-part", hint=hint)


@dataclass(frozen=True)
class ClauseScope:
    """A clause with the stream it stands on."""

    clause: WindowClause
    attributes: Mapping[str, Domain]
    own: str

    @property
    def attribute(self) -> str:
        """The attribute the window is over."""
        return self.named(self.clause.wattr or self.own)

    @property
    def common(self) -> dict[str, Any]:
        return {"wattr": self.foreign(self.attribute), "internal": self.clause.internal}

    def foreign(self, name: str) -> str | None:
        return None if name == self.named(self.own) else name

    def named(self, name: str) -> str:
        if name in self.attributes:
            return name
        folded = {known.lower(): known for known in self.attributes}
        if name.lower() in folded:
            return folded[name.lower()]
        raise QueryError(
            f"no attribute `{name}` to window on",
            code="window-attribute",
            hint=nearest(name, self.attributes),
        )

    def size(self, part: str) -> Quantity:
        if self.clause.range is None:
            raise QueryError(f"{part} needs a size", code="window-size", hint=f"write it after {part}")
        return self.clause.range

    def ticks(self, quantity: Quantity, attribute: str) -> int:
        domain = self.attributes[attribute]
        times = [name for name in (self.own,) if self.attributes.get(name) is Domain.TIME]
        if (
            quantity.is_duration
            and domain is not Domain.TIME
            and times
            and attribute not in (ROW_NUM, *times)
        ):
            raise QueryError(
                f"{quantity} does not measure `{attribute}`, which is a number",
                code="window-unit",
                hint=f"window by the time, `{times[0]}`, or write a bare number of `{attribute}`",
            )
        return quantity.ticks(domain)

    def period(self, attribute: str) -> int | None:
        """The SLIDE as ticks of the attribute. ORIGIN is its phase and has no meaning without it."""
        if self.clause.slide is None:
            self.refuse_origin("there is no SLIDE")
            return None
        return self.ticks(self.clause.slide, attribute)

    def refuse_origin(self, reason: str) -> None:
        if self.clause.origin is not None:
            raise QueryError(
                f"ORIGIN is the phase of slides along an attribute, and {reason}",
                code="window-origin",
                hint="leave ORIGIN out; to begin at an instant use LANDMARK FROM",
            )
