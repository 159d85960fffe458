"""The options of `kafka://host:port/topic?…`."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from windrow.credentials import Resolved, resolve
from windrow.errors import QueryError, SourceError
from windrow.spark.sources.options import choice, count, read_options, seconds, single_character

if TYPE_CHECKING:
    from windrow.spark.sources.url import SourceUrl

_PREFIX = "kafka."
_OPTIONS = {
    "starting": choice("earliest", "latest"),
    "format": choice("json", "csv"),
    "delimiter": single_character,
    "malformed": choice("fail", "drop"),
    "rows_per_batch": count,
    "timeout": seconds,
}
#: what Windrow decides itself; another value would lose rows or have no effect
_OWN = {
    "bootstrap.servers": "name the brokers in the URL",
    "enable.auto.commit": "the state directory keeps the offsets",
    "auto.offset.reset": "say `starting=earliest` or `starting=latest`",
    "isolation.level": "only committed rows are read",
    "enable.partition.eof": "it is needed to see the end of a batch",
}


@dataclass(frozen=True)
class KafkaUrl:
    """Brokers, topic and how to read it; `client` are settings of librdkafka, secrets as references."""

    servers: str
    topic: str
    starting: str = "earliest"
    format: str = "json"
    delimiter: str = ","
    malformed: str = "fail"
    rows_per_batch: int | None = None
    timeout: int = 10_000_000
    client: dict[str, str] = field(default_factory=dict, repr=False)
    #: which of them are secrets; only a URL that is in use knows
    hidden: tuple[str, ...] = ()

    @property
    def place(self) -> str:
        return f"kafka://{self.servers}/{self.topic}"

    def resolved(self) -> KafkaUrl:
        """The same with its secrets looked up, to connect with."""
        found = resolve(self.client, SourceError)
        return replace(self, client=dict(found.values), hidden=found.hidden)

    def scrubbed(self, text: str) -> str:
        """What the library says, without secrets."""
        return Resolved(self.client, tuple(self.hidden)).scrubbed(text)

    @property
    def timeout_seconds(self) -> float:
        return self.timeout / 1_000_000


def read_kafka_url(url: SourceUrl) -> KafkaUrl:
    """The URL's brokers, topic and options, checked."""
    servers, _, topic = url.place.partition("/")
    if not (servers and topic and "/" not in topic):
        raise QueryError(
            f"`kafka://{url.place}` does not name brokers and a topic",
            code="bad-source",
            hint="write `kafka://host:9092/topic`, several brokers as `host1:9092,host2:9092`",
        )
    client = {
        name.removeprefix(_PREFIX): value for name, value in url.options.items() if name.startswith(_PREFIX)
    }
    for name in client:
        if name in _OWN:
            raise QueryError(
                f"the option `{_PREFIX}{name}` is set by Windrow itself", code="bad-option", hint=_OWN[name]
            )
    others = {name: value for name, value in url.options.items() if not name.startswith(_PREFIX)}
    options = read_options(others, _OPTIONS, "kafka:")
    if "delimiter" in options and options.get("format") != "csv":
        raise QueryError(
            "the option `delimiter` says nothing about json messages",
            code="bad-option",
            hint="say `format=csv`",
        )
    return KafkaUrl(servers, topic, client=client, **options)
