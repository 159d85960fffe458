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
from collections.abc import Iterator, Sequence
from dataclasses import replace

from windrow.algebra import aggregates
from windrow.algebra.catalog import Stream, Table
from windrow.algebra.functions import catalogue
from windrow.algebra.plan import Emit, Window
from windrow.errors import QueryError, Span, WindrowError
from windrow.language.catalog import Catalog, Readable, kind_of
from windrow.language.compile import compile_query, compile_script
from windrow.language.completion import Completion, completions, word_before
from windrow.language.tokens import Token, scan

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


def problems(text: str, catalog: Catalog) -> list[WindrowError]:
    """What is wrong with each statement, in places of the whole text; the catalog learns what is right."""
    found = []
    for span in statements(text):
        part = text[span.start : span.end]
        try:
            compile_script(part, catalog)
        except WindrowError as error:
            where = error.span or Span(0, len(part))
            error.span = Span(span.start + where.start, span.start + max(where.end, where.start + 1))
            found.append(error)
    return found


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
        bodies = ((form[1:-1], meaning) for form, meaning in FORMS.items())
        return [Completion(form, "window", meaning) for form, meaning in bodies if _fits(form, word)]
    is_source = len(last) == 2 and last[0].word in ("FROM", "JOIN", ",") and last[1].is_name
    if not is_source or word or catalog.entry(last[1].name) is None:
        return []
    return [Completion(form, "window", meaning) for form, meaning in FORMS.items()]


def _fits(text: str, word: str) -> bool:
    return text.lower().startswith(word.lower())


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
    if entry is not None and isinstance(entry, Readable):
        return _described(entry)
    named = (catalog.entry(one.name) for one in found if one.is_name)
    for source in (one for one in named if isinstance(one, Readable)):
        for column, type_ in _fields(source):
            if column.lower() == each.name.lower():
                return f"`{column}` {type_} of {source.name}"
    is_whole = each.word in ("SELECT", "QUERY", "ISTREAM", "DSTREAM", "RSTREAM")
    return _whole(part, catalog) if is_whole else None


def _fields(entry: Readable) -> list[tuple[str, str]]:
    schema = entry.schema if isinstance(entry, Stream | Table) else entry.plan.schema
    return [(field.name, str(field.type)) for field in schema]


def _described(entry: Readable) -> str:
    columns = "\n".join(f"  {name} {type_}" for name, type_ in _fields(entry))
    more = f" WATTR {entry.wattr}" if isinstance(entry, Stream) else ""
    return f"{kind_of(entry).lower()} {entry.name}{more}\n{columns}"


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
