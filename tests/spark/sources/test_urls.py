"""What may stand after FROM: every mistake is named, with the way out."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from windrow.algebra.catalog import Table, TableKind
from windrow.algebra.expressions import Field, Schema
from windrow.algebra.types import BIGINT
from windrow.errors import QueryError
from windrow.spark.sources import check_url
from windrow.spark.sources.generators import Disorder
from windrow.spark.sources.table_source import table_url
from windrow.spark.sources.urls import SCHEMES, parse_url, read_files_url, read_generator_url, read_kafka_url

_ITEMS = Table("items", Schema((Field("item", BIGINT),)), TableKind.RELATION, ("item",))


@pytest.mark.parametrize(
    "text",
    [
        "files:///data/bids/*.parquet",
        "files://data/bids/*.csv.gz?header=false&delimiter=%3B&malformed=drop",
        "data/*.csv?delimiter=\\t",
        "/data/x.json?files_per_batch=3",
        "file:///data/x.json?absent=null",
        "files:///data?format=csv&bounded=true",
        "generator:traffic",
        "generator:auction?rate=10_000&rows=5&seed=0&start=2026-01-01T00:00:00+01:00",
        "generator:network?disorder=block&block=490&keys=1650&event_rate=100",
        "generator:traffic?disorder=bounded&disorder_by=0.5",
        "kafka://host:9092/topic",
        "kafka://a:1,b:2/topic?starting=latest&format=csv&delimiter=;&rows_per_batch=10&kafka.client.id=x",
    ],
)
def test_good_urls(text: str) -> None:
    check_url(text)


def test_the_urls_of_the_documentation() -> None:
    page = (Path(__file__).parents[3] / "docs" / "sources.md").read_text()
    urls = re.findall(r"FROM '([^']+)'", page)
    tables = re.findall(r"CREATE TABLE [^;]*? FROM '([^']+)'", page)
    assert {parse_url(url).scheme for url in urls} == set(SCHEMES)
    assert tables
    assert set(tables) < set(urls)
    for url in set(urls) - set(tables):
        check_url(url)
    for url in tables:
        table_url(replace(_ITEMS, source=url))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kafak://h/t", "no source `kafak:` to read a stream from (did you mean `kafka`?)"),
        ("files://", "`files://` does not say what to read (write `files:///data/bids/*.parquet`)"),
        ("", "`` does not say what to read (write `files:///data/bids/*.parquet`)"),
        ("x.csv?header", "`header` is not an option (options are written `?name=value&name=value`)"),
        ("x.csv?header=true&header=true", "the option `header` is given twice (give it once)"),
        ("x.csv?headr=true", "`files:` has no option `headr` (did you mean `header`?)"),
        (
            "x.csv?header=yes",
            "the option `header` of `files:` cannot be `yes` (known here: `false`, `true`)",
        ),
        (
            "x.csv?delimiter=ab",
            "the option `delimiter` of `files:` cannot be `ab` (it is one character; write `%20` for a space,"
            " `%09` for a tab, `%26` for `&`)",
        ),
        (
            "x.parquet?header=true",
            "the option `header` says nothing about parquet files (it is for csv; leave it out)",
        ),
        (
            "x.csv?bounded=true&files_per_batch=2",
            "`files_per_batch` says nothing about `bounded=true`, which reads all files at once (leave out"
            " one of them)",
        ),
        ("generator:trafic", "no generator `trafic` (did you mean `traffic`?)"),
        ("generator:traffic?rats=3", "`generator:traffic` has no option `rats` (did you mean `rate`?)"),
        (
            "generator:traffic?rate=0",
            "the option `rate` of `generator:traffic` cannot be `0` (it is a whole number, at least 1)",
        ),
        (
            "generator:traffic?disorder=blocks",
            "the option `disorder` of `generator:traffic` cannot be `blocks` (did you mean `block`?)",
        ),
        (
            "generator:traffic?start=noon",
            "the option `start` of `generator:traffic` cannot be `noon` (it is a time such as"
            " `2026-01-01T00:00:00`)",
        ),
        (
            "generator:traffic?disorder_by=soon",
            "the option `disorder_by` of `generator:traffic` cannot be `soon` (it is a number of seconds,"
            " such as `5` or `0.5`)",
        ),
        (
            "generator:traffic?disorder=block&rate=1000000",
            "`block` of `generator:traffic` spans 60,000,000 rows, more than the 10,000,000 that are put"
            " out of order at once (choose a shorter `block` or a lower `event_rate`)",
        ),
        (
            "generator:traffic?disorder=bounded&disorder_by=60&rate=1000000",
            "`disorder_by` of `generator:traffic` spans 60,000,000 rows, more than the 10,000,000 that are"
            " put out of order at once (choose a shorter `disorder_by` or a lower `event_rate`)",
        ),
        (
            "kafka://host:9092",
            "`kafka://host:9092` does not name brokers and a topic (write `kafka://host:9092/topic`, several"
            " brokers as `host1:9092,host2:9092`)",
        ),
        (
            "kafka://h:1/t?starting=first",
            "the option `starting` of `kafka:` cannot be `first` (known here: `earliest`, `latest`)",
        ),
        (
            "kafka://h:1/t?kafka.auto.offset.reset=latest",
            "the option `kafka.auto.offset.reset` is set by Windrow itself (say `starting=earliest` or"
            " `starting=latest`)",
        ),
        (
            "kafka://h:1/t?delimiter=;",
            "the option `delimiter` says nothing about json messages (say `format=csv`)",
        ),
    ],
)
def test_mistakes_are_named(text: str, message: str) -> None:
    with pytest.raises(QueryError) as caught:
        check_url(text)
    assert str(caught.value) == message


def test_a_file_whose_name_tells_no_format_is_told_before_it_is_read(tmp_path: Path) -> None:
    (tmp_path / "app.log").touch()
    with pytest.raises(QueryError, match=r"what format .* is not to be seen") as caught:
        check_url(f"{tmp_path}/app.log")
    assert caught.value.hint == "say `?format=parquet`, `?format=csv` or `?format=json`"
    check_url(f"{tmp_path}/app.log?format=csv")
    check_url(f"{tmp_path}/other.log")  # it may become a folder


def test_what_a_generator_is_not_told_has_defaults() -> None:
    plain = read_generator_url(parse_url("generator:network"))
    assert (plain.rate, plain.settings.event_rate, plain.settings.keys) == (1000, 1000, 1650)
    assert plain.settings.disorder is Disorder.NONE
    at_once = read_generator_url(parse_url("generator:network?rows=5"))
    assert (at_once.rate, at_once.settings.rows, at_once.settings.event_rate) == (None, 5, 1000)
    quick = read_generator_url(parse_url("generator:network?rate=50&rows=5"))
    assert (quick.rate, quick.settings.event_rate) == (50, 50)


def test_a_generators_fingerprint_is_about_its_rows() -> None:
    def fingerprint(options: str) -> str:
        return read_generator_url(parse_url(f"generator:traffic?{options}")).fingerprint

    assert fingerprint("rate=5&event_rate=9") == fingerprint("rate=6&event_rate=9&rows_per_batch=3")
    assert fingerprint("rate=5") != fingerprint("rate=6")
    assert fingerprint("seed=1") != fingerprint("seed=2")


def test_a_files_fingerprint_leaves_out_how_to_cope(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")

    def fingerprint(text: str) -> str:
        return read_files_url(parse_url(text)).fingerprint("csv")

    assert fingerprint("data/x.csv?malformed=drop&files_per_batch=1") == fingerprint("files:///data/x.csv")
    assert fingerprint("data/x.csv?delimiter=;") != fingerprint("data/x.csv")


def test_kafka_settings_are_passed_on_without_their_prefix() -> None:
    url = read_kafka_url(
        parse_url("kafka://h:1/t?kafka.sasl.username=a%26b&kafka.sasl.password=$%7Benv:P%7D")
    )
    assert url.client == {"sasl.username": "a&b", "sasl.password": "${env:P}"}
