"""`import windrow as wr`: what it exports, and that it is quick."""

from __future__ import annotations

import subprocess
import sys

import pytest

import windrow as wr


def test_explain_takes_the_text_of_streams_and_tables() -> None:
    explanation = wr.explain(
        "SELECT i.name FROM bids [RANGE 1 MINUTE] b JOIN items i ON b.item = i.item",
        streams={"bids": ("item BIGINT, ts TIMESTAMP", "WATTR ts SLACK 5 SECONDS")},
        tables={"items": ("item BIGINT, name STRING", "NRR KEY (item)")},
        sink="memory:",
    )
    assert str(explanation) == repr(explanation)
    assert explanation.clock[0] == ("bids", "SLACK 5 SECONDS")
    assert "exactly once" in explanation.guarantee


def test_errors_are_windrow_errors() -> None:
    with pytest.raises(wr.WindrowError) as caught:
        wr.explain("SELECT prise FROM bids [NOW]", streams={"bids": "price BIGINT, ts TIMESTAMP"})
    assert isinstance(caught.value, wr.QueryError)
    assert caught.value.hint == "did you mean `price`?"
    assert caught.value.span is not None


def test_every_exported_name_is_there() -> None:
    assert [name for name in wr.__all__ if not hasattr(wr, name)] == []
    assert set(wr.__all__) <= set(dir(wr))
    with pytest.raises(AttributeError, match="no attribute `nonsense`"):
        _ = wr.nonsense


def test_import_loads_nothing_slow() -> None:
    program = "import sys, windrow; print(sorted({'pyspark', 'polars', 'sqlglot'} & set(sys.modules)))"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout == "[]\n"
