"""The words of a SELECT: which are keywords, where, and which belong to SQL that Windrow does not run.

sqlglot knows hundreds of keywords; Windrow's are these. All other words are names, so that a column may
be called `date`, `window` or `qualify`.

What to write instead of SQL of other systems, with the names that stand in the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass

from windrow.language.syntax import words
from windrow.language.tokens import TokenKind, Tokens, refuse

OVER_ALL_ROWS = ("NTILE", "PERCENT_RANK", "CUME_DIST", "LEAD", "NTH_VALUE")


def over(tokens: Tokens, index: int) -> str:
    """What to write for LEAD, NTILE and their like."""
    function = _function_before(tokens, index)
    if tokens.word(index + 1) != "(":
        return "write the window in parentheses: OVER (PARTITION BY … ORDER BY …)"
    inside = tokens.inside(index + 1)
    order = inside.find("ORDER")
    key = inside[order + 2].text if order is not None and order + 2 < len(inside) else "y"
    apart = ""
    if inside.words(0, 2) == ("PARTITION", "BY"):
        ends = inside.find("ORDER", "ROWS", "RANGE") or len(inside)
        apart = f"PARTITION BY {inside.between(2, ends - 1)} " if ends > 2 else ""
    if function in ("LEAD", "NTH_VALUE"):
        value = tokens[tokens.partner[index - 1] + 1].text
        return f"look back instead: LAG({value}) OVER ({apart}ORDER BY {key})"
    return f"there are ROW_NUMBER, RANK and DENSE_RANK: RANK() OVER ({apart}ORDER BY {key})"


def ksql_window(tokens: Tokens, index: int) -> str:
    """`FROM s WINDOW TUMBLING (SIZE 1 HOUR)` as a bracket."""
    kind, stream = tokens.word(index + 1), source_of(tokens, index)
    if tokens.word(index + 2) != "(" or kind not in ("TUMBLING", "HOPPING", "SESSION"):
        return "put the window in brackets after the stream"
    words = [token.word or token.text for token in tokens.inside(index + 2)]
    size = _amount(words, "SIZE") or "1 HOUR"
    grace = _amount(words, "PERIOD")
    more = f"; GRACE PERIOD is SLACK {grace} of CREATE STREAM {stream}" if grace else ""
    if kind == "SESSION":
        group = tokens.find("GROUP", begin=index)
        ends = tokens.find("HAVING", "EMIT", ")", "LIMIT", begin=group or 0) or len(tokens)
        grouped = group is not None and group + 2 < ends
        apart = f" PARTITION BY {tokens.between((group or 0) + 2, ends - 1)}" if grouped else ""
        return f"write FROM {stream} [SESSION {' '.join(words[:2]) or '5 MINUTES'} INCLUSIVE{apart}]{more}"
    advance = _amount(words, "BY") if kind == "HOPPING" else size
    return f"write FROM {stream} [RANGE {size} SLIDE {advance or size}]{more}"


def ksql_within(tokens: Tokens, index: int) -> str:
    """`JOIN t WITHIN 1 HOUR ON …`: windows on both sides."""
    begin = index + (2 if tokens.word(index + 1) == "(" else 1)
    length = f"{tokens[begin].text} {tokens[begin + 1].text}"
    join = next((at for at in range(index - 1, 0, -1) if tokens.word(at) == "JOIN"), 0)
    source = next((at for at in range(join, 0, -1) if tokens.word(at) in ("FROM", ",")), 0)
    first, other = tokens[source + 1].text, tokens[join + 1].text
    return f"write FROM {first} [RANGE {length}] … JOIN {other} [RANGE {length}] … ON …"


def lateral_table(tokens: Tokens, index: int) -> str:
    """`LATERAL TABLE(f(x)) AS t(a)`: a function that gives rows is an array, unnested."""
    if tokens.words(index + 1, 2) != ("TABLE", "("):
        return _JOINED
    call = tokens.between(index + 3, tokens.partner[index + 2] - 1)
    return f"give an array, and write UNNEST({call}) AS t(x), or LATERAL VIEW explode({call}) t AS x"


def source_of(tokens: Tokens, index: int) -> str:
    """The first source of the SELECT that an index is in; `s` if that is not a name."""
    after = [at for at in range(index, len(tokens)) if tokens.word(at) == "FROM"]
    before = [at for at in range(index, -1, -1) if tokens.word(at) == "FROM"]
    for at in (*after[:1], *before[:1]):
        if tokens.is_kind(at + 1, TokenKind.WORD, TokenKind.QUOTED):
            return tokens[at + 1].text
    return "s"


def _amount(words: list[str], behind: str) -> str | None:
    """A number and its unit behind a word."""
    if behind not in words:
        return None
    at = words.index(behind)
    return " ".join(words[at + 1 : at + 3])


def quantified(tokens: Tokens, index: int) -> str:
    """`x > ALL (SELECT y …)` as a comparison with one row, `x <> ALL (…)` as NOT IN."""
    sign, word = tokens.word(index - 1), tokens.word(index)
    value = tokens[index - 2].text if index > 1 else "x"
    if tokens.word(index + 2) != "SELECT":
        if sign in ("LIKE", "ILIKE", "RLIKE"):
            joined = " OR " if word != "ALL" else " AND "
            patterns = [each.text for each in tokens.inside(index + 1) if each.text != ","]
            return f"write {joined.join(f'{value} {sign} {pattern}' for pattern in patterns)}"
        if (sign, word) not in (("<>", "ALL"), ("!=", "ALL"), ("=", "ANY"), ("=", "SOME")):
            return f"compare {value} with one value"
        values = tokens.between(index + 1, tokens.partner[index + 1])
        return f"write {value} {'NOT IN' if word == 'ALL' else 'IN'} {values}"
    inside = tokens.inside(index + 1)
    named = inside.find("FROM") or 2
    column = inside.between(1, named - 1)
    rest = inside.between(named, -1) if named < len(inside) else "…"
    if sign in ("<>", "!=") and word == "ALL":
        return f"write {value} NOT IN (SELECT {column} {rest})"
    if sign in (">", ">=", "<", "<="):
        most = "MAX" if (sign in (">", ">=")) == (word == "ALL") else "MIN"
        return f"write {value} {sign} (SELECT {most}({column}) {rest})"
    return "write EXISTS (SELECT …) or NOT EXISTS (SELECT …)"


def asof(tokens: Tokens, index: int) -> str:
    """An ASOF JOIN: with a table as of a row's time, or with the last row of another stream."""
    other = tokens[index + 2].text if index + 2 < len(tokens) else "t"
    equal, using, key = tokens.find("=", begin=index), tokens.find("USING", begin=index), "k"
    if equal is not None and tokens.word(equal + 2) == ".":
        key = tokens[equal + 3].text
    elif using is not None and tokens.word(using + 1) == "(":
        key = tokens[using + 2].text
    elif equal is not None:
        key = tokens[equal + 1].text
    return (
        f"declare {other} as a TABLE, which is joined as of each row's time; of a stream take the last row of"
        f" each {key}: JOIN {other} [ROWS 1 PARTITION BY {key}] ON …"
    )


