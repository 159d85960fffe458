"""Options of a source's URL, read as the values they stand for, with errors that name the option.

Each kind of value is a function from text to value that raises ValueError with what was expected. A source
declares its options as a mapping from names to such functions, and reads them all at once.

>>> read_options({"rate": "10"}, {"rate": count, "disorder": choice("none", "block")}, "generator:traffic")
{'rate': 10}
"""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

from windrow.errors import QueryError, nearest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Reader = Callable[[str], Any]

MICROS = 1_000_000


def read_options(given: Mapping[str, str], known: Mapping[str, Reader], where: str) -> dict[str, Any]:
    """The values of the options that are given. An unknown name or a bad value is the user's error."""
    values: dict[str, Any] = {}
    for name, text in given.items():
        if name not in known:
            raise QueryError(
                f"`{where}` has no option `{name}`", code="unknown-option", hint=nearest(name, known)
            )
        try:
            values[name] = known[name](text)
        except ValueError as error:
            raise QueryError(
                f"the option `{name}` of `{where}` cannot be `{text}`", code="bad-option", hint=str(error)
            ) from None
    return values


def choice(*words: str) -> Reader:
    """One of these words."""

    def read(text: str) -> str:
        if text.lower() not in words:
            raise ValueError(nearest(text, words))
        return text.lower()

    return read


def flag(text: str) -> bool:
    """`true` or `false`."""
    return bool(choice("true", "false")(text) == "true")


def count(text: str) -> int:
    """A whole number, at least 1."""
    number = whole(text)
    if number < 1:
        raise ValueError("it is a whole number, at least 1")
    return number


def whole(text: str) -> int:
    """A whole number, at least 0, that a BIGINT can hold. Groups of digits may be set off by `_`."""
    digits = text.replace("_", "")
    if not (digits.isascii() and digits.isdigit() and int(digits) < 1 << 63):
        raise ValueError("it is a whole number")
    return int(digits)


def seconds(text: str) -> int:
    """A number of seconds, as microseconds."""
    try:
        micros = Decimal(text) * MICROS
    except InvalidOperation:
        micros = Decimal("NaN")
    if not micros.is_finite() or micros < 0 or micros != int(micros):
        raise ValueError("it is a number of seconds, such as `5` or `0.5`")
    return int(micros)


def instant(text: str) -> int:
    """An ISO date and time, UTC unless it says otherwise, as microseconds since the epoch."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError("it is a time such as `2026-01-01T00:00:00`") from None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * MICROS + since.microseconds


def single_character(text: str) -> str:
    r"""One character; `\t` is a tab."""
    character = "\t" if text == "\\t" else text
    if len(character) != 1:
        raise ValueError("it is one character; write `%09` for a tab, `%26` for an ampersand")
    return character
