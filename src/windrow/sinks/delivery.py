"""What a sink is given, and what it promises.

The engine hands over the rows of one commit at a time, in the order of the commits, and writes down
afterwards that the sink has them. If it dies between the two, the same commit comes again after the restart:
the same number, the same rows. A sink that can tell has each row exactly once; one that cannot has it at
least once.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, TypeAlias
from urllib.parse import unquote

import pyarrow as pa

from windrow.credentials import refuse_literals
from windrow.errors import QueryError, SinkError, WindrowError, nearest, to_install
from windrow.state.store import sync


def make_directory(directory: Path) -> None:
    """Make it, and all above it, durably. OSError if that cannot be."""
    absolute = directory.absolute()
    missing = [path for path in (absolute, *absolute.parents) if not path.exists()]
    directory.mkdir(parents=True, exist_ok=True)
    for path in missing:
        sync(path.parent)


#: ends every hint of an error that passes: nothing is lost by it
KEPT = "the rows are kept, and delivered again after the next start"

_WAYS_OUT = {
    errno.ENOSPC: ("the disk is full", "disk-full", "make room on the disk"),
    errno.EDQUOT: ("the disk quota is used up", "disk-full", "make room on the disk"),
    errno.EFBIG: ("the file would be too large", "disk-full", "raise the limit on the size of files"),
    errno.EACCES: ("permission denied", "permission-denied", "let the user who runs the engine write there"),
    errno.EPERM: ("permission denied", "permission-denied", "let the user who runs the engine write there"),
    errno.EROFS: ("the file system is read-only", "permission-denied", "choose a place that can be written"),
    errno.ENOENT: ("its directory does not exist any more", "place-missing", "put it back, or start again"),
    errno.EISDIR: ("it is a directory", "place-taken", "move the directory away"),
    errno.ENOTDIR: (
        "part of its path is a file",
        "place-taken",
        "move the file away, or choose another place",
    ),
    errno.EEXIST: ("it is a file", "place-taken", "move the file away, or choose another place"),
    errno.ENAMETOOLONG: ("the name is too long", "name-too-long", "give the query a shorter name"),
    errno.EPIPE: ("nobody reads it any more", "closed", "start the reader again"),
}


@contextmanager
def explained(doing: str, place: object) -> Iterator[None]:
    """Turn an error of the system into one for the user.

    >>> with explained("write", "/data/out/top-1.csv"):  # doctest: +ELLIPSIS
    ...     raise OSError(errno.ENOSPC, "No space left on device")
    Traceback (most recent call last):
        ...
    windrow.errors.SinkError: cannot write /data/out/top-1.csv: the disk is full (make room on the disk; ...)
    """
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        what, code, way_out = _WAYS_OUT.get(error.errno or 0, (reason, "file-system", "see to the disk"))
        raise SinkError(f"cannot {doing} {place}: {what}", code=code, hint=f"{way_out}; {KEPT}") from error


def is_failure(error: BaseException) -> bool:
    """Whether something has failed, and nobody wants the process to end."""
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"  # of libraries in Rust


def sink_failed(query: str, error: BaseException) -> SinkError:
    """Whatever came out of a sink, as its failure.

    >>> sink_failed("top", KeyError("at"))
    SinkError("the sink of `top` failed: KeyError: 'at'")
    """
    if isinstance(error, SinkError):
        return error
    if isinstance(error, WindrowError):
        failed = SinkError(f"the sink of `{query}` failed: {error.message}", code=error.code, hint=error.hint)
    else:
        failed = SinkError(f"the sink of `{query}` failed: {named(error)}", code="sink-failed", hint=KEPT)
    failed.__cause__ = error
    return failed


def named(error: BaseException) -> str:
    """What a foreign error says, behind the name of its class."""
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def imported(module: str, extra: str) -> Any:
    """A package that not everybody has installed.

    >>> imported("no_such_package", "delta")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    windrow.errors.SinkError: the package `no_such_package` is missing (...pip install...'windrow[delta]')
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.partition(".")[0]:
            raise
        raise SinkError(
            f"the package `{error.name}` is missing", code="package-missing", hint=to_install(extra)
        ) from None


