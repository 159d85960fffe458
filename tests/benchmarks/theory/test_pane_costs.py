"""The cost model of panes: the examples of paper 002 (3.1, 3.3.1)."""

from __future__ import annotations

from benchmarks.theory.pane_costs import SlidingWork
from windrow.windows.panes import Panes


def test_the_papers_example_of_new_panes_per_extent() -> None:
    """RANGE 9 SLIDE 6: panes of 3, two of them new, so 2T/3 rows are new, not T/3 as the print has it."""
    work = SlidingWork(Panes(9, 6), rows=900, groups=1)
    assert work.paned(differential=True) == 600 + 2 + 2 * 2
    assert work.paned(differential=False) == 600 + 2 + 3
    assert work.windowed(differential=True) == 2 * 6 * 900 / 9


def test_query_1_reads_each_row_once_instead_of_four_times() -> None:
    """RANGE 4 SLIDE 1: over four extents, a pane query processes T rows, a windowed one 4T."""
    work = SlidingWork(Panes(4, 1), rows=1000, groups=0)
    assert 4 * work.paned(differential=False) == 1000
    assert 4 * work.windowed(differential=False) == 4000


def test_panes_do_not_pay_in_the_cases_the_paper_lists() -> None:
    """Many groups per pane; so few rows that panes hold one each; few panes per window."""
    assert SlidingWork(Panes(8, 1), rows=800, groups=1).pays(differential=False)
    assert not SlidingWork(Panes(8, 1), rows=800, groups=90).pays(differential=False)
    assert not SlidingWork(Panes(8, 1), rows=8, groups=1).pays(differential=False)
    assert not SlidingWork(Panes(3, 2), rows=9, groups=3).pays(differential=False)
