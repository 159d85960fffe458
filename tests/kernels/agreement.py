"""How two executors are compared: step by step, take by take."""

from __future__ import annotations

import math
from typing import Any

from tests.kernels.queries import Step

from windrow.algebra.plan import Emit
from windrow.algebra.values import Change
from windrow.errors import DataError
from windrow.kernels.executor import KernelExecutor
from windrow.reference.executor import ReferenceExecutor

#: the changes of a take; None for a DataError
Outcome = list[Change] | None


def run(executor: Any, steps: list[Step]) -> list[Outcome]:
    """What each take gave."""
    outcomes: list[Outcome] = []
    for verb, value in steps:
        if verb == "push":
            executor.push("s", value)
        elif verb == "promise":
            executor.punctuate("s", value)
        elif verb == "own":
            executor.punctuate("s", value[0], {"k": value[1]})
        elif verb == "wait":
            executor.advance(value)
        elif verb == "finish":
            executor.finish()
        else:
            outcomes.append(_taken(executor))
    return outcomes


def _taken(executor: Any) -> Outcome:
    try:
        taken: list[Change] = executor.take()
        return taken
    except DataError:
        return None


def assert_agree(emit: Emit, steps: list[Step], *, persisted: bool | None) -> int:
    """The kernels' answers are the oracle's; returns how many changes were compared.

    An error of a row's expression may be told earlier: kernels compute rows when they come, the oracle when
    a window that holds them is final.
    """
    oracle, executor = ReferenceExecutor(emit), _executor(emit, steps, persisted)
    expected, found = run(oracle, steps), run(executor, steps)
    compared = 0
    for mine, theirs in zip(found, expected, strict=True):
        if mine is None:
            assert expected[-1] is None, "only the kernels found an error"
            break
        assert theirs is not None, "only the oracle found an error"
        assert_same(mine, theirs)
        compared += len(mine)
    assert alike(tuple(executor.late("s")), tuple(oracle.late("s")))
    return compared


def _executor(emit: Emit, steps: list[Step], persisted: bool | None) -> KernelExecutor:
    """Stacks have one clock: where promises about single groups come from outside, others are used."""
    by_group = any(verb == "own" for verb, _ in steps)
    return KernelExecutor(emit, stacked=persisted, by_group=by_group)


def assert_same(mine: list[Change], theirs: list[Change]) -> None:
    """Equal changes, doubles to 1e-9."""
    assert [(c.op, c.at) for c in mine] == [(c.op, c.at) for c in theirs], (mine, theirs)
    for one, other in zip(mine, theirs, strict=True):
        assert alike(one.row, other.row), (one, other)


def alike(a: Any, b: Any) -> bool:
    """Equal values of equal types; NaN equals NaN."""
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(alike, a, b))
    if isinstance(a, float) and isinstance(b, float):
        if math.isnan(a) or math.isnan(b):
            return math.isnan(a) and math.isnan(b)
        return a == b or math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9)
    return type(a) is type(b) and bool(a == b)
