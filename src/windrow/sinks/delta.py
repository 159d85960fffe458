"""`delta:`: each commit is one transaction of a Delta table.

A Delta table remembers, for each application that writes to it, the number the application gave to its last
transaction. The rows of a commit and its number become visible together, so a repetition is known by the
number and left out. The library writes the files of a table, but does not see them onto the disk: we do.
"""

from __future__ import annotations

import json
import os
import re
from contextlib import AbstractContextManager, contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import unquote

import pyarrow as pa
from pyarrow import types

from windrow.errors import SinkError, WindrowError
from windrow.sinks.delivery import KEPT, Delivery, Opening, Sink, SinkUrl, explained, imported, make_directory
from windrow.sinks.json_rows import is_bytes, is_list, is_text
from windrow.state.store import sync

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


LOG = "_delta_log"


def refuse_foreign(table: Path) -> None:
    """A directory that holds other things is never made a table by mistake."""
    if (table / LOG).is_dir() or not table.is_dir():
        return
    for path in table.iterdir():
        # An interrupted first write leaves parts of a table that never was.
        if path.name != LOG and not (path.name.startswith("part-") and path.suffix == ".parquet"):
            raise SinkError(
                f"{table} is not a Delta table: it holds `{path.name}`",
                code="place-taken",
                hint="give a directory that is empty or does not exist yet",
            )


def sync_versions(table: Path, first: int, last: int) -> None:
    """Put the versions from `first` to `last` on the disk: what they added, then what says so."""
    for version in range(first, last + 1):
        _sync_version(table, version)
    _sync_directories(table)


def sync_transaction(table: Path, last: int, application: str, number: int) -> None:
    """Put the version with this transaction on the disk, and those after it."""
    for version in range(last, -1, -1):
        actions = _sync_version(table, version)
        made = [action["txn"] for action in actions if "txn" in action]
        if not actions or any((it["appId"], it["version"]) == (application, number) for it in made):
            break
    _sync_directories(table)


def _sync_version(table: Path, version: int) -> list[dict[str, Any]]:
    """The actions of a version that is now durable; none if its entry was cleaned up after a checkpoint."""
    entry = table / LOG / f"{version:020d}.json"
    if not entry.exists():
        return []
    # bytes: a value may have line separators of Unicode in it, at which `splitlines()` would cut
    actions = [json.loads(line) for line in entry.read_bytes().split(b"\n") if line.strip()]
    for action in actions:
        path = table / unquote(action["add"]["path"]) if "add" in action else None
        if path is not None and path.exists():  # else it was compacted since
            sync(path)
    sync(entry)
    return actions


def _sync_directories(table: Path) -> None:
    sync(table / LOG)
    sync(table)


#: without the column mapping feature, which many readers lack, names must do without these
_FORBIDDEN = re.compile(r"[ ,;{}()\n\t=]")
_UTC = ("UTC", "Etc/UTC", "+00:00", None)


def check_columns(schema: pa.Schema, table: object) -> None:
    """Refuse what no Delta table can hold.

    >>> check_columns(pa.schema([("at", pa.int64()), ("count(*)", pa.int64())]), "/data/top")
    Traceback (most recent call last):
        ...
    windrow.errors.SinkError: the Delta table /data/top cannot have a column `count(*)` (rename it with AS)
    """
    for field in schema:
        if _FORBIDDEN.search(field.name):
            raise SinkError(
                f"the Delta table {table} cannot have a column `{field.name}`",
                code="no-such-name",
                hint="rename it with AS",
            )
        if stored_type(field.type) is None:
            raise SinkError(
                f"the Delta table {table} cannot have the column `{field.name}`: "
                f"Delta has no type for {field.type}",
                code="no-such-type",
                hint="CAST it to a type that Delta has, such as STRING or BIGINT",
            )


def check_same_columns(wanted: pa.Schema, found: pa.Schema, table: object) -> None:
    """Refuse a table that has other columns, or other types. The order does not matter: names decide."""
    theirs = {field.name: stored_type(field.type) or field.type for field in found}
    ours = {field.name: stored_type(field.type) for field in wanted}
    differences = [
        *(f"it has no `{name}`" for name in ours if name not in theirs),
        *(f"it has `{name}`, the query has not" for name in theirs if name not in ours),
        *(
            f"its `{name}` is {theirs[name]}, the query's is {kind}"
            for name, kind in ours.items()
            if name in theirs and theirs[name] != kind
        ),
    ]
    if differences:
        raise SinkError(
            f"the Delta table {table} has other columns than the query: " + "; ".join(differences),
            code="other-columns",
            hint="write into a new table, or let the query select what the table has",
        )


