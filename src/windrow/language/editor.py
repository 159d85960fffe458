"""What an editor is told of a script: what is wrong, what can be typed at a place, what a word there means.

Statements are looked at one by one, so that one that is not finished hides nothing of the others.

>>> from windrow.language.compile import declare_stream
>>> catalog = Catalog(declare_stream("bids", "item BIGINT, price DOUBLE, ts TIMESTAMP"))
>>> text = "SELECT item, MAX(pri FROM bids [RANGE 5 MINUTES]"
>>> start, found = suggestions(text, text.index(" FROM"), catalog)
>>> text[start:start + 3], found[0]
('pri', Completion(text='price', kind='column', detail='DOUBLE of bids'))
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from windrow.algebra import Emit, Stream, Table, Window, aggregates
from windrow.algebra.explain.warnings import query_warnings
from windrow.algebra.functions import catalogue
from windrow.errors import QueryError, Span, WindrowError
from windrow.language.binder.bound_statements import RegisterQuery
from windrow.language.catalog import Catalog, Readable, kind_of
from windrow.language.compile import compile_query, compile_script
from windrow.language.tokens import Token, TokenKind, scan

#: windows as they stand after a stream
FORMS = {
    "[RANGE 5 MINUTES SLIDE 1 MINUTE]": "the past five minutes, every minute",
    "[RANGE 1 MINUTE SLIDE 1 MINUTE]": "each minute by itself (tumbling)",
    "[RANGE 1 MINUTE]": "the past minute, at every instant",
    "[ROWS 100]": "the newest hundred rows",
    "[ROWS 10 PARTITION BY key]": "the newest ten rows of each key",
    "[SESSION 30 SECONDS PARTITION BY key]": "until nothing comes for thirty seconds, of each key",
    "[LANDMARK SLIDE 1 HOUR]": "from the beginning on, every hour",
    "[NOW]": "the rows of this instant",
    "[UNBOUNDED]": "all rows since the beginning",
}
_MOST = 60


def _tokens(text: str) -> Sequence[Token]:
    """The tokens of a text, up to a string or a quoted name that is not finished."""
    try:
        return scan(text).items
    except QueryError as error:
        end = error.span.start if error.span is not None else 0
        return scan(text[:end]).items if end < len(text) else ()


def statements(text: str) -> Iterator[Span]:
    """Where each statement of a script is, however much of it is wrong.

    >>> [text[s.start : s.end] for text in ["a; 'b;' ;"] for s in statements(text)]
    ['a', " 'b;' "]
    """
    begin = 0
    for each in _tokens(text):
        if each.text == ";":
            yield Span(begin, each.start)
            begin = each.end
    if text[begin:].strip():
        yield Span(begin, len(text))


@dataclass(frozen=True)
class Remark:
    """What is to be said about a place of a text: an error, or a warning."""

    span: Span
    code: str
    message: str
    hint: str | None
    is_error: bool


def remarks(text: str, catalog: Catalog) -> Iterator[Remark]:
    """What is wrong with each statement, or rarely meant; the catalog learns what is right."""
    for span in statements(text):
        part = text[span.start : span.end]
        try:
            bound = compile_script(part, catalog)
        except WindrowError as error:
            where = error.span or Span(0, len(part))
            place = Span(span.start + where.start, span.start + max(where.end, where.start + 1))
            yield Remark(place, error.code, error.message, error.hint, is_error=True)
            continue
        for query in [each.query for each in bound if isinstance(each, RegisterQuery)]:
            begins = span.start + _tokens(part)[0].start
            line = Span(begins, begins + len(text[begins : span.end].partition("\n")[0]))
            for each in query_warnings(query.plan):
                yield Remark(line, each.code, each.message, each.hint, is_error=False)


def _statement(text: str, offset: int, catalog: Catalog) -> tuple[Span, Catalog]:
    """The statement at a place, and all that is declared, in the statements before it too."""
    known, here = catalog.copy(), Span(offset, offset)
    for span in statements(text):
        if span.start <= offset <= span.end:
            return span, known
        try:
            compile_script(text[span.start : span.end], known)
        except WindrowError:
            continue
    return here, known


# ------------------------------------------------------------ what can be typed


def suggestions(text: str, offset: int, catalog: Catalog) -> tuple[int, list[Completion]]:
    """What can be typed at a place, the likeliest first; and where the word begins that it replaces."""
    statement, known = _statement(text, offset, catalog)
    start = offset - len(word_before(text, offset))
    if "--" in text[max((each.end for each in _tokens(text[:start])), default=0) : start].rpartition("\n")[2]:
        return start, []  # in a comment
    found = completions(text[statement.start : statement.end], offset - statement.start, known)
    forms = _forms(text[statement.start : start], text[start:offset], known) if found else []
    return start, [_detailed(each) for each in (*forms, *found)][:_MOST]


def _forms(before: str, word: str, catalog: Catalog) -> list[Completion]:
    """Whole windows: after a bracket without it, and after what stands in FROM with it."""
    last = _tokens(before)[-2:]
    if not last:
        return []
    if last[-1].text == "[":
        bodies = (Completion(form[1:-1], "window", meaning) for form, meaning in FORMS.items())
        return [each for each in bodies if each.text.lower().startswith(word.lower())]
    is_source = len(last) == 2 and last[0].word in ("FROM", "JOIN", ",") and last[1].is_name
    if not is_source or word or catalog.entry(last[1].name) is None:
        return []
    return [Completion(form, "window", meaning) for form, meaning in FORMS.items()]


def _detailed(each: Completion) -> Completion:
    """With quotes where a name needs them, and with what a function does."""
    if each.kind in ("column", "stream", "table", "query") and not re.fullmatch(r"[^\W\d]\w*", each.text):
        return replace(each, text="`" + each.text.replace("`", "``") + "`")
    if each.kind in ("aggregate", "function") and (told := _called(each.text)) is not None:
        return replace(each, detail=told)
    return each


def _called(name: str) -> str | None:
    """What a function gives."""
    if aggregates.is_aggregate(name):
        return aggregate_form(name)
    functions = {alias: each for each in catalogue() for alias in (each.name, *each.aliases)}
    function = functions.get(name.lower())
    return None if function is None else f"{function.description}: {function.example.replace('->', '→')}"


def aggregate_form(name: str) -> str:
    """How an aggregate is called.

    >>> aggregate_form("quantile"), aggregate_form("max_by")
    ('QUANTILE(x, fraction)', 'MAX_BY(x, y)')
    """
    kind = aggregates.lookup(name)
    arguments = ["x", "y"][: max(1, kind.arity[0])]
    options = "".join(f"[, {option}]" for option, _ in kind.options)
    return f"{name.upper()}({', '.join([*arguments, *kind.parameters])}{options})"


# ------------------------------------------------------------ what a word means


def meaning(text: str, offset: int, catalog: Catalog) -> tuple[Span, str] | None:
    """What the word at a place means, and where it is: a name, a column, a function, the label of a window.

    >>> from windrow.language.compile import declare_stream
    >>> catalog = Catalog(declare_stream("bids", "item BIGINT, price DOUBLE, ts TIMESTAMP"))
    >>> text = "SELECT MAX(price) AS top FROM bids [RANGE 5 MINUTES SLIDE 1 MINUTE]"
    >>> [meaning(text, text.index(word), catalog)[1] for word in ("price", "MAX", "RANGE")]
    ['`price` DOUBLE of bids', 'MAX(x)', 'WKS: SLIDE divides RANGE: every row lives for RANGE']
    """
    statement, known = _statement(text, offset, catalog)
    part, at = text[statement.start : statement.end], offset - statement.start
    found = _tokens(part)
    here = next((n for n, each in enumerate(found) if each.start <= at < each.end), None)
    told = None if here is None else _told(found, here, part, known)
    if here is None or told is None:
        return None
    return Span(found[here].start + statement.start, found[here].end + statement.start), told


def _told(found: Sequence[Token], here: int, part: str, catalog: Catalog) -> str | None:
    each, following = found[here], found[here + 1 : here + 2]
    opened = [n for n, one in enumerate(found[: here + 1]) if one.text == "["]
    if len(opened) > sum(one.text == "]" for one in found[:here]):
        return _label(found, opened[-1], part, catalog)
    if not each.is_name:
        return None
    if following and following[0].text == "(" and (called := _called(each.text)) is not None:
        return called
    entry = catalog.entry(each.name)
    if isinstance(entry, Readable):
        columns = "\n".join(f"  {name} {type_}" for name, type_ in _fields(entry))
        more = f" WATTR {entry.wattr}" if isinstance(entry, Stream) else ""
        return f"{kind_of(entry).lower()} {entry.name}{more}\n{columns}"
    named = (catalog.entry(one.name) for one in found if one.is_name)
    for source in (one for one in named if isinstance(one, Readable)):
        for column, type_ in _fields(source):
            if column.lower() == each.name.lower():
                return f"`{column}` {type_} of {source.name}"
    is_whole = each.word in ("SELECT", "QUERY", "ISTREAM", "DSTREAM", "RSTREAM")
    return _whole(part, catalog) if is_whole else None


def _fields(entry: object) -> list[tuple[str, str]]:
    """The columns of what can be read, each with its type."""
    if not isinstance(entry, Readable):
        return []
    schema = entry.schema if isinstance(entry, Stream | Table) else entry.plan.schema
    return [(field.name, str(field.type)) for field in schema]


def _label(found: Sequence[Token], opened: int, part: str, catalog: Catalog) -> str | None:
    """How rows leave the window of a bracket, and why so."""
    end = next((each.end for each in found[opened:] if each.text == "]"), None)
    if end is None or not opened or not found[opened - 1].is_name:
        return None
    text = f"SELECT * FROM {found[opened - 1].text} {part[found[opened].start : end]}"
    try:
        emit = compile_query(text, catalog)
    except QueryError:
        return None
    window = next((node for node in emit.walk() if isinstance(node, Window)), None)
    return None if window is None else str(window.label)


def _whole(part: str, catalog: Catalog) -> str | None:
    """How the answers of a query expire, and what its stream word means."""
    try:
        bound = compile_script(part, catalog.copy())
    except WindrowError:
        return None
    plans = (getattr(getattr(each, "query", each), "plan", None) for each in bound)
    emit = next((plan for plan in plans if isinstance(plan, Emit)), None)
    if emit is None:
        return None
    return f"{emit.label}; answers are " + (emit.meaning.value or "'+' and '-' rows")


# ------------------------------------------------------------ completions
#
# Only tokens are looked at, since a statement that is being typed seldom parses.


_BEGINNINGS = {
    "ALTER": ["ARCHIVE"],
    "CREATE": ["ARCHIVE", "OR REPLACE QUERY", "QUERY", "STREAM", "TABLE"],
    "DESCRIBE": [""],
    "DROP": ["ARCHIVE", "QUERY", "STREAM", "TABLE"],
    "EXPLAIN": ["", "ANALYZE"],
    "REFRESH": ["QUERY"],
    "SELECT": [""],
    "SHOW": ["ARCHIVES", "GAPS", "QUERIES", "STREAMS", "TABLES"],
}
_STATEMENTS = [f"{word} {rest}".strip() for word, several in _BEGINNINGS.items() for rest in several]
_CLAUSES = """
    SELECT DISTINCT FROM WHERE GROUP BY HAVING QUALIFY ORDER LIMIT ASC DESC UNION ALL EXCEPT INTERSECT AS ON
    JOIN LEFT RIGHT FULL OUTER CROSS AND OR NOT IN EXISTS BETWEEN LIKE IS NULL TRUE FALSE CASE WHEN THEN ELSE
    END OVER PARTITION CAST INTERVAL ISTREAM DSTREAM RSTREAM WSTREAM UNNEST INTO PRIORITY EVERY
