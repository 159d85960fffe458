"""Kafka, against the broker that librdkafka has built in for tests."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain
from traceback import format_exception
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
import pytest
from confluent_kafka import Producer
from tests.spark.sources.conftest import all_rows
from tests.support.brokers import FrontedBroker, mock_broker
from tests.support.life import Life
from tests.support.patience import PATIENCE, wait_until

from windrow.engine import loop
from windrow.engine.loop import PASSING
from windrow.errors import DataError, SourceError
from windrow.language.compile import declare_table
from windrow.spark import failures
from windrow.spark.failures import Cause, job_failed, translated
from windrow.spark.sources import kafka_source, open_url
from windrow.spark.sources.kafka_source import KafkaSource, ReadMessages, Topic, check_still_there, limited
from windrow.spark.sources.source import Begun, SourceTaskError, told_to_driver
from windrow.spark.sources.table_source import open_table
from windrow.spark.sources.urls import KafkaUrl
from windrow.state.manifest import SourceState

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession
    from tests.spark.sources.conftest import Declare, Drain

Send = Callable[..., None]
COLUMNS = "item BIGINT, ts TIMESTAMP"


@pytest.fixture(scope="module")
def broker() -> tuple[str, Producer]:
    """A broker in this process, with topics of four partitions, made when they are first written to."""
    port, producer = mock_broker()
    return f"127.0.0.1:{port}", producer


@pytest.fixture
def server(broker: tuple[str, Producer]) -> str:
    return broker[0]


@pytest.fixture
def send(broker: tuple[str, Producer]) -> Send:
    """Send values to a topic, the first to partition 0, the second to partition 1, and so on."""

    def send(topic: str, *values: str | None) -> None:
        for number, value in enumerate(values):
            broker[1].produce(topic, value=value, partition=number % 4)
        assert broker[1].flush(10) == 0

    return send


def row(item: object) -> str:
    return f'{{"item": {item}, "ts": "2026-01-01T00:00:00"}}'


def test_bounds_and_messages(server: str, send: Send) -> None:
    send("plain", *"abcdef")
    with Topic(KafkaUrl(server, "plain")) as topic:
        assert topic.bounds() == ({0: 0, 1: 0, 2: 0, 3: 0}, {0: 2, 1: 2, 2: 1, 3: 1})
        assert list(chain(*topic.messages(1, 0, 2))) == [(0, b"b"), (1, b"f")]
        assert list(chain(*topic.messages(0, 1, 2))) == [(1, b"e")]


def test_rows_that_are_not_there_are_an_error(server: str, send: Send) -> None:
    send("short", "a")
    with Topic(KafkaUrl(server, "short", timeout=1_000_000)) as topic:
        with pytest.raises(
            SourceError, match=r"rows 500 to 509 of partition 0 .* cannot be read: .*out of range"
        ) as lost:
            list(topic.messages(0, 500, 510))
        assert (lost.value.code, lost.value.code in PASSING) == ("lost-rows", False)
        with pytest.raises(
            SourceError, match=r"rows 1 to 4 of partition 0 .* do not come: no more messages come"
        ) as away:
            list(topic.messages(0, 0, 5))
        assert (away.value.code, away.value.code in PASSING) == ("kafka", True)


def test_brokers_without_a_controller_are_not_asked_for_ids(
    server: str, send: Send, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They would let who asks wait for as long as he does."""
    monkeypatch.setattr("confluent_kafka.admin.AdminClient", lambda *_, **__: pytest.fail("it was asked"))
    send("unnamed", "a")
    with Topic(KafkaUrl(server, "unnamed")) as topic:
        topic.describe()
        assert topic.id() is None


@pytest.fixture
def fronted() -> Iterator[FrontedBroker]:
    """A broker that tells ids of topics."""
    broker = FrontedBroker()
    yield broker
    broker.close()