def stored_type(kind: pa.DataType) -> pa.DataType | None:
    """The type as a table gives it back; None if Delta has none.

    >>> stored_type(pa.large_string()), stored_type(pa.duration("us"))
    (DataType(string), None)
    """
    if is_text(kind):
        return pa.string()
    if is_bytes(kind):
        return pa.binary()
    if is_list(kind):
        inner = stored_type(kind.value_type)
        return None if inner is None else pa.list_(inner)
    if types.is_struct(kind):
        fields = [(field.name, stored_type(field.type)) for field in kind]
        unknown = any(inner is None or _FORBIDDEN.search(name) for name, inner in fields)
        return pa.struct(fields) if fields and not unknown else None
    if types.is_timestamp(kind):
        is_known = kind.unit == "us" and kind.tz in _UTC
    elif types.is_decimal(kind):
        is_known = types.is_decimal128(kind) and 0 <= kind.scale <= kind.precision
    else:
        is_number = types.is_signed_integer(kind) or types.is_float32(kind) or types.is_float64(kind)
        is_known = is_number or types.is_boolean(kind) or types.is_date32(kind)
    return kind if is_known else None


_SYSTEM_ERROR = re.compile(r"\(os error (\d+)\)")


class DeltaSink(Sink):
    """Appends to one table, made by the first commit that has rows. Other queries may append too."""

    is_slow = True
    guarantee = "exactly once: each commit is one Delta transaction, which names its number"

    def __init__(self, table: Path, opening: Opening) -> None:
        self._library = imported("deltalake", "delta")
        self._path = table
        self._hook = opening.hook
        self._application = application(opening.query, table, opening.state)
        with explained("use the Delta table", table):
            make_directory(table)
            refuse_foreign(table)

    @classmethod
    def of(cls, url: SinkUrl) -> Callable[[Opening], Self]:
        table = url.path()
        url.allow(())
        return lambda opening: cls(table.absolute(), opening)

    def deliver(self, delivery: Delivery) -> None:
        if next(delivery.pieces(), None) is None:
            return
        check_columns(delivery.schema, self._path)
        before = self._table()
        if before is not None:
            if self._has(delivery.commit, before):
                with self._place_explained("write"):
                    sync_transaction(self._path, before.version(), self._application, delivery.commit)
                return
            check_same_columns(delivery.schema, pa.schema(before.schema()), self._path)
        self._hook("sink-before-write")
        try:
            self._append(before, delivery)
        except SinkError:
            now = self._table()
            if now is None or (before is not None and not self._has(delivery.commit, now)):
                raise
            if before is None:  # somebody else has made the table, perhaps for another query
                self.deliver(delivery)
                return
        self._hook("sink-written")
        after = self._table()
        with self._place_explained("write"):
            sync_versions(self._path, 0 if before is None else before.version() + 1, after.version())
        self._hook("sink-after-rename")

    def _table(self) -> Any:
        """The table as it is now; None if there is none yet."""
        with self._explained("read"):
            try:
                return self._library.DeltaTable(str(self._path))
            except self._library.exceptions.TableNotFoundError:
                return None

    def _has(self, commit: int, table: Any) -> bool:
        """Whether the table has a commit, from here or from another engine that goes on with the state."""
        done = table.transaction_version(self._application)
        return done is not None and done >= commit

    def _append(self, before: Any, delivery: Delivery) -> None:
        """A new version on top of what was read. If another engine has appended the same commit since, Delta
        refuses this one: it has a transaction of the same application. Others may append meanwhile.
        """
        library, failed = self._library, list[BaseException]()

        def batches() -> Iterator[pa.RecordBatch]:
            try:
                for piece in delivery.pieces():
                    yield from piece.to_batches()
            except BaseException as error:
                failed.append(error)
                raise

        transaction = library.Transaction(app_id=self._application, version=delivery.commit)
        with self._explained("write"):
            try:
                library.write_deltalake(
                    str(self._path) if before is None else before,
                    pa.RecordBatchReader.from_batches(delivery.schema, batches()),
                    mode="error" if before is None else "append",
                    commit_properties=library.CommitProperties(app_transactions=[transaction]),
                )
            except Exception:
                if failed:  # the library has made a text of it
                    raise failed[0] from None
                raise

    def _place_explained(self, doing: str) -> AbstractContextManager[None]:
        return explained(doing, f"the Delta table {self._path}")

    @contextmanager
    def _explained(self, doing: str) -> Iterator[None]:
        """Errors of the library, which have no common class, as ours."""
        try:
            yield
        except WindrowError:
            raise
        except Exception as error:
            text = str(error)
            found = _SYSTEM_ERROR.search(text)
            if found:
                with self._place_explained(doing):
                    raise OSError(int(found[1]), os.strerror(int(found[1]))) from error
            reason = text.strip().partition("\n")[0]
            raise SinkError(
                f"cannot {doing} the Delta table {self._path}: {reason}", code="delta", hint=KEPT
            ) from error


def application(query: str, table: Path, state: str) -> str:
    """The name under which a table remembers how far a query has got.

    >>> application("top", Path("/data/top"), "") == application("top", Path("/data/x/../top"), "")
    True
    """
    place = blake2b(f"{table.resolve()}\0{state}".encode(), digest_size=8).hexdigest()
    return f"windrow/{query}/{place}"
