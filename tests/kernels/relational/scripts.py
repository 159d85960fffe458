"""Random histories as scripts, run step by step on two executors that must say the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st
from tests.kernels.agreement import alike, assert_same
from tests.support.plans import FIRST, HORIZON, LAST, STREAMS, TABLES, rows, worlds

from windrow.algebra.operators import TableJoin
from windrow.algebra.plan import Emit, Window
from windrow.algebra.values import Change
from windrow.errors import DataError
from windrow.reference.executor import ReferenceExecutor
from windrow.reference.rows import World

#: (what to do, with what)
Step = tuple[str, tuple[Any, ...]]


@st.composite
def scripts(draw: st.DrawFn, most: int = 7) -> list[Step]:
    """Micro-batches of all streams, promises, table changes and takes in any order; then the end."""
    streams = st.sampled_from([stream.name for stream in STREAMS])
    instants = st.integers(FIRST, LAST)
    table_rows = st.lists(st.tuples(st.sampled_from([0, 1, 2]), st.integers(0, 3)), max_size=2)
    steps = st.one_of(
        st.tuples(st.just("push"), st.tuples(streams, st.lists(rows, max_size=6))),
        st.tuples(st.just("push"), st.tuples(streams, st.lists(rows, min_size=2, max_size=6))),
        st.tuples(st.just("promise"), st.tuples(streams, instants)),
        st.tuples(st.just("promise both"), st.tuples(instants)),
        st.tuples(
            st.just("update"), st.tuples(st.sampled_from([t.name for t in TABLES]), instants, table_rows)
        ),
        st.tuples(st.just("delete"), st.tuples(st.sampled_from([t.name for t in TABLES]), instants)),
        st.tuples(st.just("take"), st.just(())),
    )
    begun: list[Step] = [("hold", (table.name, FIRST)) for table in TABLES if draw(st.booleans())]
    return [*begun, *draw(st.lists(steps, min_size=3, max_size=most)), ("finish", ()), ("take", ())]


@st.composite
def cuts(draw: st.DrawFn) -> list[Step]:
    """A world in pieces: every promise holds, so that no row is late."""
    world: World = draw(worlds())
    found: list[Step] = []
    for table in TABLES:
        for change in world.tables[table.name]:
            found.append(("change", (table.name, int(change.at), change.insert, change.delete)))
    left = {stream.name: [row.values for row in world.streams[stream.name]] for stream in STREAMS}
    while any(left.values()):
        name = draw(st.sampled_from([name for name in left if left[name]]))
        size = draw(st.integers(1, len(left[name])))
        found.append(("push", (name, left[name][:size])))
        left[name] = left[name][size:]
        if draw(st.booleans()):
            known = min((row[-1] for row in left[name]), default=LAST + 1)
            found += [("promise", (name, known)), ("take", ())]
    return [*found, ("take", ()), ("finish", ()), ("take", ())]


#: what is about one stream or table
_NAMED = frozenset({"push", "promise", "update", "delete", "change", "hold", "own"})


class Run:
    """One executor, driven by a script. `between` is called after every step."""

    def __init__(self, executor: Any, between: Callable[[Any], None] | None = None) -> None:
        self.executor = executor
        self.between = between
        self.tables: dict[str, list[tuple[Any, ...]]] = {table.name: [] for table in TABLES}
        joins = [node.table.table.name for node in executor.emit.walk() if isinstance(node, TableJoin)]
        self.known = {s.name for leaf in _windows(executor.emit) for s in leaf.streams} | set(joins)

    def outcome(self, step: Step) -> Any:
        """What a step gave; the code of its error."""
        try:
            found = self._do(*step)
        except DataError as error:
            return error.code
        if self.between:
            self.between(self.executor)
        return found

    def _do(self, verb: str, values: tuple[Any, ...]) -> Any:
        """What a query does not read is passed over."""
        if verb in _NAMED and values[0] not in self.known:
            return None
        if verb in ("update", "delete"):
            return self._change(verb, *values)
        actions: dict[str, Callable[..., Any]] = {
            "push": self.executor.push,
            "promise": self.executor.punctuate,
            "hold": self.executor.punctuate,
            "own": lambda name, at, source: self.executor.punctuate(name, at, {"k": source}),
            "promise both": self._promise_both,
            "wait": self.executor.advance,
            "change": self.executor.update,
            "finish": self.executor.finish,
            "take": self.executor.take,
        }
        return actions[verb](*values)

    def _promise_both(self, at: int) -> None:
        for stream in STREAMS:
            if stream.name in self.known:
                self.executor.punctuate(stream.name, at)

    def _change(self, verb: str, name: str, at: int, rows: Any = ()) -> None:
        present = self.tables[name]
        gone = present[:1] if verb == "delete" else []
        self.executor.update(name, at, rows, gone)
        self.tables[name] = [*present[len(gone) :], *rows]


def _windows(emit: Emit) -> list[Any]:
    return [node for node in emit.walk() if isinstance(node, Window)]


def assert_agree(
    emit: Emit,
    script: list[Step],
    make: Callable[[Emit], Any],
    between: Callable[[Any], None] | None = None,
    instants: range = range(HORIZON[0], HORIZON[-1], 5),
) -> int:
    """The same outcome of every step, the same relation at some instants; returns the changes compared."""
    oracle, mine = Run(ReferenceExecutor(emit)), Run(make(emit), between)
    compared = 0
    for step in script:
        expected, found = oracle.outcome(step), mine.outcome(step)
        if isinstance(expected, list) and isinstance(found, list):
            assert_same(ordered(found), ordered(expected))
            compared += len(found)
        else:
            assert found == expected, step
    for at in instants:
        assert alike(found_relation(mine.executor, at), found_relation(oracle.executor, at)), at
    for name in {s.name for leaf in _windows(emit) for s in leaf.streams}:
        assert alike(tuple(mine.executor.late(name)), tuple(oracle.executor.late(name)))
    return compared


def ordered(changes: list[Change]) -> list[Change]:
    """-0.0 equals 0.0, so which of the two stands for a row is not said."""
    found = [replace(change, row=_without_sign_of_zero(change.row)) for change in changes]
    return sorted(found, key=lambda change: change.place)


def _without_sign_of_zero(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_without_sign_of_zero, value))
    return 0.0 if isinstance(value, float) and value == 0 else value


def found_relation(executor: Any, at: int) -> Any:
    """The rows of the relation in order, or the code of the error."""
    try:
        rows = executor.relation(at).elements()
    except DataError as error:
        return error.code
    return tuple(change.row for change in ordered([Change("+", row, at) for row in rows]))
