"""Completion, meanings and remarks for editors: right at every place of a text, whatever state it is in."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

from windrow.language.catalog import Catalog
from windrow.language.compile import compile_script
from windrow.language.editor import meaning, remarks, statements, suggestions

SCRIPT = """\
CREATE STREAM bids (item BIGINT, price DOUBLE, `odd name` STRING, ts TIMESTAMP) WATTR ts SLACK 5 SECONDS;
CREATE TABLE items (item BIGINT, name STRING, KEY (item)) RELATION;
CREATE QUERY top AS SELECT item, MAX(price) AS best FROM bids [RANGE 5 MINUTES SLIDE 1 MINUTE] GROUP BY item;
"""


@pytest.fixture
def catalog() -> Catalog:
    found = Catalog()
    compile_script(SCRIPT, found)
    return found


def _at(text: str, catalog: Catalog) -> list[str]:
    """What can be typed at the `|` of a text."""
    offset = text.index("|")
    return [each.text for each in suggestions(text.replace("|", ""), offset, catalog)[1]]


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("SEL|", "SELECT"),
        ("SELECT pri|", "price"),
        ("SELECT ma|", "MAX"),
        ("SELECT upp|", "UPPER"),
        ("SELECT item FROM b|", "bids"),
        ("SELECT item FROM |", "bids"),
        ("SELECT item FROM bids [|", "RANGE 5 MINUTES SLIDE 1 MINUTE"),
        ("SELECT item FROM bids [RANGE 5 MINU|", "MINUTES"),
        ("SELECT item FROM bids |", "[RANGE 5 MINUTES SLIDE 1 MINUTE]"),
        ("SELECT item FROM bids [NOW] wh|", "WHERE"),
        ("SELECT b.pr| FROM bids [NOW] AS b", "price"),
        ("SELECT i.na| FROM bids [NOW] AS b, items AS i", "name"),
        ("SELECT od|", "`odd name`"),
        ("SELECT be| FROM top [NOW]", "best"),
        ("DROP QUERY t|", "top"),
        ("CREATE STREAM s (a BIGINT, ts TIMES|", "TIMESTAMP"),
        ("CREATE STREAM fresh (zed BIGINT, ts TIMESTAMP); SELECT ze|", "zed"),
        ("SELECT broken FROM; SELECT pri|", "price"),
    ],
)
def test_the_likeliest_comes_first(text: str, first: str, catalog: Catalog) -> None:
    assert _at(text, catalog)[0] == first


@pytest.mark.parametrize("text", ["SELECT 'pri|", "SELECT item -- pri|", "SELECT /* pri|", "SELECT x.pri|"])
def test_nothing_is_offered_in_texts_comments_and_below_unknown_names(text: str, catalog: Catalog) -> None:
    assert "price" not in _at(text, catalog)


def test_the_word_that_is_replaced_begins_where_it_is(catalog: Catalog) -> None:
    text = "SELECT item,\n  pric FROM bids [NOW]"
    start, found = suggestions(text, text.index(" FROM"), catalog)
    assert (text[start : start + 4], found[0].detail) == ("pric", "DOUBLE of bids")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SELECT pri|ce FROM bids [NOW]", "`price` DOUBLE of bids"),
        ("SELECT up|per('a')", "in upper case"),
        ("SELECT item FROM bi|ds [NOW]", "stream bids WATTR ts"),
        ("SELECT item FROM bids [RA|NGE 5 MINUTES]", "WKS"),
        ("SEL|ECT item, COUNT(*) AS n FROM bids [RANGE 5 MINUTES] GROUP BY item", "STR"),
    ],
)
def test_words_have_meanings(text: str, said: str, catalog: Catalog) -> None:
    offset = text.index("|")
    found = meaning(text.replace("|", ""), offset, catalog)
    assert found is not None
    assert said in found[1]


def test_every_statement_is_told_its_own_problem() -> None:
    text = SCRIPT + "SELECT prise FROM bids [NOW];\nSELECT item FROM bids [NOW];\nSELECT item FROM bid [NOW]"
    found = [*remarks(text, Catalog())]
    assert [each.code for each in found] == ["unknown-column", "unknown-source"]
    assert [text[each.span.start : each.span.end] for each in found] == ["prise", "bid [NOW]"]


_PIECES = st.sampled_from(
    [
        "SELECT ",
        "item",
        "bids",
        " [",
        "]",
        "RANGE 5 MINUTES",
        "'",
        "`",
        "--",
        "/*",
        "*/",
        ";",
        "(",
        ")",
        ".",
        "\n",
    ]
)


@given(st.lists(_PIECES, max_size=12), st.integers(0, 60))
def test_no_text_is_too_odd(pieces: list[str], offset: int) -> None:
    text, known = "".join(pieces), Catalog()
    compile_script(SCRIPT, known)
    at = min(offset, len(text))
    start, _ = suggestions(text, at, known)
    assert 0 <= start <= at
    meaning(text, at, known)
    spans = [each.span for each in remarks(text, known)]
    assert all(0 <= span.start < span.end for span in spans)
    parts = list(statements(text))
    assert all(one.end <= other.start for one, other in pairwise(parts))
