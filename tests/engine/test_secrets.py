"""A canary in the place of every secret: afterwards it is nowhere to be found.

Secrets are refused where they are declared, and what they are refused with does not repeat them. Where they
are references, the library gets them and nothing else does: neither files, nor logs, nor what is shown.
"""

from __future__ import annotations

import gc
import inspect
import json
import logging
import traceback
from collections import Counter
from contextlib import suppress
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import KafkaError, Producer
from tests.cli.support import run
from tests.sinks.test_kafka import messages
from tests.support.history import BATCHES, COLUMNS, STREAM, SUMS, table_of
from tests.support.life import Life
from tests.support.oracle import oracle
from tests.support.patience import PATIENCE

from windrow.credentials import refuse_literals, resolve
from windrow.engine.explain import explain_plan
from windrow.errors import QueryError, SinkError, SourceError, WindrowError
from windrow.language.catalog import StandingQuery
from windrow.language.compile import compile_query, declare_stream
from windrow.redaction import is_secret, redacted
from windrow.sinks import check_sink
from windrow.sinks.delivery import SinkUrl
from windrow.sinks.kafka import KafkaTarget
from windrow.spark.sources import check_url, kafka_source
from windrow.spark.sources.urls import parse_url, read_kafka_url

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

CANARY = "Canary7yellow"
#: another, that no statement has in it: it is only referred to
REFERRED = "Canary9green"

#: options that hold secrets, of librdkafka, Hadoop's file systems and object stores, in many spellings
OPTIONS = (
    "kafka.sasl.password",
    "kafka.sasl%2Epassword",
    "kafka.sasl.%70assword",
    "kafka.sasl.%2570assword",
    "%6bafka.sasl.password",
    "KAFKA.SASL.PASSWORD",
    "sasl.password",
    "kafka.sasl.passwrd",
    "kafka.sasl.jaas.config",
    "kafka.sasl.oauthbearer.config",
    "kafka.sasl.oauthbearer.client.secret",
    "kafka.sasl.oauthbearer.assertion.private.key.pem",
    "kafka.sasl.oauthbearer.assertion.private.key.passphrase",
    "kafka.sasl.oauthbearer.extensions",
    "oauthbearer.config",
    "kafka.ssl.key.pem",
    "ssl.key.pem",
    "kafka.ssl.key.password",
    "kafka.ssl.keystore.password",
    "kafka.basic.auth.user.info",
    "password",
    "pwd",
    "token",
    "fs.s3a.access.key",
    "fs.s3a.secret.key",
    "fs.s3a.session.token",
    "fs.azure.account.key.shop.dfs.core.windows.net",
    "fs.azure.sas.box.shop.blob.core.windows.net",
    "fs.gs.auth.service.account.private.key",
    "AWS_ACCESS_KEY_ID",
    "aws_secret_access_key",
    "AWS_SESSION_TOKEN",
    "azure_storage_account_key",
    "azure_client_secret",
    "google_service_account_key",
    "SharedAccessSignature",
    "accessKey",
    "apikey",
    "sig",
)
#: URLs with a password in them, in front of a host or inside an option
PASSWORDS = (
    f"kafka://me:{CANARY}@host:9092/topic",
    f"kafka://me:{CANARY}/x@host:9092/topic",
    f"kafka://me%3A{CANARY}%40host:9092/topic",
    f"kafka://host:1,me:{CANARY}@host:9092/topic",
    f"kafka://host:9092/topic?kafka.sasl.oauthbearer.token.endpoint.url=https://me:{CANARY}@idp/token",
    f"kafka://host:9092/topic?kafka.x=https%3A%2F%2Fme%3A{CANARY}%40idp",
    f"files://s3a://me:{CANARY}@bucket/bids.csv",
    f"delta://me:{CANARY}@bucket/table",
    f"s3://me:{CANARY}@bucket/table",
)
SCHEMES = (
    "kafka://host:9092/topic",
    "files:///data/x.csv",
    "delta:///data/x",
    "console:",
    "data/x.csv",
    "s3a://b/x",
)
#: sinks that a source is given as an option, which have options of their own
INSIDE = [
    f"files:///x.csv?malformed=to&malformed_sink=kafka://h/t{mark}kafka.sasl.password{is_}{CANARY}"
    for mark, is_ in (("%3F", "="), ("%3f", "%3D"), ("%253F", "%253D"), ("?", "="))
]
#: every option in one scheme or another, and every scheme with the commonest
URLS = [
    *(f"{SCHEMES[n % len(SCHEMES)]}?format=json&{name}={CANARY}" for n, name in enumerate(OPTIONS)),
    *(f"{SCHEMES[0]}?{name}={CANARY}&key=a" for name in OPTIONS),
    *(f"{scheme}?password=x+{CANARY}%26y" for scheme in SCHEMES),
    f'kafka://h:1/t?kafka.sasl.jaas.config=org.Login required username="me" password="{CANARY}";',
    f"kafka://h:1/t?kafka.ssl.key.pem=-----BEGIN KEY-----\n{CANARY}\n-----END KEY-----",
    f"kafka://h:1/t?kafka.sasl.password=a''{CANARY}",
    f"kafka://h:1/t?kafka.sasl.password=${{env:X}}{CANARY}",
    f"kafka://h:1/t?kafka.sasl.password=${{vault:{CANARY}}}",
    *PASSWORDS,
]
TEXTS: dict[str, Callable[[str], str]] = {
    "from": lambda url: f"CREATE STREAM secret ({COLUMNS}) WATTR t SLACK 3 FROM '{url}'",
    "late": lambda url: f"CREATE STREAM secret ({COLUMNS}) WATTR t SLACK 3 LATE TO '{url}'",
    "table": lambda url: f"CREATE TABLE secret (a BIGINT) NRR FROM '{url}'",
    "into": lambda url: f"CREATE QUERY secret AS {SUMS} INTO '{url}'",
    "cut off": lambda url: f"CREATE STREAM secret ({COLUMNS}) WATTR t SLACK 3 FROM '{url}",
    "misspelt": lambda url: f"CREATE STREM secret ({COLUMNS}) WATTR t SLACK 3 FROM '{url}'",
    "too much": lambda url: f"CREATE QUERY secret AS {SUMS} INTO '{url}' AND THEN",
    "quoted": lambda url: f'CREATE STREAM secret ({COLUMNS}) WATTR t FROM "{url}"',
}


