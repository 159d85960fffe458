"""Queries: what each spelling means, and that every node knows its place."""

from __future__ import annotations

import pytest
from tests.language.parse_shown import nodes, select, shown

from windrow.algebra.plan import StreamWord
from windrow.language.compile import parse_expression, parse_query
from windrow.language.syntax import Apply, CastTo, Constant, FromEntry, Name, Select, SelectItem, SetOperation

_QUERIES = {
    "SELECT a, b AS c, d e FROM t": "SELECT a, b AS c, d AS e FROM t",
    "select A from T": "SELECT A FROM T",
    "SELECT *, t.* FROM t": "SELECT *, t.* FROM t",
    "SELECT 1": "SELECT 1",
    "SELECT DISTINCT a FROM t": "DISTINCT SELECT a FROM t",
    "SELECT ALL a FROM t;": "SELECT a FROM t",
    'SELECT `a b`, "c-d", `e``f` FROM `t u`': "SELECT a b, c-d, e`f FROM t u",
    "SELECT date, window, key, first, last FROM offset": "SELECT date, window, key, first, last FROM offset",
    "SELECT first(a), last(b), left(c, 1), if(d, e, f) FROM t": (
        "SELECT (first a), (last b), (left c 1), (if d e f) FROM t"
    ),
    # Sources and joins.
    "SELECT a FROM t, u v, w AS x": "SELECT a FROM t, u AS v, w AS x",
    "SELECT a FROM t JOIN u ON t.a = u.a INNER JOIN v ON u.b = v.b CROSS JOIN w": (
        "SELECT a FROM t, u, v, w ON (= t.a u.a), (= u.b v.b)"
    ),
    "SELECT k, u.b FROM t JOIN u USING (k) JOIN v USING (k)": (
        "SELECT t.k, u.b FROM t, u, v ON (= t.k u.k), (= t.k v.k)"
    ),
    "SELECT a FROM (SELECT b FROM t) AS u": "SELECT a FROM <SELECT b FROM t> AS u",
    "SELECT a FROM ((SELECT b FROM t)) u": "SELECT a FROM <SELECT b FROM t> AS u",
    "WITH u AS (SELECT b FROM t), v AS (SELECT b FROM u) SELECT a FROM v, u AS w": (
        "SELECT a FROM <SELECT b FROM <SELECT b FROM t> AS u> AS v, <SELECT b FROM t> AS w"
    ),
    # Clauses.
    "SELECT a FROM t WHERE a > 1 GROUP BY a, 2 HAVING count(*) > 1 ORDER BY a DESC, b ASC, c LIMIT 5": (
        "SELECT a FROM t WHERE (> a 1) GROUP a, 2 HAVING (> (count *) 1) ORDER a DESC, b, c LIMIT 5"
    ),
    "SELECT count(*) FROM t GROUP BY ()": "SELECT (count *) FROM t",
    "SELECT count(*) FROM t GROUP BY (a, b)": "SELECT (count *) FROM t GROUP a, b",
    # Sets of queries.
    "SELECT a FROM t UNION ALL SELECT b FROM u EXCEPT ALL (SELECT c FROM v)": (
        "<<SELECT a FROM t> UNION <SELECT b FROM u>> EXCEPT <SELECT c FROM v>"
    ),
    "SELECT a FROM t MINUS ALL SELECT b FROM u": "<SELECT a FROM t> EXCEPT <SELECT b FROM u>",
    "SELECT a FROM t UNION ALL (SELECT b FROM u EXCEPT ALL SELECT c FROM v)": (
        "<SELECT a FROM t> UNION <<SELECT b FROM u> EXCEPT <SELECT c FROM v>>"
    ),
    # EXISTS.
    "SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.a)": (
        "SELECT a FROM t WHERE EXISTS <SELECT 1 FROM u WHERE (= u.a t.a)>"
    ),
    "SELECT a FROM t WHERE NOT (EXISTS (SELECT RSTREAM(*) FROM u)) AND b": (
        "SELECT a FROM t WHERE (and NOT EXISTS <RSTREAM SELECT * FROM u> b)"
    ),
}


@pytest.mark.parametrize(("text", "meaning"), _QUERIES.items())
def test_a_query_is_read_as_this_tree(text: str, meaning: str) -> None:
    assert shown(parse_query(text)) == meaning


