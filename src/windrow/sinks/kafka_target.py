"""Where messages go, and how: `kafka://host:9092/topic?key=a,b&timeout=30&kafka.compression.type=zstd`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from windrow.errors import QueryError

if TYPE_CHECKING:
    from windrow.sinks.urls import SinkUrl

_OPTIONS = ("format", "key", "timeout")
_TIMEOUT = 30
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
_PREFIX = "kafka."
_OWN = {
    "bootstrap.servers": "write the brokers behind kafka://",
    "message.timeout.ms": "write timeout=30, in seconds",
    "delivery.timeout.ms": "write timeout=30, in seconds",
}
#: each message is written once and in order, whatever the library has to try again, and only errors that end
#: a delivery are reported, by us
_DEFAULTS = {"enable.idempotence": "true", "acks": "all", "log_level": "2"}


@dataclass(frozen=True)
class KafkaTarget:
    """A topic, and the settings to reach it."""

    servers: str
    topic: str
    key: tuple[str, ...]
    #: seconds after which a message that nobody has answered is an error
    timeout: int
    #: for the library; secrets are references
    settings: dict[str, Any]

    @classmethod
    def of(cls, url: SinkUrl) -> KafkaTarget:
        """Read it from the text after INTO.

        >>> from windrow.sinks.urls import SinkUrl
        >>> target = KafkaTarget.of(SinkUrl.parse("kafka://a:9092,b:9092/alarms?key=host,port"))
        >>> target.servers, target.topic, target.key
        ('a:9092,b:9092', 'alarms', ('host', 'port'))
        """
        servers, _, topic = url.place.removeprefix("//").partition("/")
        if not url.place.startswith("//") or not servers or not _TOPIC.fullmatch(topic):
            hint = (
                "write 'kafka://host:9092/topic'; a topic has letters, digits, dots, dashes and underscores"
            )
            raise QueryError("`kafka:` needs a broker and a topic", code="bad-sink", hint=hint)
        url.allow(_OPTIONS, prefix=_PREFIX)
        url.choice("format", ("json",), "json")
        timeout = url.count("timeout", _TIMEOUT)
        key = tuple(filter(None, url.options.get("key", "").split(",")))
        return cls(unquote(servers), topic, key, timeout, _settings(url, servers, timeout))


def _settings(url: SinkUrl, servers: str, timeout: int) -> dict[str, Any]:
    given = {
        name.removeprefix(_PREFIX): value for name, value in url.options.items() if name.startswith(_PREFIX)
    }
    for name, hint in _OWN.items():
        if name in given:
            raise QueryError(f"`kafka.{name}` cannot be set here", code="bad-sink-option", hint=hint)
    own = {"bootstrap.servers": unquote(servers), "message.timeout.ms": str(timeout * 1000)}
    return {**_DEFAULTS, **given, **own}
