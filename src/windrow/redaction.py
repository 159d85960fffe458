"""Secrets in texts: which options of a URL hold one, and the text without them.

This is the one place that knows what is secret. It errs on the safe side: whatever sounds like a password, a
token or a key is one, but for the few settings of librdkafka that only sound so.

>>> redacted("kafka://b:9092/t?kafka.sasl.password=hunter2&format=json")
'kafka://b:9092/t?kafka.sasl.password=…&format=json'
>>> redacted("files://s3a://me:hunter2@bucket/bids")
'files://s3a://me:…@bucket/bids'
>>> redacted("files://in?malformed=to&malformed_sink=kafka://b/t%3Fkafka.sasl.password=hunter2")
'files://in?malformed=to&malformed_sink=…'
"""

from __future__ import annotations

import re
from urllib.parse import unquote

#: what a secret may be written as: where it is to be found
REFERENCE = re.compile(r"\$\{(env|file):([^{}]+)\}")
BLOT = "…"

_TELLING = re.compile(
    r"pass|pwd|secret|token|credential|creds|jaas|pem|signature|bearer|private|cookie|jwt|user\.?info"
)
_PARTS = re.compile(r"[._\-]+")
_TELLING_PARTS = frozenset({"sas", "sig", "auth", "pin"})
#: options and settings that are no secrets, though they sound so
_HARMLESS = frozenset(
    {
        "key",
        "keys",
        "enable.sasl.oauthbearer.unsecure.jwt",
        "sasl.oauthbearer.assertion.algorithm",
        "sasl.oauthbearer.assertion.file",
        "sasl.oauthbearer.assertion.jwt.template.file",
        "sasl.oauthbearer.assertion.private.key.file",
        "sasl.oauthbearer.client.id",
        "sasl.oauthbearer.grant.type",
        "sasl.oauthbearer.metadata.authentication.type",
        "sasl.oauthbearer.method",
        "sasl.oauthbearer.scope",
        "sasl.oauthbearer.sub.claim.name",
        "sasl.oauthbearer.token.endpoint.url",
        "ssl.key.location",
    }
)
#: a setting as Python and JSON write it
_PAIR = re.compile(r"""(["'])([\w.%-]{1,100})\1(\s*:\s*)(["'])((?:\\.|(?!\4)[^\\])*)(?:\4|$)""", re.DOTALL)
#: an option in a text: its name, and its value up to the next option or the end of the string it stands in
_OPTION = re.compile(r"(?<=[?&])([^=&?'\s]{1,200}=)((?:\\.|[^&'\\]|'')*)", re.DOTALL)
_PASSWORD = re.compile(r"(\b[A-Za-z][\w+.-]*://[^/\s'@:?]*:)([^/\s'?@][^/\s'?]*)(?=@)")
#: brokers have no users: whatever stands before an @ is meant for one, also if it is written as in a URL
_BROKERS = re.compile(r"(\bkafka:(?://)?)([^\s'?]+)(?=@|%40)", re.IGNORECASE)


def is_secret(option: str) -> bool:
    """Whether the value of an option is nobody's business, by its name as it stands in a URL.

    >>> [is_secret(name) for name in ("kafka.sasl%2Epassword", "fs.s3a.access.key", "AWS_SESSION_TOKEN")]
    [True, True, True]
    >>> [is_secret(name) for name in ("key", "kafka.ssl.key.location", "kafka.sasl.username", "delimiter")]
    [False, False, False, False]
    """
    name = _decoded(option).lower().strip()
    if name.removeprefix("kafka.") in _HARMLESS:
        return False
    parts = _PARTS.split(name)
    is_key = any(part.endswith(("key", "keys")) for part in parts)
    return is_key or bool(_TELLING.search(name)) or not _TELLING_PARTS.isdisjoint(parts)


def has_password(place: str) -> bool:
    """Whether a URL, or the part of one before its options, names a user with a password.

    >>> has_password("https://me:hunter2@idp"), has_password("kafka://me%40b:9092/t"), has_password("a:b")
    (True, True, False)
    """
    plain = _decoded(place)
    return bool(_PASSWORD.search(plain) or _BROKERS.search(plain))


def is_reference(value: str) -> bool:
    """Whether a value says where a secret is, and not what it is."""
    return REFERENCE.fullmatch(value) is not None


def redacted(text: str, *, keep_width: bool = False) -> str:
    """The text with every secret blotted out; every other character stays at its place if asked for."""

    def blotted(secret: str) -> str:
        return re.sub(r"[^\n]", "*", secret) if keep_width else BLOT

    def option(found: re.Match[str]) -> str:
        name, value = found.groups()
        known = unquote(value)
        if is_secret(name[:-1]) and not is_reference(known):
            return name + blotted(value)
        inner = _decoded(value)  # of a sink, say, that a source is given
        return name + (blotted(value) if has_password(known) or redacted(inner) != inner else value)

    def pair(found: re.Match[str]) -> str:
        before = text[found.start() : found.start(5)]
        known = is_secret(found[2]) and not is_reference(found[5])
        return before + blotted(found[5]) + text[found.end(5) : found.end()] if known else found[0]

    text = _PAIR.sub(pair, text)
    if "=" in text:
        text = _OPTION.sub(option, text)
    if "@" in text or "%40" in text:
        for pattern in (_PASSWORD, _BROKERS):
            text = pattern.sub(lambda found: found[1] + blotted(found[2]), text)
    return text


def _decoded(text: str) -> str:
    """Without percent signs, however often they were put in."""
    while (plain := unquote(text)) != text:
        text = plain
    return text
