"""What a mistake of meaning looks like: the rendered message of each, kept as pairs in `bind_errors.txt`."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.language.corpus import market
from tests.support.snapshots import Pair, read_pairs

from windrow.errors import QueryError
from windrow.language.compile import compile_query, compile_script


def message_of(script: str) -> str:
    """Of a SELECT, what is wrong with it as a standing query: asked once, it may say more."""
    with pytest.raises(QueryError) as refused:
        _compile(script)
    return refused.value.render()


def _compile(script: str) -> None:
    compile_script(script, market())
    compile_query(script, market())


PAIRS = read_pairs(Path(__file__).with_name("bind_errors.txt"), message_of)


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.title)
def test_mistakes_are_explained(pair: Pair) -> None:
    assert message_of(pair.text) == pair.message


def test_every_mistake_has_a_place_and_a_way_out() -> None:
    for pair in PAIRS:
        assert "  --> " in pair.message, pair.title
        assert "\n  = " in pair.message, pair.title


def test_there_are_many_distinct_mistakes() -> None:
    assert len({pair.title for pair in PAIRS}) == len(PAIRS) >= 60
