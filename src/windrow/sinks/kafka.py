"""`kafka:`: each row is one message.

A message cannot be taken back, nor be made visible together with the number of its commit. So a repetition
sends the messages again, and they say in their headers which row of which commit of which state they are. A
commit has one owner: what another one sends of it, which was overtaken and does not know, is the same again.
Where messages go, and how: `kafka://host:9092/topic?key=a,b&timeout=30&kafka.compression.type=zstd`.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import unquote

from windrow.credentials import Resolved, ScrubbedLog, resolve
from windrow.errors import QueryError, SinkError, nearest
from windrow.sinks.delivery import KEPT, Delivery, Opening, Sink, SinkUrl, imported
from windrow.sinks.json_rows import json_line, json_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


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

        >>> from windrow.sinks.delivery import SinkUrl
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


#: seconds beyond a message's own time, for the library to report that it has run out
_GRACE = 5.0


class KafkaSink(Sink):
    """Sends to one topic, in order, and waits until the brokers have it all."""

    is_slow = True
    guarantee = "at least once, with the commit and the row in the headers to tell repetitions by"

    def __init__(self, target: KafkaTarget, opening: Opening) -> None:
        self._target, self._query, self._state = target, opening.query, opening.state
        self._library = imported("confluent_kafka", "kafka")
        self._trouble = ""  # the last thing the library has said about its connections
        self._refused = ""  # why the first message that was refused was
        self._resolved = Resolved()
        self._producer: Any = self._connected()

    @classmethod
    def of(cls, url: SinkUrl) -> Callable[[Opening], Self]:
        return partial(cls, KafkaTarget.of(url))

    def deliver(self, delivery: Delivery) -> None:
        self._check_keys(delivery.schema.names)
        if self._producer is None:
            self._producer = self._connected()
        self._refused = ""
        try:
            self._send(delivery)
            left = self._producer.flush(self._target.timeout + _GRACE)
            self._check(left == 0)
        except (self._library.KafkaException, _NotSent) as error:
            self.close()
            raise self._failed(_text(error.args[0])) from None
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Forget the connections, after an error too: they may be of no use then. Messages that no delivery
        waits for any more are not sent."""
        if self._producer is not None:
            self._producer.purge()
            self._producer.flush(1)
            self._producer = None

    def _send(self, delivery: Delivery) -> None:
        number = 0
        for piece in delivery.pieces():
            for row in json_rows(piece):
                headers = {
                    "windrow-state": self._state,
                    "windrow-query": self._query,
                    "windrow-commit": str(delivery.commit),
                    "windrow-row": str(number),
                }
                key = {name: row[name] for name in self._target.key}
                self._send_message(json_line(row), json_line(key) if key else None, headers)
                number += 1

    def _send_message(self, value: str, key: str | None, headers: Mapping[str, str]) -> None:
        """Put one message into the queue, waiting while that is full."""
        limit = time.monotonic() + self._target.timeout + _GRACE
        while True:
            try:
                self._producer.produce(
                    self._target.topic,
                    value=value.encode(),
                    key=None if key is None else key.encode(),
                    headers=list(headers.items()),
                    on_delivery=self._report,
                )
                self._producer.poll(0)
                return
            except BufferError:
                self._producer.poll(0.1)
            self._check(time.monotonic() < limit)

    def _report(self, error: Any, _: Any) -> None:
        if error is not None and not self._refused:
            self._refused = _text(error)

    def _check(self, answered: bool) -> None:
        if self._refused or not answered:
            raise _NotSent(self._refused or f"no answer within {self._target.timeout} seconds")

    def _check_keys(self, names: list[str]) -> None:
        for name in self._target.key:
            if name not in names:
                raise SinkError(
                    f"query `{self._query}` has no column `{name}` to make the keys of its messages from",
                    code="unknown-column",
                    hint=nearest(name, names),
                )

    def _connected(self) -> Any:
        """A producer. Nothing is sent yet: that a broker is not there shows only when rows are."""
        self._trouble = ""
        self._resolved = resolve(self._target.settings, SinkError)
        try:
            # a log of ours: the library's own goes to standard error, and tells what it was given
            ours = {"error_cb": self._note, "logger": ScrubbedLog(self._resolved.scrubbed)}
            return self._library.Producer({**self._resolved.values, **ours})
        except (self._library.KafkaException, TypeError, ValueError) as error:
            reason = self._resolved.scrubbed(_text(error.args[0]))
            raise SinkError(
                f"the settings for Kafka at {self._target.servers} do not work: {reason}",
                code="bad-sink-option",
                hint="see the options that begin with `kafka.`; they are those of librdkafka",
            ) from None  # the library may repeat a setting

    def _note(self, error: Any) -> None:
        self._trouble = self._resolved.scrubbed(_text(error))

    def _failed(self, reason: str) -> SinkError:
        place = f"topic `{self._target.topic}` of Kafka at {self._target.servers}"
        trouble = f"; {self._trouble}" if self._trouble else ""
        return SinkError(
            f"cannot send to {place}: {self._resolved.scrubbed(reason)}{trouble}",
            code="kafka",
            hint=f"see that the brokers run, can be reached from here, and have the topic; {KEPT}",
        )


class _NotSent(Exception):  # noqa: N818 - never leaves this file
    """A message was refused, or nobody has answered."""


def _text(error: Any) -> str:
    """What the library says, without the frame it prints around it."""
    return str(error.str() if hasattr(error, "str") else error)