def _numbered(tokens: Tokens, index: int) -> str:
    """`ORDER BY x LIMIT n OFFSET m` by numbers of rows."""
    skipped = int(tokens[index + 1].text) if tokens[index + 1].text.isdecimal() else 0
    near = range(index - 1, -1, -1)
    order = next((at for at in near if tokens.words(at, 2) == ("ORDER", "BY")), None)
    limit = next(
        (at for at in (*near[:4], index + 2, index + 3) if tokens.word(at) in ("LIMIT", "FETCH")), None
    )
    ends = min(at for at in (limit, index) if at is not None and at > (order or 0))
    keys = tokens.between(order + 2, ends - 1) if order is not None else "…"
    numbers = (
        [token.text for token in tokens.cut(limit, limit + 3) if token.text.isdecimal()] if limit else []
    )
    kept = f"BETWEEN {skipped + 1} AND {skipped + int(numbers[0])}" if numbers else f"> {skipped}"
    return f"in place of ORDER BY … write QUALIFY ROW_NUMBER() OVER (ORDER BY {keys}) {kept}"


def _pivoted(tokens: Tokens, index: int) -> str:
    """`PIVOT (SUM(x) FOR c IN ('a', 'b'))` as aggregates with conditions."""
    inside = tokens.inside(index + 1)
    named = inside.find("FOR") or 0
    if not named or inside.word(named + 2) != "IN" or inside.word(named - 1) != ")":
        return "select an aggregate for each value: SUM(x) FILTER (WHERE c = 'a') AS a"
    called = inside.between(0, named - 1)
    column, values = inside[named + 1].text, inside.cut(named + 3, len(inside))
    parts = []
    for value in [each.text for each in values if each.kind in (TokenKind.STRING, TokenKind.NUMBER)][:2]:
        plain = value.strip("'")
        name = plain if plain.isidentifier() else f"{column}_{re.sub('[^0-9a-zA-Z_]', '_', plain)}"
        parts.append(f"{called} FILTER (WHERE {column} = {value}) AS {name}")
    return f"select an aggregate for each value: {', '.join(parts)}"


