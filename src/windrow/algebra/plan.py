"""Plans: immutable trees of operators over windows of streams.

A leaf is a window over a stream, or over the output stream of a nested query; every operator above
it (`windrow.algebra.operators`) works on multisets of rows; `Emit` at the root turns the changing
relation back into a stream. Schemas and update patterns are derived, never stored. Columns of a scan
are named `alias.column`, so that names stay unique through joins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from enum import Enum
from functools import cached_property
from typing import Any, Self

from windrow.algebra import checks
from windrow.algebra.catalog import PSEUDO_COLUMNS, Late, Stream, Table
from windrow.algebra.expressions import Field, Schema
from windrow.windows import Domain, Label, WindowSpec, patterns
from windrow.windows.session import SessionWindow


class StreamWord(Enum):
    """How a relation becomes a stream; AUTO is what no word means."""

    AUTO = ""
    ISTREAM = "ISTREAM"
    DSTREAM = "DSTREAM"
    RSTREAM = "RSTREAM"
    ISTREAM_RESTORE = "ISTREAM_RESTORE"
    RSTREAM_RESTORE = "RSTREAM_RESTORE"

    @property
    def restores(self) -> bool:
        return self in (StreamWord.ISTREAM_RESTORE, StreamWord.RSTREAM_RESTORE)


@dataclass(frozen=True)
class Plan:
    """The root of all plan nodes."""

    @cached_property
    def schema(self) -> Schema:
        """The columns of the rows this node gives: by default those of its first input."""
        return self.children[0].schema

    @property
    def label(self) -> Label:
        """How those rows expire: what only looks at rows leaves that alone (rule 1)."""
        return self.children[0].label

    @property
    def has_wattr(self) -> bool:
        """Whether each row still has a place in its streams' order: the greatest WATTR it is made of."""
        return all(child.has_wattr for child in self.children)

    @property
    def children(self) -> tuple[Plan, ...]:
        found: list[Plan] = []
        for part in fields(self):
            value = getattr(self, part.name)
            found += [value] if isinstance(value, Plan) else []
            found += [item for item in value if isinstance(item, Plan)] if isinstance(value, tuple) else []
        return tuple(found)

    def with_children(self, children: tuple[Plan, ...]) -> Self:
        """The same node over other children, in the order of `children`."""
        left = list(children)
        changed: dict[str, Any] = {}
        for part in fields(self):
            value = getattr(self, part.name)
            if isinstance(value, Plan):
                changed[part.name] = left.pop(0)
            elif isinstance(value, tuple) and value and isinstance(value[0], Plan):
                changed[part.name] = tuple(left.pop(0) for _ in value)
        return replace(self, **changed)

    def walk(self, until: tuple[type[Plan], ...] = ()) -> Iterator[Plan]:
        """This node and all below it, parents first; with nested queries, or `until` some kinds of nodes."""
        yield self
        for child in () if isinstance(self, until) else self.children:
            yield from child.walk(until)

    @property
    def own_nodes(self) -> Iterator[Plan]:
        """The nodes of this query, down to its windows."""
        return self.walk((Window,))

    def rewrite(self, change: Callable[[Plan], Plan]) -> Plan:
        """The tree with `change` applied to every node, children first; nested queries included."""
        children = tuple(child.rewrite(change) for child in self.children)
        return change(self if children == self.children else self.with_children(children))

    @cached_property
    def leaves(self) -> tuple[Window, ...]:
        """The windows of this query, from left to right; those inside nested queries are not its own."""
        if isinstance(self, Window):
            return (self,)
        return tuple(leaf for child in self.children for leaf in child.leaves)

    @property
    def is_periodic(self) -> bool:
        """Whether every window has a SLIDE, so that the answer is reported per extent."""
        return all(leaf.spec.is_periodic for leaf in self.leaves)

    @property
    def is_stream(self) -> bool:
        """Whether this node gives a stream, to be windowed, rather than a relation."""
        return False

    @property
    def aggregates_rows(self) -> bool:
        """Whether this node is a γ."""
        return False

    @property
    def reads_as_of_rows(self) -> bool:
        """Whether each row was joined with an NRR table as of its own WATTR."""
        return self.has_wattr and any(child.reads_as_of_rows for child in self.children)

    @property
    def retracts_results(self) -> bool:
        """Whether this node takes results back for reasons other than expiry."""
        return False

    @property
    def reads_window_bounds(self) -> bool:
        """Whether `window_start` or `window_end` is read in this query."""
        return any(child.reads_window_bounds for child in self.children)

    @property
    def is_internal(self) -> bool:
        """Whether any window is INTERNAL: results then outlive it."""
        return any(leaf.spec.internal for leaf in self.leaves)