def _told(error: BaseException) -> str:
    """All that anybody could see of an error."""
    parts = [str(error), repr(error), *traceback.format_exception(error)]
    if isinstance(error, WindrowError):
        parts += [error.render(), str(error.hint), str(error.text), error.message]
    return "\n".join(parts)


def _everything_of(shown: Any) -> str:
    """What an object says of itself: its text, and that of all that it offers to be looked at."""
    names = [name for name, _ in inspect.getmembers(type(shown), lambda each: isinstance(each, property))]
    return "\n".join(
        [repr(shown), str(shown), *(repr(getattr(shown, n)) for n in names if not n.startswith("_"))]
    )


def _all_reprs() -> Iterator[str]:
    """What every object of ours that there is would be in a debugger, a log or a traceback."""
    for each in gc.get_objects():
        if str(type(each).__module__).startswith("windrow."):
            with suppress(Exception):
                yield repr(each)


def _shown(w: Life, state: Path) -> str:
    """All that an engine shows and keeps, as one text."""
    parts = [
        str(table.to_pylist()) for table in w.sql("SHOW STREAMS; SHOW TABLES; SHOW QUERIES; SHOW ARCHIVES")
    ]
    for views in (w.streams, w.tables, w.queries, w.archives):
        parts += [repr(views), *(_everything_of(view) for view in views.values())]
    parts.append(_everything_of(w))
    parts += [
        query.text + str(query.explain()) + str(query.explain(analyze=True)) for query in w.queries.values()
    ]
    parts += [_told(error) for error in w.problems]
    parts += [
        repr(w._catalog.streams),
        repr(w._catalog.queries),
        repr(w._engine.queries),
        repr(w._engine.last),
    ]
    parts += [path.read_bytes().decode("latin-1") for path in state.rglob("*") if path.is_file()]
    return "\n".join(parts)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Any:
    state = tmp_path_factory.mktemp("secrets") / "state"
    with Life(state) as w:
        w.sql(STREAM)
        yield w, state


