"""How names are spelled in printed SQL: plainly where that is safe, else in backticks.

>>> [quoted(name) for name in ("price", "bid-price", "select", "SUM(a)")]
['price', '`bid-price`', '`select`', '`SUM(a)`']
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from windrow.language.vocabulary import RESERVED

if TYPE_CHECKING:
    from windrow.algebra.plan import Plan

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
#: words that mean something in some places
_SOFT = """
    INNER CROSS NATURAL LEFT RIGHT FULL OUTER SEMI ANTI USING NULLS MINUS FILTER WITH ESCAPE FIRST LAST
    INTERVAL DATE TIMESTAMP CAST TRY_CAST EXTRACT WINDOW ROWS RANGE SLIDE WATTR RATTR SATTR ORIGIN INTERNAL
    WSTREAM ISTREAM DSTREAM RSTREAM ISTREAM_RESTORE RSTREAM_RESTORE BOTH LEADING TRAILING
"""
_DELICATE = RESERVED | frozenset(_SOFT.split())


def quoted(name: str) -> str:
    """A name as it can stand anywhere."""
    if _PLAIN.fullmatch(name) and name.upper() not in _DELICATE:
        return name
    return "`" + name.replace("`", "``") + "`"


@dataclass(frozen=True)
class Names:
    """The spelling of the plan's columns in one SELECT; `qualified` says whether with their alias."""

    known: dict[str, tuple[str, str]] = field(default_factory=dict)
    qualified: bool = False

    def __call__(self, name: str) -> str:
        if name not in self.known:
            return name  # window_start, window_end
        alias, column = self.known[name]
        return f"{quoted(alias)}.{quoted(column)}" if self.qualified else quoted(column)

    def with_aliases(self) -> Names:
        return Names(self.known, qualified=True)

    def inside(self, other: Names) -> Names:
        """The names of a nested EXISTS: its own, and those around it."""
        return Names(self.known | other.known, qualified=True)


def columns_under(plan: Plan, alias: str) -> dict[str, tuple[str, str]]:
    """The columns of a plan that are called `alias.column`."""
    return {name: (alias, name.removeprefix(alias + ".")) for name in plan.schema.names}
