"""`kafka:`: against a broker inside this process."""

from __future__ import annotations

import json
import socket
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from tests.sinks.support import delivery_of, every_type, nothing, numbers
from tests.sinks.test_text_forms import COMMON, NULLS, STRANGE
from tests.support.patience import PATIENCE

from windrow.errors import SinkError
from windrow.sinks import open_sink

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def broker() -> Iterator[str]:
    """The address of a broker that lives as long as its producer."""
    cluster = Producer({"bootstrap.servers": "mock", "test.mock.num.brokers": 1, "log_level": 2})
    (found,) = cluster.list_topics(timeout=PATIENCE).brokers.values()
    yield f"{found.host}:{found.port}"
    cluster.flush(1)


def messages(broker: str, topic: str, expected: int) -> list[Any]:
    """All messages of a topic, by partition; waits until there are as many as expected."""
    consumer = Consumer(
        {"bootstrap.servers": broker, "group.id": topic, "enable.auto.commit": False, "log_level": 2}
    )
    try:
        partitions = consumer.list_topics(topic, timeout=PATIENCE).topics[topic].partitions
        consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
        found: list[Any] = []
        limit = time.monotonic() + PATIENCE
        while time.monotonic() < limit:
            wait = 0.3 if len(found) >= expected else 1.0  # a little longer, to see what should not be there
            message = consumer.poll(wait)
            if message is None and len(found) >= expected:
                break
            if message is not None and message.error() is None:
                found.append(message)
        return sorted(found, key=lambda message: (message.partition(), message.offset()))
    finally:
        consumer.close()


def headers_of(message: Any) -> tuple[str, ...]:
    headers = dict(message.headers())
    return tuple(headers[f"windrow-{name}"].decode() for name in ("query", "commit", "row"))


def test_a_message_per_row_that_says_which_it_is(broker: str) -> None:
    sink = open_sink(f"kafka://{broker}/plain", "top")
    for commit in (1, 2, 2):
        sink.deliver(delivery_of(numbers(commit), commit))
    sink.deliver(nothing(3))
    sink.close()
    found = messages(broker, "plain", 9)
    assert len(found) == 9
    assert all(message.key() is None for message in found)
    rows = {headers_of(message): json.loads(message.value()) for message in found}
    assert rows == {
        ("top", str(commit), str(number)): row
        for commit in (1, 2)
        for number, row in enumerate(numbers(commit).to_pylist())
    }


def test_another_state_is_not_taken_for_a_repetition(broker: str) -> None:
    for state in ("one", "two"):
        open_sink(f"kafka://{broker}/states", "top", state=state).deliver(delivery_of(numbers(1), 1))
    told = [dict(message.headers())["windrow-state"] for message in messages(broker, "states", 6)]
    assert sorted(told) == [b"one"] * 3 + [b"two"] * 3


def test_keys_keep_equal_rows_in_order(broker: str) -> None:
    sink = open_sink(f"kafka://{broker}/keyed?key=k,at", "top")
    for commit in (1, 2):
        sink.deliver(delivery_of(numbers(1), commit))
    found = messages(broker, "keyed", 6)
    assert {message.key() for message in found} == {b'{"k":"key %d","at":%d}' % (n, n) for n in (10, 11, 12)}
    for key in {message.key() for message in found}:
        same = [message for message in found if message.key() == key]
        assert len({message.partition() for message in same}) == 1
        assert [headers_of(message)[1] for message in same] == ["1", "2"]


def test_every_type(broker: str) -> None:
    open_sink(f"kafka://{broker}/types?kafka.compression.type=gzip", "top").deliver(delivery_of(every_type()))
    found = {headers_of(message)[2]: json.loads(message.value()) for message in messages(broker, "types", 3)}
    assert found == {"0": COMMON, "1": STRANGE, "2": NULLS}


def test_more_rows_than_the_queue_holds(broker: str) -> None:
    sink = open_sink(f"kafka://{broker}/many?kafka.queue.buffering.max.messages=10", "top")
    sink.deliver(delivery_of(numbers(1, 500), 1, cut=100))
    assert len({headers_of(message) for message in messages(broker, "many", 500)}) == 500


# ------------------------------------------------------------------ what goes wrong


@pytest.fixture
def nobody() -> Iterator[str]:
    """An address where nobody answers, which nobody else can take meanwhile."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{taken.getsockname()[1]}"


@pytest.mark.thorough
def test_without_a_broker_the_rows_are_kept(nobody: str) -> None:
    sink = open_sink(f"kafka://{nobody}/t?timeout=1", "top")
    for _ in range(2):
        start = time.monotonic()
        with pytest.raises(SinkError) as caught:
            sink.deliver(delivery_of(numbers(1)))
        assert time.monotonic() - start < 60
        assert f"cannot send to topic `t` of Kafka at {nobody}: " in caught.value.message
        assert "Connection refused" in caught.value.message
        assert "the rows are kept" in (caught.value.hint or "")
    sink.close()


def test_no_broker_and_a_full_queue(nobody: str) -> None:
    sink = open_sink(f"kafka://{nobody}/t?timeout=1&kafka.queue.buffering.max.messages=2", "top")
    start = time.monotonic()
    with pytest.raises(SinkError, match="cannot send to topic"):
        sink.deliver(delivery_of(numbers(1, 100)))
    assert time.monotonic() - start < 60


def test_a_message_that_is_too_large(broker: str) -> None:
    sink = open_sink(f"kafka://{broker}/large?kafka.message.max.bytes=1000", "top")
    table = numbers(1, 1).set_column(1, "k", [["x" * 2000]])
    with pytest.raises(SinkError, match="Message size too large"):
        sink.deliver(delivery_of(table, 1))
    sink.deliver(delivery_of(numbers(2), 2))
    assert {headers_of(message)[1] for message in messages(broker, "large", 3)} == {"2"}


def test_a_key_that_is_not_a_column(broker: str) -> None:
    with pytest.raises(SinkError, match=r"has no column `kay` .*\(known here: `at`, `k`\)"):
        open_sink(f"kafka://{broker}/t?key=kay", "top").deliver(delivery_of(numbers(1)))


@pytest.mark.parametrize("option", ["kafka.nonsense=1", "kafka.linger.ms=soon"])
def test_settings_that_the_library_refuses(broker: str, option: str) -> None:
    with pytest.raises(SinkError) as caught:
        open_sink(f"kafka://{broker}/t?{option}", "top")
    assert caught.value.code == "bad-sink-option"
    assert "configuration property" in caught.value.message


def test_the_package_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(SinkError, match=r"pip install 'windrow\[kafka\]'"):
        open_sink("kafka://localhost:9092/t", "top")
