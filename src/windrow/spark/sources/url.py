"""The text after FROM, taken apart: what kind of source, where, with which options.

>>> parse_url("generator:traffic?rate=100&seed=3")
SourceUrl(scheme='generator', place='traffic', options={'rate': '100', 'seed': '3'})
>>> parse_url("data/bids/*.csv?delimiter=%3B")
SourceUrl(scheme='files', place='data/bids/*.csv', options={'delimiter': ';'})
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import unquote

from windrow.credentials import refuse_literals
from windrow.errors import QueryError, nearest

#: each scheme with the form a URL of it has
SCHEMES = {
    "files": "files:///data/bids/*.parquet",
    "generator": "generator:traffic?rate=1000",
    "kafka": "kafka://host:9092/topic",
    "push": "push:",
}
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(//)?")


@dataclass(frozen=True)
class SourceUrl:
    """A source's URL in its parts; `place` is what stands between the scheme and the options."""

    scheme: str
    place: str
    options: dict[str, str] = field(default_factory=dict)


def parse_url(text: str) -> SourceUrl:
    """The parts of a source's URL. A text without a scheme is the path of files. No secret is taken."""
    refuse_literals(text)
    location, _, query = text.strip().partition("?")
    scheme, place = _split_scheme(location)
    if scheme not in SCHEMES:
        raise QueryError(
            f"no source `{scheme}:` to read a stream from",
            code="unknown-source",
            hint=nearest(scheme, SCHEMES),
        )
    if not place and scheme != "push":
        raise QueryError(
            f"`{text}` does not say what to read", code="bad-source", hint=f"write `{SCHEMES[scheme]}`"
        )
    return SourceUrl(scheme, place, _parse_options(query))


def _split_scheme(location: str) -> tuple[str, str]:
    match = _SCHEME.match(location)
    if match is None:
        return "files", location
    scheme = match[1].lower()
    if scheme == "file":  # what other programs call `files`
        scheme = "files"
    return scheme, location[match.end() :]


def _parse_options(query: str) -> dict[str, str]:
    options: dict[str, str] = {}
    for part in filter(None, query.split("&")):
        name, equals, value = part.partition("=")
        name = unquote(name)
        if not (name and equals):
            raise QueryError(
                f"`{part}` is not an option",
                code="bad-option",
                hint="options are written `?name=value&name=value`",
            )
        if name in options:
            raise QueryError(f"the option `{name}` is given twice", code="bad-option", hint="give it once")
        options[name] = unquote(value)
    return options
