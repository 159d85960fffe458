"""The dashboard and the alert rules of `examples/monitoring` ask for metrics and labels that there are, and a
real Prometheus takes and answers them."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pyarrow as pa
import pytest
from tests.server.world import SCRIPT, Server, serving

from windrow.kernels.columnar.columns import rows_schema

EXAMPLES = Path(__file__).parents[2] / "examples" / "monitoring"
BOARD = json.loads((EXAMPLES / "grafana.json").read_text())
RULES = (EXAMPLES / "alerts.yaml").read_text()
#: what Prometheus adds to whatever it scrapes
ADDED = {"job", "instance"}
TIMED = "CREATE STREAM timed (ts TIMESTAMP) WATTR ts SLACK 5 SECONDS;"


def _push(server: Server, second: int) -> None:
    server.windrow.rows((1, 1.0, "a", second))
    rows = [{"ts": datetime.fromtimestamp(second, UTC)}]
    schema = rows_schema(server.windrow.streams["timed"].declared.schema)
    server.windrow.push("timed", pa.Table.from_pylist(rows, schema=schema))


class Asked(NamedTuple):
    """An expression, and the text that is shown with its values."""

    expr: str
    shown: str


def _panels() -> list[Asked]:
    targets = [target for panel in BOARD["panels"] for target in panel["targets"]]
    return [Asked(each["expr"], each.get("legendFormat", "")) for each in targets]


def _alerts() -> dict[str, Asked]:
    parts = re.split(r"- alert: (\w+)\n", RULES)[1:]
    found = {}
    for name, text in zip(parts[::2], parts[1::2], strict=True):
        expr = re.search(r"expr: (.*)\n", text)
        assert expr is not None
        found[name] = Asked(expr[1], text.replace("{{ $labels.", "{{"))
    return found


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, set[str]]]:
    """The labels of each metric, and their values."""
    with serving(tmp_path_factory.mktemp("state"), SCRIPT + TIMED) as server:
        _push(server, 10)
        lines = server.http.get("/metrics").text.splitlines()
    found: dict[str, dict[str, set[str]]] = {}
    for line in lines:
        if (sample := re.match(r"(\w+)(?:\{(.*)\})? ", line)) is not None:
            labels = found.setdefault(sample[1], {})
            for name, value in re.findall(r'(\w+)="([^"]*)"', sample[2] or ""):
                labels.setdefault(name, set()).add(value)
    return found


def _between(word: str, expr: str) -> list[str]:
    """The labels that stand in brackets after a word."""
    return [label for found in re.findall(rf"\b{word} \(([^)]*)\)", expr) for label in found.split(", ")]


@pytest.mark.parametrize("asked", [*_panels(), *_alerts().values()], ids=lambda asked: asked.expr)
def test_metrics_and_labels_are_there(asked: Asked, told: dict[str, dict[str, set[str]]]) -> None:
    names = set(re.findall(r"\bwindrow_\w+", asked.expr))
    assert names
    assert names <= told.keys()
    labels = ADDED.union(*(told[name] for name in names))
    kept, matched = (set(_between(word, asked.expr)) for word in ("by", "on"))
    assert kept | matched <= labels
    assert set(re.findall(r"\{\{ ?(\w+) ?\}\}", asked.shown)) <= (kept or labels)
    for name, label, value in re.findall(r'(\w+)\{(\w+)="([^"]*)"\}', asked.expr):
        assert value in told[name][label]


def test_the_dashboard_is_one() -> None:
    assert len({panel["id"] for panel in BOARD["panels"]}) == len(BOARD["panels"]) > 10


# ------------------------------------------------------------ Prometheus itself

needs_prometheus = [
    pytest.mark.integration,
    pytest.mark.skipif("WINDROW_INTEGRATION" not in os.environ, reason="run by make test-integration"),
    pytest.mark.skipif(
        shutil.which("prometheus") is None or shutil.which("promtool") is None,
        reason="there is no Prometheus on this machine",
    ),
]


@contextmanager
def _prometheus(server: Server, at: Path) -> Iterator[httpx.Client]:
    """A Prometheus that scrapes a server every second."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        host = f"127.0.0.1:{free.getsockname()[1]}"
    target = {"job_name": "windrow", "static_configs": [{"targets": [server.url.removeprefix("http://")]}]}
    every = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    settings = {"global": every, "scrape_configs": [target], "rule_files": [str(EXAMPLES / "alerts.yaml")]}
    (at / "prometheus.yml").write_text(json.dumps(settings))
    command = [
        "prometheus",
        f"--config.file={at / 'prometheus.yml'}",
        f"--storage.tsdb.path={at / 'data'}",
        f"--web.listen-address={host}",
        "--log.level=error",
    ]
    running = subprocess.Popen(command)
    try:
        with httpx.Client(base_url=f"http://{host}/api/v1", timeout=30, trust_env=False) as http:
            yield http
    finally:
        running.terminate()
        running.wait(30)