@pytest.mark.parametrize("noticed", ["when it is looked at", "before the commit", "at the next start"])
def test_a_topic_that_is_made_anew_is_refused_whatever_its_offsets(
    declare: Declare, fronted: FrontedBroker, monkeypatch: pytest.MonkeyPatch, noticed: str
) -> None:
    fronted.listen()
    fronted.send("t", "a", "b")
    spark: Any = None

    def opened() -> KafkaSource:
        return KafkaSource(spark, declare(COLUMNS), KafkaUrl(fronted.url, "t"))

    source = opened()
    assert " id=" in source.fingerprint
    assert opened().continues(source.fingerprint)
    source.begin(Begun("s", {}))
    end = source.upto({}, source.latest())
    assert end is not None
    assert source.check(end)
    fronted.renew("t")
    fronted.send("t", "c")
    if noticed == "at the next start":
        assert not opened().continues(source.fingerprint)
    else:
        monkeypatch.setattr(kafka_source, "_ASK_EVERY", 0.0)
        source._ask_at = 0.0
        with pytest.raises(SourceError, match="is another topic than the one that was read") as refused:
            source.latest() if noticed == "when it is looked at" else source.check(end)
        assert refused.value.code == "source-changed"
        assert refused.value.code not in PASSING
    source.end()


class ScriptedTopic:
    """A connection to a topic: what it tells, and how often it was asked which one it is."""

    def __init__(self, *ids: str | None) -> None:
        self.ids, self.found, self.asked = list(ids), ({0: 0}, {0: 5}), 0

    def __call__(self, _: KafkaUrl) -> ScriptedTopic:
        return self

    def __enter__(self) -> ScriptedTopic:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def close(self) -> None:
        pass

    def describe(self) -> tuple[str, list[int]]:
        return "cluster", [0]

    def bounds(self) -> Any:
        return self.found

    def id(self, wait: float | None = None) -> str | None:
        self.asked += 1
        return self.ids.pop(0) if len(self.ids) > 1 else self.ids[0]