_EXPRESSIONS = {
    # Precedence is Spark's.
    "a + b * c - d": "(- (+ a (* b c)) d)",
    "a * b / c % d div e": "(div (% (/ (* a b) c) d) e)",
    "-a * b": "(* (neg a) b)",
    "- 5": "-5",
    "-(5) + +6": "(+ -5 6)",
    "- -5": "(neg -5)",
    "a || b || 'c'": "(|| (|| a b) 'c')",
    "a & (b | ~c)": "(& a (| b (~ c)))",
    "a << 2": "(<< a 2)",
    "NOT a AND b OR c": "(or (and (not a) b) c)",
    "NOT a = b": "(not (= a b))",
    "! a": "(not a)",
    "a == b AND c != d AND e <> f AND g <=> h": "(and (and (and (= a b) (<> c d)) (<> e f)) (<=> g h))",
    "a BETWEEN 1 AND 2 AND b NOT BETWEEN 3 AND 4": "(and (between a 1 2) (not (between b 3 4)))",
    "a IN (1, 2) OR b NOT IN ('x')": "(or (in a 1 2) (not (in b 'x')))",
    "a LIKE 'x%' AND b NOT LIKE 'y' AND c ILIKE 'z' AND d NOT RLIKE 'w'": (
        "(and (and (and (like a 'x%') (not (like b 'y'))) (ilike c 'z')) (not (rlike d 'w')))"
    ),
    "a LIKE 'x!%' ESCAPE '!'": "(like a 'x!%' '!')",
    "a NOT LIKE 'x!%' ESCAPE '!'": "(not (like a 'x!%' '!'))",
    "a IS NULL AND b IS NOT NULL": "(and (is_null a) (is_not_null b))",
    "a IS TRUE AND b IS NOT FALSE": "(and (<=> a True) (not (<=> b False)))",
    "a IS UNKNOWN": "(is_null a)",
    "a IS DISTINCT FROM b AND c IS NOT DISTINCT FROM d": "(and (not (<=> a b)) (<=> c d))",
    # Calls.
    "Upper(a)": "(upper a)",
    "no_such_function(a, 1)": "(no_such_function a 1)",
    "pi()": "(pi)",
    "COUNT(*)": "(count *)",
    "COUNT(DISTINCT a, b)": "(count DISTINCT a b)",
    "SUM(a) FILTER (WHERE b > 1)": "(sum a WHERE (> b 1))",
    "nvl(a, b)": "(nvl a b)",
    "date_trunc('hour', ts)": "(date_trunc 'hour' ts)",
    "EXTRACT(hour FROM ts)": "(extract 'HOUR' ts)",
    "substring(a FROM 2 FOR 3)": "(substring a 2 3)",
    "substring(a, 2, 3)": "(substring a 2 3)",
    "CASE WHEN a THEN 1 WHEN b THEN 2 ELSE 3 END": "(case a 1 b 2 3)",
    "CASE a WHEN 1 THEN 'x' WHEN 2 THEN 'y' END": "(case (= a 1) 'x' (= a 2) 'y')",
    # Casts.
    "CAST(a AS DECIMAL(10, 2))": "(DECIMAL(10, 2) a)",
    "TRY_CAST(a + b AS string)": "(string? (+ a b))",
    "a::bigint::string": "(string (bigint a))",
    "(a + b)::decimal(3,1)": "(decimal(3,1) (+ a b))",
    # Constants.
    "TRUE OR false OR NULL": "(or (or True False) None)",
    "1.5 + .5 + 1e3": "(+ (+ 1.5 .5) 1e3)",
    "10L": "(BIGINT 10)",
    "-10L": "(BIGINT -10)",
    "1.5D": "(DOUBLE 1.5)",
    "1.50BD": "(DECIMAL(3,2) 1.50)",
    "'it''s'": '"it\'s"',
    r"'a\'b\n\u0041\\'": repr("a'b\nA\\"),
    "TIMESTAMP '2024-01-01 00:00:00'": "'2024-01-01 00:00:00'",
    "DATE '2024-01-01'": "'2024-01-01'",
    "INTERVAL '5' SECOND": "5000000",
    "INTERVAL 5 SECONDS": "5000000",
    "INTERVAL '5 seconds'": "5000000",
    "INTERVAL -3 MINUTES": "-180000000",
    "INTERVAL 1 HOUR 30 MINUTES": "5400000000",
    "INTERVAL '1 2:03:04' DAY TO SECOND": "93784000000",
    "INTERVAL '-2:03' HOUR TO MINUTE": "-7380000000",
    "ts + INTERVAL 1 DAY": "(+ ts 86400000000)",
    "a /* one */ + -- two\n b": "(+ a b)",
}


@pytest.mark.parametrize(("text", "meaning"), _EXPRESSIONS.items())
def test_an_expression_is_read_as_this_tree(text: str, meaning: str) -> None:
    assert shown(parse_expression(text)) == meaning


@pytest.mark.parametrize("text", _EXPRESSIONS)
def test_the_place_of_an_expression_holds_what_it_means(text: str) -> None:
    """Cutting a node's text out and reading it again gives the node."""
    whole = parse_expression(text)
    assert (whole.span.start, whole.span.end) == (0, len(text))
    made_up = {node.span for node in nodes(whole) if isinstance(node, Constant) and node.span == whole.span}
    for node in nodes(whole):
        if isinstance(node, Name | Apply | CastTo) and node.span not in made_up:
            again = parse_expression(text[node.span.start : node.span.end])
            assert shown(node) in {shown(part) for part in nodes(again)} | {f"(= a {shown(again)})"}


