"""Whatever the text is, it is understood or refused with a place; and what is understood, is so completely.

Property tests: soups of words, valid queries with mistakes in them, any characters at all.
"""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import example, given, strategies as st
from tests.language.parse_shown import nodes

from windrow.errors import QueryError
from windrow.language.compile import (
    parse_columns,
    parse_expression,
    parse_quantity,
    parse_query,
    parse_script,
    parse_stream_options,
)
from windrow.language.syntax import (
    Apply,
    CastTo,
    Constant,
    FromEntry,
    Name,
    QueryExpression,
    SelectItem,
    Star,
    WStream,
    words,
)
from windrow.language.tokens import TokenKind, Tokens, scan
from windrow.language.vocabulary import is_keyword

Parser = Callable[[str], object]
_PARSERS = st.sampled_from(
    [parse_query, parse_script, parse_expression, parse_columns, parse_stream_options, parse_quantity]
)
_VALID = [
    "SELECT RSTREAM(DISTINCT max(price) AS m, b.*) FROM bids [ROWS 10] AS b, items i [RANGE 5 SECONDS]"
    " JOIN (SELECT a FROM t) [NOW] ON b.x = i.y WHERE item = 'pen' AND (a OR NOT b) GROUP BY a, 2"
    " HAVING count(DISTINCT x, y) FILTER (WHERE z > -1.5) > 10L ORDER BY a DESC LIMIT 5",
    "SELECT SUM(Wstream(SUM(a) AS q, b)[ROWS 10]) FROM Stream1[RANGE 6 sec SLIDE 6 sec]",
    "SELECT CASE a WHEN 1 THEN 2 ELSE 3 END, a <=> b, a div b, TRY_CAST(a AS DECIMAL(10,2)), (a+b)::int,"
    " EXTRACT(hour FROM ts), INTERVAL '1 2:03:04' DAY TO SECOND, a NOT LIKE 'x%' ESCAPE '!' FROM t",
    "SELECT a FROM t WHERE a BETWEEN 1 AND 2 AND b NOT IN (1, 2) AND NOT EXISTS (SELECT Rstream-restore(*)"
    " FROM u [LIFETIME ttl SECONDS] WHERE u.a IS NOT DISTINCT FROM t.a AND b IS NOT NULL)",
    "WITH x AS (SELECT a FROM t [LANDMARK FROM '07:00' SLIDE 1 h]) SELECT k FROM x [NOW] JOIN u USING (k)",
    "(SELECT a FROM t [NOW]) UNION ALL SELECT b FROM u [SESSION 5 m PARTITION BY `k 1`] EXCEPT ALL SELECT 1",
    "SELECT TRIM(LEADING 'k' FROM x), TRIM(BOTH FROM y), trim(x FROM y), ltrim(x, y), X'1f', a ILIKE 'b'"
    " FROM t",
    "CREATE STREAM bids (item BIGINT, i INTERVAL DAY TO SECOND, ts TIMESTAMP) WATTR ts"
    " PUNCTUATED BY ts PER item WHEN item = 0 LATE DROP FROM 'x'",
    "CREATE QUERY q AS SELECT a FROM t INTO 'x' PRIORITY 3 MAX GAP 2 EVERY 10 SECONDS; DROP QUERY q",
]
_WORDS = sorted(
    {token.text for text in _VALID for token in scan(text)}
    | words("LEFT OUTER FULL SEMI NATURAL INTERSECT MINUS LATERAL OVER QUALIFY WINDOW INTO ANY ALL NULLS")
    | words("( ) [ ] , . ; * - + ! :: || <=> '' 1e400 10L 0x1 ` \" ' /* -- @ ? 😀 é INTERVAL DATE CAST(")
    | {"\0"}
)
_SOUP = st.lists(st.sampled_from(_WORDS), max_size=25).map(" ".join)


@st.composite
def _mistaken(draw: st.DrawFn) -> str:
    """A valid text with some tokens left out, doubled, swapped, replaced or broken."""
    tokens = [token.text for token in scan(draw(st.sampled_from(_VALID)))]
    place = st.integers(0, len(tokens) - 1)
    for _ in range(draw(st.integers(1, 4))):
        here, there = min(draw(place), len(tokens) - 1), min(draw(place), len(tokens) - 1)
        match draw(st.sampled_from(["delete", "double", "swap", "replace", "insert", "break"])):
            case "delete" if len(tokens) > 1:
                del tokens[here]
            case "double":
                tokens[here:here] = tokens[here : here + draw(st.integers(1, 5))]
            case "swap":
                tokens[here], tokens[there] = tokens[there], tokens[here]
            case "replace":
                tokens[here] = draw(st.sampled_from(_WORDS))
            case "insert":
                tokens.insert(here, draw(st.sampled_from(_WORDS)))
            case _:
                cut = draw(st.integers(0, len(tokens[here])))
                tokens[here] = tokens[here][:cut] + draw(st.characters()) + tokens[here][cut:]
    return " ".join(tokens)


