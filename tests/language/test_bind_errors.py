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


@pytest.mark.parametrize("nested", [False, True])
def test_too_many_windows_are_refused_before_they_are_ordered(nested: bool) -> None:
    def joined(name: str, number: int) -> str:
        more = "".join(f" JOIN bids [NOW] {name}{n} ON {name}{n}.item = {name}.item" for n in range(number))
        return f"SELECT {name}.item FROM bids [NOW] {name}{more}"

    _compile(joined("a", 20))
    many = f"SELECT x.item FROM ({joined('a', 40)}) x JOIN ({joined('b', 40)}) y ON x.item = y.item"
    with pytest.raises(QueryError, match="more than 64 windows and tables") as refused:
        _compile(many if nested else joined("a", 500))
    assert refused.value.code == "too-many-sources"
    assert refused.value.span is not None