@pytest.mark.parametrize("text", _QUERIES)
def test_the_places_of_queries_nest(text: str) -> None:
    for node in nodes(parse_query(text)):
        if isinstance(node, Select | FromEntry | SetOperation | SelectItem):
            below = [part for part in nodes(node) if part is not node]
            inside = [
                part for part in below if node.span.start <= part.span.start <= part.span.end <= node.span.end
            ]
            assert len(inside) == len(below) or "WITH" in text


_WINDOWED = {
    "SELECT a FROM t [NOW]": "SELECT a FROM t [NOW]",
    "SELECT a FROM t [NOW] AS b": "SELECT a FROM t AS b [NOW]",
    "SELECT a FROM t[NOW] b": "SELECT a FROM t AS b [NOW]",
    "SELECT a FROM t AS b [NOW]": "SELECT a FROM t AS b [NOW]",
    "SELECT a FROM t b[NOW], u [ROWS 5]": "SELECT a FROM t AS b [NOW], u [ROWS]",
    "SELECT a FROM (SELECT b FROM t [NOW]) [ROWS 10]": "SELECT a FROM <SELECT b FROM t [NOW]> [ROWS]",
    "SELECT a FROM (SELECT b FROM t [NOW]) x [ROWS 10]": "SELECT a FROM <SELECT b FROM t [NOW]> AS x [ROWS]",
    "SELECT a FROM (SELECT b FROM t) [ROWS 10] AS x": "SELECT a FROM <SELECT b FROM t> AS x [ROWS]",
    "SELECT a FROM t [NOW] JOIN u [ROWS 5] ON t.a = u.a": "SELECT a FROM t [NOW], u [ROWS] ON (= t.a u.a)",
    "WITH x AS (SELECT a FROM t [NOW]) SELECT a FROM x [ROWS 5]": (
        "SELECT a FROM <SELECT a FROM t [NOW]> AS x [ROWS]"
    ),
    "SELECT count(*) FROM bids GROUP BY item [RANGE 4 minutes SLIDE 1 minute]": (
        "SELECT (count *) FROM bids [RANGE] GROUP item"
    ),
    "SELECT a FROM (SELECT count(*) AS a FROM bids GROUP BY item [ROWS 5]) [NOW]": (
        "SELECT a FROM <SELECT (count *) AS a FROM bids [ROWS] GROUP item> [NOW]"
    ),
    "SELECT '[NOW]' FROM t -- [ROWS 5]": "SELECT '[NOW]' FROM t",
}


@pytest.mark.parametrize(("text", "meaning"), _WINDOWED.items())
def test_a_bracket_belongs_to_what_it_follows(text: str, meaning: str) -> None:
    assert shown(parse_query(text)) == meaning


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("SELECT a FROM t", StreamWord.AUTO),
        ("SELECT ISTREAM(a) FROM t", StreamWord.ISTREAM),
        ("SELECT dstream(a, b AS c) FROM t", StreamWord.DSTREAM),
        ("SELECT Rstream(*) FROM t", StreamWord.RSTREAM),
        ("SELECT RSTREAM(DISTINCT a) FROM t", StreamWord.RSTREAM),
        ("SELECT DISTINCT RSTREAM(a) FROM t", StreamWord.RSTREAM),
        ("SELECT ISTREAM_RESTORE(a) FROM t", StreamWord.ISTREAM_RESTORE),
        ("SELECT Istream-restore(a) FROM t", StreamWord.ISTREAM_RESTORE),
        ("SELECT Rstream-restore(*) FROM t", StreamWord.RSTREAM_RESTORE),
        ("SELECT istream, rstream FROM t", StreamWord.AUTO),
    ],
)
def test_the_word_before_the_columns_is_read(text: str, word: StreamWord) -> None:
    query = select(parse_query(text))
    assert query.word is word
    assert query.distinct is ("DISTINCT" in text)


def test_every_select_has_its_own_stream_word() -> None:
    text = "SELECT DSTREAM(a) FROM (SELECT ISTREAM(b) FROM t [NOW]) [ROWS 5]"
    assert shown(parse_query(text)) == "DSTREAM SELECT a FROM <ISTREAM SELECT b FROM t [NOW]> [ROWS]"


def test_wstream_is_the_whole_list_or_an_argument() -> None:
    whole = parse_query("SELECT Wstream(a, b AS c)[ROWS 10] FROM t [NOW]")
    assert shown(whole) == "SELECT WSTREAM(a, b AS c)[ROWS] FROM t [NOW]"
    inside = parse_query("SELECT SUM(Wstream(SUM(a))[RANGE 1 min]) AS s FROM t [NOW]")
    assert shown(inside) == "SELECT (sum WSTREAM((sum a))[RANGE]) AS s FROM t [NOW]"


def test_long_chains_of_and_are_no_deep_trees() -> None:
    deep = parse_expression(" AND ".join(f"a{i}" for i in range(1_000)))
    assert [node.parts[0] for node in nodes(deep) if isinstance(node, Name)] == [
        f"a{i}" for i in range(1_000)
    ]