@dataclass(frozen=True)
class Scan(Plan):
    """A stream under an alias; `pseudo` lists which of row_num and arrival_ts the query reads."""

    stream: Stream
    alias: str
    pseudo: tuple[str, ...] = ()

    label = patterns.APPEND_ONLY
    is_stream = True

    @cached_property
    def schema(self) -> Schema:
        extra = tuple(Field(name, PSEUDO_COLUMNS[name]) for name in self.pseudo)
        return Schema(self.stream.schema.fields + extra).prefixed(self.alias)


@dataclass(frozen=True)
class Subquery(Plan):
    """The output stream of a nested query, to be windowed again."""

    query: Emit
    alias: str

    def __post_init__(self) -> None:
        checks.inner_query_is_append_only(self)

    label = patterns.APPEND_ONLY
    is_stream = True

    @cached_property
    def schema(self) -> Schema:
        return self.query.schema.prefixed(self.alias)


@dataclass(frozen=True)
class Window(Plan):
    """Stream to relation: the leaf of every plan. Each row is valid in an interval of instants.

    Below it are streams: a scan or the output of a nested query, and stateless operators on them.
    """

    input: Plan
    spec: WindowSpec

    def __post_init__(self) -> None:
        checks.window_fits_its_stream(self)

    @cached_property
    def label(self) -> Label:
        return patterns.of_window(self.spec.label, self.keeps_late_rows)

    has_wattr = True
    reads_window_bounds = False
    reads_as_of_rows = False

    @cached_property
    def origins(self) -> tuple[Scan | Subquery, ...]:
        """The scans and nested queries whose rows enter this window."""
        kinds = Scan, Subquery
        return tuple(node for node in self.input.walk(kinds) if isinstance(node, kinds))

    @property
    def streams(self) -> tuple[Stream, ...]:
        """The declared streams among them."""
        return tuple(origin.stream for origin in self.origins if isinstance(origin, Scan))

    @property
    def domain(self) -> Domain:
        """The domain of the instants at which rows come and go."""
        origin = self.origins[0]
        if isinstance(origin, Subquery):
            return origin.query.leaves[0].domain
        return origin.stream.attributes[self.attribute_of(origin)]

    def attribute_of(self, scan: Scan) -> str:
        """The attribute of a scanned stream that this window is on."""
        return self.spec.wattr or scan.stream.wattr

    @property
    def instants(self) -> str:
        """The column of a scanned stream that says when a row begins."""
        origin = self.origins[0]
        assert isinstance(origin, Scan)
        return f"{origin.alias}.{self.attribute_of(origin)}"

    @property
    def keeps_late_rows(self) -> bool:
        return any(stream.late is Late.KEEP for stream in self.streams)


@dataclass(frozen=True)
class TableScan(Plan):
    """A table under an alias: the right side of a join with a table."""

    table: Table
    alias: str

    @cached_property
    def schema(self) -> Schema:
        return self.table.schema.prefixed(self.alias)

    label = patterns.strict("rows leave when the table changes")


