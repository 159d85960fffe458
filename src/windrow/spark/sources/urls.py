"""The text after FROM, taken apart: what kind of source, where, with which options.

It is checked as far as that goes without reading anything.

>>> parse_url("generator:traffic?rate=100&seed=3")
SourceUrl(scheme='generator', place='traffic', options={'rate': '100', 'seed': '3'})
>>> parse_url("data/bids/*.csv?delimiter=%3B")
SourceUrl(scheme='files', place='data/bids/*.csv', options={'delimiter': ';'})

Each kind of value of an option is a function from text to value that raises ValueError with what was
expected. A source declares its options as a mapping from names to such functions, or as fields of a class.

>>> read_options({"rate": "10"}, {"rate": count, "disorder": choice("none", "block")}, "generator:traffic")
{'rate': 10}
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from windrow.algebra.catalog import Stream
from windrow.credentials import Resolved, refuse_literals, resolve
from windrow.errors import QueryError, SourceError, nearest
from windrow.spark.sources.generators import GENERATORS, MICROS, Disorder, Generator, Settings

Reader = Callable[[str], Any]

#: each scheme with the form a URL of it has
SCHEMES = {
    "files": "files:///data/bids/*.parquet",
    "generator": "generator:traffic?rate=1000",
    "kafka": "kafka://host:9092/topic",
    "push": "push:",
}
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(//)?")


@dataclass(frozen=True)
class SourceUrl:
    """A source's URL in its parts; `place` is what stands between the scheme and the options."""

    scheme: str
    place: str
    options: dict[str, str] = field(default_factory=dict)


def parse_url(text: str) -> SourceUrl:
    """The parts of a source's URL. A text without a scheme is the path of files. No secret is taken."""
    refuse_literals(text)
    location, _, query = text.strip().partition("?")
    match = _SCHEME.match(location)
    scheme, place = (match[1].lower(), location[match.end() :]) if match else ("files", location)
    if scheme == "file":  # what other programs call `files`
        scheme = "files"
    if scheme not in SCHEMES:
        raise QueryError(
            f"no source `{scheme}:` to read a stream from",
            code="unknown-source",
            hint=nearest(scheme, SCHEMES),
        )
    if not place and scheme != "push":
        raise QueryError(
            f"`{text}` does not say what to read", code="bad-source", hint=f"write `{SCHEMES[scheme]}`"
        )
    return SourceUrl(scheme, place, _parse_options(query))


def _parse_options(query: str) -> dict[str, str]:
    options: dict[str, str] = {}
    for part in filter(None, query.split("&")):
        name, equals, value = part.partition("=")
        name = unquote(name)
        if not (name and equals):
            raise bad_option(f"`{part}` is not an option", "options are written `?name=value&name=value`")
        if name in options:
            raise bad_option(f"the option `{name}` is given twice", "give it once")
        options[name] = unquote(value)
    return options


def bad_option(message: str, hint: str) -> QueryError:
    """An option that cannot be what it is."""
    return QueryError(message, code="bad-option", hint=hint)


def read_options(given: Mapping[str, str], known: Mapping[str, Reader], where: str) -> dict[str, Any]:
    """The values of the options that are given. An unknown name or a bad value is the user's error."""
    values: dict[str, Any] = {}
    for name, text in given.items():
        if name not in known:
            hint = nearest(name, known)
            if where == "kafka:" and "." in name:
                hint = f"write {_PREFIX}{name}=…, as all settings of the client"
            raise QueryError(f"`{where}` has no option `{name}`", code="unknown-option", hint=hint)
        try:
            values[name] = known[name](text)
        except ValueError as error:
            message = f"the option `{name}` of `{where}` cannot be `{text}`"
            raise bad_option(message, str(error)) from None
    return values


def _option(read: Reader, default: Any = None, only: Sequence[str] = ()) -> Any:
    """A field of a class that an option of its name sets, which may mean something in some formats only."""
    return field(default=default, metadata={"read": read, "only": only})


def _options_of(kind: type) -> dict[str, Reader]:
    return {each.name: each.metadata["read"] for each in fields(kind) if each.metadata}


def choice(*words: str) -> Reader:
    """One of these words."""

    def read(text: str) -> str:
        if text.lower() not in words:
            raise ValueError(nearest(text, words))
        return text.lower()

    return read


def flag(text: str) -> bool:
    """`true` or `false`."""
    return bool(choice("true", "false")(text) == "true")


def count(text: str) -> int:
    """A whole number, at least 1."""
    number = whole(text)
    if number < 1:
        raise ValueError("it is a whole number, at least 1")
    return number


