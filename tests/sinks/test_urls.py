"""The text after INTO: what it means, and what is said when it means nothing."""

from __future__ import annotations

import pytest

from windrow.errors import QueryError
from windrow.sinks import check_sink, open_sink
from windrow.sinks.delivery import SinkUrl
from windrow.sinks.kafka import KafkaTarget

GOOD = {
    "memory:": "exactly once while",
    "console:": "at least once",
    "console:?limit=5": "at least once",
    "CONSOLE:": "at least once",
    "files:///data/out": "exactly once",
    "files:out/csv?format=csv": "exactly once",
    "files://out?format=JSON": "exactly once",
    "delta:///data/top": "exactly once",
    "delta:top": "exactly once",
    "kafka://host:9092/topic": "at least once",
    "kafka://a:9092,b:9092/topic?format=json&key=a,b&timeout=5&kafka.linger.ms=5": "at least once",
}

BAD = {
    "/data/out": "does not say what kind of sink it is (write for example 'console:'",
    "delt:///data": "no sink is called `delt:` (did you mean `delta`?)",
    "s3://bucket/out": "no sink is called `s3:` (known here: `console`, `delta`, `files`, `kafka`, `memory`)",
    "memory:x": "`memory:` is not followed by a place (write 'memory:' alone)",
    "memory:?limit=1": "`memory:` has no option `limit` (`memory:` takes no options)",
    "console:?limits=1": "`console:` has no option `limits` (did you mean `limit`?)",
    "console:?limit=0": "`limit=0` is not a number from 1 on (write for example limit=20)",
    "console:?limit=²": "is not a number from 1 on",
    "console:?limit": "the option `limit` has no value (write limit=value)",
    "console:?limit=1&limit=2": "the option `limit` is given twice (leave one out)",
    "files:": "`files:` needs a directory (write for example 'files:///data/answers')",
    "files:///out?format=parket": "`files:` has no format `parket` (did you mean `parquet`?)",
    "delta:///t?format=parquet": "`delta:` has no option `format` (`delta:` takes no options)",
    "kafka://host:9092": "`kafka:` needs a broker and a topic (write 'kafka://host:9092/topic'",
    "kafka:///topic": "`kafka:` needs a broker and a topic",
    "kafka://host/a/b": "`kafka:` needs a broker and a topic",
    "kafka://host/t?format=avro": "`kafka:` has no format `avro` (known here: `json`)",
    "kafka://host/t?keys=a": "`kafka:` has no option `keys` (did you mean `key`?)",
    "kafka://host/t?kafka.bootstrap.servers=x": "cannot be set here (write the brokers behind kafka://)",
    "kafka://host/t?kafka.message.timeout.ms=0": "cannot be set here (write timeout=30, in seconds)",
}


@pytest.mark.parametrize("text", GOOD)
def test_what_a_sink_guarantees(text: str) -> None:
    assert check_sink(text).startswith(GOOD[text])


@pytest.mark.parametrize("text", BAD)
def test_what_is_refused(text: str) -> None:
    with pytest.raises(QueryError) as caught:
        check_sink(text)
    assert BAD[text] in str(caught.value)
    with pytest.raises(QueryError):
        open_sink(text, "top")


def test_options_are_decoded_once_and_keep_their_plus_signs() -> None:
    url = SinkUrl.parse("kafka://host:9092/t?kafka.client.id=a%26b+c%253d=")
    assert KafkaTarget.of(url).settings["client.id"] == "a&b+c%3d="
