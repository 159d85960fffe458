"""What a query, a stream and a table show of themselves, in Python's shells and in notebooks."""

from __future__ import annotations

import datetime as dt
import json
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.support.history import STREAM
from tests.support.life import Life

from windrow.engine import display
from windrow.errors import QueryError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

SUMS = "SELECT k, SUM(v) AS total, COUNT(*) AS n FROM s [RANGE 10 SLIDE 10] GROUP BY k"
NOTEBOOK = Path(__file__).parents[2] / "examples" / "first_steps.ipynb"


@pytest.fixture
def w(tmp_path: Path) -> Iterator[Life]:
    with Life(tmp_path / "state") as driven:
        driven.sql(STREAM)
        driven.sql("CREATE TABLE names (k BIGINT, v STRING) NRR")
        driven.query("sums", SUMS)
        driven.push((1, 10, 0), (2, 20, 4), (1, 5, 25))
        yield driven


def test_a_query_is_known_by_the_words_of_pyspark(w: Life) -> None:
    query = w.queries["sums"]
    assert query.is_active
    assert query.exception is None
    assert query.watermark == 22
    assert query.last_progress["rows"] == 2
    assert query.last_progress["watermark"] == 22
    assert query.to_pandas()["total"].tolist() == [10, 20]
    assert query.to_polars()["n"].to_list() == [1, 1]


def test_a_stopped_query_takes_no_more_rows_and_keeps_its_answers(w: Life) -> None:
    query = w.queries["sums"]
    query.stop()
    query.stop()
    assert not query.is_active
    assert "sums" not in w.queries
    w.push((1, 1, 90))
    assert query.results().num_rows == 2
    assert repr(query) == "<query sums: stopped, 2 rows>"
    assert "<td>20</td>" in query._repr_html_()


def test_a_query_that_failed_says_why(w: Life) -> None:
    query = w.query("bad", "SELECT CAST(CAST(v AS STRING) || 'x' AS BIGINT) AS b FROM s [NOW]")
    w.push((1, 1, 40), (1, 1, 60))
    assert not query.is_active
    assert query.exception is not None
    assert "1x" in query.exception.message


def test_a_time_is_shown_as_one(tmp_path: Path) -> None:
    with Life(tmp_path / "state") as w:
        w.sql("CREATE STREAM s (k BIGINT, v BIGINT, t TIMESTAMP) WATTR t SLACK 1 SECOND")
        query = w.query("q", "SELECT COUNT(*) AS n FROM s [RANGE 5 SECONDS SLIDE 5 SECONDS]")
        assert query.watermark is None
        w.punctuate("s", dt.datetime(2026, 3, 2, 9, tzinfo=dt.UTC))
        assert query.watermark == dt.datetime(2026, 3, 2, 9, tzinfo=dt.UTC)
        assert w.streams["s"].watermark == query.watermark


def test_html_of_everything_is_escaped(w: Life) -> None:
    w.update("names", insert=[(1, "<script>alert(1)</script>")])
    shown = [w.queries["sums"], w.streams["s"], w.tables["names"], w.queries, w.streams, w.tables]
    html = [each._repr_html_() for each in (*shown, w.queries["sums"].explain())]
    assert all(each.startswith(("<div>", "<pre>")) for each in html)
    assert not any("<script>" in each for each in html)
    assert "&lt;script&gt;" in html[2]
    assert "SUM(v)" in html[0]


def test_long_tables_show_their_last_rows() -> None:
    html = display.table_html(pa.table({"n": range(100)}), "numbers", rows=3)
    assert html.count("<tr>") == 4
    assert "the last 3 of 100 rows" in html
    assert "<td>99</td>" in html


