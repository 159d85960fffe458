"""Metrics of an engine that a command runs, without the server."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from tests.server.world import SCRIPT, Here

from windrow.cli.options import Observability
from windrow.errors import StateError
from windrow.server.metrics import scraped


def test_figures_of_the_engine_are_told_and_nothing_else(tmp_path: Path) -> None:
    with Here(tmp_path) as w:
        w.sql(SCRIPT)
        with scraped(w, "127.0.0.1", 0) as url:
            w.rows((1, 2.0, "a", 5), (2, 3.0, "b", 50))
            found = httpx.get(url)
            assert found.headers["content-type"].startswith("text/plain; version=0.0.4")
            assert 'windrow_rows_total{stream="s"} 2' in found.text
            assert "windrow_clients" not in found.text
            assert httpx.get(url.replace("/metrics", "/api/queries")).status_code == 404


def test_a_port_that_is_taken_is_told(tmp_path: Path) -> None:
    with Here(tmp_path) as w, scraped(w, "127.0.0.1", 0) as first:
        port = first.rpartition(":")[2].partition("/")[0]
        observed = Observability(metrics=port)
        with pytest.raises(StateError, match="cannot listen") as told, observed.serving(w):
            pass
        assert told.value.code == "no-port"
