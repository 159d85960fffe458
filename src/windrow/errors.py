"""One kind of error for everything a user can meet.

An error says what is wrong, where in the text (a half-open span of character offsets), and the way
out (a hint). `render` draws it the way a compiler would: the line, a caret underline, the hint.

>>> hint = nearest("prise", ["price"])
>>> error = QueryError("no column `prise`", code="unknown-column", span=Span(7, 12), hint=hint)
>>> print(error.located("SELECT prise FROM bids").render())
error[unknown-column]: no column `prise`
  --> 1:8
  |
1 | SELECT prise FROM bids
  |        ^^^^^
  = did you mean `price`?
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path
from shutil import get_terminal_size, which
from textwrap import fill
from typing import Self

from windrow.redaction import redacted

_WIDEST_LINE = 160
#: the number of a line, the bar, and what stands for the rest
_BESIDE = 10
#: a piece of the text within a hint, by its span
_QUOTE = re.compile("\ue000(\\d+):(\\d+)\ue001")


@dataclass(frozen=True, order=True)
class Span:
    """Where in the source text: characters `start` up to, not including, `end`."""

    start: int
    end: int

    def to(self, other: Span) -> Span:
        """The least span that holds both."""
        return Span(min(self.start, other.start), max(self.end, other.end))

    @property
    def quoted(self) -> str:
        """What stands there, within a hint: it is put in as soon as the error knows the text.

        >>> hint = f"write HAVING {Span(28, 38).quoted}"
        >>> error = QueryError("not about a row", hint=hint)
        >>> error.located("SELECT k FROM s [NOW] WHERE SUM(v) > 1 GROUP BY k").hint
        'write HAVING SUM(v) > 1'
        """
        return f"\ue000{self.start}:{self.end}\ue001"


class WindrowError(Exception):
    """The root of all errors Windrow raises on purpose. None of them shows a secret of a URL."""

    default_code = "error"
    #: what the command line exits with: 1 the user's query or data, 3 the engine or its surroundings
    exit_code = 3

    def __init__(
        self, message: str, *, code: str | None = None, span: Span | None = None, hint: str | None = None
    ) -> None:
        message = redacted(message)
        super().__init__(message)
        self.message = message
        self.code = code or self.default_code
        self.span = span
        self.hint = redacted(hint) if hint else hint
        self.text: str | None = None
        self.file: str | None = None

    def located(self, text: str, file: str | None = None, span: Span | None = None) -> Self:
        """The same error, knowing the text its span points into. What is known already stays."""
        if self.text is None:
            self.text, self.file = redacted(text, keep_width=True), file
            self.span = self.span or span
            if self.hint:
                self.hint = _QUOTE.sub(lambda place: _piece(text, place), self.hint)
        return self

    def render(self) -> str:
        """The message as a compiler would print it."""
        lines = [folded(f"error[{self.code}]: {self.message}")]
        if self.text is not None and self.span is not None:
            lines += _excerpt(self.text, self.span, self.file)
        elif self.file is not None:
            lines.append(f"  --> {self.file}")
        if self.hint:
            lines.append(folded(f"  = {self.hint}"))
        return "\n".join(lines)

    def __str__(self) -> str:
        if self.text is not None:
            return self.render()
        return f"{self.message} ({self.hint})" if self.hint else self.message


class QueryError(WindrowError):
    """The text of a statement, or a plan built in Python, does not mean anything Windrow can run."""

    default_code = "query"
    exit_code = 1


class DataError(WindrowError):
    """A row, a value or a punctuation contradicts what was declared."""

    default_code = "data"
    exit_code = 1


class StateError(WindrowError):
    """The engine's own state or surroundings are not usable."""

    default_code = "state"


class SourceError(WindrowError):
    """A source cannot be read."""

    default_code = "source"
    #: the stream whose source it is, where a job of several can tell
    stream: str | None = None


class SinkError(WindrowError):
    """A sink cannot be written."""

    default_code = "sink"


def nearest(name: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """A hint that names the known name closest to `name`, or all of them if they are few.

    >>> nearest("prise", ["item", "price"])
    'did you mean `price`?'
    >>> nearest("x", ["item", "price"])
    'known here: `item`, `price`'
    """
    names = sorted(set(known))
    folded = {candidate.lower(): candidate for candidate in names}
    close = get_close_matches(name.lower(), folded, n=1, cutoff=cutoff)
    if close:
        return f"did you mean `{_printable(folded[close[0]])}`?"
    if 0 < len(names) <= 12:
        return "known here: " + ", ".join(f"`{_printable(candidate)}`" for candidate in names)
    return None


def _printable(name: str) -> str:
    """A name as it can be shown in one line: those of a source may have anything in them.

    >>> print(_printable("a\\nb\\x1b[2J\\ud800"))
    a\\nb\\x1b[2J\\ud800
    """
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in name)


