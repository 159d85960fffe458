"""What `w.archives["past"]` is: the rows an archive keeps, by key or all of them."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import pvariance
from typing import TYPE_CHECKING, Any

from windrow.algebra.values import instant
from windrow.engine.declarations import checked
from windrow.errors import QueryError

if TYPE_CHECKING:
    import pyarrow as pa

    from windrow.engine.archives.manager import Archiving, Kept


class ArchiveView:
    """An archive that is registered. Questions are answered as of the last commit, while a run goes on.

    Each gives a table of pyarrow, its rows in no order. With `at`, a question is about a later instant: what
    of the rows that are there now will not have expired by then.
    """

    def __init__(self, archives: Archiving, name: str) -> None:
        self._archives, self.name = archives, name

    def __repr__(self) -> str:
        return f"<archive {self.name} of {self.source} by {self.key}>"

    @property
    def _kept(self) -> Kept:
        found = self._archives.kept.get(self.name)
        if found is None:
            hint = "ask for it again by name: w.archives"
            raise QueryError(f"archive `{self.name}` was dropped", code="unknown-source", hint=hint)
        return found

    @property
    def source(self) -> str:
        """The stream or query whose rows it keeps."""
        return self._kept.spec.source

    @property
    def key(self) -> str:
        """The column rows are found by."""
        return self._kept.spec.key

    @property
    def keep(self) -> int:
        """How long rows are kept at most: microseconds, or ticks of an integer attribute."""
        return self._kept.spec.keep

    @property
    def layout(self) -> str:
        """How it is laid out, in the words of ALTER ARCHIVE."""
        return str(self._kept.laid.layout)

    @property
    def facts(self) -> list[tuple[str, str]]:
        """How it is laid out, and why, and how even that is: what EXPLAIN ARCHIVE shows."""
        layout, why, update, *more = self._kept.laid.facts(is_equal=self._kept.is_equal)
        sizes = self.sizes
        even = f"{min(sizes):,} to {max(sizes):,} each, variance {pvariance(sizes):,.1f}"
        return [layout, why, update, ("rows", even), *more]

    @property
    def sizes(self) -> list[int]:
        """The rows on disk in each of its sub-indices, as of its last update."""
        return self._kept.archive.sizes

    @property
    def expires(self) -> str:
        """The column that says until when a row is valid."""
        return self._kept.shape.expires

    @property
    def schema(self) -> pa.Schema:
        """The columns of its rows."""
        return self._kept.shape.schema

    @property
    def now(self) -> int:
        """The instant that questions are about if they do not say `at`."""
        with self._archives.reading(self._kept.spec.name) as reading:
            return reading.now

    @property
    def complete_from(self) -> int | None:
        """Rows from before this may be missing: they came before the archive was there. None: none did."""
        return self._kept.complete_from

    @property
    def folder(self) -> str:
        """Where its files are: a directory, or the URL of a prefix."""
        return self._archives.place(self._kept)

    @property
    def files(self) -> list[str]:
        """The Parquet files as of its last update; rows in them are valid while they expire after `updated`.

        Rows of the last commits may still be on their way; when a run ends, all are there.
        """
        return self._kept.archive.files

    @property
    def updated(self) -> int:
        """The instant of its last update."""
        return self._kept.archive.now

    def __len__(self) -> int:
        return int(self.scan(columns=[self.key]).num_rows)

    @checked
    def probe(self, key: Any, *, at: Any = None, columns: Sequence[str] | None = None) -> pa.Table:
        """The valid rows with this key."""
        with self._archives.reading(self._kept.spec.name) as reading:
            return reading.find(key, at=_instant(at), columns=columns)

    @checked
    def range(self, low: Any, high: Any, *, at: Any = None, columns: Sequence[str] | None = None) -> pa.Table:
        """The valid rows with keys from `low` to `high`, both included; None is no bound."""
        with self._archives.reading(self._kept.spec.name) as reading:
            return reading.find_between(low, high, at=_instant(at), columns=columns)

    @checked
    def scan(self, *, at: Any = None, columns: Sequence[str] | None = None) -> pa.Table:
        """All valid rows."""
        with self._archives.reading(self._kept.spec.name) as reading:
            return reading.scan(at=_instant(at), columns=columns)


def _instant(at: Any) -> int | None:
    return None if at is None else instant(at)
