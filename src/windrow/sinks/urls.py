"""The text after INTO: `scheme:place?option=value&…`."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from windrow.credentials import refuse_literals
from windrow.errors import QueryError, nearest

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping


@dataclass(frozen=True)
class SinkUrl:
    """A sink's text in its parts.

    >>> SinkUrl.parse("files:///data/out?format=csv")
    SinkUrl(scheme='files', place='///data/out', options={'format': 'csv'})
    """

    scheme: str
    #: as it was written, between the scheme and the options
    place: str
    options: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> SinkUrl:
        """Take the text apart. A secret in it is refused."""
        refuse_literals(text)
        address, _, tail = text.strip().partition("?")
        scheme, colon, place = address.partition(":")
        if not colon:
            raise QueryError(
                f"`{address}` does not say what kind of sink it is",
                code="bad-sink",
                hint="write for example 'console:', 'memory:' or 'files:///data/answers'",
            )
        return cls(scheme.lower(), place, _options(tail))

    def allow(self, known: Collection[str], prefix: str | None = None) -> None:
        """Refuse every option that is neither known nor begins with the prefix."""
        for name in self.options:
            if name not in known and not (prefix and name.startswith(prefix)):
                raise QueryError(
                    f"`{self.scheme}:` has no option `{name}`",
                    code="unknown-sink-option",
                    hint=nearest(name, known) or f"`{self.scheme}:` takes no options",
                )

    def choice(self, option: str, known: Collection[str], default: str) -> str:
        """The value of an option that has few."""
        value = self.options.get(option, default).lower()
        if value not in known:
            raise QueryError(
                f"`{self.scheme}:` has no {option} `{value}`",
                code="bad-sink-option",
                hint=nearest(value, known),
            )
        return value

    def count(self, option: str, default: int) -> int:
        """The value of an option that is a whole number from 1 on."""
        text = self.options.get(option, str(default))
        if not (text.isascii() and text.isdigit() and int(text) > 0):
            raise QueryError(
                f"`{option}={text}` is not a number from 1 on",
                code="bad-sink-option",
                hint=f"write for example {option}={default}",
            )
        return int(text)

    def nowhere(self) -> None:
        """Refuse a place where none belongs."""
        if self.place.strip("/"):
            raise QueryError(
                f"`{self.scheme}:` is not followed by a place",
                code="bad-sink",
                hint=f"write '{self.scheme}:' alone",
            )

    def path(self) -> Path:
        """The place as a path. Three slashes begin an absolute one, none or two a relative one.

        >>> [str(SinkUrl.parse(text).path()) for text in ("files:///a%20b/c", "files:out", "files://./out/x")]
        ['/a b/c', 'out', 'out/x']
        """
        text = unquote(self.place.removeprefix("//"))
        if not text or "\0" in text:
            raise QueryError(
                f"`{self.scheme}:` needs a directory",
                code="bad-sink",
                hint=f"write for example '{self.scheme}:///data/answers'",
            )
        return Path(text)


def _options(tail: str) -> dict[str, str]:
    """The options behind the question mark. A `+` is a plus sign."""
    options: dict[str, str] = {}
    for part in filter(None, tail.split("&")):
        name, equals, value = part.partition("=")
        name = unquote(name)
        if not equals:
            hint = f"write {name}=value"
            raise QueryError(f"the option `{name}` has no value", code="bad-sink-option", hint=hint)
        if name in options:
            hint = "leave one out"
            raise QueryError(f"the option `{name}` is given twice", code="bad-sink-option", hint=hint)
        options[name] = unquote(value)
    return options
