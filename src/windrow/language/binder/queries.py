"""Queries: which kind of query this is, and the `Emit` at its root."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windrow.algebra.plan import Emit, StreamWord
from windrow.language.binder.context import Context, Relation
from windrow.language.binder.places import at
from windrow.language.binder.select import bind_select
from windrow.language.binder.sets import bind_set
from windrow.language.binder.wstream import bind_wstream, wstreams
from windrow.language.syntax import Query, Select, SetOperation

if TYPE_CHECKING:
    from windrow.language.catalog import Catalog


def bind_query(query: Query, catalog: Catalog) -> Emit:
    """The plan of a query."""
    relation = _bind_relation(query, Context(catalog, _bind_relation))
    with at(query):
        return relation.stream


def bind_relation(query: Query, catalog: Catalog) -> Emit:
    """The plan of a query that is asked for its whole answer at one instant."""
    relation = _bind_relation(query, Context(catalog, _bind_relation))
    with at(query):
        return Emit(relation.plan, StreamWord.RSTREAM)


def _bind_relation(query: Query, context: Context) -> Relation:
    if isinstance(query, SetOperation):
        return bind_set(query, context)
    assert isinstance(query, Select)
    found = wstreams(query)
    return bind_wstream(query, found, context) if found else bind_select(query, context)
