"""State in an object store: S3, Google Cloud Storage, Azure, by the library `obstore`.

A file is an object, written by one put and never changed. The one operation that decides anything is the
conditional put of a name that is not taken; its answer may get lost, and some stores answer a repetition of
their own making with "it is there already". So after any failure the name is read: with these very bytes it
was created here, absent it is tried again, with others somebody else was first. Only if nobody answers at all
is the outcome unknown.

Objects are read in blocks, several at once, through a cache on this machine (`BlockCache`): written by
rename, each block with its checksum, bounded as a whole, and shared by all processes of the machine. What is
written here is in the cache before it is in the store.

A store is sent to other processes as its URL. Each opens it with the credentials that it finds in its own
environment, or where the references of the URL say; none of them is part of what is sent.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property, lru_cache
from hashlib import blake2b
from pathlib import Path
from secrets import token_hex
from typing import Any, BinaryIO
from urllib.parse import unquote

import pyarrow as pa

from windrow.credentials import Resolved, refuse_literals, resolve
from windrow.errors import QueryError, StateError, first_line, to_install
from windrow.state import block_cache, crash, filelock
from windrow.state.names import COMMITS, FOLDERS, TEMPORARY
from windrow.state.store import LocalStore, Store, check_name, explained, mapped, refuse_foreign

#: objects are read and cached in parts of this size; what is smaller is read at once
BLOCK = 8 << 20
#: what is larger is sent in several parts, without a condition: names of chunks are never used twice
_LARGE = 64 << 20
#: how long one operation is tried again before it has failed
_PATIENCE = 60.0
_FIRST_PAUSE = 0.05
_LEASE = 30.0
#: options of a URL that are for us, and not for the library
_SCHEMES = ("s3", "s3a", "gs", "az", "abfs", "abfss")
_OURS = ("lease", "cache", "cache_bytes", "patience")
_TIMES = {"connect_timeout": timedelta(seconds=5), "timeout": timedelta(seconds=30)}
_RETRY = {"max_retries": 4, "retry_timeout": timedelta(seconds=20)}

_THREADS = ThreadPoolExecutor(16, thread_name_prefix="windrow object")
#: what is on its way to a store, by URL and name
_uploads: dict[tuple[str, str], Future[None]] = {}
_SIZE = re.compile(r"(\d+)\s*(|k|m|g)i?b?", re.IGNORECASE)
_STATUS = re.compile(r"status code: (\d{3})")
_REFUSALS = frozenset({400, 401, 403, 404, 405, 501})
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def open_store(place: str | Path | Store) -> Store:
    """The store at a path, or at the URL of an object store; a store is itself.

    >>> print(open_store("./state"), open_store("s3://lake/prod?region=eu-west-1"))
    state s3://lake/prod
    >>> open_store("ftp://host/state")
    Traceback (most recent call last):
        ...
    windrow.errors.StateError: `ftp:` is no place for state (give a directory, or s3://…, gs://… or az://…)
    """
    if not isinstance(place, str | Path):
        return place
    scheme, mark, rest = str(place).partition("://")
    if not mark or isinstance(place, Path):
        return LocalStore(Path(place))
    if scheme not in _SCHEMES:
        raise _bad_url(f"`{scheme}:` is no place for state", "give a directory, or s3://…, gs://… or az://…")
    if not rest.partition("?")[0].strip("/"):
        raise _bad_url(f"`{place}` names no bucket", f"write {scheme}://BUCKET/PREFIX")
    return ObjectStore(str(place))


@dataclass(frozen=True)
class ObjectStore:
    """A prefix of a bucket, by its URL: `s3://bucket/prefix?region=eu-west-1`.

    >>> store = ObjectStore("s3://lake/prod?access_key_id=${env:LAKE_KEY}&lease=10")
    >>> print(store), store.lease
    s3://lake/prod
    (None, 10.0)
    """

    url: str

    def __post_init__(self) -> None:
        try:
            refuse_literals(self.url)
        except QueryError as error:
            raise StateError(error.message, code=error.code, hint=error.hint) from None

    def __str__(self) -> str:
        return self.url.partition("?")[0].rstrip("/")

    def __reduce__(self) -> tuple[type[ObjectStore], tuple[str]]:
        return ObjectStore, (self.url,)

    @cached_property
    def _options(self) -> dict[str, str]:
        parts = [part.partition("=") for part in self.url.partition("?")[2].split("&") if part]
        return {unquote(name): unquote(value) for name, _, value in parts}

    @cached_property
    def lease(self) -> float | None:
        return _number(self._options.get("lease"), _LEASE, "lease")

    @cached_property
    def cache(self) -> block_cache.BlockCache:
        """Where blocks of it are kept on this machine."""
        return block_cache.BlockCache(
            *self._beside("blocks"), _bytes(self._options.get("cache_bytes", "4GB"))
        )

    @property
    def local(self) -> Path:
        """A directory of this machine for what belongs to the state, and can be done without."""
        root, own = self._beside("local")
        return root / own

    def _beside(self, what: str) -> tuple[Path, str]:
        # else where programs of this user keep what can be had again
        home = os.environ.get("XDG_CACHE_HOME") or (Path.home() / ".cache")
        usual = os.environ.get("WINDROW_CACHE") or Path(home) / "windrow"
        root = Path(self._options.get("cache", usual))
        own = blake2b(f"{self} {self._options.get('endpoint', '')}".encode(), digest_size=8).hexdigest()
        return root / what, own

    @property
    def _client(self) -> Any:
        return _opened(self.url, os.getpid())[0]

    # ------------------------------------------------------------ names

    def place(self, name: str) -> str:
        return f"{self}/{check_name(name)}"

    def is_there(self) -> bool:
        return bool(self._asked("list", str(self), lambda: self._client.list(chunk_size=1).collect()[:1]))

    def prepare(self) -> None:
        found = self._asked("list", str(self), self._client.list_with_delimiter)
        folders = {path.rpartition("/")[2] for path in found["common_prefixes"]}
        refuse_foreign(self, folders | {each["path"] for each in found["objects"]})

    def clear(self) -> None:
        self.remove(*self.list(TEMPORARY))
        for name in self.nests(TEMPORARY):
            self.remove_nested(TEMPORARY, name)

    def nested(self, folder: str, name: str) -> ObjectStore:
        check_name(f"{folder}/{name}", folders=(folder,))
        place, mark, options = self.url.partition("?")
        return ObjectStore(f"{place.rstrip('/')}/{folder}/{name}{mark}{options}")

    def nests(self, folder: str) -> tuple[str, ...]:
        found = self._asked(
            "list", f"{self}/{folder}", lambda: self._client.list_with_delimiter(f"{folder}/")
        )
        return tuple(sorted(path.rstrip("/").rpartition("/")[2] for path in found["common_prefixes"]))

    def remove_nested(self, folder: str, name: str) -> None:
        check_name(f"{folder}/{name}", folders=(folder,))
        place = f"{folder}/{name}/"
        found = self._asked("list", f"{self}/{place}", lambda: self._client.list(place).collect())
        # manifests last: what is left of an interrupted removal is known for what it is
        paths = sorted((each["path"] for each in found), key=lambda path: (f"/{COMMITS}/" in path, path))
        self._delete(paths)

    def lock(self, name: str) -> filelock.Lock | None:
        return None

    # ------------------------------------------------------------ writing

    def create(self, name: str, data: bytes, what: str) -> None:
        crash.crash_point(f"{what}-temp-written")
        self._create(name, data)
        crash.crash_point(f"{what}-linked")

    def _create(self, name: str, data: bytes | memoryview) -> None:
        """Put the object unless there is one; whatever the answer was, the name itself decides."""
        place, patience = self.place(name), _Patience(self._patience)
        while True:
            try:
                self._client.put(name, data, mode="create")
                return
            except Exception as error:  # noqa: BLE001  the errors of a library whose classes need it
                failure = error
            with suppress(StateError):  # nobody tells what is there
                found = self._found(name)
                if found is not None and found == data:
                    return
                if found is not None:
                    raise FileExistsError(place)
            if _is_final(failure):
                raise self._explained(failure, "write", place) from failure
            if not patience.wait():
                reason = first_line(failure)
                raise StateError(
                    f"nobody can tell whether {place} was written: {reason}",
                    code="outcome-unknown",
                    hint="see to the object store, then start the engine again: it is decided there",
                ) from failure

    def put(self, name: str, data: bytes) -> None:
        self._asked("write", self.place(name), lambda: self._client.put(name, data, mode="overwrite"))

    @contextmanager
    def writer(self, name: str) -> Iterator[BinaryIO]:
        check_name(name)
        with explained("write", self.cache.root), self.cache.scratch() as path:
            with path.open("w+b") as file:
                yield file
            data = mapped(path)
            for number, begin in enumerate(range(0, data.size or 1, BLOCK)):
                self.cache.keep(name, number, data.slice(begin, min(BLOCK, data.size - begin)), data.size)
        try:
            self._sent(name, data)
        except BaseException:
            self.cache.drop([name])
            raise

    def _sent(self, name: str, data: pa.Buffer) -> None:
        self._upload(name, data)

    def _upload(self, name: str, data: pa.Buffer) -> None:
        contents = memoryview(data).cast("B")
        if data.size <= _LARGE:
            self._create(name, contents)
            return
        put = self._client.put
        self._asked("write", self.place(name), lambda: put(name, contents, use_multipart=True))

    def grouped(self) -> ObjectStore:
        return _GroupedStore(self.url)

    def settle(self) -> None:
        """Every object is there when it is written."""

    def remove(self, *names: str) -> None:
        for name in names:
            check_name(name)
        for name in names:
            with suppress(StateError):
                _arrived(self.url, name)
        self._delete(list(names))
        self.cache.drop(names)

    def _delete(self, paths: list[str]) -> None:
        for at in range(0, len(paths), 1000):
            some = paths[at : at + 1000]
            with suppress(FileNotFoundError):
                self._asked("remove", f"{self}/{some[0]}", lambda some=some: self._deleted(some))  # type: ignore[misc]
            crash.crash_point("sweep-between-removals")

    def _deleted(self, paths: list[str]) -> None:
        try:
            self._client.delete(paths)
        except FileNotFoundError:  # some stores mind: one by one, then
            for path in paths:
                with suppress(FileNotFoundError):
                    self._client.delete(path)

    # ------------------------------------------------------------ reading

    def read(self, name: str) -> bytes:
        found = self._found(name)
        if found is None:
            raise self._explained(FileNotFoundError(name), "read", self.place(name))
        return found

    def _found(self, name: str) -> bytes | None:
        """The contents as the store has them now; None if there is no such object."""
        try:
            return bytes(self._asked("read", self.place(name), lambda: self._client.get(name).bytes()))
        except FileNotFoundError:
            return None

    def map(self, name: str) -> Blocks:
        check_name(name)
        blocks = Blocks(self, name)
        blocks.slice(0, 0)  # now, so that a missing one is told at once
        return blocks

    def fetch(self, name: str, number: int) -> tuple[pa.Buffer, int]:
        """A block of an object and the size of all of it, from the cache or from the store."""
        kept = self.cache.find(name, number)
        if kept is not None:
            return kept
        _arrived(self.url, name)
        begin = number * BLOCK

        def ask() -> tuple[pa.Buffer, int]:
            try:
                got = self._client.get(name, options={"range": (begin, begin + BLOCK)})
                return pa.py_buffer(got.bytes()), int(got.meta["size"])
            except FileNotFoundError:
                raise
            except Exception:  # of an empty object no range can be asked for
                if number or self._client.head(name)["size"]:
                    raise
                return pa.py_buffer(b""), 0

        try:
            data, size = self._asked("read", self.place(name), ask)
        except FileNotFoundError as error:
            raise self._explained(error, "read", self.place(name)) from error
        if data.size != max(0, min(BLOCK, size - begin)):
            raise self._explained(OSError("the answer was cut off"), "read", self.place(name))
        self.cache.keep(name, number, data, size)
        return data, size

    def size(self, name: str) -> int | None:
        with suppress(FileNotFoundError):
            _arrived(self.url, name)
            head = self._asked("read", self.place(name), lambda: self._client.head(name))
            return int(head["size"])
        return None

    def age(self, name: str) -> float:
        """By the clock of the store: an object is written to ask it for the time."""
        probe = f"{TEMPORARY}/clock-{token_hex(8)}"

        def ask() -> float:
            self._client.put(probe, b"")
            now = self._client.head(probe)["last_modified"]
            self._client.delete(probe)
            written = self._client.head(name)["last_modified"]
            return max(0.0, float((now - written).total_seconds()))

        with suppress(FileNotFoundError):
            return float(self._asked("read", self.place(name), ask))
        return 0.0

    def missing(self, sizes: Mapping[str, int]) -> str | None:
        """None is: whoever named them has had the store's word for each."""
        return None

    def list(self, folder: str) -> dict[str, int]:
        if folder not in FOLDERS:
            raise StateError(f"`{folder}` is not a folder of a state directory", code="bad-name")
        found = self._asked("list", f"{self}/{folder}", lambda: self._client.list(f"{folder}/").collect())
        sizes = {each["path"]: int(each["size"]) for each in found}
        return {name: sizes[name] for name in sorted(sizes) if name.count("/") == 1}

    # ------------------------------------------------------------ failures

    @property
    def _patience(self) -> float:
        return _number(self._options.get("patience"), _PATIENCE, "patience")

    def _asked(self, doing: str, place: str, ask: Callable[[], Any]) -> Any:
        """The answer of the store; what may pass is asked again. FileNotFoundError is left to the caller."""
        patience = _Patience(self._patience)
        while True:
            try:
                return ask()
            except FileNotFoundError:
                raise
            except Exception as error:
                if _is_final(error) or not patience.wait():
                    raise self._explained(error, doing, place) from error

    def _explained(self, error: Exception, doing: str, place: str) -> StateError:
        what, kind = f"cannot {doing} {place}: ", type(error).__name__
        if isinstance(error, FileNotFoundError) or _status(error) == 404:
            hint = "check the name of the bucket; if it or part of it was removed, put it back"
            return StateError(what + "it does not exist", code="file-missing", hint=hint)
        if kind in ("PermissionDeniedError", "UnauthenticatedError") or _status(error) in (401, 403):
            hint = "let the credentials of this process list, read, write and delete objects below the prefix"
            return StateError(what + "permission denied", code="permission-denied", hint=hint)
        reason = _opened(self.url, os.getpid())[1].scrubbed(first_line(error))
        hint = "see to the object store and the network, then start the engine again"
        return StateError(what + reason, code="object-store", hint=hint)


@dataclass(frozen=True)
class _GroupedStore(ObjectStore):
    """Sends the objects of a commit all at once, in threads; readers here have them from the cache meanwhile.
    When it is sent to another process, that has a plain store, and everything has arrived."""

    _waiting: list[Future[None]] = field(default_factory=list, repr=False, compare=False)

    def __reduce__(self) -> tuple[type[ObjectStore], tuple[str]]:
        self.settle()
        return ObjectStore, (self.url,)

    def _sent(self, name: str, data: pa.Buffer) -> None:
        sent = _THREADS.submit(self._upload, name, data)
        _uploads[self.url, name] = sent
        sent.add_done_callback(lambda _: _uploads.pop((self.url, name), None))
        self._waiting.append(sent)

    def settle(self) -> None:
        waiting = list(self._waiting)
        self._waiting.clear()
        failures = [error for sent in waiting if (error := sent.exception()) is not None]
        if failures:
            raise failures[0]


class Blocks:
    def __init__(self, store: ObjectStore, name: str) -> None:
        self._store, self._name = store, name
        first, self.size = store.fetch(name, 0)
        self._blocks = {0: first}

    def slice(self, offset: int = 0, length: int | None = None) -> pa.Buffer:
        """The bytes; those of several blocks are read at the same time."""
        end = self.size if length is None else min(offset + length, self.size)
        if end <= offset:
            return pa.py_buffer(b"")
        wanted = range(offset // BLOCK, -(-end // BLOCK))
        missing = [number for number in wanted if number not in self._blocks]
        for number, (data, _) in zip(missing, self._fetched(missing), strict=True):
            self._blocks[number] = data
        parts = [
            self._blocks[n].slice(
                max(offset - n * BLOCK, 0), min(end - n * BLOCK, BLOCK) - max(offset - n * BLOCK, 0)
            )
            for n in wanted
        ]
        return parts[0] if len(parts) == 1 else pa.py_buffer(b"".join(map(memoryview, parts)))

    def _fetched(self, numbers: list[int]) -> Iterator[tuple[pa.Buffer, int]]:
        if len(numbers) == 1:
            return iter([self._store.fetch(self._name, numbers[0])])
        return _READERS.map(lambda number: self._store.fetch(self._name, number), numbers)


_READERS = ThreadPoolExecutor(8, thread_name_prefix="windrow blocks")


def _arrived(url: str, name: str) -> None:
    """Wait for an object that this process is just sending."""
    sent = _uploads.get((url, name))
    if sent is not None:
        sent.result()


class _Patience:
    """Pauses between attempts, growing, until all are used up."""

    def __init__(self, seconds: float) -> None:
        self._ends, self._pause = time.monotonic() + seconds, _FIRST_PAUSE

    def wait(self) -> bool:
        """Wait for the next attempt; False if there is none."""
        if time.monotonic() + self._pause > self._ends:
            return False
        time.sleep(self._pause)
        self._pause = min(self._pause * 2, 5.0)
        return True


_FINAL = frozenset(
    {
        "PermissionDeniedError",
        "UnauthenticatedError",
        "NotSupportedError",
        "InvalidPathError",
        "UnknownConfigurationKeyError",
    }
)


def _is_final(error: Exception) -> bool:
    """Whether asking again is of no use."""
    if type(error).__name__ in _FINAL or isinstance(error, StateError | TypeError | ValueError):
        return True
    return _status(error) in _REFUSALS


def _status(error: Exception) -> int:
    """What the server has answered, where the library tells it in words only."""
    found = _STATUS.search(first_line(error))
    return int(found[1]) if found else 0


def _number(text: str | None, usual: float, what: str) -> float:
    try:
        return usual if text is None else float(text)
    except ValueError:
        raise _bad_url(
            f"`{what}={text}` is no number of seconds", f"write {what}=30 for half a minute"
        ) from None


def _bytes(text: str) -> int:
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise _bad_url(f"`cache_bytes={text}` is no size", "write cache_bytes=2GB")
    return int(found[1]) * _UNITS[found[2].lower()]


def _bad_url(message: str, hint: str) -> StateError:
    return StateError(message, code="bad-state-url", hint=hint)


@lru_cache(maxsize=64)
def _opened(url: str, process: int) -> tuple[Any, Resolved]:
    """The library's store for a URL, one for each process; and what must not be said of it."""
    try:
        from obstore.exceptions import BaseError
        from obstore.store import from_url
    except ImportError as error:
        raise StateError(
            "state in an object store needs the library obstore",
            code="not-installed",
            hint=to_install("objectstore"),
        ) from error
    place = url.partition("?")[0]
    options = ObjectStore(url)._options
    settings = resolve({name: options[name] for name in options if name not in _OURS}, StateError)
    try:
        if place.startswith("file:"):
            return from_url(place, mkdir=True), settings
        client = {**_TIMES, **({"allow_http": True} if _is_plain(settings.values) else {})}
        values = {name: value for name, value in settings.values.items() if name != "allow_http"}
        made = from_url(place, config=values, client_options=client, retry_config=_RETRY)  # type: ignore[call-overload]
    except (BaseError, ValueError) as error:
        hint = "see the options of state in an object store in the documentation"
        raise _bad_url(f"{place} cannot be opened: {settings.scrubbed(first_line(error))}", hint) from None
    return made, settings


def _is_plain(settings: Mapping[str, str]) -> bool:
    """Whether the endpoint is one without TLS, as the user has written it."""
    endpoints = [value for name, value in settings.items() if "endpoint" in name.lower()]
    found = endpoints or [os.environ.get("AWS_ENDPOINT_URL", "")]
    return any(value.startswith("http://") for value in found) or settings.get("allow_http") == "true"