@pytest.mark.parametrize("how", TEXTS)
def test_a_secret_in_a_statement_is_refused_and_not_repeated(engine: Any, how: str) -> None:
    w, state = engine
    for url in URLS:
        text = TEXTS[how](url)
        with pytest.raises(QueryError) as caught:
            w.sql(text)
        assert CANARY not in _told(caught.value), url
        assert caught.value.span is not None
        if how in ("from", "late", "table", "into"):
            assert caught.value.code == "literal-secret", url
            assert text[caught.value.span.start] == "'"
            assert "${env:NAME}" in str(caught.value.hint)
    assert CANARY not in _shown(w, state)
    assert [*w.streams, *w.tables, *w.queries] == ["s"]


@pytest.mark.parametrize("how", TEXTS)
def test_a_secret_of_a_sink_inside_of_a_source_is_refused_and_not_repeated(engine: Any, how: str) -> None:
    w, state = engine
    for url in INSIDE:
        with pytest.raises(QueryError) as caught:
            w.sql(TEXTS[how](url))
        assert CANARY not in _told(caught.value), url
        if how == "from":  # percent signs that were put in twice leave no sink
            assert caught.value.code == ("bad-sink" if "%25" in url else "literal-secret")
    assert CANARY not in _shown(w, state)


def test_a_secret_given_from_python_is_refused_and_not_repeated(engine: Any) -> None:
    w, state = engine
    plan = compile_query(SUMS, w._catalog)
    ways: list[Callable[[str], Any]] = [
        lambda url: w.query("secret", SUMS, sink=url),
        lambda url: w._engine.add_query(StandingQuery("secret", plan, url)),
        lambda url: explain_plan(plan, sink=url),
        check_sink,
        check_url,
        refuse_literals,
    ]
    for url in URLS:
        for way in ways:
            with pytest.raises(QueryError) as caught:
                way(url)
            assert caught.value.code == "literal-secret", url
            assert CANARY not in _told(caught.value), url
    assert CANARY not in _shown(w, state)


class _KafkaError(Exception):
    """As the library's: it says what it was given."""


class _Kafka:
    """A library that repeats its settings wherever it can."""

    KafkaException = _KafkaError
    KafkaError = KafkaError

    def __init__(self) -> None:
        self.given: list[dict[str, Any]] = []
        self.refuses = False

    def _made(self, settings: dict[str, Any]) -> None:
        self.given.append(settings)
        if self.refuses:
            raise _KafkaError(f"No such thing: {settings}")

    def Producer(self, settings: dict[str, Any]) -> Any:  # noqa: N802
        self._made(settings)
        settings["error_cb"](f"cannot log in with {settings['sasl.password']}")

        def produce(*_: Any, **__: Any) -> None:
            raise _KafkaError(f"not sent with {settings}")

        return SimpleNamespace(produce=produce, purge=lambda: None, flush=lambda _: 0, poll=lambda _: 0)

    def Consumer(self, settings: dict[str, Any], logger: Any) -> Any:  # noqa: N802
        self._made(settings)
        logger.log(logging.ERROR, "%s [%s] %s", "FAIL", "rdkafka", str(settings))

        def list_topics(*_: Any, **__: Any) -> None:
            raise _KafkaError(f"no answer: {settings}")

        return SimpleNamespace(list_topics=list_topics, close=lambda: None)


@pytest.fixture
def kafka(monkeypatch: pytest.MonkeyPatch) -> _Kafka:
    library = _Kafka()
    monkeypatch.setattr("windrow.sinks.kafka.imported", lambda module, extra: library)
    monkeypatch.setattr(kafka_source, "_confluent", lambda: library)
    monkeypatch.setenv("CANARY", f'principal={REFERRED} "quoted"\nand more')
    return library


