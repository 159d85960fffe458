"""The inside of a window bracket, `[RANGE 5 MINUTES SLIDE 1 MINUTE WATTR ts]`: parts in any order.

Its tokens get labels first, then each part is told from the next, and at last each gives the fields of the
`WindowClause` that it stands for. The spellings of the papers are read here and nowhere else: `row-num`,
`PATTR`, `WINDOW` for RANGE, `UNBOUNDED START AT` for LANDMARK FROM, tuples for rows.

    part       (RANGE | WINDOW | ROWS | SESSION | CUMULATE | SLIDE | LAG) quantity      RANGE UNBOUNDED
               LANDMARK [FROM point] | UNBOUNDED [START AT point] | (ORIGIN | UNTIL) point
               (WATTR | RATTR) attribute | SATTR (attribute | RANK ( attribute ))
               (PARTITION BY | PATTR) attribute {, attribute}
               NOW | INTERNAL | INCLUSIVE | ZONE string | LIFETIME expression
    quantity   [-] number [unit]
    point      [TIMESTAMP | DATE] string | quantity
    attribute  name [- name]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from windrow.errors import QueryError, Span, nearest
from windrow.language import lift_literals, literals, syntax, vocabulary
from windrow.language.tokens import TokenKind, Tokens, at, mistake, refuse
from windrow.windows.clause import WORDS, WindowClause
from windrow.windows.domain import MAX_INT64, MICROSECONDS, Domain, Quantity, is_unit, unit_name

#: words a part of a window begins with
PARTS = syntax.words(
    "RANGE WINDOW ROWS SESSION CUMULATE LANDMARK UNBOUNDED NOW LIFETIME SLIDE LAG ORIGIN UNTIL "
    "WATTR RATTR SATTR PATTR PARTITION INTERNAL INCLUSIVE ZONE"
)
KINDS = "RANGE, ROWS, LANDMARK, UNBOUNDED, NOW, LIFETIME, SESSION or CUMULATE"

_SIZE = "a size follows {0}, as in {0} 5 MINUTES, {0} 100 ROWS or {0} 10"
_POINT = "a point in time or a number follows {0}, as in {0} '2024-01-01 07:00:00'"
_NAME = "the name of an attribute follows {0}"
_WANTED = {
    **dict.fromkeys(("RANGE", "WINDOW", "SLIDE", "LAG", "SESSION", "CUMULATE"), _SIZE),
    **dict.fromkeys(("ORIGIN", "FROM", "UNTIL", "AT"), _POINT),
    **dict.fromkeys(("WATTR", "RATTR", "PATTR"), _NAME),
    "ROWS": "the number of rows follows ROWS, as in ROWS 100",
    "ZONE": "the name of a zone follows ZONE, as in ZONE 'Europe/Berlin'",
    "SATTR": "row_num or rank(attribute) follows SATTR",
    "BY": "the names of columns follow PARTITION BY",
    "PARTITION": "write PARTITION BY",
    "LIFETIME": "how long each row lives follows LIFETIME, as in LIFETIME ttl SECONDS",
    "RANK": "write rank(attribute)",
    "START": "write UNBOUNDED START AT '…'",
}


def unexpected(inside: Tokens, offset: int | None) -> QueryError:
    """The error of a bracket that does not follow the grammar, from where it stopped making sense."""
    index = inside.at(offset) if offset is not None else len(inside)
    if _is_misspelt(inside, index - 1):
        index -= 1
    if index >= len(inside):
        last = inside[len(inside) - 1]
        message, span = f"the window ends too early, after `{last.text}`", last.span
    else:
        message, span = f"unexpected `{inside[index].text}` in a window", inside[index].span
    return mistake(span, message, "window-syntax", _hint(inside, index))


def _is_misspelt(inside: Tokens, index: int) -> bool:
    """Whether a word was taken for a unit, and is none, but almost a part of a window: `RANGE 60 SLYDE 5`."""
    if index < 0 or inside[index].kind is not TokenKind.WORD or is_unit(inside[index].word):
        return False
    close = nearest(inside[index].word, PARTS)
    return inside[index].word not in PARTS and close is not None and close.startswith("did")


def _hint(inside: Tokens, index: int) -> str | None:
    before = inside.word(index - 1)
    if before in _WANTED:
        return _WANTED[before].format(before)
    if index >= len(inside):
        return None
    token = inside[index]
    begins = f"a window begins with {KINDS}"
    if token.kind is TokenKind.WORD:
        close = nearest(token.word, PARTS) or ""
        if token.word in _ELSEWHERE or close.startswith("did"):
            return _ELSEWHERE.get(token.word, close)
        return begins if index == 0 else "further parts are SLIDE, WATTR, PARTITION BY, ORIGIN, …"
    if token.kind is TokenKind.QUOTED or index == 0:
        return f"{begins}; elements of arrays have no spelling"
    if token.word == "-" and inside[index - 1].is_name:
        return "quote names with a hyphen: `seg-id`"
    return "parts of a window follow each other without commas, as in [RANGE 5 MINUTES SLIDE 1 MINUTE]"


_ELSEWHERE = {
    "FROM": "FROM stands directly after LANDMARK",
    "PARTITION": "write PARTITION BY",
    "GROUP": "GROUP BY stands outside the bracket; partitions of a window are PARTITION BY",
}
ReadExpression = Callable[[Tokens], syntax.Node]

_KEYWORDS = PARTS | {"BY", "AT", "START", "RANK", "FROM"}
#: words that are keywords only behind or before another
_ONLY_AFTER = {"BY": {"PARTITION"}, "AT": {"START"}}
_ONLY_BEFORE = {"START": {"AT"}, "RANK": {"("}, "PARTITION": {"BY"}}
_AFTER_LIFETIME = {"WATTR", "INTERNAL"}


def parse_window(bracket: Tokens, expression: ReadExpression) -> syntax.WindowSyntax:
    """The window in a bracket, given with its `[` and `]`; `expression` reads that of a LIFETIME."""
    inside = bracket.cut(1, len(bracket) - 1)
    if not len(inside):
        refuse(bracket, "this window is empty", "window-syntax", "write [UNBOUNDED] for all rows so far")
    begin, end = _lifetime(inside)
    parts = list(_Parts(inside, list(_labels(inside, begin, end))))
    with at(bracket):
        clause = _clause(parts, bracket)
        points = tuple(_point_syntax(part) for part in parts if _takes_point(part))
        window = syntax.WindowSyntax(bracket.span, clause, points=points)
    if window.clause.kind != "LIFETIME":
        return window
    return _with_lifetime(window, inside.cut(begin, end), expression)


# ------------------------------------------------------------ labels


@dataclass(frozen=True)
class BracketToken:
    """A token of a bracket: a keyword, a sign, NAME, NUMBER, UNIT, STRING or EXPRESSION, and what it says."""

    kind: str
    text: str
    span: Span


def _lifetime(inside: Tokens) -> tuple[int, int]:
    """From where to where the expression of LIFETIME reaches; nowhere if there is none."""
    found = inside.find("LIFETIME")
    if found is None:
        return len(inside), len(inside)
    ends = (index for index in inside.outside(found + 1) if inside.word(index) in _AFTER_LIFETIME)
    return found + 1, next(ends, len(inside))


def _labels(inside: Tokens, begin: int, end: int) -> Iterator[BracketToken]:
    """All labels; an INTERVAL is a number with its unit, and the expression of LIFETIME is one."""
    index = 0
    while index < len(inside):
        if begin <= index < end:
            yield BracketToken("EXPRESSION", "", inside.cut(begin, end).span)
            index = end
        elif _is_plain_interval(inside, index):
            yield BracketToken("NUMBER", inside[index + 1].value.strip(), inside[index + 1].span)
            yield BracketToken("UNIT", inside[index + 2].text, inside[index + 2].span)
            index += 3
        elif (interval := lift_literals.interval_at(inside, index)) is not None:
            ticks, last = interval
            span = inside.cut(index, last + 1).span
            if ticks < 0:
                yield BracketToken("-", "-", span)
            yield BracketToken("NUMBER", str(abs(ticks)), span)
            yield BracketToken("UNIT", "MICROSECONDS", span)
            index = last + 1
        else:
            yield _label(inside, index)
            index += 1


def _is_plain_interval(inside: Tokens, index: int) -> bool:
    """INTERVAL '1' MONTH, which is a number and a unit; a day of it is one of the calendar."""
    written = inside.word(index) == "INTERVAL" and inside.is_kind(index + 1, TokenKind.STRING)
    if not written or not is_unit(inside.word(index + 2)) or inside.word(index + 3) == "TO":
        return False
    return inside[index + 1].value.strip().isdigit()


def _label(inside: Tokens, index: int) -> BracketToken:
    token, word = inside[index], inside.word(index)
    before, after = inside.word(index - 1), inside.word(index + 1)
    is_placed = before in _ONLY_AFTER.get(word, {before}) and after in _ONLY_BEFORE.get(word, {after})
    if word in ("TIMESTAMP", "DATE") and inside.is_kind(index + 1, TokenKind.STRING):
        return BracketToken(word, word, token.span)
    # a word behind a number is its unit, unless it begins the next part; ROWS there is a unit
    may_be_unit = token.kind is TokenKind.WORD and word not in _KEYWORDS - {"ROWS"}
    if may_be_unit and inside.is_kind(index - 1, TokenKind.NUMBER):
        return BracketToken("UNIT", token.text, token.span)
    if token.kind is TokenKind.SIGN or (word in _KEYWORDS and is_placed):
        return BracketToken(word, word, token.span)
    if token.kind is TokenKind.STRING:
        return BracketToken("STRING", token.value, token.span)
    return BracketToken("NAME" if token.is_name else "NUMBER", token.name, token.span)


# ------------------------------------------------------------ parts

Part = list[BracketToken]


class _Parts:
    """Tells the parts of a bracket from each other; refuses the first token that fits none."""

    def __init__(self, inside: Tokens, labels: list[BracketToken]) -> None:
        self.inside = inside
        self.labels = labels
        self.index = 0

    def __iter__(self) -> Iterator[Part]:
        while self.index < len(self.labels):
            begin = self.index
            self.rest_of(self.one(*PARTS))
            yield self.labels[begin : self.index]

    def maybe(self, *kinds: str) -> bool:
        """Step over a label of one of these kinds, if it comes next."""
        found = self.index < len(self.labels) and self.labels[self.index].kind in kinds
        self.index += found
        return found

    def one(self, *kinds: str) -> str:
        """Step over a label that must be of one of these kinds."""
        if not self.maybe(*kinds):
            rest = self.labels[self.index :]
            raise unexpected(self.inside, rest[0].span.start if rest else None)
        return self.labels[self.index - 1].kind

    def rest_of(self, word: str) -> None:
        """Step over what follows the word that a part begins with."""
        match word:
            case "RANGE" if self.maybe("UNBOUNDED"):
                pass
            case "RANGE" | "WINDOW" | "ROWS" | "SESSION" | "CUMULATE" | "SLIDE" | "LAG":
                self.quantity()
            case "UNBOUNDED" if self.maybe("START"):
                self.one("AT")
                self.point()
            case "LANDMARK" if self.maybe("FROM"):
                self.point()
            case "ORIGIN" | "UNTIL":
                self.point()
            case "SATTR" if self.maybe("RANK"):
                self.one("(")
                self.attribute()
                self.one(")")
            case "WATTR" | "RATTR" | "SATTR":
                self.attribute()
            case "PARTITION":
                self.one("BY")
                self.attributes()
            case "PATTR":
                self.attributes()
            case "ZONE":
                self.one("STRING")
            case "LIFETIME":
                self.one("EXPRESSION")

    def quantity(self) -> None:
        self.maybe("-")
        self.one("NUMBER")
        self.maybe("UNIT")

    def point(self) -> None:
        if self.maybe("TIMESTAMP", "DATE"):
            self.one("STRING")
        elif not self.maybe("STRING"):
            self.quantity()

    def attribute(self) -> None:
        self.one("NAME")
        if self.maybe("-"):
            self.one("NAME")

    def attributes(self) -> None:
        self.attribute()
        while self.maybe(","):
            self.attribute()


# ------------------------------------------------------------ the clause

Fields = dict[str, Any]

_TIMES = ("origin", "start", "until")
_OF_POINT = ("TIMESTAMP", "DATE", "STRING", "-", "NUMBER", "UNIT")
_TUPLES = {"TUPLE": "ROWS", "TUPLES": "ROWS"}
_HYPHENATED = {"row-num": "row_num", "arrival-ts": "arrival_ts"}


def _clause(parts: list[Part], bracket: Tokens) -> WindowClause:
    """The clause that the parts say together."""
    fields: Fields = {}
    times: dict[str, BracketToken] = {}
    for part in parts:
        found = _fields(part)
        _refuse_repetition(fields, found, part)
        fields |= found
        times |= {name: found[name] for name in _TIMES if isinstance(found.get(name), BracketToken)}
    if "kind" not in fields:
        refuse(bracket, "this does not say which window it is", "window-syntax", f"add {KINDS}")
    if "zone" in fields and "origin" in times and literals.has_zone(times["origin"].text):
        refuse(
            times["origin"],
            f"ORIGIN of a window with ZONE is what clocks show in '{fields['zone']}'",
            "window-origin",
            "leave the zone of ORIGIN out, as in ORIGIN '2024-01-31 07:00:00'",
        )
    # a bare time of day is on the date of ORIGIN, 1970-01-01 if there is none
    origin = fields.get("origin", 0)
    if isinstance(origin, BracketToken):
        origin = literals.instant(origin.text, origin.span)
    day = origin // literals.DAY * literals.DAY if isinstance(origin, int) else 0
    instants = {name: literals.instant(time.text, time.span, day) for name, time in times.items()}
    return WindowClause(**(fields | instants))


def _refuse_repetition(known: Fields, found: Fields, part: Part) -> None:
    twice = next((name for name in found if name in known), None)
    if twice is None:
        return
    if twice == "kind" and known["kind"] != found["kind"]:
        message = f"this window is both {known['kind']} and {found['kind']}"
    else:
        word = known["kind"] if twice == "kind" else WORDS.get(twice, twice.upper())
        message = f"this window has two {word} parts"
    refuse(_span(part), message, "window-syntax", "leave one out")


def _fields(part: Part) -> Fields:
    """The fields that a part stands for."""
    kinds = [label.kind for label in part]
    match kinds[0]:
        case "RANGE" if "UNBOUNDED" in kinds:
            return {"kind": "UNBOUNDED"}
        case "RANGE" | "WINDOW":
            return {"kind": "RANGE", "range": _quantity(part)}
        case "ROWS" | "SESSION" | "CUMULATE" as kind:
            return {"kind": kind, "range": _quantity(part)}
        case "LANDMARK" | "UNBOUNDED" if len(part) > 1:
            return {"kind": "LANDMARK", "start": _point(part)}
        case "LANDMARK" | "UNBOUNDED" | "NOW" | "LIFETIME" as kind:
            return {"kind": kind}
        case "SLIDE" | "LAG" as word:
            return {word.lower(): _quantity(part)}
        case "ORIGIN" | "UNTIL" as word:
            return {word.lower(): _point(part)}
        case "PARTITION" | "PATTR":
            return {"partition_by": tuple(_attributes(part))}
        case "WATTR" | "RATTR" | "SATTR" as word:
            (name,) = _attributes(part)
            return {word.lower(): name} | ({"sattr_rank": True} if "RANK" in kinds else {})
        case "ZONE":
            return {"zone": part[-1].text}
        case _:
            return {kinds[0].lower(): True}


def _quantity(part: Part) -> Quantity:
    found = {label.kind: label for label in part}
    number = found["NUMBER"]
    value, suffix = literals.plain_number(number.text, number.span)
    unit = found.get("UNIT", replace(number, text=suffix))
    with at(unit):
        return Quantity(-value if "-" in found else value, _TUPLES.get(unit.text.upper(), unit.text) or None)


def _takes_point(part: Part) -> bool:
    return part[0].kind in ("ORIGIN", "UNTIL", "LANDMARK", "UNBOUNDED") and len(part) > 1


def _point(part: Part) -> int | Decimal | BracketToken:
    """A number, or the text of a point in time, which may still need a date."""
    if part[-1].kind == "STRING":
        return part[-1]
    quantity = _quantity(part)
    if quantity.unit:
        return quantity.ticks(Domain.TIME)
    value = int(quantity.value)
    if value != quantity.value:
        return Decimal(quantity.value)
    if abs(value) > MAX_INT64:
        refuse(_point_span(part), f"{quantity} is not a 64-bit integer", "window-overflow")
    return value


def _point_syntax(part: Part) -> syntax.PointSyntax:
    """How ORIGIN, FROM or UNTIL is written."""
    word = part[0].kind if part[0].kind in ("ORIGIN", "UNTIL") else "FROM"
    is_time = part[-1].kind == "STRING" or _quantity(part).unit is not None
    return syntax.PointSyntax(_point_span(part), word, is_time)


def _point_span(part: Part) -> Span:
    return _span([label for label in part if label.kind in _OF_POINT])


def _attributes(part: Part) -> Iterator[str]:
    """The attributes that a part names, of which one with a hyphen is two names."""
    name = ""
    for label in [*part, BracketToken(",", ",", part[-1].span)]:
        if label.kind in ("NAME", "-"):
            name += label.text
        elif name:
            yield _HYPHENATED.get(name.lower(), name) if "-" in name else name
            name = ""


def _span(part: Part) -> Span:
    return part[0].span.to(part[-1].span)


# ------------------------------------------------------------ LIFETIME


def _with_lifetime(
    window: syntax.WindowSyntax, written: Tokens, expression: ReadExpression
) -> syntax.WindowSyntax:
    """LIFETIME of an expression, perhaps followed by the unit of its value."""
    last = written[len(written) - 1]
    value: syntax.Node
    if len(written) == 1 and last.kind is TokenKind.NUMBER and last.text[-1] in "sSdD":
        # `5s`, where the unit looks like the suffix of a type; in a window it is a unit
        number, unit = literals.plain_number(last.text, last.span)
        value = syntax.Constant(last.span, str(number), "NUMBER")
    elif _ends_in_unit(written):
        value, unit = expression(written.cut(0, len(written) - 1)), last.word
    else:
        return replace(window, lifetime=expression(written))
    with at(last):
        scale = MICROSECONDS.get(unit_name(unit))
    if scale is None:
        message = "a LIFETIME is a time, not a number of rows"
        refuse(last, message, "window-unit", "the last n rows are [ROWS n]")
    if isinstance(value, syntax.Constant) and value.kind == "NUMBER" and not value.value.isdigit():
        ticks = Decimal(value.value) * scale
        if ticks == ticks.to_integral_value() and abs(ticks) < 2**63:  # `2.5 MINUTES`
            value, scale = replace(value, value=str(int(ticks))), 1
    return replace(window, clause=replace(window.clause, lifetime_scale=scale), lifetime=value)


def _ends_in_unit(written: Tokens) -> bool:
    """Whether the last word stands behind a whole expression, and is not the end of an interval."""
    last = len(written) - 1
    if not written.is_kind(last, TokenKind.WORD) or vocabulary.is_keyword(written, last):
        return False
    behind = vocabulary.ends_operand(written, last - 1) and written.word(last - 1) != "*"
    return behind and not lift_literals.ends_interval(written, last)