def whole(text: str) -> int:
    """A whole number, at least 0, that a BIGINT can hold. Groups of digits may be set off by `_`."""
    digits = text.replace("_", "")
    if not (digits.isascii() and digits.isdigit() and int(digits) < 1 << 63):
        raise ValueError("it is a whole number")
    return int(digits)


def seconds(text: str) -> int:
    """A number of seconds, as microseconds."""
    try:
        micros = Decimal(text) * MICROS
    except InvalidOperation:
        micros = Decimal("NaN")
    if not micros.is_finite() or micros < 0 or micros != int(micros):
        raise ValueError("it is a number of seconds, such as `5` or `0.5`")
    return int(micros)


def instant(text: str) -> int:
    """An ISO date and time, UTC unless it says otherwise, as microseconds since the epoch."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError("it is a time such as `2026-01-01T00:00:00`") from None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def single_character(text: str) -> str:
    r"""One character; `\t` is a tab."""
    character = "\t" if text == "\\t" else text
    if len(character) != 1:
        raise ValueError("it is one character; write `%20` for a space, `%09` for a tab, `%26` for `&`")
    return character


#: what the name of a file ends in, for each format
SUFFIXES = {".parquet": "parquet", ".csv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json"}
COMPRESSED = (".gz", ".bz2", ".zst", ".snappy")
_MALFORMED = choice("fail", "drop", "to")


@dataclass(frozen=True)
class FilesUrl:
    """Which files, and how to read them; `format` is None if neither the name nor an option says it."""

    pattern: str
    format: str | None = _option(choice("parquet", "csv", "json"))
    header: bool = _option(flag, default=True, only=["csv"])
    delimiter: str = _option(single_character, ",", only=["csv"])
    malformed: str = _option(_MALFORMED, "fail", only=["csv", "json"])
    malformed_sink: str | None = _option(str, only=["csv", "json"])
    absent: str = _option(choice("fail", "null"), "fail", only=["json", "parquet"])
    #: what an epoch takes at most: a long backlog is read in portions that fit in memory
    files_per_batch: int = _option(count, 1000)
    bytes_per_batch: int = _option(count, 1 << 29)
    bounded: bool = _option(flag, default=False)

    @property
    def place(self) -> str:
        """The pattern with nothing relative in it. Another file system than the local one is named in it."""
        return self.pattern if "://" in self.pattern else str(Path.cwd() / self.pattern)

    def fingerprint(self, kind: str) -> str:
        """What the rows depend on. How malformed ones are treated may be changed without starting afresh."""
        csv = f" header={self.header} delimiter={self.delimiter!r}" if kind == "csv" else ""
        return f"files:{self.place} {kind}{csv}{' bounded' if self.bounded else ''}"


def read_files_url(url: SourceUrl) -> FilesUrl:
    """The URL's pattern and options, checked."""
    options = read_options(url.options, _options_of(FilesUrl), "files:")
    options.setdefault("format", format_of(url.place))
    known = options["format"]
    formats = {each.name: each.metadata["only"] for each in fields(FilesUrl) if each.metadata}
    for name in options:
        if known is not None and formats[name] and known not in formats[name]:
            raise QueryError(
                f"the option `{name}` says nothing about {known} files",
                code="unknown-option",
                hint=f"it is for {' and '.join(formats[name])}; leave it out",
            )
    limit = next((name for name in ("files_per_batch", "bytes_per_batch") if name in options), None)
    if limit and options.get("bounded"):
        raise bad_option(
            f"`{limit}` says nothing about `bounded=true`, which reads all files at once",
            "leave out one of them",
        )
    _check_malformed(options)
    if known is None and Path(url.place).is_file():
        raise unknown_format(url.place)
    return FilesUrl(url.place, **options)


def unknown_format(place: str) -> QueryError:
    """Files whose names tell nothing about what is in them."""
    return QueryError(
        f"what format the files of `{place}` have is not to be seen from their names",
        code="no-format",
        hint="say `?format=parquet`, `?format=csv` or `?format=json`",
    )


def _check_malformed(options: Mapping[str, Any]) -> None:
    """`malformed=to` and a sink belong together."""
    is_told, sink = options.get("malformed") == "to", options.get("malformed_sink")
    if is_told and not sink:
        raise bad_option(
            "`malformed=to` does not say where malformed rows go",
            "add a sink, as in `malformed=to&malformed_sink=files:///data/malformed`",
        )
    if sink is not None and not is_told:
        raise bad_option("`malformed_sink` says nothing without `malformed=to`", "say `malformed=to`")