"""
_WINDOW = """
    RANGE ROWS SLIDE LAG WATTR RATTR SATTR ORIGIN ZONE INTERNAL LANDMARK FROM UNTIL UNBOUNDED NOW LIFETIME
    SESSION CUMULATE PARTITION BY INCLUSIVE
"""
_UNITS = "MICROSECONDS MILLISECONDS SECONDS MINUTES HOURS DAYS WEEKS MONTHS YEARS ROWS"
_DECLARED = """
    AS SELECT WATTR SLACK ORDERED PER IDLE PUNCTUATED BY WHEN LATE DROP KEEP TO SHEDDABLE FROM FORMAT ZONE
    ALSO RESOLUTION WATERMARK FOR NRR RELATION KEY BIGINT INT DOUBLE STRING BOOLEAN DATE TIMESTAMP DECIMAL
"""
_TABLE_FUNCTIONS = "TUMBLE HOP CUMULATE SESSION"


@dataclass(frozen=True)
class Completion:
    """A word that may stand at a place, what it is, and what else is to be said of it."""

    text: str
    kind: str
    detail: str = ""


def completions(text: str, cursor: int, catalog: Catalog) -> list[Completion]:
    """What the word that ends at the cursor may become; the likeliest first.

    >>> from windrow.language.catalog import Catalog
    >>> from windrow.language.compile import compile_script
    >>> catalog = Catalog()
    >>> columns = "item BIGINT, price DOUBLE, ts TIMESTAMP"
    >>> _ = compile_script(f"CREATE STREAM bids ({columns}) WATTR ts ORDERED FROM 'push:'", catalog)
    >>> def words(text):
    ...     return [each.text for each in completions(text, len(text), catalog)]
    >>> words("SELECT pr"), words("SELECT * FROM b"), words("SELECT * FROM bids [NOW] AS b WHERE b.i")
    (['price', 'PRIORITY'], ['bids'], ['item'])
    >>> words("SELECT MAX(price) FROM bids [RA"), words("SELECT * FROM bids [RANGE 5 MINU"), words("crea")
    (['RANGE', 'RATTR'], ['MINUTES'], ['CREATE'])
    """
    before = text[:cursor]
    word = word_before(text, cursor)
    try:
        tokens = scan(before[: len(before) - len(word)]).items
    except QueryError:  # inside of a string or a quoted name
        return []
    ends = [place for place, token in enumerate(tokens, 1) if token.text == ";"]
    tokens = tokens[ends[-1] :] if ends else tokens
    found = dict.fromkeys(_possible(tokens, _words_after(text, cursor), catalog))
    return [each for each in found if each.text.lower().startswith(word.lower()) and each.text != word]


def word_before(text: str, cursor: int) -> str:
    """The part of a word that stands before the cursor.

    >>> word_before("SELECT pri", 10), word_before("SELECT ", 7), word_before("b.pri", 5)
    ('pri', '', 'pri')
    """
    return re.split(r"\W", text[:cursor])[-1]


def _words_after(text: str, cursor: int) -> Sequence[Token]:
    """What follows the cursor up to the end of the statement, if it can be read."""
    try:
        rest = scan(text[cursor:]).items
    except QueryError:
        return ()
    end = next((place for place, token in enumerate(rest) if token.text == ";"), len(rest))
    return rest[:end]


def _possible(tokens: Sequence[Token], after: Sequence[Token], catalog: Catalog) -> Iterator[Completion]:
    last = tokens[-1].word if tokens else ""
    said = [token.word for token in tokens[:2]]
    clauses = ("SELECT", "FROM", "WHERE", "GROUP", "HAVING", "ORDER", "ON")
    clause = next((token.word for token in reversed(tokens) if token.word in clauses), "")
    if not tokens:
        yield from (Completion(first, "keyword") for first in _BEGINNINGS)
    elif last == "." and len(tokens) > 1:
        yield from _columns([_meant(tokens[-2].name, [*tokens, *after], catalog)], catalog)
    elif (rest := _second(tokens)) is not None:
        yield from (Completion(each, "keyword") for each in rest)
    elif said[0] in ("DESCRIBE", "DROP", "REFRESH", "ALTER") or said == ["EXPLAIN", "ANALYZE"]:
        yield from _sources(catalog, all_kinds=True)
    elif _opened(tokens) == "[":
        yield from _in_window(tokens, after, catalog)
    elif tokens[0].word == "CREATE" and "SELECT" not in {token.word for token in tokens}:
        yield from _words(_DECLARED)
    elif last in ("FROM", "JOIN", "TABLE") or (last == "," and clause == "FROM"):
        yield from _sources(catalog)
        yield from _words(_TABLE_FUNCTIONS, "function")
    else:
        yield from _columns(_read([*tokens, *after], catalog), catalog)
        yield from _functions()
        yield from _words(_CLAUSES)


def _words(text: str, kind: str = "keyword") -> Iterator[Completion]:
    return (Completion(word, kind) for word in text.split())


def _second(tokens: Sequence[Token]) -> list[str] | None:
    """What follows the first words of a statement, if these are the beginning of several."""
    said = " ".join(token.word for token in tokens)
    if said in ("SELECT", "EXPLAIN", "DESCRIBE"):
        return None
    rest = [each.removeprefix(said).strip() for each in _STATEMENTS if each.startswith(f"{said} ")]
    return list(dict.fromkeys(each.split()[0] for each in rest)) or None


def _opened(tokens: Sequence[Token]) -> str:
    """The bracket that is open at the end, if any is."""
    open_: list[str] = []
    for token in tokens:
        if token.text in ("(", "["):
            open_.append(token.text)
        elif token.text in (")", "]") and open_:
            open_.pop()
    return open_[-1] if open_ else ""


def _in_window(tokens: Sequence[Token], after: Sequence[Token], catalog: Catalog) -> Iterator[Completion]:
    last = tokens[-1]
    if last.kind is TokenKind.NUMBER:
        yield from _words(_UNITS, "unit")
    elif last.word in ("WATTR", "RATTR", "SATTR", "BY", "PATTR", ","):
        yield from _columns(_read([*tokens, *after], catalog), catalog)
        yield from _words("row_num arrival_ts", "column")
    else:
        yield from _words(_WINDOW)


def _sources(catalog: Catalog, *, all_kinds: bool = False) -> Iterator[Completion]:
    kinds = {"stream": [*catalog.streams], "table": [*catalog.tables], "query": [*catalog.queries]}
    if all_kinds:
        kinds["archive"] = [*catalog.archives]
    for kind, names in kinds.items():
        for name in names:
            shape = ", ".join(f"{column} {type_}" for column, type_ in _fields(catalog.entry(name)))
            yield Completion(name, kind, shape)


def _columns(names: Iterable[str], catalog: Catalog) -> Iterator[Completion]:
    for name in names:
        for column, kind in _fields(catalog.entry(name)):
            yield Completion(column, "column", f"{kind} of {name}")


def _read(tokens: Sequence[Token], catalog: Catalog) -> list[str]:
    """The things that a statement names; all streams and tables if it names none yet."""
    named = [token.name for token in tokens if token.is_name and catalog.entry(token.name) is not None]
    return list(dict.fromkeys(named)) or [*catalog.streams, *catalog.tables]


def _meant(alias: str, tokens: Sequence[Token], catalog: Catalog) -> str:
    """What an alias stands for: the source that it follows, with its window and AS between them."""
    if catalog.entry(alias) is not None:
        return alias
    source, depth = "", 0
    for token in tokens:
        depth += (token.text in ("(", "[")) - (token.text in (")", "]"))
        if depth == 0 and token.is_name and catalog.entry(token.name) is not None:
            source = token.name
        elif depth == 0 and source and token.is_name and token.name.lower() == alias.lower():
            return source
    return alias


def _functions() -> Iterator[Completion]:
    yield from (Completion(name, "aggregate") for name in aggregates.names())
    for function in catalogue():
        if function.name.isidentifier():
            yield Completion(function.name.upper(), "function", function.category)