def _references(reference: str = "${env:CANARY}") -> str:
    """Settings that are secrets, one under an encoded name, and one that is none."""
    names = ("sasl.password", "sasl.oauthbearer.config", "ssl%2Ekey%2Epem", "client.id")
    return "&".join(f"kafka.{name}={reference}" for name in names)


_REFERENCES = _references()


@pytest.mark.parametrize("kind", ["env", "file"])
def test_what_a_reference_leads_to_reaches_the_library_and_nobody_else(
    kind: str,
    kafka: _Kafka,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "secret").write_text(f"{REFERRED}\n")
    reference = "${env:CANARY}" if kind == "env" else f"${{file:{tmp_path}/secret}}"
    state, url = tmp_path / "state", f"kafka://h:9092/t?{_references(reference)}"
    caplog.set_level(logging.DEBUG)
    with Life(state) as w:
        w.sql(f"CREATE STREAM s ({COLUMNS}) WATTR t SLACK 3 LATE TO '{url}'")
        w.sql(f"CREATE QUERY q AS {SUMS} INTO '{url}'")
        for batch in BATCHES:
            w.push(*batch)
        w.end()
        assert {event.name for event in w._engine.events} == {"q", "s"}
        shown = _shown(w, state)
        reprs = "\n".join(_all_reprs())
    assert all(REFERRED in settings["sasl.password"] for settings in kafka.given)
    assert all(REFERRED in settings["client.id"] for settings in kafka.given)
    assert all(REFERRED in settings["ssl.key.pem"] for settings in kafka.given)
    assert f"kafka.sasl.password={reference}" in shown
    assert "KafkaSink" in reprs
    out = capfd.readouterr()
    for text in (shown, reprs, caplog.text, out.out, out.err):
        assert REFERRED not in text


