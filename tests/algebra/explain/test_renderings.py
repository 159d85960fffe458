"""JSON and Graphviz say what the text says, for any plan."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given
from lark import Lark
from tests.algebra.explain.cases import planned
from tests.support.plans import plans

from windrow.algebra.explain import FORMATS, Alternative, Explanation, as_dict, render
from windrow.algebra.explain.formats import COLOURS
from windrow.algebra.plan import Emit
from windrow.engine.explain import described
from windrow.errors import QueryError
from windrow.optimizer.flows import Statistics
from windrow.physical import plan_query
from windrow.windows.patterns import Pattern

TOP = "SELECT item, MAX(price) AS top FROM bids [RANGE 5 MINUTES SLIDE 1 MINUTE] GROUP BY item"

#: as much of the DOT language as Windrow writes (https://graphviz.org/doc/info/lang.html)
DOT = Lark(
    r"""
    start: graph+
    graph: "digraph" id "{" (statement ";")* "}"
    statement: id attributes? | id "->" id attributes?
    attributes: "[" id "=" id ("," id "=" id)* "]"
    id: /[A-Za-z_][A-Za-z_0-9]*/ | /[0-9]+/ | /"(\\.|[^"\\])*"/s
    %ignore /\s+/
    """
)


def shown(query: str, **options: Any) -> Explanation:
    """A query, planned and explained."""
    return described(plan_query(planned(query)), **options)


def test_json_has_these_keys() -> None:
    found = as_dict(shown(TOP, name="top", sink="delta:///out"))
    assert list(found) == [
        "version",
        "query",
        "plan",
        "columns",
        "errors",
        "answers",
        "final",
        "clock",
        "windows",
        "rules",
        "considered",
        "runs",
        "observed",
        "sink",
        "warnings",
    ]
    assert found["answers"]["word"] == "RSTREAM"
    assert found["windows"] == [
        {
            "window": "bids [RANGE 5 MINUTES SLIDE 1 MINUTE]",
            "class": "CF",
            "panes_per_extent": 5,
            "pane": "1 MINUTE",
        }
    ]
    assert found["sink"]["guarantee"].startswith("exactly once")


def test_a_step_in_json_has_method_reason_and_state() -> None:
    plan = as_dict(shown(TOP))["plan"]
    grouping = plan["inputs"][0]["inputs"][0]
    assert grouping.pop("inputs")[0]["operator"].startswith("window bids")
    assert grouping == {
        "operator": "γ item: MAX(price)",
        "pattern": "STR",
        "expiry": "a group's value is replaced when it changes; no negative rows are needed",
        "implementation": "live-panes.1",
        "place": "0",
        "method": "live panes",
        "reason": "of constant size for MAX; an epoch combines those of the windows it answers"
        " (5 panes per window)",
        "state": "a state per pane and group",
        "state_rows": None,
    }


def test_what_the_planner_knows_is_shown() -> None:
    considered = (Alternative("as it is", 1234567), Alternative("join_order", 12.5, chosen=True))
    rates = Statistics(rates={"bids": 10}, distinct={"bids.item": 300})
    plan = replace(plan_query(planned(TOP), rates), fired=("push_filters",), considered=considered)
    text = str(described(plan))
    assert "state   a state per pane and group, about 1 500 rows\n" in text
    assert "rules       push_filters\n" in text
    assert "considered  * cost 12.5       join_order\n              cost 1 230 000  as it is\n" in text


def test_many_alternatives_are_cut_short() -> None:
    considered = tuple(Alternative(f"plan {n}", n) for n in range(20))
    text = str(described(replace(plan_query(planned(TOP)), considered=considered)))
    assert "plan 7\n" in text
    assert "plan 8\n" not in text
    assert "and 12 more" in text


@pytest.mark.parametrize("pattern", [*Pattern, None])
def test_every_pattern_has_a_colour(pattern: Pattern | None) -> None:
    assert COLOURS[pattern].startswith("#")


def test_quotes_and_backslashes_do_not_break_the_picture() -> None:
    query = r"""SELECT item FROM bids [NOW] WHERE bidder = 'say "a" \\ b'"""
    DOT.parse(render(shown(query, name='odd "name"'), "dot"))


@given(plans())
def test_every_plan_can_be_explained(emit: Emit) -> None:
    try:
        explanation = described(plan_query(emit))
    except QueryError:
        assume(False)
    steps = len(list(explanation.plan.walk()))
    text, data, picture = (FORMATS[form](explanation) for form in ("text", "json", "dot"))
    assert all(step.operator in text for step in explanation.plan.walk())
    assert json.loads(data)["plan"]["operator"] == explanation.plan.operator
    tree = DOT.parse(picture)
    assert sum(1 for _ in tree.find_data("statement")) == 3 + steps + (steps - 1)
