"""A misspelt word is named itself, with the right one: not what stands beside it."""

from __future__ import annotations

import pytest

from windrow.errors import QueryError
from windrow.language.catalog import Catalog
from windrow.language.compile import compile_query, declare_stream


@pytest.mark.parametrize(
    ("select", "bracket", "misspelt", "hint"),
    [
        ("FREQUENTT(a, 3)", "RANGE 6 SLIDE 2", "FREQUENTT(a, 3)", "did you mean `frequent`?"),
        ("uper(a)", "RANGE 6 SLIDE 2", "uper(a)", "did you mean `upper`?"),
        ("MAX(a)", "RANGE 6 SLYDE 2", "SLYDE", "did you mean `SLIDE`?"),
        ("MAX(a)", "RANGE 6 WATR ts", "WATR", "did you mean `WATTR`?"),
    ],
)
def test_the_word_itself_is_pointed_at(select: str, bracket: str, misspelt: str, hint: str) -> None:
    catalog = Catalog()
    catalog.add(declare_stream("s", "k BIGINT, a STRING, ts BIGINT"))
    text = f"SELECT k, {select} AS found FROM s [{bracket}] GROUP BY k"
    with pytest.raises(QueryError) as told:
        compile_query(text, catalog)
    assert told.value.span is not None
    assert text[told.value.span.start : told.value.span.end] == misspelt
    assert told.value.hint == hint