def _sampled(tokens: Tokens, index: int) -> str:
    """`TABLESAMPLE (10 PERCENT)` by a hash."""
    amount = tokens[index + 2].text
    part = amount if tokens.word(index + 3) == "PERCENT" and amount.isdecimal() else "10"
    return f"filter by a hash: WHERE crc32(string(row_num)) % 100 < {part}; of whole keys, by that of the key"


def _looked_back(tokens: Tokens, index: int) -> str:
    """MATCH_RECOGNIZE: the row before, in the same order."""
    inside = tokens.inside(index + 1)
    measures = inside.find("MEASURES", "ONE", "ALL", "PATTERN")
    order = inside.between(0, measures - 1) if measures else "ORDER BY ts"
    stream = _before(tokens, index, "s")
    return (
        f"look back with LAG(x) OVER ({order}), or join the stream with itself:"
        f" FROM {stream} [RANGE 1 HOUR] a, {stream} [RANGE 1 HOUR] b"
    )


def _before(tokens: Tokens, index: int, otherwise: str) -> str:
    return tokens[index - 1].text if index else otherwise


def _function_before(tokens: Tokens, index: int) -> str:
    """The function of the call that ends before an index."""
    return tokens.word(tokens.partner[index - 1] - 1) if tokens.word(index - 1) == ")" else ""


RESERVED = words(
    "SELECT DISTINCT FROM WHERE GROUP BY HAVING ORDER LIMIT ASC DESC UNION EXCEPT INTERSECT ALL AS ON JOIN "
    "AND OR NOT IN EXISTS BETWEEN LIKE ILIKE RLIKE IS NULL TRUE FALSE CASE WHEN THEN ELSE END DIV"
)
#: words that are keywords only in front of certain others
_BEFORE = {
    "INNER": {"JOIN"},
    "CROSS": {"JOIN"},
    "NATURAL": {"JOIN", "LEFT", "RIGHT", "FULL", "INNER"},
    "LEFT": {"JOIN", "OUTER", "SEMI", "ANTI"},
    "RIGHT": {"JOIN", "OUTER", "SEMI", "ANTI"},
    "FULL": {"JOIN", "OUTER", "SEMI", "ANTI"},
    "OUTER": {"JOIN"},
    "SEMI": {"JOIN"},
    "ANTI": {"JOIN"},
    "USING": {"("},
    "NULLS": {"FIRST", "LAST"},
    "MINUS": {"SELECT", "ALL", "DISTINCT"},
    "FILTER": {"("},
    "PARTITION": {"BY"},
    "WITHIN": {"GROUP"},
    "SETS": {"("},
    "REPLACE": {"("},
}
_AFTER = {
    "FIRST": {"NULLS"},
    "LAST": {"NULLS"},
    "FILTER": {")"},
    "PARTITION": {"("},
    "WITHIN": {")"},
    "SETS": {"GROUPING"},
    "REPLACE": {"*"},
    "UNKNOWN": {"IS", "NOT"},
}
_BEGINS_OPERAND = frozenset({"(", "NOT", "CASE", "EXISTS", "NULL", "TRUE", "FALSE"})