def test_answers_reach_a_broker_by_a_sink_with_references(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker in this process, which asks for no password: that it is looked up is enough."""
    cluster = Producer({"bootstrap.servers": "mock", "test.mock.num.brokers": 1, "log_level": 2})
    (found,) = cluster.list_topics(timeout=PATIENCE).brokers.values()
    server = f"{found.host}:{found.port}"
    monkeypatch.setenv("CANARY", REFERRED)
    url = f"kafka://{server}/sums?kafka.sasl.password=${{env:CANARY}}&kafka.client.id=${{env:CANARY}}"
    with Life(tmp_path / "state") as w:
        w.sql(f"{STREAM}; CREATE QUERY q AS {SUMS} INTO '{url}'")
        for batch in BATCHES:
            w.push(*batch)
        w.end()
        shown = _shown(w, tmp_path / "state")
    wanted = Counter(row[1:] for row in oracle(SUMS).elements())
    rows = [json.loads(message.value()) for message in messages(server, "sums", wanted.total())]
    assert Counter(tuple(row.values())[1:] for row in rows) == wanted
    assert REFERRED not in shown


@pytest.mark.thorough
def test_the_library_itself_tells_nobody(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """It writes all it does to a log, and to standard error if it has none; there is no broker."""
    monkeypatch.setenv("CANARY", REFERRED)
    caplog.set_level(logging.DEBUG)
    login = "kafka.security.protocol=SASL_PLAINTEXT&kafka.sasl.mechanism=PLAIN&kafka.debug=all"
    names = "&".join(
        f"kafka.{name}=${{env:CANARY}}" for name in ("sasl.username", "sasl.password", "client.id")
    )
    url = f"kafka://127.0.0.1:1/t?{login}&{names}&timeout=1"
    with Life(tmp_path / "state") as w:
        w.sql(f"{STREAM}; CREATE QUERY q AS {SUMS} INTO '{url}'")
        for batch in BATCHES[:3]:
            w.push(*batch)
        assert [event.name for event in w._engine.events] == ["q"]
        shown = _shown(w, tmp_path / "state")
    out = capfd.readouterr()
    assert "FAIL" in caplog.text
    for text in (shown, caplog.text, out.out, out.err):
        assert REFERRED not in text


#: secrets where something else belongs; whoever says what it was given, must not say them
MISPLACED: dict[str, Any] = {
    "a dictionary": {"kafka.sasl.password": CANARY, "format": "json"},
    "JSON": json.dumps({"sasl.oauthbearer.config": CANARY}),
    "a list": [f"kafka://h:1/t?kafka.sasl.password={CANARY}"],
    "bytes": f"kafka://me:{CANARY}@h:1/t".encode(),
    "a text": f"kafka://h:1/t?kafka.ssl.key.pem={CANARY}",
}


@pytest.mark.parametrize("what", MISPLACED)
def test_a_secret_in_the_place_of_something_else_is_not_repeated(engine: Any, what: str) -> None:
    w, _ = engine
    given = MISPLACED[what]
    calls: list[Callable[[], Any]] = [
        lambda: w.sql(given),
        lambda: w.select(given),
        lambda: w.query("q", given),
        lambda: w.query("q", SUMS, sink=given),
        lambda: w.query("q", SUMS, max_gap=given),
        lambda: w.stream("r", given, wattr="t"),
        lambda: w.stream("s", given),
        lambda: w.stream("r", table_of(BATCHES[0]), wattr=given),
        lambda: w.stream("r", table_of(BATCHES[0]), wattr="t", late=given),
        lambda: w.table("r", given),
        lambda: w.update("r", given),
        lambda: w.archive("a", given, "k", 5),
        lambda: w.archive("a", "s", "k", given),
        lambda: w.run(trigger=given),
        lambda: w.punctuate("s", given),
        lambda: w.queries[given],
        lambda: w.drop(given),
    ]
    for number, call in enumerate(calls):
        with pytest.raises(WindrowError) as caught:
            call()
        assert CANARY not in _told(caught.value), number


@pytest.mark.parametrize("arguments", [["check"], ["explain"], ["explain", "--format", "json"], ["run"]])
def test_the_command_line_repeats_no_secret(
    arguments: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("WINDROW_TRACEBACK", "1")
    for number, url in enumerate(URLS[:: 5 if arguments == ["check"] else 17]):
        how = list(TEXTS)[number % len(TEXTS)]
        script = tmp_path / "script.cql"
        script.write_text(f"{STREAM} FROM 'generator:traffic';\n{TEXTS[how](url)}")
        code, out, err = run(capsys, *arguments, str(script))
        assert code != 0, url
        assert "error[" in out + err
        assert CANARY not in out + err, url


@pytest.mark.parametrize("form", ["text", "json", "dot"])
def test_the_command_line_shows_references_as_they_are(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CANARY", REFERRED)
    script = tmp_path / "script.cql"
    script.write_text(f"{STREAM};\nCREATE QUERY q AS {SUMS} INTO 'kafka://h:9092/t?{_REFERENCES}'")
    code, out, err = run(capsys, "explain", str(script), "--format", form)
    assert code == 0, err
    assert REFERRED not in out + err


def test_a_library_that_refuses_its_settings_does_not_tell_them(kafka: _Kafka, tmp_path: Path) -> None:
    kafka.refuses = True
    with Life(tmp_path / "state") as w:
        w.sql(STREAM)
        with pytest.raises(SinkError, match="do not work: No such thing") as caught:
            w.sql(f"CREATE QUERY q AS {SUMS} INTO 'kafka://h:9092/t?{_REFERENCES}'")
        assert REFERRED not in _told(caught.value)
        assert REFERRED not in _shown(w, tmp_path / "state")


def test_a_source_does_not_tell_either(kafka: _Kafka, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "windrow.kafka")
    url = read_kafka_url(parse_url(f"kafka://h:9092/t?{_REFERENCES}"))
    assert "${env:CANARY}" in str(url.client)
    in_use = url.resolved()
    assert REFERRED in str(in_use.client)
    assert REFERRED not in repr(in_use)
    with pytest.raises(SourceError, match="no answer") as caught, kafka_source.Topic(in_use) as topic:
        topic.describe()
    assert REFERRED not in _told(caught.value)
    kafka.refuses = True
    with pytest.raises(SourceError, match="No such thing") as caught:
        kafka_source.Topic(in_use)
    assert REFERRED not in _told(caught.value)
    assert "FAIL [rdkafka]" in caplog.text
    assert REFERRED not in caplog.text


def test_references_lead_to_variables_and_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME", "a&b")
    (tmp_path / "secret").write_text("line one\nline two\n")
    found = resolve({"a": "${env:SOME}", "b": f"${{file:{tmp_path}/secret}}", "c": "plain"}, SinkError)
    assert dict(found.values) == {"a": "a&b", "b": "line one\nline two", "c": "plain"}
    assert found.hidden == ("a", "b")
    assert "a&b" not in repr(found)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("${env:NO_SUCH_VARIABLE}", "the environment variable NO_SUCH_VARIABLE, which is not set"),
        ("${file:/no/such/file}", "the file /no/such/file, which cannot be read: No such file or directory"),
        ("${file:/}", "cannot be read: Is a directory"),
    ],
)
def test_a_reference_that_leads_nowhere_is_named(value: str, said: str) -> None:
    with pytest.raises(SinkError) as caught:
        resolve({"sasl.password": value}, SinkError)
    assert caught.value.code == "secret-missing"
    assert said in caught.value.message
    assert caught.value.hint


def test_a_reference_is_a_whole_value() -> None:
    with pytest.raises(QueryError, match="only in part a reference") as caught:
        check_sink("kafka://h:1/t?kafka.client.id=a-${env:HOST}")
    assert caught.value.code == "bad-reference"


def test_a_setting_of_kafka_without_its_prefix_is_told_whole() -> None:
    """Each error leads to the next step, and the last spelling works."""
    told = []
    for spelling in ("sasl.password=hunter2", "sasl.password=${env:P}", "kafka.sasl.password=${env:P}"):
        for check in (check_sink, check_url):
            try:
                check(f"kafka://h:1/t?{spelling}")
            except QueryError as error:
                told.append((error.code, str(error.hint).partition("=")[0]))
    whole = "write kafka.sasl.password"
    assert told == [
        ("literal-secret", whole),
        ("literal-secret", whole),
        ("unknown-sink-option", whole),
        ("unknown-option", whole),
    ]


def test_what_is_no_secret_stays_readable() -> None:
    plain = (
        "key",
        "keys",
        "format",
        "kafka.ssl.key.location",
        "kafka.sasl.username",
        "kafka.compression.type",
    )
    assert not any(map(is_secret, plain))
    url = "kafka://a:9092,b:9092/t?key=host,port&kafka.ssl.key.location=/k.pem&kafka.sasl.password=${env:P}"
    assert redacted(url) == url
    assert KafkaTarget.of(SinkUrl.parse(url)).settings["sasl.password"] == "${env:P}"
    for path in ("files:///data/a:b@c/x.csv", "abfss://box@shop.dfs.core.windows.net/x", "data/12:30@x.csv"):
        refuse_literals(path)


def test_an_error_about_a_secret_is_shown_like_this() -> None:
    with pytest.raises(QueryError) as caught:
        declare_stream("s", "t BIGINT", "FROM 'kafka://h:1/t?kafka.sasl.password=hunter2&x=1'")
    assert caught.value.render() == (
        "error[literal-secret]: `kafka.sasl.password` is a secret, and what is declared is written down\n"
        "  --> 1:33\n"
        "  |\n"
        "1 | CREATE STREAM s (t BIGINT) FROM 'kafka://h:1/t?kafka.sasl.password=*******&x=1'\n"
        "  |                                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
        "  = write kafka.sasl.password=${env:NAME} for an environment variable, or ${file:/path} for a file"
    )
