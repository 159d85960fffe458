"""`delta:`: each commit is one transaction of a Delta table.

A Delta table remembers, for each application that writes to it, the number the application gave to its last
transaction. The rows of a commit and its number become visible together, so a repetition is known by the
number and left out.
"""

from __future__ import annotations

import os
import re
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from windrow.errors import SinkError, WindrowError
from windrow.sinks.delivery import Sink
from windrow.sinks.delta_files import refuse_foreign, sync_transaction, sync_versions
from windrow.sinks.delta_types import check_columns, check_same_columns
from windrow.sinks.durable import make_directory
from windrow.sinks.failures import KEPT, explained, imported

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from windrow.sinks.delivery import Delivery, Opening
    from windrow.sinks.urls import SinkUrl

_SYSTEM_ERROR = re.compile(r"\(os error (\d+)\)")


class DeltaSink(Sink):
    """Appends to one table, made by the first commit that has rows. Other queries may append too."""

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
    def check(cls, url: SinkUrl) -> None:
        url.path()
        url.allow(())

    @classmethod
    def open(cls, url: SinkUrl, opening: Opening) -> Self:
        return cls(url.path().absolute(), opening)

    def deliver(self, delivery: Delivery) -> None:
        if next(delivery.pieces(), None) is None:
            return
        check_columns(delivery.schema, self._path)
        before = self._table()
        if before is not None:
            done = before.transaction_version(self._application)
            if done is not None and done >= delivery.commit:
                with self._place_explained("write"):
                    sync_transaction(self._path, before.version(), self._application, delivery.commit)
                return
            check_same_columns(delivery.schema, pa.schema(before.schema()), self._path)
        self._hook("sink-before-write")
        self._append(delivery)
        self._hook("sink-written")
        after = self._table()
        with self._place_explained("write"):
            sync_versions(self._path, 0 if before is None else before.version() + 1, after.version())
        self._hook("sink-after-rename")

    def close(self) -> None:
        """Nothing is held open."""

    def _table(self) -> Any:
        """The table as it is now; None if there is none yet."""
        with self._explained("read"):
            try:
                return self._library.DeltaTable(str(self._path))
            except self._library.exceptions.TableNotFoundError:
                return None

    def _append(self, delivery: Delivery) -> None:
        library, rows = self._library, _Rows(delivery)
        transaction = library.Transaction(app_id=self._application, version=delivery.commit)
        with self._explained("write"):
            try:
                library.write_deltalake(
                    str(self._path),
                    pa.RecordBatchReader.from_batches(delivery.schema, rows.batches()),
                    mode="append",
                    commit_properties=library.CommitProperties(app_transactions=[transaction]),
                )
            except Exception:
                if rows.error is not None:  # the library has made a text of it
                    raise rows.error from None
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


class _Rows:
    """The rows of a delivery for a library that keeps only the text of an error."""

    def __init__(self, delivery: Delivery) -> None:
        self._delivery = delivery
        self.error: BaseException | None = None

    def batches(self) -> Iterator[pa.RecordBatch]:
        try:
            for piece in self._delivery.pieces():
                yield from piece.to_batches()
        except BaseException as error:
            self.error = error
            raise