def test_a_chart_has_a_line_for_each_group(w: Life) -> None:
    pytest.importorskip("matplotlib").use("agg")
    axes = w.queries["sums"].plot("total", by="k")
    assert {line.get_label() for line in axes.lines} == {"1", "2"}
    assert axes.get_ylabel() == "total"
    assert len(w.queries["sums"].plot(ax=axes).lines) > 2
    for y, by in (("tottal", "k"), ("total", "key")):
        with pytest.raises(QueryError, match="no column"):
            w.queries["sums"].plot([y], by=[by])
    words = w.query("words", "SELECT CAST(k AS STRING) AS k FROM s [NOW]")
    with pytest.raises(QueryError, match="no numbers to draw"):
        words.plot()


def test_times_below_a_chart_do_not_run_into_each_other() -> None:
    pytest.importorskip("matplotlib").use("agg")
    minutes = pa.array([minute * 60_000_000 for minute in range(1, 9)], pa.timestamp("us", "UTC"))
    axes = display.plot(pa.table({"at": minutes, "n": range(8)}), "sums", None, None, None)
    axes.figure.canvas.draw()
    places = [label.get_window_extent() for label in axes.get_xticklabels() if label.get_text()]
    assert len(places) > 2
    assert all(left.x1 < right.x0 for left, right in pairwise(places))


def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch, w: Life) -> None:
    def missing(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(display, "import_module", missing)
    for call in (w.queries["sums"].plot, w.queries["sums"].watch):
        with pytest.raises(QueryError, match="needs") as told:
            call()
        assert told.value.hint is not None
        assert told.value.hint.endswith("pip install 'windrow[notebook]'")


def test_a_live_view_is_drawn_anew_when_answers_come(monkeypatch: pytest.MonkeyPatch, w: Life) -> None:
    drawn: list[str] = []

    class Notebook:
        HTML = staticmethod(str)

        @staticmethod
        def display(html: str, display_id: bool) -> Any:
            drawn.append(html)
            return Notebook

        @staticmethod
        def update(html: str) -> None:
            drawn.append(html)

    looks = iter(range(10))

    def is_over() -> bool:
        look = next(looks)
        if look == 1:
            w.push((7, 70, 50))
        return look == 3

    monkeypatch.setattr(display, "import_module", lambda _: Notebook)
    monkeypatch.setattr(display.time, "sleep", lambda _: None)
    display.watch(lambda: display.table_html(w.queries["sums"].results()), is_over, None)
    assert len(drawn) == 3  # at first, when there was an answer more, and at the end
    assert "<td>5</td>" not in drawn[0]
    assert "<td>5</td>" in drawn[1]


@pytest.fixture
def shell() -> Iterator[Any]:
    interactive = pytest.importorskip("IPython.core.interactiveshell")
    made = interactive.InteractiveShell()
    made.history_manager.enabled = False
    yield made
    interactive.InteractiveShell.clear_instance()


def test_a_cell_of_sql_runs_on_the_engine_of_the_notebook(
    shell: Any, w: Life, capsys: pytest.CaptureFixture[str]
) -> None:
    shell.user_ns["w"] = w
    shell.run_line_magic("load_ext", "windrow")
    shell.run_cell_magic("windrow", "", "SHOW QUERIES")
    assert "IPython.core.display.HTML" in capsys.readouterr().out
    shell.run_cell_magic("windrow", "", "CREATE QUERY more AS SELECT k FROM s [NOW]")
    assert capsys.readouterr().out == "created more\n"
    shell.run_cell_magic("windrow", "", "SELECT prise FROM s [NOW]")
    assert "no column `prise`" in capsys.readouterr().err
    shell.user_ns["x"] = 5
    shell.run_cell_magic("windrow", "x", "SHOW QUERIES")
    assert "`x` is no engine" in capsys.readouterr().err


def test_the_notebook_among_the_examples_runs(
    shell: Any, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib").use("agg")
    monkeypatch.chdir(NOTEBOOK.parents[1])
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    for cell in cells:
        if cell["cell_type"] == "code":
            shell.run_cell("".join(cell["source"])).raise_error()
