"""Checks the text after FROM as far as that goes without reading anything."""

from __future__ import annotations

from collections.abc import Callable

from windrow.spark.sources.files_url import FilesUrl, read_files_url
from windrow.spark.sources.generator_url import GeneratorUrl, read_generator_url
from windrow.spark.sources.kafka_url import read_kafka_url
from windrow.spark.sources.push_source import read_push_url
from windrow.spark.sources.url import SourceUrl, parse_url

_READERS: dict[str, Callable[[SourceUrl], object]] = {
    "files": read_files_url,
    "generator": read_generator_url,
    "kafka": read_kafka_url,
    "push": read_push_url,
}


def check_url(text: str) -> None:
    """Raise a QueryError for a scheme, an option or a value that does not exist.

    >>> check_url("generator:trafic")
    Traceback (most recent call last):
    windrow.errors.QueryError: no generator `trafic` (did you mean `traffic`?)
    """
    _read(text)


def is_bounded(text: str) -> bool:
    """Whether the rows of a source come to an end by themselves.

    >>> is_bounded("generator:traffic?rows=100"), is_bounded("files:///data/*.csv")
    (True, False)
    """
    match _read(text):
        case FilesUrl(bounded=bounded):
            return bounded
        case GeneratorUrl(rate=rate):
            return rate is None
    return False


def _read(text: str) -> object:
    url = parse_url(text)
    return _READERS[url.scheme](url)
