"""What a reader sees of a run: tables, targets, plots, JSON and documents. No Spark, no times."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks.chart import Chart, Point, Series
from benchmarks.docs import filled, write_docs
from benchmarks.plot import svg
from benchmarks.report import Report
from benchmarks.rounds import Measured, Measurement
from benchmarks.runs import publish
from benchmarks.statistics import at_least, percentile, ratio, summary
from benchmarks.table import Table
from benchmarks.targets import NOT_MEASURED, Target, target_table
from benchmarks.times import times_chart, times_table
from windrow.errors import WindrowError

PAGE = "# Figures\n\n<!-- bench demo -->\n\nnot run yet\n\n<!-- end bench -->\n\nThe end.\n"


def report(*, is_quick: bool = False) -> Report:
    chart = Chart("demo", "Time <by> size", "size", "seconds", (Series("a", (Point(1, 2, 1, 3),)),))
    return Report(
        benchmark="demo",
        about="A benchmark.",
        is_quick=is_quick,
        when="2026-01-01T00:00+00:00",
        rounds=3,
        options={"sizes": [1, 2]},
        machine={"cores": "2", "memory": "8 GiB", "system": "Linux", "windrow": "1.0"},
        contestants={"a": {"store": "none"}},
        measurements=[{"contestant": "a", "size": 1, "seconds": [1.0, 2.0, 3.0]}],
        targets=[],
        notes=["b was left out."],
        tables=[Table("Times", ("size", "a"), (("1", "2.00 s (1.00–3.00)"),))],
        charts=[chart],
    )


def measured() -> Measured:
    return Measured(
        [
            Measurement("a", {"size": 1}, [1.0, 2.0, 3.0], answers=1200),
            Measurement("b", {"size": 1}, [8.0]),
            Measurement("a", {"size": 10}, [4.0, 4.0, 4.0]),
        ]
    )


def test_a_summary_is_the_median_with_its_spread() -> None:
    assert summary([5.0, 1.0, 2.0]).text(1, " s") == "2.0 s (1.0–5.0)"


def test_the_spread_of_a_ratio_is_that_of_the_rounds() -> None:
    found = ratio([10.0, 20.0, 30.0], [1.0, 10.0, 2.0])
    assert (found.median, found.least, found.greatest) == (10.0, 2.0, 15.0)


def test_a_ratio_with_fewer_rounds_on_one_side() -> None:
    assert ratio([30.0], [3.0, 2.0, 1.0]).text(0, "×") == "15×"


def test_percentiles_are_samples() -> None:
    samples = [float(each) for each in range(200, 0, -1)]
    assert [percentile(samples, each) for each in (50, 99, 100)] == [100.0, 198.0, 200.0]


def test_times_say_who_ran_less_often_and_who_did_not_run() -> None:
    table = times_table("Times", measured(), ["a", "b", "c"], [{"size": 1}, {"size": 10}])
    assert table.columns == ("size", "answers", "a", "b")
    assert table.rows == (
        ("1", "1,200", "2.00 s (1.00–3.00)", "8.00 s in 1 of 3 rounds"),
        ("10", "–", "4.00 s (4.00–4.00)", "–"),
    )


def test_a_chart_has_a_line_per_contestant_that_ran() -> None:
    chart = times_chart("t", "Times", measured(), ["a", "b", "c"], "size")
    assert [(each.name, [point.x for point in each.points]) for each in chart.series] == [
        ("a", [1.0, 10.0]),
        ("b", [1.0]),
    ]


def test_targets_are_reached_missed_or_not_measured() -> None:
    found = [summary([6.0]), summary([4.0]), None]
    table = target_table([Target("ratio", "≥", 5.0, each) for each in found])
    assert [row[2:] for row in table.rows] == [("6.00×", "yes"), ("4.00×", "no"), (NOT_MEASURED, "–")]
    mixed = Target("ratio", "≥", 5.0, summary([4.0, 6.0, 7.0]))
    assert mixed.cells[3] == "yes, within noise"
    assert Target("ratio", "≤", 5.0, summary([4.0])).is_reached


def test_a_ratio_to_a_run_that_was_stopped_is_a_bound() -> None:
    target = Target("ratio", "≥", 5.0, at_least(600.0, [50.0, 60.0, 70.0]), is_bound=True)
    assert target.cells[2:] == ("> 10.00×", "yes")


@pytest.mark.thorough
def test_a_plot_is_well_formed(tmp_path: Path) -> None:
    written = publish(report(), tmp_path / "out")
    assert [path.name for path in written] == ["demo.json", "demo.svg"]
    drawn = ElementTree.parse(written[1]).getroot()
    assert "Time <by> size" in "".join(drawn.itertext())
    assert _markers(drawn) == 1


def _markers(drawn: ElementTree.Element) -> int:
    """How many points were drawn: each is a use of a shape, in a group that has the name of the series."""
    return len(drawn.findall(".//*[@id='a']//{http://www.w3.org/2000/svg}use"))


@pytest.mark.parametrize("is_linear", [False, True])
def test_a_plot_shows_every_point_even_one_that_has_no_logarithm(is_linear: bool) -> None:
    points = tuple(Point(x, y, y, y + 1) for x, y in ((1, 0.0), (10, 20.0), (100, 300.0)))
    drawn = svg(Chart("zero", "Zero", "x", "y", (Series("a", points),), is_linear))
    assert _markers(ElementTree.fromstring(drawn)) == 3


def test_a_plot_of_nothing_is_only_empty() -> None:
    ElementTree.fromstring(svg(Chart("none", "Nothing", "x", "y", ())))


def test_the_same_chart_is_the_same_file() -> None:
    (chart,) = report().charts
    assert svg(chart) == svg(chart)


def test_a_report_is_the_same_after_it_was_read_again(tmp_path: Path) -> None:
    report().save(tmp_path / "demo.json")
    assert Report.load(tmp_path / "demo.json") == report()


def test_documents_are_filled_again_and_again(tmp_path: Path) -> None:
    page = tmp_path / "figures.md"
    page.write_text(PAGE, encoding="utf-8")
    for _ in range(2):
        assert write_docs(report(), page) == [page, tmp_path / "demo.svg"]
    text = page.read_text(encoding="utf-8")
    assert text.startswith("# Figures")
    assert text.endswith("<!-- end bench -->\n\nThe end.\n")
    assert "not run yet" not in text
    assert text.count("| 1 | 2.00 s (1.00–3.00) |") == 1
    assert "![Time <by> size](demo.svg)" in text
    assert "- b was left out." in text


def test_documents_tell_what_is_not_as_by_default(tmp_path: Path) -> None:
    page = tmp_path / "figures.md"
    page.write_text(PAGE.replace("demo", "latency"), encoding="utf-8")
    rates = [10_000, 50_000, 100_000]
    run = replace(report(), benchmark="latency", options={"seconds": 18, "left_out": 8, "rates": rates})
    write_docs(run, page)
    assert "Run with `--seconds 18 --left-out 8`; all else is as by default." in page.read_text(
        encoding="utf-8"
    )


def test_figures_of_a_quick_run_do_not_get_into_documents(tmp_path: Path) -> None:
    page = tmp_path / "figures.md"
    page.write_text(PAGE, encoding="utf-8")
    with pytest.raises(WindrowError, match="mean nothing"):
        write_docs(report(is_quick=True), page)
    assert page.read_text(encoding="utf-8") == PAGE


def test_a_page_without_the_markers_is_an_error() -> None:
    with pytest.raises(WindrowError, match="no place for the benchmark other"):
        filled(PAGE, "other", "new")
