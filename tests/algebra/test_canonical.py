"""Canonical text of plans: there and back, for every plan, and never by the names of classes."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from tests.algebra.explain.cases import STREAMS, TABLES, planned
from tests.kernels.relational.more_plans import Drawer
from tests.language.corpus import market, queries
from tests.support.plans import plans

import windrow as wr
from windrow.algebra.aggregates import user
from windrow.algebra.canonical import NAMES, canonical_text, plan_of
from windrow.algebra.catalog import Stream, Table
from windrow.algebra.operators import Aggregate
from windrow.algebra.plan import Emit, Scan, TableScan
from windrow.engine.explain import declared
from windrow.errors import QueryError, StateError
from windrow.language.compile import compile_query


def there_and_back(emit: Emit) -> Emit:
    streams = {node.stream.name: node.stream for node in emit.walk() if isinstance(node, Scan)}
    tables = {node.table.name: node.table for node in emit.walk() if isinstance(node, TableScan)}
    text = canonical_text(emit)
    found = plan_of(text, streams, tables)
    assert canonical_text(found) == text
    return found


@given(plans())
def test_every_plan_is_read_as_it_was_written(emit: Emit) -> None:
    assert there_and_back(emit) == emit


@pytest.mark.parametrize("seed", range(60))
def test_plans_of_every_kind_are_read_as_they_were_written(seed: int) -> None:
    try:
        emit = Drawer(seed).query()
    except QueryError:
        return  # the algebra refuses it
    assert repr(there_and_back(emit)) == repr(emit)  # NaN is not equal to itself


@pytest.mark.parametrize("query", queries())
def test_queries_of_the_corpus_are_read_as_they_were_written(query: str) -> None:
    emit = compile_query(query, market())
    assert repr(there_and_back(emit)) == repr(emit)


def test_an_aggregate_of_the_users_own_is_bound_to_its_definition() -> None:
    """Where the plan is sent to there are no names, but the definitions that it is bound to."""
    parts = {"init": lambda: 0, "step": lambda a, v: a + v, "final": lambda state: state}
    wr.aggregate(name="own_sum", returns="BIGINT", takes="BIGINT", **parts)
    try:
        emit = compile_query(
            "SELECT own_sum(a) AS n FROM s [RANGE 5 SECONDS]", declared({"s": "a BIGINT, ts TIMESTAMP"}, {})
        )
        (found,) = [node for node in there_and_back(emit).walk() if isinstance(node, Aggregate)]
        ((_, call),) = found.aggregates
        user.forget("own_sum")
        assert user.find("own_sum") is None
        assert user.find(call.function) is not None
    finally:
        user.forget("own_sum")


def test_no_text_has_the_name_of_a_class() -> None:
    classes = {kind.__name__ for kind in NAMES}
    for query in queries():
        words = set()

        def note(form: object, words: set[str] = words) -> None:
            for value in form.values() if isinstance(form, dict) else form if isinstance(form, list) else ():
                note(value)
            words.update([form["is"]] if isinstance(form, dict) else [])

        note(json.loads(canonical_text(compile_query(query, market()))))
        assert not words & classes


def test_the_text_of_a_query_never_changes() -> None:
    text = canonical_text(planned("SELECT item FROM bids [RANGE 1 MINUTE SLIDE 10 SECONDS] WHERE item > 2"))
    assert text == (
        '{"input":{"input":{"input":{"input":{"alias":"bids","is":"scan.1","stream":"bids"},"is":"window.1",'
        '"spec":{"is":"range.1","range":60000000,"slide":10000000}},"is":"filter.1","predicate":{"args":['
        '{"data_type":{"is":"type.1","kind":"BIGINT"},"is":"column.1","name":"bids.item"},{"data_type":'
        '{"is":"type.1","kind":"BIGINT"},"is":"literal.1","value":2}],"data_type":{"is":"type.1","kind":'
        '"BOOLEAN"},"function":">","is":"call.1"}},"is":"project.1","outputs":[["item",{"data_type":{"is":'
        '"type.1","kind":"BIGINT"},"is":"column.1","name":"bids.item"}]]},"is":"emit.1"}'
    )


def test_what_is_not_declared_or_not_known_is_refused() -> None:
    catalog = declared(STREAMS, TABLES)
    text = canonical_text(compile_query("SELECT item FROM bids [NOW]", catalog))
    streams: dict[str, Stream] = dict(catalog.streams)
    tables: dict[str, Table] = dict(catalog.tables)
    with pytest.raises(StateError, match="`bids`, which is not declared") as caught:
        plan_of(text, {}, tables)
    assert caught.value.code == "plan-changed"
    with pytest.raises(StateError, match=r"`now\.2`, which this version") as caught:
        plan_of(text.replace("now.1", "now.2"), streams, tables)
    assert caught.value.code == "plan-changed"