def _value(http: httpx.Client, expr: str) -> list[Any]:
    try:
        answer = http.get("/query", params={"query": expr})
    except httpx.TransportError:
        return []  # it has not begun to listen
    assert answer.status_code in (200, 503), answer.text
    return list(answer.json()["data"]["result"]) if answer.status_code == 200 else []


class TestOnPrometheus:
    """What Prometheus makes of the dashboard and the rules."""

    pytestmark = needs_prometheus

    def test_every_panel_has_values(self, tmp_path: Path) -> None:
        with serving(tmp_path / "state", SCRIPT + TIMED) as server, _prometheus(server, tmp_path) as http:
            ends, second = time.monotonic() + 60, 0
            waiting = [asked.expr for asked in _panels()]
            while waiting:
                assert time.monotonic() < ends, f"without a value: {waiting}"
                second += 10
                _push(server, second)
                time.sleep(0.5)
                waiting = [expr for expr in waiting if not _value(http, expr)]
            groups = http.get("/rules").json()["data"]["groups"]
            rules = [rule for group in groups for rule in group["rules"]]
            assert [(rule["name"], rule["health"]) for rule in rules] == [(name, "ok") for name in _alerts()]
            assert [rule["name"] for rule in rules if rule["state"] == "firing"] == []

    def test_every_alert_fires_and_names_what_it_is_about(self, tmp_path: Path) -> None:
        running, stream = 'job="w",instance="i"', 'job="w",instance="i",stream="s"'
        still = {f"windrow_running{{{running}}}": "1x60", f"windrow_rows_total{{{stream}}}": "7x60"}
        moving = {f"windrow_rows_total{{{stream}}}": "0+100x60"}
        le = {f'windrow_epoch_seconds_bucket{{{running},le="{b}"}}': v for b, v in _SLOW.items()}
        series = {
            "WindrowNotRunning": {f"windrow_running{{{running}}}": "0x60"},
            "WindrowQueryFailed": {f'windrow_queries{{{running},status="failed"}}': "1x60"},
            "WindrowEpochsTooLong": le,
            "WindrowStreamStandsStill": still,
            "WindrowWatermarkBehind": {f"windrow_watermark_lag_seconds{{{stream}}}": "400x60"},
            "WindrowSheds": {f"windrow_shed_rows_total{{{stream}}}": "0+5x60"},
            "WindrowManyLateRows": {f"windrow_late_rows_total{{{stream}}}": "0+5x60", **moving},
            "WindrowMalformedRows": {f"windrow_malformed_rows_total{{{stream}}}": "0+1x60"},
            "WindrowSinkFails": {f"windrow_sink_failures{{{running}}}": "1x60"},
        }
        assert series.keys() == _alerts().keys()
        tests = [
            {
                "interval": "1m",
                "input_series": [{"series": name, "values": value} for name, value in given.items()],
                "promql_expr_test": [
                    {
                        "expr": f'max by (alertstate, stream) (ALERTS{{alertname="{alert}"}})',
                        "eval_time": "50m",
                        "exp_samples": [
                            {"labels": _FIRING[any("stream=" in name for name in given)], "value": 1}
                        ],
                    }
                ],
            }
            for alert, given in series.items()
        ]
        path = tmp_path / "tests.yaml"
        path.write_text(json.dumps({"rule_files": [str(EXAMPLES / "alerts.yaml")], "tests": tests}))
        found = subprocess.run(["promtool", "test", "rules", path], capture_output=True, text=True)
        assert found.returncode == 0, found.stdout + found.stderr


#: epochs that take eight seconds, by their upper bounds
_SLOW = {"5": "0x60", "10": "0+10x60", "+Inf": "0+10x60"}
#: the labels of an alert that fires, and of one that is about a stream
_FIRING = ('{alertstate="firing"}', '{alertstate="firing", stream="s"}')
