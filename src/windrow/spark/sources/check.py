"""Checks the text after FROM as far as that goes without reading anything."""

from __future__ import annotations

from windrow.spark.sources.files_url import read_files_url
from windrow.spark.sources.generator_url import read_generator_url
from windrow.spark.sources.kafka_url import read_kafka_url
from windrow.spark.sources.url import parse_url

_READERS = {"files": read_files_url, "generator": read_generator_url, "kafka": read_kafka_url}


def check_url(text: str) -> None:
    """Raise a QueryError for a scheme, an option or a value that does not exist.

    >>> check_url("generator:trafic")
    Traceback (most recent call last):
    windrow.errors.QueryError: no generator `trafic` (did you mean `traffic`?)
    """
    url = parse_url(text)
    _READERS[url.scheme](url)