def _understood(parse: Parser, text: str) -> object:
    """The tree, or None if the text is refused as it should be."""
    try:
        return parse(text)
    except QueryError as error:
        refused = error
    assert refused.text == text
    assert refused.span is not None
    assert 0 <= refused.span.start <= refused.span.end <= max(1, len(text) + 1)
    assert "cannot be read" not in refused.message, "sqlglot made a tree that no converter knows"
    assert refused.render()
    return None


@given(_PARSERS, _SOUP)
def test_any_words_in_a_row_are_read_or_refused(parse: Parser, text: str) -> None:
    _understood(parse, text)


@given(_SOUP)
def test_soups_of_words_after_select(text: str) -> None:
    _understood(parse_query, "SELECT " + text)


@given(_PARSERS, st.text())
@example(parse_query, "SELECT '\ud800'")
@example(parse_query, "\x00")
@example(parse_query, "SELECT ßelect FROM ﬁ")
def test_any_characters(parse: Parser, text: str) -> None:
    _understood(parse, text)


@given(st.text())
def test_any_characters_inside_quotes(text: str) -> None:
    string = text.replace("\\", "\\\\").replace("'", "''")
    constant = parse_expression(f"'{string}'")
    assert isinstance(constant, Constant)
    assert constant.value == text


@given(st.text(min_size=1))
def test_any_characters_inside_a_quoted_name(text: str) -> None:
    name = parse_expression("`" + text.replace("`", "``") + "`")
    assert isinstance(name, Name)
    assert name.parts == (text,)


@given(_mistaken())
def test_mistakes_are_refused_or_make_another_query(text: str) -> None:
    _understood(parse_script, text)


@given(st.one_of(_mistaken(), st.sampled_from(_VALID)))
@example("SELECT a, b.b.* FROM t b")
@example("SELECT INTERVAL INTERVAL '5' SECOND FROM t")
@example("SELECT CAST(a, b AS INT) FROM t")
@example("SELECT substring(a FROM FOR 2) FROM t")
@example("SELECT a DATE '2024-01-01' FROM t")
@example("SELECT SUM(WSTREAM(SUM(0a) AS q)[ROWS 10]) FROM t [NOW]")
def test_nothing_that_is_written_is_lost(text: str) -> None:
    """Every name and every constant of an understood query is in its tree."""
    query = _understood(parse_query, text)
    if isinstance(query, QueryExpression) and "with" not in text.lower():
        assert _lost(text, query) == []


_READ_ELSEWHERE = words(
    "ISTREAM DSTREAM RSTREAM ISTREAM_RESTORE RSTREAM_RESTORE RESTORE FOR BOTH LEADING TRAILING"
)


def _lost(text: str, query: QueryExpression) -> list[str]:
    tokens = _without_windows(text)
    found = {offset for node in nodes(query) for offset in _offsets(node, tokens)}
    return [
        token.text
        for index, token in enumerate(tokens)
        if token.kind is not TokenKind.SIGN and not is_keyword(tokens, index)
        if token.start not in found and token.word not in _READ_ELSEWHERE
    ]


def _without_windows(text: str) -> Tokens:
    tokens = scan(text)
    windows = [range(i, tokens.partner[i] + 1) for i in range(len(tokens)) if tokens.word(i) == "["]
    kept = [token for i, token in enumerate(tokens) if not any(i in window for window in windows)]
    return Tokens(text, tuple(token for token in kept if token.word != ";"))


def _offsets(node: object, tokens: Tokens) -> set[int]:
    """Where the tokens are that a node by itself accounts for."""
    match node:
        case Name() | Constant() | Star():
            return _inside(node.span.start, node.span.end, tokens)
        case CastTo():
            return {min(_names(node.span.start, tokens))} | _inside(node.arg.span.end, node.span.end, tokens)
        case Apply() | WStream():
            return {min(_names(node.span.start, tokens))}
        case SelectItem() if node.alias is not None:
            return {max(_inside(node.span.start, node.span.end, tokens))}
        case FromEntry():
            own = _inside(node.span.start, node.span.end, tokens)
            query = node.query.span if node.query else None
            return own - _inside(query.start, query.end, tokens) if query else own
    return set()


def _inside(start: int, end: int, tokens: Tokens) -> set[int]:
    return {token.start for token in tokens if start <= token.start < end}


def _names(start: int, tokens: Tokens) -> list[int]:
    return [token.start for token in tokens if token.start >= start and token.word not in ("(", "+")]