def malformed_sink(source: str | None) -> str | None:
    """The sink that a source's text names for its malformed rows.

    >>> malformed_sink("kafka://host:9092/topic?malformed=to&malformed_sink=files:///bad%3Fformat=json")
    'files:///bad?format=json'
    """
    return None if source is None else parse_url(source).options.get("malformed_sink")


def format_of(name: str) -> str | None:
    """The format that a file's name tells, compressed or not.

    >>> format_of("bids-*.csv.gz"), format_of("bids")
    ('csv', None)
    """
    name = name.lower()
    for suffix in COMPRESSED:
        name = name.removesuffix(suffix)
    return next((kind for suffix, kind in SUFFIXES.items() if name.endswith(suffix)), None)


_PREFIX = "kafka."
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
    starting: str = _option(choice("earliest", "latest"), "earliest")
    format: str = _option(choice("json", "csv"), "json")
    delimiter: str = _option(single_character, ",")
    malformed: str = _option(_MALFORMED, "fail")
    malformed_sink: str | None = _option(str)
    rows_per_batch: int | None = _option(count)
    timeout: int = _option(seconds, 10 * MICROS)
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
        return self.timeout / MICROS


def read_kafka_url(url: SourceUrl) -> KafkaUrl:
    """The URL's brokers, topic and options, checked."""
    servers, _, topic = url.place.partition("/")
    if not (servers and topic and "/" not in topic):
        raise QueryError(
            f"`kafka://{url.place}` does not name brokers and a topic",
            code="bad-source",
            hint="write `kafka://host:9092/topic`, several brokers as `host1:9092,host2:9092`",
        )
    client = {n.removeprefix(_PREFIX): value for n, value in url.options.items() if n.startswith(_PREFIX)}
    own = next(filter(_OWN.get, client), None)
    if own is not None:
        raise bad_option(f"the option `{_PREFIX}{own}` is set by Windrow itself", _OWN[own])
    others = {name: value for name, value in url.options.items() if not name.startswith(_PREFIX)}
    options = read_options(others, _options_of(KafkaUrl), "kafka:")
    if "delimiter" in options and options.get("format") != "csv":
        raise bad_option("the option `delimiter` says nothing about json messages", "say `format=csv`")
    _check_malformed(options)
    return KafkaUrl(servers, topic, client=client, **options)


@dataclass(frozen=True)
class PushUrl:
    """What an epoch takes at most, and what waits at most."""

    rows_per_batch: int = _option(count, 500_000)
    rows_waiting: int = _option(count, 1_000_000)


_DEFAULT_RATE = 1000
#: how many rows may be put in another order in memory
_MOST_SHUFFLED = 10_000_000
_GENERATOR_OPTIONS: dict[str, Reader] = {
    "rate": count,
    "rows": whole,
    "rows_per_batch": count,
    "seed": whole,
    "keys": count,
    "event_rate": count,
    "start": instant,
    "disorder": lambda text: Disorder(choice(*Disorder)(text)),
    "disorder_by": seconds,
    "block": seconds,
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


def read_generator_url(url: SourceUrl) -> GeneratorUrl:
    """The URL's generator and settings, checked."""
    generator = GENERATORS.get(url.place)
    if generator is None:
        raise QueryError(
            f"no generator `{url.place}`", code="unknown-generator", hint=nearest(url.place, GENERATORS)
        )
    where = f"generator:{generator.name}"
    options = read_options(url.options, _GENERATOR_OPTIONS, where)
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
        raise bad_option(
            f"`{option}` of `{where}` spans {rows:,} rows, more than the {_MOST_SHUFFLED:,} that are put"
            " out of order at once",
            f"choose a shorter `{option}` or a lower `event_rate`",
        )
    return GeneratorUrl(generator, settings, rate, rows_per_batch)


Url = FilesUrl | GeneratorUrl | KafkaUrl | PushUrl

_READERS: dict[str, Callable[[SourceUrl], Url]] = {
    "files": read_files_url,
    "generator": read_generator_url,
    "kafka": read_kafka_url,
    "push": lambda url: PushUrl(**read_options(url.options, _options_of(PushUrl), "push:")),
}


def read_url(text: str) -> Url:
    """What the text after FROM says, checked."""
    url = parse_url(text)
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
        case FilesUrl(bounded=bounded):
            return bounded
        case GeneratorUrl(rate=rate):
            return rate is None
    return False
