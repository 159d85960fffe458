"""Which operators a query becomes, by update patterns and what its aggregates allow."""

from __future__ import annotations

import inspect
from importlib import import_module
from pathlib import Path

import pytest
from tests.algebra.explain.cases import planned

import windrow.kernels.relational
from windrow.kernels.relational.implementations import OPERATORS
from windrow.kernels.relational.operator import Operator
from windrow.physical import plan_query

GROUPED = "SELECT item, {} AS x FROM bids [{}] GROUP BY item"
OTHER = "SELECT item FROM sales [RANGE 1 MINUTE]"
JOINED = "SELECT b.price FROM bids [{}] b JOIN sales [{}] s ON {}"


@pytest.mark.parametrize(
    ("query", "kinds"),
    [
        ("SELECT item FROM bids [RANGE 5 MINUTES]", {"interval-window.1"}),
        ("SELECT item FROM bids [ROWS 10]", {"row-window.1"}),
        ("SELECT item FROM bids [SESSION 1 MINUTE]", {"session-window.1"}),
        ("SELECT DISTINCT item FROM bids [RANGE 5 MINUTES]", {"distinct-told.1"}),
        ("SELECT DISTINCT item FROM bids [ROWS 10]", {"distinct-counting.1"}),
        ("SELECT DISTINCT item FROM bids [UNBOUNDED]", {"distinct-youngest.1"}),
        (GROUPED.format("MAX(price)", "RANGE 5 MINUTES SLIDE 1 MINUTE"), {"live-panes.1"}),
        (GROUPED.format("MAX(price)", "RANGE 1 HOUR SLIDE 1 MINUTE"), {"two-stacks.1"}),
        (GROUPED.format("MEDIAN(price)", "RANGE 5 MINUTES SLIDE 2 MINUTES"), {"running-counts.1"}),
        (GROUPED.format("MAX(price)", "LANDMARK SLIDE 1 HOUR"), {"running-totals.1"}),
        (GROUPED.format("MAX(price)", "RANGE 5 MINUTES"), {"group-running.1"}),
        (GROUPED.format("AVG(price), LAST(price)", "RANGE 5 MINUTES"), {"group-rows.1"}),
        (JOINED.format("RANGE 1 MINUTE", "RANGE 1 MINUTE", "b.item = s.item"), {"join.1"}),
        (f"SELECT item FROM bids [ROWS 9] EXCEPT ALL {OTHER}", {"difference.1"}),
        (
            f"SELECT item FROM bids [NOW] b WHERE NOT EXISTS ({OTHER} s WHERE s.item = b.item)",
            {"match.1", "interval-window.1"},
        ),
        ("SELECT name FROM bids [NOW] b JOIN items i ON b.item = i.item", {"table-lookup.1"}),
        ("SELECT least FROM bids [NOW] b JOIN watched w ON b.item = w.item", {"join.1", "table-rows.1"}),
    ],
)
def test_a_query_becomes_these_operators(query: str, kinds: set[str]) -> None:
    assert kinds <= {operator.kind for operator in plan_query(planned(query)).walk()}


def test_every_operator_has_a_durable_name_of_its_own() -> None:
    folder = Path(inspect.getfile(windrow.kernels.relational)).parent
    found: set[type] = set()
    for file in folder.rglob("*.py"):
        path = file.relative_to(folder).with_suffix("").parts
        module = import_module(".".join(["windrow.kernels.relational", *path]))
        found |= {
            kind
            for kind in vars(module).values()
            if inspect.isclass(kind) and issubclass(kind, Operator) and not inspect.isabstract(kind)
        }
    bases = {kind.__bases__[0] for kind in found}
    assert found - OPERATORS.keys() <= bases, "operators without names"
    assert len(set(OPERATORS.values())) == len(OPERATORS)
