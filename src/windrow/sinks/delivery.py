"""What a sink is given, and what it promises.

The engine hands over the rows of one commit at a time, in the order of the commits, and writes down
afterwards that the sink has them. If it dies between the two, the same commit comes again after the restart:
the same number, the same rows. A sink that can tell has each row exactly once; one that cannot has it at
least once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, Self, TypeAlias

import pyarrow as pa

if TYPE_CHECKING:
    from windrow.sinks.urls import SinkUrl

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


class Sink(Protocol):
    """Where the answers of one query go."""

    #: one sentence for EXPLAIN
    guarantee: str
    #: whether a delivery takes time: then a thread of its own delivers while the next epoch is made
    is_slow: bool = False

    def deliver(self, delivery: Delivery) -> None:
        """Take the rows; they are there, as the guarantee says, when this returns. Raises SinkError."""

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


class UrlSink(Sink, Protocol):
    """A sink that is named by the text after INTO."""

    @classmethod
    def check(cls, url: SinkUrl) -> None:
        """Refuse what cannot be opened, as far as the text tells; a QueryError."""

    @classmethod
    def open(cls, url: SinkUrl, opening: Opening) -> Self:
        """Open what was checked. Raises SinkError."""