def one_letter_off(name: str, known: Iterable[str]) -> str | None:
    """A hint that names the known names that differ from `name` in one letter, but not in the first: short
    names are less alike than `nearest` asks for.

    >>> one_letter_off("SUN", ["sin", "sum", "sqrt", "min"])
    'did you mean `sin` or `sum`?'
    """
    word = name.lower()
    close = [
        f"`{each}`"
        for each in sorted(set(known))
        if len(each) == len(word) and each[0] == word[0] and sum(map(str.__ne__, each, word)) == 1
    ]
    return f"did you mean {' or '.join(close)}?" if close else None


def to_install(extra: str) -> str:
    """The command that installs an extra of Windrow for this Python, whose pip may not be that on the PATH.

    >>> to_install("kafka").endswith(" 'windrow[kafka]'")
    True
    """
    own, found = Path(sys.executable), which("pip")
    if found is not None and Path(found).parent == own.parent:
        return f"pip install 'windrow[{extra}]'"
    python = own.relative_to(Path.cwd()) if own.is_relative_to(Path.cwd()) else own
    if find_spec("pip") is None:
        return f"uv pip install --python {python} 'windrow[{extra}]'"
    return f"{python} -m pip install 'windrow[{extra}]'"


def folded(line: str, width: int | None = None) -> str:
    """A line that a terminal need not break within a word. One with a command to paste stays whole.

    >>> print(folded("  = declare it as before, or use a new state directory", 40))
      = declare it as before, or use a new
        state directory
    """
    width = width or (get_terminal_size().columns if sys.stderr.isatty() else None)
    if width is None or len(line) <= width or "\n" in line or "pip install" in line:
        return line
    below = "    " if line.startswith("  = ") else "  "
    return fill(line, width, subsequent_indent=below, break_long_words=False, break_on_hyphens=False)


def _piece(text: str, place: re.Match[str]) -> str:
    """What a hint quotes, in one line. Spans end beside parentheses, not always behind them."""
    found = " ".join(text[int(place[1]) : int(place[2])].split())
    open_ones = found.count("(") - found.count(")")
    found = found + ")" * open_ones if open_ones > 0 else found
    while open_ones < 0 and found.endswith(")"):
        found, open_ones = found[:-1].rstrip(), open_ones + 1
    return redacted(found)


def _excerpt(text: str, span: Span, file: str | None) -> list[str]:
    start = min(max(span.start, 0), len(text))
    line_start = text.rfind("\n", 0, start) + 1
    line_end = text.find("\n", start)
    line_end = len(text) if line_end < 0 else line_end
    number = text.count("\n", 0, start) + 1
    column = start - line_start
    line, column = _shorten(text[line_start:line_end], column)
    width = max(1, min(span.end - start, line_end - start, len(line) - column))
    gutter = " " * len(str(number))
    place = f"{number}:{start - line_start + 1}"
    return [
        f"{gutter} --> {file}:{place}" if file else f"{gutter} --> {place}",
        f"{gutter} |",
        f"{number} | {line}",
        f"{gutter} | {' ' * column}{'^' * width}",
    ]


def _shorten(line: str, column: int) -> tuple[str, int]:
    """Keep a long line readable around the column; control characters must not reach a terminal.

    Carets are lost below a line that a terminal breaks: with its number and two ellipses it has to fit.
    """
    most = get_terminal_size().columns - _BESIDE if sys.stderr.isatty() else _WIDEST_LINE
    widest = max(_BESIDE, min(most, _WIDEST_LINE))
    if len(line) > widest:
        first = max(0, column - widest // 2)
        cut = line[first : first + widest]
        prefix = "…" if first else ""
        line, column = (
            prefix + cut + ("…" if first + widest < len(line) else ""),
            column - first + len(prefix),
        )
    return "".join(c if c.isprintable() else " " for c in line), column


def first_line(error: Exception) -> str:
    """What an error of somebody else's says first."""
    return str(error).partition("\n")[0]
