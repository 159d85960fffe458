"""What a state is of: the identity of every operator that keeps one, and a plan as a manifest records it.

An identity says the durable name of an operator with its number, what it is made of, its keys, types, window
and layout; it is hashed. Reasons, costs and what is shared are recorded beside it, not hashed. A query that
comes back is planned as it was recorded, whatever the planner would choose by now; if its operators are no
longer the same, its state is refused by name, and never read for something else.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any
from zlib import compress, decompress

from windrow.algebra import Emit, Stream, Table
from windrow.algebra.canonical import FORMAT, canonical_form, canonical_text, digest_of, own_form, plan_of
from windrow.algebra.explain import Alternative
from windrow.errors import QueryError, StateError
from windrow.kernels.aggregates.measures import Measures
from windrow.kernels.panes.program import Level
from windrow.kernels.relational.implementations import kind_of, parts_of, placed
from windrow.kernels.relational.operator import Stateless
from windrow.kernels.relational.windows.leaf import NestedRows, Scanned
from windrow.physical import planner, units

#: the place of what is true of all operators of a query
WHOLE = ""
_GENERAL, _PANES, _UNION = "rows.1", "panes.1", "branches.1"


@dataclass(frozen=True)
class RecordedPlan:
    """A physical plan in a manifest."""

    #: canonical text of the form that runs
    text: str
    #: of each operator that keeps a state, by its place: its durable name, and the hash of its identity
    operators: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    fired: tuple[str, ...] = ()
    considered: tuple[Alternative, ...] = ()
    #: since when it is in the place of another plan, and why
    changed: str = ""
    #: what the query has in common with others
    sharing: planner.Sharing = field(default_factory=planner.Sharing)
    #: where shedding drops its rows; empty if it never does
    drops: str = ""
    format: int = FORMAT

    @classmethod
    def of(cls, plan: planner.PhysicalPlan, unit: units.Unit) -> RecordedPlan:
        """A plan, as it runs in this unit."""
        text = canonical_text(plan.emit)
        return cls(
            text, identities(unit), plan.fired, plan.considered, plan.changed, plan.sharing, plan.drops
        )

    @cached_property
    def json(self) -> Mapping[str, Any]:
        """For the manifest. Each commit of a query has it."""
        return {
            "format": self.format,
            "text": _packed(self.text),
            "operators": {place: list(each) for place, each in self.operators.items()},
            "fired": list(self.fired),
            "considered": [[each.name, each.cost, each.chosen] for each in self.considered],
            **({"changed": self.changed} if self.changed else {}),
            **({"sharing": known} if (known := self.sharing.to_json()) else {}),
            **({"drops": self.drops} if self.drops else {}),
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> RecordedPlan:
        """What `json` is."""
        return cls(
            _unpacked(stored["text"]),
            {place: (kind, digest) for place, (kind, digest) in stored["operators"].items()},
            tuple(stored["fired"]),
            tuple(Alternative(name, cost, chosen) for name, cost, chosen in stored["considered"]),
            stored.get("changed", ""),
            planner.Sharing.from_json(stored.get("sharing", {})),
            stored.get("drops", ""),
            stored["format"],
        )

    def resumed(
        self,
        name: str,
        asked: Emit,
        streams: Mapping[str, Stream],
        tables: Mapping[str, Table],
        by_group: bool | None,
    ) -> planner.PhysicalPlan:
        """The plan as it was recorded, whatever would be chosen now."""
        if self.format != FORMAT:
            raise changed(name, f"its plan is recorded in format {self.format}, and this is format {FORMAT}")
        emit = plan_of(self.text, streams, tables)
        plan = planner.PhysicalPlan(
            asked,
            emit,
            self.fired,
            self.considered,
            changed=self.changed,
            by_group=by_group,
            sharing=self.sharing,
        )
        try:
            assert plan.unit is not None
        except QueryError as error:
            raise changed(name, f"no kernel runs it ({error.message})") from error
        return plan

    def check(self, name: str, unit: units.Unit) -> None:
        """Refuse a state whose operators are not those that would read it."""
        now = identities(unit)
        for place, (kind, digest) in self.operators.items():
            if place not in now:
                raise changed(name, f"its operator `{kind}` at {place} is there no more")
            other, mine = now[place]
            if other != kind:
                raise changed(name, f"its operator at {place or 'the top'} was `{kind}`, and is `{other}`")
            if mine != digest:
                raise changed(name, f"its operator `{kind}` at {place or 'the top'} keeps something else now")
        for place, (kind, _) in now.items():
            if place not in self.operators:
                raise changed(name, f"its operator `{kind}` at {place} was not there")


@lru_cache(maxsize=4096)
def _packed(text: str) -> str:
    """A text as a manifest has it: every commit names every plan, and this is a fifth of it.

    >>> _unpacked(_packed("plan " * 100)) == "plan " * 100, len(_packed("plan " * 100)) < 50
    (True, True)
    """
    return b64encode(compress(text.encode(), 9)).decode()


def _unpacked(stored: str) -> str:
    return decompress(b64decode(stored)).decode()


def identities(unit: units.Unit) -> dict[str, tuple[str, str]]:
    """The durable name and the hash of each operator of a unit that keeps a state, and of the whole."""
    if isinstance(unit, units.UnionUnit):
        return {
            f"{number}:{place}": each
            for number, branch in enumerate(unit.branches)
            for place, each in identities(branch).items()
        } | {WHOLE: (_UNION, digest_of(_text(_routed(unit))))}
    return _of_rows(unit) if isinstance(unit, units.GeneralUnit) else _of_panes(unit)


def _routed(unit: units.GeneralUnit) -> dict[str, Any]:
    """By which columns rows and tables are kept apart."""
    return {
        "routed": sorted([name, *columns] for name, columns in unit.placement.items()),
        "tables": sorted([name, column or ""] for name, column in unit.table_places.items()),
    }


def _of_rows(unit: units.GeneralUnit) -> dict[str, tuple[str, str]]:
    program = unit.program
    nodes = {place: node for _, node, place, _ in placed(program) if place is not None}
    whole = {
        **_routed(unit),
        "by source": sorted([name, *columns] for name, columns in program.builder.sources.items()),
        "waits": program.why_not_lazy is None,
    }
    found = {WHOLE: (_GENERAL, digest_of(_text(whole)))}
    for place, operator in program.operators():
        if isinstance(operator, Stateless | Scanned | NestedRows):
            continue
        kind, node = kind_of(operator), nodes.get(place)
        measures = getattr(operator, "measures", None)
        found[place] = (
            kind,
            digest_of(
                [
                    kind,
                    parts_of(operator),
                    None if node is None else _text(own_form(node)),
                    [] if measures is None else _columns(measures),
                ]
            ),
        )
    return found


def _of_panes(unit: units.SlidingUnit) -> dict[str, tuple[str, str]]:
    program = unit.program
    found = {WHOLE: (_PANES, digest_of([bool(program.by_group), len(program.levels)]))}
    for number, level in enumerate(program.levels):
        found[str(number)] = kind_of(level.kernel), digest_of(_level(level))
    return found


def _level(level: Level) -> list[Any]:
    cut, query = level.query.cut, level.query
    return [
        kind_of(level.kernel),
        _text(own_form(query.aggregate)),
        canonical_form(query.window.spec)["is"],
        [cut.range, cut.slide, cut.origin, cut.start, cut.until],
        _columns(level.answers.measures),
    ]


def _columns(measures: Measures) -> list[Any]:
    """The tables of states, each with its keys and the lanes of its states."""
    return [
        [name, list(layout.keys), [[part.label, len(part.combiners)] for part in layout.partials]]
        for name, layout in measures.layouts.items()
    ]


def _text(form: Any) -> str:
    return json.dumps(form, sort_keys=True)


def changed(query: str, why: str) -> StateError:
    """A state that is of another plan."""
    return StateError(
        f"the state of query `{query}` is of another plan than this version of Windrow runs: {why}",
        code="plan-changed",
        hint=f"go on with the version that wrote it; or DROP QUERY {query} and create it again, which begins"
        " with the rows that come then",
    )