def is_keyword(tokens: Tokens, index: int) -> bool:
    """Whether the word at an index is one of the language, and not somebody's name."""
    word = tokens.word(index)
    if tokens[index].kind is not TokenKind.WORD or "." in (tokens.word(index - 1), tokens.word(index + 1)):
        return False
    if word in RESERVED:
        return True
    if word in _PLACED:
        return _PLACED[word](tokens, index)
    if word not in _AFTER and word not in _BEFORE:
        return False
    before, after = tokens.word(index - 1), tokens.word(index + 1)
    return before in _AFTER.get(word, {before}) and after in _BEFORE.get(word, {after})


def _is_window(tokens: Tokens, index: int) -> bool:
    """`WINDOW w AS (`, behind FROM, WHERE or HAVING."""
    return ends_operand(tokens, index - 1) and tokens.words(index + 2, 2) == ("AS", "(")


def _is_over(tokens: Tokens, index: int) -> bool:
    """Behind a call, before a parenthesis or the name of a window."""
    if tokens.word(index - 1) not in (")", "NULLS"):
        return False
    after = index + 1
    named = after < len(tokens) and tokens[after].is_name and not is_keyword(tokens, after)
    return named or tokens.word(after) == "("


def _is_in_zone(tokens: Tokens, index: int) -> bool:
    """A word of `x AT TIME ZONE 'z'`."""
    begin = index - ("AT", "TIME", "ZONE").index(tokens.word(index))
    return tokens.words(begin, 3) == ("AT", "TIME", "ZONE") and ends_operand(tokens, begin - 1)


def _is_grouped_by(tokens: Tokens, index: int) -> bool:
    """ROLLUP or CUBE: of columns, or WITH before it."""
    if tokens.word(index - 1) == "WITH":
        return ends_operand(tokens, index - 2)
    return tokens.word(index + 1) == "(" and _in_group_by(tokens, index)


def _in_group_by(tokens: Tokens, index: int) -> bool:
    """Whether a list that a word is in begins behind GROUP BY, or in GROUPING SETS."""
    at = next((at for at in tokens.outwards(index) if tokens.word(at) in RESERVED | {"("}), -1)
    return tokens.words(at - 1, 2) in (("GROUP", "BY"), ("SETS", "("))


#: words whose neighbours do not decide by themselves
_PLACED: dict[str, Callable[[Tokens, int], bool]] = {
    "WITH": lambda tokens, index: (
        index == 0 or tokens.word(index - 1) == "(" or tokens.word(index + 1) in ("ROLLUP", "CUBE")
    ),
    "OVER": _is_over,
    "WINDOW": _is_window,
    "QUALIFY": lambda tokens, index: ends_operand(tokens, index - 1) and begins_operand(tokens, index + 1),
    "ESCAPE": lambda tokens, index: tokens.is_kind(index + 1, TokenKind.STRING),
    **dict.fromkeys(("AT", "TIME", "ZONE"), _is_in_zone),
    **dict.fromkeys(("ROLLUP", "CUBE"), _is_grouped_by),
    "GROUPING": lambda tokens, index: tokens.word(index + 1) == "SETS" and _in_group_by(tokens, index),
}


def ends_operand(tokens: Tokens, index: int) -> bool:
    """Whether an operand may end with the token at an index."""
    if not 0 <= index < len(tokens):
        return False
    token = tokens[index]
    if token.kind is TokenKind.SIGN:
        return token.word in (")", "]", "*")
    return not is_keyword(tokens, index) or token.word in ("END", "NULL", "TRUE", "FALSE")


