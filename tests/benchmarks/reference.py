"""The answers of the oracle to a query over batches, in the form in which benchmarks compare them."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.studies.steps import Batch, Standing
from windrow.algebra.plan import Emit
from windrow.kernels.relational.expiry_layouts import Options
from windrow.reference.executor import ReferenceExecutor

Answers = list[tuple[int, str, tuple[object, ...]]]


def by_the_reference(emit: Emit, batches: Sequence[Batch]) -> Answers:
    """What the oracle answers, in order of instants."""
    oracle = ReferenceExecutor(emit)
    for batch in batches:
        for name, frame in batch.rows.items():
            if name in {stream.name for leaf in emit.leaves for stream in leaf.streams}:
                oracle.push(name, frame.rows())
        for leaf in emit.leaves:
            for stream in leaf.streams:
                oracle.punctuate(stream.name, batch.clock)
    return sorted(((c.at, c.op, c.row) for c in oracle.take()), key=repr)


def by_steps(emit: Emit, batches: Sequence[Batch], options: Options | None = None) -> Answers:
    """What the kernels answer, step by step."""
    standing = Standing.of(emit, options)
    found: Answers = []
    for batch in batches:
        _, answers = standing.step(batch)
        values = answers.drop("#at", "#op")
        rows = zip(answers["#at"], answers["#op"], values.rows(), strict=True)
        found += [(at, op, row) for at, op, row in rows]
    return sorted(found, key=repr)