@pytest.fixture
def scripted(declare: Declare, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """A source over a scripted topic, at the beginning of a run."""

    def made(*ids: str | None) -> tuple[KafkaSource, ScriptedTopic]:
        topic, spark = ScriptedTopic(*ids), cast("Any", None)
        monkeypatch.setattr(kafka_source, "Topic", topic)
        source = KafkaSource(spark, declare(COLUMNS), KafkaUrl("h:1", "t"))
        source.begin(Begun("s", {}))
        topic.asked = 0
        return source, topic

    return made


def test_brokers_that_tell_no_id_are_not_asked_for_it_in_a_run(scripted: Callable[..., Any]) -> None:
    source, topic = scripted(None)
    for _ in range(3):
        end = source.upto({}, source.latest())
        assert source.check(end)
    assert topic.asked == 0


def test_looks_ask_for_the_id_now_and_then_and_commits_always(scripted: Callable[..., Any]) -> None:
    source, topic = scripted("one")
    for _ in range(3):
        source.latest()
    assert topic.asked == 1
    for _ in range(3):
        assert source.check(source.upto({}, source.latest()))
    assert topic.asked == 4


def test_brokers_that_do_not_answer_for_the_id_any_more_are_left_alone(scripted: Callable[..., Any]) -> None:
    source, topic = scripted("one", None)
    for _ in range(3):
        assert source.check(source.upto({}, source.latest()))
    assert topic.asked == 1
    source._ask_again, topic.ids = 0.0, ["two"]
    with pytest.raises(SourceError, match="another topic"):
        source.check(source.upto({}, source.latest()))


@pytest.mark.parametrize("found", [({0: 0}, {0: 4}), ({0: -1}, {0: 5}), ({}, {}), ({0: 0}, {0: 5, 1: 1})])
def test_a_topic_that_goes_back_is_asked_at_once_which_it_is(
    scripted: Callable[..., Any], found: Any
) -> None:
    """More rows, or a partition more, are nothing of that kind."""
    source, topic = scripted("one")
    source.latest()
    topic.ids, topic.found = ["two"], found
    if 1 in found[1]:
        assert source.latest() == found
        return
    with pytest.raises(SourceError, match="another topic"):
        source.latest()


def test_a_run_over_a_topic_that_is_away_and_then_made_anew(
    tmp_path: Path, fronted: FrontedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It begins without the brokers, reads what they have, and commits nothing of the other topic."""

    def table(source: KafkaSource, start: Any, end: Any) -> pa.Table:
        read = ReadMessages("s", KafkaUrl(fronted.behind, "t"))
        batches = [batch for part in source._parts(start, end) for batch in read(part)]
        values = [int(value) for batch in batches for value in batch["__value"].to_pylist()]
        columns = {
            name: [n for batch in batches for n in batch[name].to_pylist()] for name in source.order_key
        }
        return pa.table({"k": values, "t": values, **columns})

    monkeypatch.setattr(KafkaSource, "frame", table)
    monkeypatch.setattr(loop, "AWAY", 0.01)
    monkeypatch.setattr(loop, "LONGEST_PAUSE", 0.05)
    fronted.send("t", "1", "2")
    with Life(tmp_path / "state") as w:
        url = f"kafka://{fronted.url}/t?timeout=0.3"
        w.sql(f"CREATE STREAM s (k BIGINT, t BIGINT) WATTR t ORDERED FROM '{url}'")
        w.query("q", "SELECT COUNT(*) AS n FROM s [RANGE 10 SLIDE 10]")
        w.start()
        wait_until(lambda: [error.code for error in w.problems] == ["kafka"])
        fronted.listen()
        wait_until(lambda: w.engine.streams["s"].known.accepted == 2)
        assert not w.problems
        fronted.renew("t")
        fronted.send("t", "3")
        with pytest.raises(SourceError, match="is another topic than the one that was read") as refused:
            w.wait(PATIENCE)
        assert refused.value.code == "source-changed"
        assert w.engine.streams["s"].known.accepted == 2
        with pytest.raises(SourceError, match="another topic"):  # nor does it begin again
            w.run(once=True)


def test_a_topic_whose_id_is_not_always_told_is_the_same(
    declare: Declare, server: str, send: Send, monkeypatch: pytest.MonkeyPatch
) -> None:
    send("named", "a")
    spark: Any = None

    def opened(told: str | None, **options: Any) -> KafkaSource:
        monkeypatch.setattr(Topic, "id", lambda _: told)
        return KafkaSource(spark, declare(COLUMNS), KafkaUrl(server, "named", **options))

    unknown, known = opened(None).fingerprint, opened("abc").fingerprint
    assert opened("abc").continues(unknown)
    assert not opened("xyz").continues(known)
    assert not opened(None, format="csv").continues(known)
    slow = opened(None)
    assert slow.continues(known)
    assert slow.fingerprint == known


@pytest.fixture
def unparsed(declare: Declare, server: str, send: Send) -> Callable[..., KafkaSource]:
    """A topic as a source that needs no Spark to say how far it is."""

    def opened(topic: str, **options: Any) -> KafkaSource:
        spark: Any = None
        source = KafkaSource(spark, declare(COLUMNS), KafkaUrl(server, topic, **options))
        source.begin(Begun("s", {}))
        return source

    return opened


def test_partitions_that_come_later_are_read_from_their_beginning(
    send: Send, unparsed: Callable[..., KafkaSource]
) -> None:
    """Wherever the topic was begun; and one that had rows and lost them is told."""
    send("grows", *"abcd")
    for starting in ("earliest", "latest"):
        source = unparsed("grows", starting=starting)
        known = source.upto({}, ({0: 0, 1: 3}, {0: 5, 1: 4}))
        assert known is not None
        assert known.at == {"partitions": {"0": 5, "1": 4}}
        end = source.upto(known.at, ({0: 0, 1: 3, 2: 0}, {0: 5, 1: 4, 2: 2}))
        assert end is not None
        assert source._parts(known.at, end) == [(2, 0, 2)]
        half = source.half(known.at, end)
        assert half is not None
        assert source._parts(known.at, half) == [(2, 0, 1)]
        with pytest.raises(SourceError, match=r"rows 0 to 0 of partition 2 .* are gone") as lost:
            source.upto(known.at, ({0: 0, 1: 3, 2: 1}, {0: 5, 1: 4, 2: 2}))
        assert lost.value.code == "lost-rows"


def test_a_long_backlog_is_read_in_portions(send: Send, unparsed: Callable[..., KafkaSource]) -> None:
    send("long", "a")
    latest = {0: 0, 1: 0}, {0: 6_000_000, 1: 4_000_000}
    for options, taken in (({}, {"0": 600_000, "1": 400_000}), ({"rows_per_batch": 10}, {"0": 6, "1": 4})):
        end = unparsed("long", **options).upto({}, latest)
        assert end is not None
        assert end.at == {"partitions": taken}
        assert end.has_more


def test_one_connection_is_asked_all_the_time(
    send: Send, unparsed: Callable[..., KafkaSource], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And for committed rows only."""
    import confluent_kafka

    made: list[dict[str, Any]] = []
    real = confluent_kafka.Consumer

    def consumer(settings: dict[str, Any], **how: Any) -> Any:
        made.append(settings)
        return real(settings, **how)

    monkeypatch.setattr(confluent_kafka, "Consumer", consumer)
    send("asked", *"abcd")
    source = unparsed("asked")
    made.clear()
    for number in range(3):
        assert source.latest()[1][0] == number + 1
        send("asked", "e")
    assert [settings["isolation.level"] for settings in made] == ["read_committed"]
    source.end()


def test_a_missing_topic_is_refused(server: str) -> None:
    with (
        Topic(KafkaUrl(server, "nowhere")) as topic,
        pytest.raises(SourceError, match="there is no topic `nowhere`") as refused,
    ):
        topic.bounds()
    assert refused.value.code not in PASSING


def test_a_topic_without_a_leader_is_away(server: str, send: Send, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is there, and is chosen one: nothing to end a run for."""
    import confluent_kafka

    send("led", "a")
    error = confluent_kafka.KafkaError(confluent_kafka.KafkaError.LEADER_NOT_AVAILABLE)
    told = SimpleNamespace(
        controller_id=1,
        brokers={},
        cluster_id="c",
        topics={"led": SimpleNamespace(error=error, partitions={0: 1})},
    )
    with Topic(KafkaUrl(server, "led")) as topic:
        consumer, topic._consumer = topic._consumer, SimpleNamespace(list_topics=lambda *_, **__: told)
        with pytest.raises(SourceError, match="cannot be read for now") as away:
            topic.describe()
        topic._consumer = consumer
    assert away.value.code in PASSING


def test_a_broker_that_is_down_is_not_waited_for_long(caplog: pytest.LogCaptureFixture) -> None:
    """Nor does the library say more than once why."""
    began = time.monotonic()
    with (
        Topic(KafkaUrl("127.0.0.1:1", "plain", timeout=500_000)) as topic,
        pytest.raises(SourceError, match=r"no answer from `kafka://127.0.0.1:1/plain` within 0.5 seconds"),
    ):
        topic.bounds()
    assert time.monotonic() - began < 60
    said = [record.getMessage() for record in caplog.records if "Connect to" in record.getMessage()]
    assert said
    assert len(said) == len(set(said))


def test_brokers_that_are_away_when_a_topic_is_opened_may_answer_later(declare: Declare, server: str) -> None:
    """That they answer and have no such topic is a fact."""
    spark: Any = None
    for url, passes in (("127.0.0.1:1/plain?timeout=0.5", True), (f"{server}/nowhere", False)):
        with pytest.raises(SourceError) as told:
            open_url(spark, declare(COLUMNS, f"kafka://{url}"))
        assert (told.value.code in PASSING) is passes


def test_an_unknown_setting_is_refused(server: str) -> None:
    with pytest.raises(SourceError, match=r'No such configuration property: "bogus" .*begin with `kafka\.`'):
        Topic(KafkaUrl(server, "plain", client={"bogus": "1"}))


def test_the_package_is_named_if_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(SourceError, match=r"pip install 'windrow\[kafka\]'"):
        Topic(KafkaUrl("h:1", "t"))


def test_positions_of_a_topic(spark: SparkSession, declare: Declare, server: str, send: Send) -> None:
    send("offsets", *"abcde")
    source = open_url(spark, declare(COLUMNS, f"kafka://{server}/offsets?rows_per_batch=4"))
    source.begin(Begun("s", {}))
    end = source.upto({}, source.latest())
    assert end is not None
    assert (sum(end.at["partitions"].values()), end.backlog, end.has_more) == (4, 1, True)
    rest = source.upto(end.at, source.latest())
    assert rest is not None
    assert rest.at == {"partitions": {"0": 2, "1": 1, "2": 1, "3": 1}}
    assert (rest.backlog, rest.has_more) == (0, False)
    assert source.upto(rest.at, source.latest()) is None
    source.end()


def test_a_task_reads_the_messages_of_its_part(server: str, send: Send) -> None:
    send("parts", *"abcde")
    read = ReadMessages("s", KafkaUrl(server, "parts"))
    values = [value for batch in read((0, 0, 2)) for value in batch["__value"].to_pylist()]
    assert values == [b"a", b"e"]


def test_a_topic_read_from_its_end_begins_where_it_was_first_seen(
    spark: SparkSession, declare: Declare, server: str, send: Send
) -> None:
    send("ends", *"abcd")
    source = open_url(spark, declare(COLUMNS, f"kafka://{server}/ends?starting=latest"))
    source.begin(Begun("s", {}))
    begin = source.upto({}, source.latest())
    assert begin is not None
    assert begin.at == {"partitions": {"0": 1, "1": 1, "2": 1, "3": 1}}
    send("ends", *"efgh")
    end = source.upto(begin.at, source.latest())
    assert end is not None
    assert end.at == {"partitions": {"0": 2, "1": 2, "2": 2, "3": 2}}
    source.end()


def test_a_broker_that_is_away_is_told_with_its_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    error = SourceError("no answer", code="source-away", hint="wait")
    with pytest.raises(SourceTaskError) as raised, told_to_driver("bids"):
        raise error
    traceback = "".join(format_exception(raised.value))
    cause = Cause(
        "PythonException", "PYTHON_EXCEPTION", message=f"[PYTHON_EXCEPTION] In a worker: {traceback}"
    )
    monkeypatch.setattr(failures, "causes", lambda _: [cause])
    told = translated(RuntimeError("SparkException"), "reading")
    assert isinstance(told, SourceError)
    assert (told.stream, told.code, told.message, told.hint) == ("bids", "source-away", "no answer", "wait")


def test_gone_rows_and_new_topics_are_noticed() -> None:
    with pytest.raises(
        SourceError, match=r"rows 3 to 4 of partition 1 of `k` are gone before they were read"
    ):
        check_still_there({0: 1, 1: 3}, {0: 0, 1: 5}, {0: 9, 1: 9}, "k")
    with pytest.raises(SourceError, match=r"ends before row 3 of partition 1, which was read already"):
        check_still_there({0: 1, 1: 3}, {0: 0, 1: 0}, {0: 9, 1: 2}, "k")
    with pytest.raises(SourceError, match=r"ends before row 3 of partition 1"):
        check_still_there({0: 1, 1: 3}, {0: 0}, {0: 9}, "k")
    check_still_there({0: 1}, {0: 0, 1: 0}, {0: 9, 1: 2}, "k")


def test_a_limit_is_shared_by_the_partitions() -> None:
    assert limited({0: 0}, {0: 5}, 10) == {0: 5}
    assert limited({0: 0, 1: 0, 2: 4}, {0: 99, 1: 1, 2: 4}, 10) == {0: 9, 1: 1, 2: 4}


def test_a_topic_is_read_once(
    spark: SparkSession, declare: Declare, drain: Drain, server: str, send: Send
) -> None:
    send("bids", *(row(item) for item in range(10)))
    source = open_url(spark, declare(COLUMNS, f"kafka://{server}/bids?kafka.client.id=test"))
    assert (source.is_bounded, source.order_key) == (False, ("__partition", "__offset"))
    assert source.fingerprint.endswith(" json")
    assert "/bids" in source.fingerprint
    (first,) = drain(source)
    assert first.column_names == ["item", "ts", "__partition", "__offset"]
    assert sorted(first["item"].to_pylist()) == list(range(10))
    send("bids", *(row(item) for item in range(10, 15)))
    (second,) = drain(source)
    assert sorted(second["item"].to_pylist()) == list(range(10, 15))


def test_malformed_messages_are_left_out_if_told(
    spark: SparkSession, declare: Declare, drain: Drain, server: str, send: Send
) -> None:
    send("bad", row(1), row('"x"'), None, "", "{", row(2))
    source = open_url(spark, declare(COLUMNS, f"kafka://{server}/bad?malformed=drop"))
    (batch,) = drain(source)
    assert sorted(batch["item"].to_pylist()) == [1, 2]


def test_a_malformed_message_is_named_by_its_offset(
    spark: SparkSession, declare: Declare, server: str, send: Send
) -> None:
    send("worse", row(1), row(2))
    send("worse", row(3), row('"x"'))
    frame = all_rows(open_url(spark, declare(COLUMNS, f"kafka://{server}/worse")))
    with pytest.raises(DataError) as told, job_failed("reading stream `s`"):
        frame.toArrow()
    place = "topic `worse`, partition 1, offset 1, column `item`"
    assert told.value.message == f"reading stream `s`: {place}: `x` is no BIGINT"
    assert told.value.code == "malformed-row"


def test_opening_tells_what_is_missing(spark: SparkSession, declare: Declare, server: str) -> None:
    with pytest.raises(SourceError, match="there is no topic `nowhere`"):
        open_url(spark, declare(COLUMNS, f"kafka://{server}/nowhere"))


def test_a_secret_is_in_no_plan(
    spark: SparkSession,
    declare: Declare,
    drain: Drain,
    server: str,
    send: Send,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("CANARY", "Canary7yellow")  # after Spark has begun: workers do not see it
    send("plans", row(1))
    source = open_url(spark, declare(COLUMNS, f"kafka://{server}/plans?kafka.sasl.password=${{env:CANARY}}"))
    (batch,) = drain(source)
    assert batch["item"].to_pylist() == [1]
    frame = all_rows(source)
    frame.explain(extended=True)
    shown = str(frame._jdf.queryExecution()) + "".join(capfd.readouterr())
    assert "MapInArrow" in shown
    assert "Canary" not in shown + source.fingerprint


def test_changes_by_debezium_make_a_table(spark: SparkSession, server: str, send: Send) -> None:
    """Changes of a key are in one partition; messages without a value are there for compaction only."""
    table = declare_table("items", "item BIGINT, name STRING", "RELATION KEY (item)")
    source = open_table(spark, replace(table, source=f"kafka://{server}/changes?changelog=debezium"))
    send("changes", '{"before":null,"after":{"item":1,"name":"pen"},"op":"c"}', None)
    send("changes", '{"before":null,"after":{"item":1,"name":"quill"},"op":"u","ts_ms":7}')
    send("changes", *[None] * 3, '{"payload":{"before":null,"after":{"item":4,"name":"hat"},"op":"r"}}')
    first = source.news(SourceState())
    assert first is not None
    assert sorted(first.rows) == [(1, "quill"), (4, "hat")]
    assert source.news(first.read) is None
    send("changes", '{"before":{"item":1,"name":"quill"},"after":null,"op":"d"}', None)
    second = source.news(first.read)
    assert second is not None
    assert second.rows == [(4, "hat")]