def begins_operand(tokens: Tokens, index: int) -> bool:
    """Whether an operand may begin with the token at an index."""
    if not 0 <= index < len(tokens):
        return False
    token = tokens[index]
    if token.word in _BEGINS_OPERAND:
        return True
    return token.kind is not TokenKind.SIGN and not is_keyword(tokens, index)


# SQL that is not Windrow's.


@dataclass(frozen=True)
class Foreign:
    """A piece of SQL that means something elsewhere: how it is recognised, why not here, what to do."""

    recognised: Callable[[Tokens, int], bool]
    reason: str | Callable[[Tokens, int], str]
    hint: str | Callable[[Tokens, int], str]


def _infix(tokens: Tokens, index: int) -> bool:
    return ends_operand(tokens, index - 1) and begins_operand(tokens, index + 1)


def _unknown_over(tokens: Tokens, index: int) -> bool:
    """OVER behind a call that looks at all rows of a partition, or at those that follow."""
    if tokens.word(index - 1) != ")":
        return tokens.word(index - 1) not in ("NULLS",) and _infix(tokens, index)
    return tokens.word(tokens.partner[index - 1] - 1) in OVER_ALL_ROWS and is_keyword(tokens, index)


def _then(*following: str) -> Callable[[Tokens, int], bool]:
    return lambda tokens, index: tokens.words(index + 1, len(following)) == following


def _after(*preceding: str) -> Callable[[Tokens, int], bool]:
    def recognised(tokens: Tokens, index: int) -> bool:
        return tokens.word(index - 1) in preceding and begins_operand(tokens, index + 1)

    return recognised


def _quantifier(tokens: Tokens, index: int) -> bool:
    return (
        tokens.word(index + 1) == "("
        and tokens.word(index - 1) in _COMPARISONS
        and not is_any_of_query(tokens, index)
    )


def is_any_of_query(tokens: Tokens, index: int) -> bool:
    """`= ANY (SELECT …)`, which is IN."""
    return (
        tokens.word(index) in ("ANY", "SOME")
        and tokens.word(index - 1) in ("=", "==")
        and tokens.word(index + 1) == "("
        and tokens.word(index + 2) in ("SELECT", "WITH")
    )


