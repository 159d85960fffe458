"""Checks the text after FROM as far as that goes without reading anything; the options of `generator:…`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from windrow.algebra.catalog import Stream
from windrow.errors import QueryError, SourceError, nearest
from windrow.spark.sources import urls
from windrow.spark.sources.generators import GENERATORS, Disorder, Generator, Settings

_DEFAULT_RATE = 1000
#: how many rows may be put in another order in memory
_MOST_SHUFFLED = 10_000_000
_OPTIONS = {
    "rate": urls.count,
    "rows": urls.whole,
    "rows_per_batch": urls.count,
    "seed": urls.whole,
    "keys": urls.count,
    "event_rate": urls.count,
    "start": urls.instant,
    "disorder": lambda text: Disorder(urls.choice(*Disorder)(text)),
    "disorder_by": urls.seconds,
    "block": urls.seconds,
}


@dataclass(frozen=True)
class GeneratorUrl:
    """A generator and its settings; `rate` is in rows a second, None to give all rows at once."""

    generator: Generator
    settings: Settings
    rate: int | None
    rows_per_batch: int | None

    @property
    def fingerprint(self) -> str:
        """What the rows depend on; how fast they come, and in which portions, makes no difference."""
        pairs = (f"{name}={value}" for name, value in asdict(self.settings).items() if value is not None)
        return f"generator:{self.generator.name} {', '.join(pairs)}"


def read_generator_url(url: urls.SourceUrl) -> GeneratorUrl:
    """The URL's generator and settings, checked."""
    generator = GENERATORS.get(url.place)
    if generator is None:
        raise QueryError(
            f"no generator `{url.place}`", code="unknown-generator", hint=nearest(url.place, GENERATORS)
        )
    where = f"generator:{generator.name}"
    options: dict[str, Any] = urls.read_options(url.options, _OPTIONS, where)
    rate, rows_per_batch = options.pop("rate", None), options.pop("rows_per_batch", None)
    if rate is None and "rows" not in options:
        rate = _DEFAULT_RATE
    defaults = {"event_rate": rate or _DEFAULT_RATE, "keys": generator.default_keys}
    settings = Settings(**{**defaults, **options})
    option, rows = {
        Disorder.NONE: ("", 0),
        Disorder.BOUNDED: ("disorder_by", settings.rows_displaced),
        Disorder.BLOCK: ("block", settings.rows_per_block),
    }[settings.disorder]
    if rows > _MOST_SHUFFLED:
        raise urls.bad_option(
            f"`{option}` of `{where}` spans {rows:,} rows, more than the {_MOST_SHUFFLED:,} that are put"
            " out of order at once",
            f"choose a shorter `{option}` or a lower `event_rate`",
        )
    return GeneratorUrl(generator, settings, rate, rows_per_batch)


Url = urls.FilesUrl | GeneratorUrl | urls.KafkaUrl | urls.PushUrl

_READERS: dict[str, Callable[[urls.SourceUrl], Url]] = {
    "files": urls.read_files_url,
    "generator": read_generator_url,
    "kafka": urls.read_kafka_url,
    "push": urls.read_push_url,
}


def read_url(text: str) -> Url:
    """What the text after FROM says, checked."""
    url = urls.parse_url(text)
    return _READERS[url.scheme](url)


def check_url(text: str, stream: Stream | None = None) -> None:
    """Raise a QueryError for a scheme, an option or a value that does not exist, and for a column that is not
    among those of the stream's generator.

    >>> check_url("generator:trafic")
    Traceback (most recent call last):
    windrow.errors.QueryError: no generator `trafic` (did you mean `traffic`?)
    """
    read = read_url(text)
    if isinstance(read, GeneratorUrl) and stream is not None:
        from windrow.spark.sources.generator_source import check_columns

        try:
            check_columns(read.generator, stream)
        except SourceError as error:
            raise QueryError(error.message, code=error.code, hint=error.hint) from None


def is_bounded(text: str) -> bool:
    """Whether the rows of a source come to an end by themselves.

    >>> is_bounded("generator:traffic?rows=100"), is_bounded("files:///data/*.csv")
    (True, False)
    """
    match read_url(text):
        case urls.FilesUrl(bounded=bounded):
            return bounded
        case GeneratorUrl(rate=rate):
            return rate is None
    return False
