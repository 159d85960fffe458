"""The dashboard and the alert rules of `examples/monitoring` ask for metrics that there are."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.server.world import serving

EXAMPLES = Path(__file__).parents[2] / "examples" / "monitoring"


@pytest.mark.parametrize("name", ["grafana.json", "alerts.yaml"])
def test_every_metric_is_there(name: str, tmp_path: Path) -> None:
    text = (EXAMPLES / name).read_text()
    asked = set(re.findall(r"\bwindrow_[a-z_]+", text))
    with serving(tmp_path) as server:
        told = server.http.get("/metrics").text
    known = {line.split()[2]: line.split()[3] for line in told.splitlines() if line.startswith("# TYPE")}
    parts = {
        f"{each}_{part}"
        for each, kind in known.items()
        if kind == "histogram"
        for part in ("bucket", "sum", "count")
    }
    assert len(asked) > 5
    assert asked <= known.keys() | parts


def test_the_dashboard_is_one(tmp_path: Path) -> None:
    board = json.loads((EXAMPLES / "grafana.json").read_text())
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"]) > 10
    assert all(target["expr"] for panel in board["panels"] for target in panel["targets"])