@dataclass(frozen=True)
class Emit(Plan):
    """Relation to stream: the root of every query."""

    input: Plan
    word: StreamWord = StreamWord.AUTO

    def __post_init__(self) -> None:
        checks.emission_is_defined(self)

    @cached_property
    def label(self) -> Label:
        if self.is_internal and not self.is_union:
            return _internal_label(self.input)
        return self.input.label

    @property
    def is_union(self) -> bool:
        """Whether it is the union of the streams of several queries."""
        return isinstance(self.input, StreamUnion)

    @property
    def branches(self) -> tuple[Emit, ...]:
        """The queries whose streams are united here; the query itself, if it is one by itself."""
        return self.input.inputs if isinstance(self.input, StreamUnion) else (self,)

    @property
    def meaning(self) -> StreamWord:
        """The word that AUTO stands for here; AUTO stays where '+' and '-' rows are told apart.

        Of a union of streams it is that of all branches; if they differ, all that can be said is that rows
        come and stay.
        """
        if self.is_union:
            words = {branch.meaning for branch in self.branches}
            return words.pop() if len(words) == 1 else StreamWord.ISTREAM
        if self.word is not StreamWord.AUTO:
            return self.word
        if self.label.pattern is patterns.Pattern.MON and (self.is_internal or not self.is_periodic):
            return StreamWord.ISTREAM
        return StreamWord.RSTREAM if self.reports_extents else StreamWord.AUTO

    @property
    def restores_by_value(self) -> bool:
        """Whether RESTORE tells results apart by their values alone: those of γ, δ and −, and those that
        negative rows take back, are not of certain rows."""
        return not self.input.has_wattr or self.input.label.pattern is patterns.Pattern.STR

    @property
    def reports_extents(self) -> bool:
        """Whether each extent (or ended session) is reported, instead of each change."""
        return self.is_periodic or self.reports_sessions

    @property
    def reports_sessions(self) -> bool:
        """Aggregates over one session window are reported once, when the session has ended."""
        if self.word not in (StreamWord.AUTO, StreamWord.RSTREAM) or len(self.leaves) != 1:
            return False
        return isinstance(self.leaves[0].spec, SessionWindow) and any(
            node.aggregates_rows for node in self.input.own_nodes
        )

    @property
    def is_by_extent(self) -> bool:
        """Whether each answer is about a whole window of time: the last one is all that holds now."""
        one_by_one = all(leaf.spec.grid is not None for leaf in self.leaves) and not self.is_union
        return self.meaning is StreamWord.RSTREAM and one_by_one

    @property
    def emits_deletions(self) -> bool:
        """Whether '-' rows can occur."""
        return self.meaning is StreamWord.AUTO


@dataclass(frozen=True)
class StreamUnion(Plan):
    """UNION ALL of streams, under the `Emit` of a whole query: each branch has its own clock, reporting
    instants and last report, and equal rows of two branches have nothing to do with each other."""

    inputs: tuple[Emit, ...]

    def __post_init__(self) -> None:
        checks.has_inputs(self.inputs, 2, "UNION ALL")
        checks.same_columns(self.inputs, "UNION ALL")
        checks.branches_only_add(self.inputs)

    @cached_property
    def label(self) -> Label:
        return patterns.merged([branch.label for branch in self.inputs])


def _internal_label(plan: Plan) -> Label:
    if any(node.retracts_results for node in plan.own_nodes):
        return plan.label
    external = [part.label for part in _external_parts(plan)]
    if all(label.pattern is patterns.Pattern.MON for label in external):
        return Label(patterns.Pattern.MON, "all windows are INTERNAL: results outlive them")
    if any(node.aggregates_rows for node in plan.own_nodes):
        return patterns.AGGREGATED
    return patterns.interfering(external, "external windows")


def _external_parts(plan: Plan) -> Iterator[Plan]:
    """The largest parts of a plan over external windows only."""
    if not plan.is_internal:
        yield from (plan,) if plan.leaves else ()
        return
    for child in () if isinstance(plan, Window) else plan.children:
        yield from _external_parts(child)
