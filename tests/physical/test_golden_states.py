"""States that were written once are read for ever: each family of operators has a golden directory."""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from tools.golden_states import FAMILIES, FOLDER, TABLE_ROWS, Life, recorded, rows_of
from windrow.algebra.plan import Emit, Scan, TableScan
from windrow.engine.sharing import shared_state as common
from windrow.errors import StateError
from windrow.kernels.aggregates.partials import Extreme
from windrow.kernels.relational.implementations import KERNELS, OPERATORS
from windrow.kernels.relational.operator import Stateless
from windrow.kernels.relational.windows.leaf import NestedRows, Scanned
from windrow.physical.planner import SHARED
from windrow.reference.executor import ReferenceExecutor
from windrow.sharing import questions
from windrow.sharing.questions import Need, QueryNeeds
from windrow.state.log import CommitLog
from windrow.state.manifest import FORMAT, Manifest
from windrow.state.names import COMMITS
from windrow.state.store import LocalStore
from windrow.testing.harness import UnionExecutor

#: states of these are kept by the operator that they are in
INSIDE = {
    "semi-join.1",
    "outliving-witnessed.1",
    "outliving-unmatched.1",
    "outliving-valued.1",
    "runs-of-window.1",
    "runs-of-table.1",
    "runs-of-values.1",
    "runs-of-groups.1",
}
#: only studies of the papers ask for these
NOT_PLANNED = {"held-results.1", "negative-rows.1"}
OLD = FOLDER / "older"


def unpacked(file: Path, folder: Path) -> Path:
    with ZipFile(file) as packed:
        packed.extractall(folder)
    return folder


def last_commit(folder: Path) -> Manifest:
    (name,) = LocalStore(folder).list(COMMITS)
    return Manifest.decode(LocalStore(folder).read(name), name)


def expected(plan: Emit) -> Counter[Any]:
    """What the oracle says after the moment at which the state was kept."""
    oracle = UnionExecutor(plan, ReferenceExecutor) if plan.is_union else ReferenceExecutor(plan)
    streams = sorted({node.stream.name for node in plan.walk() if isinstance(node, Scan)})
    tables = sorted({node.table.name for node in plan.walk() if isinstance(node, TableScan)})
    for name in tables:
        oracle.update(name, 0, TABLE_ROWS[name], [])
    for name in streams:
        oracle.push(name, rows_of(name, 0))
    oracle.take()
    for name in streams:
        oracle.push(name, rows_of(name, 6))
    oracle.finish()
    signs = plan.emits_deletions
    return Counter((c.at, *((c.op,) if signs else ()), *c.row) for c in oracle.take())


@pytest.mark.parametrize("family", FAMILIES)
def test_a_golden_state_goes_on(family: str, tmp_path: Path) -> None:
    life = Life(unpacked(FOLDER / f"{family}.zip", tmp_path), FAMILIES[family])
    life.push(6)
    life.end()
    life.engine.close()
    assert {name: record.error for name, record in life.engine.queries.items() if record.error} == {}
    for name, plan in life.plans.items():
        assert life.answers[name] == expected(plan), name


def test_every_operator_that_keeps_a_state_is_in_one_of_them(tmp_path: Path) -> None:
    found = set[str]()
    for family in FAMILIES:
        found |= recorded(last_commit(unpacked(FOLDER / f"{family}.zip", tmp_path / family)))
    plain = {name for kind, name in OPERATORS.items() if issubclass(kind, Stateless | Scanned | NestedRows)}
    wanted = {*OPERATORS.values(), *KERNELS.values(), SHARED} - plain - INSIDE - NOT_PLANNED
    assert wanted <= found


def test_there_is_one_for_each_family() -> None:
    assert {file.stem for file in FOLDER.glob("*.zip")} == FAMILIES.keys()


@pytest.mark.parametrize("file", sorted(OLD.glob("*.zip")), ids=lambda file: file.stem)
def test_a_state_of_an_older_format_is_refused_by_name(file: Path, tmp_path: Path) -> None:
    number = int(file.stem.removeprefix("format-"))
    assert number < FORMAT
    with pytest.raises(
        StateError, match=rf"has format {number}, and .* reads format {FORMAT} only"
    ) as caught:
        CommitLog.open(LocalStore(unpacked(file, tmp_path)))
    assert caught.value.code == "format-too-old"


class _Reversed(QueryNeeds):
    """A question that names its needs in another order."""

    @cached_property
    def needs(self) -> tuple[Need, ...]:
        return tuple(reversed(super().needs))


def test_intervals_that_hold_something_else_are_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = unpacked(FOLDER / "shared-intervals.zip", tmp_path)
    ask = common.question_of
    monkeypatch.setattr(common, "question_of", lambda *named: _Reversed(**vars(ask(*named))))
    with pytest.raises(StateError, match=r"query `hour` .* the intervals of p1, which it shares") as caught:
        Life(folder, FAMILIES["shared-intervals"])
    assert caught.value.code == "plan-changed"
    assert "DROP QUERY hour" in str(caught.value.hint)


def test_intervals_of_another_version_are_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(questions._DURABLE, Extreme, "extreme.2")
    folder = unpacked(FOLDER / "shared-intervals.zip", tmp_path)
    with pytest.raises(StateError, match="hold something else now"):
        Life(folder, FAMILIES["shared-intervals"])
