"""The synopses that a commit has of a stream: what standing queries share, found by who asks once.

A manifest says which synopses each query uses, in the order of its needs; and of each synopsis in which
ledger it is, how its intervals are cut, how many of them are kept and since when it has all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias

from windrow.engine.sharing.shared_state import Kept
from windrow.kernels.aggregates.partials import Partial
from windrow.kernels.shared.shared_state import Entry

if TYPE_CHECKING:
    from windrow.algebra.expressions import Expression
    from windrow.sharing.data import Datum
    from windrow.sharing.predicates.terms import Predicate
    from windrow.sharing.questions import Need, Question
    from windrow.state.manifest import Manifest

#: what a standing query asks of its stream, by the query's id; None if it shares nothing
Standing: TypeAlias = Callable[[str], "Question | None"]


@dataclass(frozen=True)
class Synopsis:
    """A synopsis as a commit has it, and what it is of."""

    label: str
    kept: Kept
    need: Need

    @property
    def entry(self) -> Entry:
        """Its columns in the tables of its ledger."""
        datum = self.need.datum
        assert isinstance(datum.shape, Partial)
        shape = replace(datum.shape, label=self.label)
        return Entry(shape, datum.args, self.need.predicate.expression, datum.order)


@dataclass
class Shelf:
    """The synopses of one ledger, found by what they are of."""

    ledger: str
    keys: tuple[Expression, ...]
    #: one of the queries that use it, for people
    query: str
    #: up to which commit it has taken delta files in
    absorbed: int
    _found: dict[tuple[Datum, Predicate], dict[str, Synopsis]] = field(default_factory=dict)

    def put(self, synopsis: Synopsis) -> None:
        """One more."""
        need = synopsis.need
        self._found.setdefault((need.datum, need.predicate), {})[synopsis.label] = synopsis

    def of(self, datum: Datum, predicate: Predicate) -> list[Synopsis]:
        """All that have a datum of the rows that satisfy a condition, those of long intervals first."""
        found = self._found.get((datum, predicate), {}).values()
        return sorted(found, key=lambda each: -each.kept.grid.width)


def shelves_of(manifest: Manifest, stream: str, standing: Standing) -> list[Shelf]:
    """The ledgers of a stream, as a commit has them; those of few keys first."""
    stored = manifest.decisions.get("synopses", {})
    kept = {label: Kept.from_json(each) for label, each in stored.get("kept", {}).items()}
    shelves: dict[str, Shelf] = {}
    for name, question, shares in _sharing(manifest, stream, standing):
        for need, label in zip(question.needs, shares, strict=True):
            if label not in kept:
                continue
            ledger = kept[label].ledger
            if ledger not in shelves:
                shelves[ledger] = Shelf(ledger, question.keys, name, stored["ledgers"].get(ledger, -1))
            shelves[ledger].put(Synopsis(label, kept[label], need))
    return sorted(shelves.values(), key=lambda shelf: len(shelf.keys))


def _sharing(
    manifest: Manifest, stream: str, standing: Standing
) -> Iterator[tuple[str, Question, tuple[str, ...]]]:
    for name, state in manifest.queries.items():
        shares = tuple(state.options.get("shares", ()))
        question = standing(state.options["id"]) if shares and state.status == "running" else None
        if question is not None and _stream_of(question) == stream and len(question.needs) == len(shares):
            yield name, question, shares


def _stream_of(question: Question) -> str:
    (stream,) = question.emit.leaves[0].streams
    return stream.name
