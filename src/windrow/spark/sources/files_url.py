"""The options of `files://…`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from windrow.errors import QueryError
from windrow.spark.sources.options import choice, count, flag, read_options, single_character

if TYPE_CHECKING:
    from windrow.spark.sources.url import SourceUrl

#: what the name of a file ends in, for each format
SUFFIXES = {".parquet": "parquet", ".csv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json"}
_COMPRESSED = (".gz", ".bz2", ".zst", ".snappy")
_OPTIONS = {
    "format": choice("parquet", "csv", "json"),
    "header": flag,
    "delimiter": single_character,
    "malformed": choice("fail", "drop"),
    "absent": choice("fail", "null"),
    "files_per_batch": count,
    "bytes_per_batch": count,
    "bounded": flag,
}
#: options that mean something in some formats only
_FORMATS_OF = {
    "header": {"csv"},
    "delimiter": {"csv"},
    "malformed": {"csv", "json"},
    "absent": {"json", "parquet"},
}
#: what an epoch takes at most, unless it is told: a long backlog is read in portions that fit in memory
_FILES_PER_BATCH, _BYTES_PER_BATCH = 1000, 1 << 29


@dataclass(frozen=True)
class FilesUrl:
    """Which files, and how to read them; `format` is None if neither the name nor an option says it."""

    pattern: str
    format: str | None = None
    header: bool = True
    delimiter: str = ","
    malformed: str = "fail"
    absent: str = "fail"
    files_per_batch: int = _FILES_PER_BATCH
    bytes_per_batch: int = _BYTES_PER_BATCH
    bounded: bool = False

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
    options = read_options(url.options, _OPTIONS, "files:")
    options.setdefault("format", format_of(url.place))
    known = options["format"]
    for name in options:
        if known is not None and known not in _FORMATS_OF.get(name, {known}):
            raise QueryError(
                f"the option `{name}` says nothing about {known} files",
                code="unknown-option",
                hint=f"it is for {' and '.join(sorted(_FORMATS_OF[name]))}; leave it out",
            )
    limit = next((name for name in ("files_per_batch", "bytes_per_batch") if name in options), None)
    if limit and options.get("bounded"):
        raise QueryError(
            f"`{limit}` says nothing about `bounded=true`, which reads all files at once",
            code="bad-option",
            hint="leave out one of them",
        )
    return FilesUrl(url.place, **options)


def format_of(name: str) -> str | None:
    """The format that a file's name tells, compressed or not.

    >>> format_of("bids-*.csv.gz"), format_of("bids")
    ('csv', None)
    """
    name = name.lower()
    for suffix in _COMPRESSED:
        name = name.removesuffix(suffix)
    return next((kind for suffix, kind in SUFFIXES.items() if name.endswith(suffix)), None)
