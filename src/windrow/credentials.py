"""Credentials: references to secrets in URLs, refused if they are the secrets themselves, resolved when used.

What is declared is written down: in manifests, by SHOW, EXPLAIN and errors. So a URL says where a secret is,
`${env:NAME}` or `${file:PATH}`, and the secret is looked up by whoever opens the connection.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from windrow.errors import QueryError, Span, WindrowError
from windrow.redaction import BLOT, REFERENCE, has_password, is_reference, is_secret

_WHERE = "an environment variable, or ${file:/path} for a file"
#: what librdkafka has to say goes here and is not shown, unless the program listens
_LOG = logging.getLogger("windrow.kafka")
_LOG.addHandler(logging.NullHandler())

_PIECES = re.compile(r"[\s=,;\"']+")
#: shorter pieces of a secret than this could be any word
_TELLING = 4


def refuse_literals(url: str, span: Span | None = None) -> None:
    """Refuse a source or a sink whose text holds a secret itself.

    >>> refuse_literals("kafka://b:9092/t?kafka.sasl.password=${env:KAFKA_PASSWORD}")
    >>> refuse_literals("kafka://b:9092/t?kafka.sasl.password=hunter2")
    Traceback (most recent call last):
        ...
    windrow.errors.QueryError: `kafka.sasl.password` is a secret, and what is declared is written down \
(write kafka.sasl.password=${env:NAME} for an environment variable, or ${file:/path} for a file)
    """
    place, _, options = url.partition("?")
    if has_password(place):
        raise QueryError(
            "a password stands before the @, and what is declared is written down",
            code="literal-secret",
            span=span,
            hint="leave user and password out: Kafka takes kafka.sasl.username=… and"
            " kafka.sasl.password=${env:NAME}, object stores take theirs from the settings of the session",
        )
    for part in options.split("&"):
        name, value = map(unquote, part.partition("=")[::2])
        if is_reference(value):
            continue
        if is_secret(name) or has_password(value):
            is_kafka = place.startswith("kafka:") and not name.lower().startswith("kafka.")
            raise QueryError(
                f"`{name}` is a secret, and what is declared is written down",
                code="literal-secret",
                span=span,
                hint=f"write {'kafka.' if is_kafka else ''}{name}=${{env:NAME}} for {_WHERE}",
            )
        if REFERENCE.search(value):
            raise QueryError(
                f"the value of `{name}` is only in part a reference",
                code="bad-reference",
                span=span,
                hint=f"a reference is the whole value: {name}=${{env:NAME}} for {_WHERE}",
            )


@dataclass(frozen=True)
class Resolved:
    """Settings with their secrets, for a library and for nobody else."""

    values: Mapping[str, str] = field(default_factory=dict, repr=False)
    #: the names of settings that were references, or are secrets anyhow
    hidden: tuple[str, ...] = ()

    def scrubbed(self, text: str) -> str:
        """What a library says, without the secrets that it may repeat, in whole or in part.

        >>> Resolved({"sasl.password": "hunter2"}, ("sasl.password",)).scrubbed('not "hunter2"')
        'not "…"'
        """
        for name in self.hidden:
            for form in _forms(self.values[name]):
                text = text.replace(form, BLOT)
        return text


class ScrubbedLog:
    """The log for a library that is given secrets: what it says of them is left out."""

    def __init__(self, scrubbed: Callable[[str], str]) -> None:
        self._scrubbed = scrubbed

    def log(self, level: int, message: str, *values: Any) -> None:
        _LOG.log(level, "%s", self._scrubbed(message % values if values else message))


def resolve(settings: Mapping[str, str], failure: type[WindrowError]) -> Resolved:
    """The settings with every reference replaced by what it refers to now.

    >>> os.environ["DOC_SECRET"] = "hunter2"
    >>> resolve({"sasl.password": "${env:DOC_SECRET}"}, QueryError).values["sasl.password"]
    'hunter2'
    >>> resolve({"sasl.password": "${env:DOC_SECRETS}"}, QueryError)
    Traceback (most recent call last):
        ...
    windrow.errors.QueryError: `sasl.password` is to be found in the environment variable DOC_SECRETS, which \
is not set (set it for the process that runs the engine)
    """
    values = {name: _looked_up(name, value, failure) for name, value in settings.items()}
    hidden = [name for name, value in settings.items() if is_reference(value) or is_secret(name)]
    return Resolved(values, tuple(hidden))


def _looked_up(name: str, value: str, failure: type[WindrowError]) -> str:
    """A setting as it is, or all that a variable or a file holds but the end of its last line."""
    found = REFERENCE.fullmatch(value)
    if found is None:
        return value
    kind, where = found.groups()
    if kind == "env":
        if where not in os.environ:
            raise failure(
                f"`{name}` is to be found in the environment variable {where}, which is not set",
                code="secret-missing",
                hint="set it for the process that runs the engine",
            )
        return os.environ[where]
    try:
        return Path(where).read_text(encoding="utf-8").removesuffix("\n").removesuffix("\r")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise failure(
            f"`{name}` is to be found in the file {where}, which cannot be read: {reason}",
            code="secret-missing",
            hint="let the user who runs the engine read it",
        ) from None


def _forms(secret: str) -> list[str]:
    """A secret as others may write it, the longest first."""
    pieces = [piece for piece in _PIECES.split(secret) if len(piece) >= _TELLING]
    forms = {secret, secret.strip(), quote(secret, safe=""), json.dumps(secret)[1:-1], repr(secret)[1:-1]}
    return sorted({*forms, *pieces} - {""}, key=len, reverse=True)
