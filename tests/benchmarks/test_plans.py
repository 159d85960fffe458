"""Plans against each other: every alternative runs, all answer the same, and one of them is chosen."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.setting import Setting
from benchmarks.suite import plans
from benchmarks.suite.plans import QUICK, WORKLOADS, Options
from windrow.errors import WindrowError


@pytest.mark.thorough
def test_every_plan_is_measured_and_one_of_each_query_is_chosen(tmp_path: Path) -> None:
    found = plans.run(Setting(tmp_path, tmp_path, 1), QUICK)
    (table,) = found.tables
    for name in WORKLOADS:
        rows = [row for row in table.rows if row[0] == name]
        assert len(rows) == (6 if name.startswith("join") else 2)
        assert sum(row[3] == "chosen" for row in rows) == 1
    assert [target.limit for target in found.targets] == [1.2] * len(WORKLOADS)


def test_plans_that_answer_differently_are_not_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plans, "blake2b", lambda text: _Odd())
    with pytest.raises(WindrowError, match="answers differently"):
        plans.run(Setting(tmp_path, tmp_path, 1), Options((200,), 1, 50))


class _Odd:
    """A digest that no two things have in common."""

    def digest(self) -> bytes:
        return str(id(object())).encode() + str(_Odd.count()).encode()

    @staticmethod
    def count() -> int:
        _COUNTED.append(1)
        return len(_COUNTED)


_COUNTED: list[int] = []