@dataclass(frozen=True)
class SinkUrl:
    """A sink's text in its parts: `scheme:place?option=value&…`.

    >>> SinkUrl.parse("files:///data/out?format=csv")
    SinkUrl(scheme='files', place='///data/out', options={'format': 'csv'})
    """

    scheme: str
    #: as it was written, between the scheme and the options
    place: str
    options: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> SinkUrl:
        refuse_literals(text)
        address, _, tail = text.strip().partition("?")
        scheme, colon, place = address.partition(":")
        if not colon:
            raise _bad_sink(
                f"`{address}` does not say what kind of sink it is",
                "write for example 'console:', 'memory:' or 'files:///data/answers'",
            )
        return cls(scheme.lower(), place, _options(tail))

    def allow(self, known: Collection[str], prefix: str | None = None) -> None:
        """Refuse every option that is neither known nor begins with the prefix."""
        for name in self.options:
            if name not in known and not (prefix and name.startswith(prefix)):
                raise QueryError(
                    f"`{self.scheme}:` has no option `{name}`",
                    code="unknown-sink-option",
                    hint=f"write {prefix}{name}=…, as all settings of the client"
                    if prefix and "." in name
                    else nearest(name, known) or f"`{self.scheme}:` takes no options",
                )

    def choice(self, option: str, known: Collection[str], default: str) -> str:
        value = self.options.get(option, default).lower()
        if value not in known:
            raise _bad_option(f"`{self.scheme}:` has no {option} `{value}`", nearest(value, known))
        return value

    def count(self, option: str, default: int) -> int:
        """The value of an option that is a whole number from 1 on."""
        text = self.options.get(option, str(default))
        if not (text.isascii() and text.isdigit() and int(text) > 0):
            raise _bad_option(
                f"`{option}={text}` is not a number from 1 on", f"write for example {option}={default}"
            )
        return int(text)

    def nowhere(self) -> None:
        if self.place.strip("/"):
            raise _bad_sink(f"`{self.scheme}:` is not followed by a place", f"write '{self.scheme}:' alone")

    def path(self) -> Path:
        """The place as a path. Three slashes begin an absolute one, none or two a relative one.

        >>> [str(SinkUrl.parse(text).path()) for text in ("files:///a%20b/c", "files:out", "files://./out/x")]
        ['/a b/c', 'out', 'out/x']
        """
        text = unquote(self.place.removeprefix("//"))
        if not text or "\0" in text:
            raise _bad_sink(
                f"`{self.scheme}:` needs a directory", f"write for example '{self.scheme}:///data/answers'"
            )
        return Path(text)


def _options(tail: str) -> dict[str, str]:
    """The options behind the question mark. A `+` is a plus sign."""
    options: dict[str, str] = {}
    for part in filter(None, tail.split("&")):
        name, equals, value = part.partition("=")
        name = unquote(name)
        if not equals:
            raise _bad_option(f"the option `{name}` has no value", f"write {name}=value")
        if name in options:
            raise _bad_option(f"the option `{name}` is given twice", "leave one out")
        options[name] = unquote(value)
    return options


def _bad_sink(message: str, hint: str) -> QueryError:
    return QueryError(message, code="bad-sink", hint=hint)


def _bad_option(message: str, hint: str | None) -> QueryError:
    return QueryError(message, code="bad-sink-option", hint=hint)


#: called with the name of a point in the life of a delivery, where a test may end the process
Hook: TypeAlias = Callable[[str], None]


@dataclass(frozen=True)
class Delivery:
    """The rows of a query that came with one commit.

    >>> table = pa.table({"at": [5, 7], "k": ["a", "b"]})
    >>> delivery = Delivery("top", 42, table.schema, lambda: iter([table[:1], table[:0], table[1:]]))
    >>> [piece.num_rows for piece in delivery.pieces()]
    [1, 1]
    """

    query: str
    #: grows; a repetition has the same number and the same rows
    commit: int
    #: `at` first, then `op` if answers both come and go, then the query's own columns
    schema: pa.Schema
    #: the rows in bounded pieces, in order; may be called more than once
    tables: Callable[[], Iterator[pa.Table]]

    def pieces(self) -> Iterator[pa.Table]:
        """The tables that have rows, each with exactly the columns of the schema."""
        for table in self.tables():
            if table.num_rows:
                same = table.schema.equals(self.schema)
                yield table if same else table.select(self.schema.names).cast(self.schema)


class Sink:
    """Where the answers of one query go."""

    #: one sentence for EXPLAIN
    guarantee: str
    #: whether a delivery takes time: then a thread of its own delivers while the next epoch is made
    is_slow: bool = False

    def deliver(self, delivery: Delivery) -> None:
        """Take the rows; they are there, as the guarantee says, when this returns. Raises SinkError."""
        raise NotImplementedError

    def close(self) -> None:
        """Let go of what is held open. What was delivered stays."""


def no_hook(point: str) -> None:
    """Nothing happens at any point."""


@dataclass(frozen=True)
class Opening:
    """Who opens a sink."""

    query: str
    hook: Hook = no_hook
    #: names the engine's state: another state counts commits anew, so its numbers are no repetitions
    state: str = ""


class UrlSink(Protocol):
    """A class of sinks that are named by the text after INTO."""

    guarantee: str

    @classmethod
    def of(cls, url: SinkUrl) -> Callable[[Opening], Sink]:
        """What opens the sink, and may raise a SinkError; a QueryError if the text tells that nothing can."""