_COMPARISONS = frozenset({"=", "==", "<>", "!=", "<", "<=", ">", ">=", "LIKE", "ILIKE", "RLIKE"})
_EMITTED = frozenset({"CHANGES", "FINAL"})
_NOT = "is not part of the language"
_JOINED = (
    "group the inner query by what it is compared with, and join it: LEFT JOIN (SELECT k, MAX(x) AS m FROM …"
    " GROUP BY k) AS q ON q.k = …; of an array write UNNEST(x) AS t(a)"
)
_SORTED = "rows of a stream have no order to keep within a partition"
FOREIGN: dict[str, Foreign] = {
    "OVER": Foreign(
        _unknown_over,
        lambda tokens, index: f"{_function_before(tokens, index) or 'this form of'} OVER {_NOT}",
        over,
    ),
    "LATERAL": Foreign(
        lambda tokens, index: tokens.word(index + 1) in ("(", "TABLE"),
        f"LATERAL (…) {_NOT}",
        lateral_table,
    ),
    "APPLY": Foreign(_after("CROSS", "OUTER"), f"APPLY {_NOT}", _JOINED),
    "WITHIN": Foreign(
        lambda tokens, index: (
            tokens.is_kind(index + 1, TokenKind.NUMBER)
            or (tokens.word(index + 1) == "(" and tokens.is_kind(index + 2, TokenKind.NUMBER))
        ),
        "how far rows of a join may be apart is said by windows",
        ksql_within,
    ),
    "FROM": Foreign(
        lambda tokens, index: index == 0,
        "there is no SELECT before FROM",
        lambda tokens, index: (
            f"write SELECT {tokens.between(3, -1)} FROM {tokens[1].text}"
            if tokens.word(2) == "SELECT" and len(tokens) > 3
            else f"write SELECT * {tokens.between(0, -1)}"
        ),
    ),
    "PIVOT": Foreign(_then("("), f"PIVOT {_NOT}", _pivoted),
    "UNPIVOT": Foreign(_then("("), f"UNPIVOT {_NOT}", "use UNION ALL"),
    "TABLESAMPLE": Foreign(_then("("), f"TABLESAMPLE {_NOT}", _sampled),
    "INTO": Foreign(
        _infix, "SELECT … INTO makes no table here", "write CREATE QUERY name AS SELECT … INTO 'sink'"
    ),
    "OFFSET": Foreign(_infix, f"OFFSET {_NOT}", _numbered),
    "WINDOW": Foreign(
        lambda tokens, index: _infix(tokens, index) and not _is_window(tokens, index),
        "the window of a stream stands in brackets behind it",
        ksql_window,
    ),
    "EMIT": Foreign(
        lambda tokens, index: ends_operand(tokens, index - 1) and tokens.word(index + 1) in _EMITTED,
        "EMIT stands at the end of a query, and says CHANGES, FINAL or ON WINDOW CLOSE",
        "leave it out: windows with a SLIDE are told when they are over, all else gives changes",
    ),
    "CLUSTER": Foreign(_then("BY"), f"CLUSTER BY {_NOT}", _SORTED),
    "DISTRIBUTE": Foreign(_then("BY"), f"DISTRIBUTE BY {_NOT}", "Windrow chooses the partitions"),
    "SORT": Foreign(_then("BY"), f"SORT BY {_NOT}", "use ORDER BY … LIMIT with RSTREAM"),
    "TOP": Foreign(
        _after("SELECT", "DISTINCT"),
        f"TOP {_NOT}",
        lambda tokens, index: f"write ORDER BY … LIMIT {tokens[index + 1].text} at the end",
    ),
    "FOR": Foreign(_then("UPDATE"), f"FOR UPDATE {_NOT}", "a query only reads"),
    "MATCH_RECOGNIZE": Foreign(_then("("), f"MATCH_RECOGNIZE {_NOT}", _looked_back),
    "ASOF": Foreign(_then("JOIN"), f"ASOF JOIN {_NOT}", asof),
    "SIMILAR": Foreign(
        _then("TO"),
        f"SIMILAR TO {_NOT}",
        lambda tokens, index: f"write {_before(tokens, index, 'x')} RLIKE '^…$', with a regular expression",
    ),
    "RECURSIVE": Foreign(
        _after("WITH"), "recursive queries are not part of the language", "leave out RECURSIVE"
    ),
    "ANY": Foreign(_quantifier, f"a comparison with ANY (…) {_NOT}", quantified),
    "ALL": Foreign(_quantifier, f"a comparison with ALL (…) {_NOT}", quantified),
    "SOME": Foreign(_quantifier, f"a comparison with SOME (…) {_NOT}", quantified),
    "VALUES": Foreign(_then("("), "VALUES makes no table here", "declare the rows with CREATE TABLE"),
    "REGEXP": Foreign(
        _infix,
        f"REGEXP {_NOT}",
        lambda tokens, index: f"write {tokens[index - 1].text} RLIKE {tokens[index + 1].text}",
    ),
}


def refuse_foreign(tokens: Tokens, ignored: Collection[int] = ()) -> None:
    """Refuse SQL that the language leaves out, with the reason and the way out."""
    for index, token in enumerate(tokens):
        if index in ignored:
            continue
        found = FOREIGN.get(token.word) if tokens.word(index - 1) != "." else None
        if found and found.recognised(tokens, index):
            reason, hint = (
                what if isinstance(what, str) else what(tokens, index) for what in (found.reason, found.hint)
            )
            refuse(token, reason, "not-supported", hint)
