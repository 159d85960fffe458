"""Queries built in code: a frame is a SELECT in the making, and `sql()` is its text.

Each step gives a new frame. Strings are window SQL, or expressions of `windrow.functions`; the text is
compiled like any other, so that plans and errors are the same as for SQL.

>>> from windrow.functions import col, max_
>>> bids = from_("bids").range("5 minutes", slide="1 minute")
>>> print(bids.where(col("price") > 0).group_by("item").agg(best=max_("price")).sql())
SELECT item, MAX(price) AS best FROM bids [RANGE 5 minutes SLIDE 1 minute] WHERE (price > 0) GROUP BY item
>>> asks = from_("asks", alias="a").rows(10, partition_by="item")
>>> print(bids.alias("b").join(asks, on=["item"]).select("b.item", "a.price").istream().sql())
SELECT ISTREAM(b.item, a.price) FROM bids [RANGE 5 minutes SLIDE 1 minute] AS b
JOIN asks [ROWS 10 PARTITION BY item] AS a ON b.item = a.item
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from windrow.errors import QueryError, nearest
from windrow.functions import Column, literal, sql
from windrow.language.printer import quoted

if TYPE_CHECKING:
    import pyarrow as pa

    from windrow.algebra.explain import Explanation
    from windrow.engine.views import Query

#: a length of time, in words or as Python has it; a number where a window counts in numbers
Length = str | int | float | dt.timedelta
Names = str | Sequence[str]

_JOINS = {
    "inner": "JOIN",
    "left": "LEFT JOIN",
    "left_outer": "LEFT JOIN",
    "right": "RIGHT JOIN",
    "right_outer": "RIGHT JOIN",
    "full": "FULL JOIN",
    "outer": "FULL JOIN",
    "full_outer": "FULL JOIN",
    "cross": "CROSS JOIN",
}


class Session(Protocol):
    """What a frame asks of the engine it came from."""

    def query(self, name: str, text: str, sink: Any, priority: int, max_gap: int | None) -> Query: ...

    def select(self, query: str) -> pa.Table: ...

    def sql(self, text: str) -> list[Any]: ...


def from_(source: str, alias: str | None = None, session: Session | None = None) -> Frame:
    """All rows of a stream or a table; a stream is given a window next."""
    return Frame(quoted(source), name=alias or source, aliased=alias is not None, session=session)


@dataclass(frozen=True)
class Frame:
    """A SELECT in the making: what it reads, through which window, and what it gives."""

    #: what stands after FROM: a name, or a query in parentheses
    source: str
    name: str
    aliased: bool = False
    window: str = ""
    joins: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    is_grouped: bool = False
    items: tuple[str, ...] | None = None
    having_: tuple[str, ...] = ()
    qualified: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    count: int | None = None
    word: str = ""
    is_distinct: bool = False
    #: a whole query, where it is not one SELECT: a union, a difference
    whole: str = ""
    session: Session | None = None

    # ------------------------------------------------------------ windows

    def range(
        self,
        length: Length,
        slide: Length | None = None,
        *,
        lag: Length | None = None,
        wattr: str | None = None,
        origin: Any = None,
        zone: str | None = None,
        internal: bool = False,
    ) -> Frame:
        """The rows of the past so long, at every instant, or whenever a slide has passed."""
        words = [f"RANGE {_length(length)}"]
        words += [f"SLIDE {_length(slide)}"] if slide is not None else []
        words += [f"LAG {_length(lag)}"] if lag is not None else []
        words += [f"WATTR {quoted(wattr)}"] if wattr is not None else []
        words += [f"ORIGIN {literal(origin)}"] if origin is not None else []
        words += [f"ZONE {literal(zone)}"] if zone is not None else []
        return self._through([*words, *(["INTERNAL"] if internal else [])])

    def tumble(self, length: Length) -> Frame:
        """Windows that follow one another without a gap: `range(length, slide=length)`."""
        return self.range(length, slide=length)

    def rows(
        self,
        count: int,
        slide: int | str | None = None,
        *,
        partition_by: Names = (),
        wattr: str | None = None,
    ) -> Frame:
        """The last rows, of all or for each value of some columns. A slide is a number of rows or a time."""
        words = [f"ROWS {count}"]
        if slide is not None:
            words.append(f"SLIDE {slide} ROWS" if isinstance(slide, int) else f"SLIDE {slide}")
        words += [f"WATTR {quoted(wattr)}"] if wattr is not None else []
        return self._through([*words, *_partition(partition_by)])

    def session_window(self, gap: Length, partition_by: Names = ()) -> Frame:
        """Rows that follow one another sooner than a gap, for each value of some columns."""
        return self._through([f"SESSION {_length(gap)}", *_partition(partition_by)])

    def landmark(self, start: Any = None, until: Any = None, slide: Length | None = None) -> Frame:
        """All rows since an instant."""
        words = ["LANDMARK"]
        words += [f"FROM {literal(start)}"] if start is not None else []
        words += [f"UNTIL {literal(until)}"] if until is not None else []
        return self._through([*words, *([f"SLIDE {_length(slide)}"] if slide is not None else [])])

    def unbounded(self) -> Frame:
        """All rows so far."""
        return self._through(["UNBOUNDED"])

    def now(self) -> Frame:
        """The rows of this instant."""
        return self._through(["NOW"])

    def lifetime(self, expression: Column | str) -> Frame:
        """Each row for as long as it says itself."""
        return self._through([f"LIFETIME {sql(expression)}"])

    def _through(self, words: Sequence[str]) -> Frame:
        start = self if self._is_source and not self.window else self._nested()
        return replace(start, window=f" [{' '.join(words)}]")

    # ------------------------------------------------------------ rows

    def alias(self, name: str) -> Frame:
        """What its columns are called by in a join: `name.column`."""
        start = self if self._is_source else self._nested()
        return replace(start, name=name, aliased=True)

    def where(self, condition: Column | str) -> Frame:
        """The rows for which a condition holds; after `agg`, the groups."""
        if self.is_grouped:
            return self.having(condition)
        return replace(self._open, conditions=(*self._open.conditions, sql(condition)))

    filter = where

    def exists(self, other: Frame, on: Column | str) -> Frame:
        """The rows for which another frame has one that meets a condition."""
        return self.where(f"EXISTS (SELECT * {other.where(on)._body})")

    def not_exists(self, other: Frame, on: Column | str) -> Frame:
        """The rows for which another frame has none that meets a condition."""
        return self.where(f"NOT EXISTS (SELECT * {other.where(on)._body})")

    def join(self, other: Frame, on: Column | Names, how: str = "inner") -> Frame:
        """Pairs of rows that are in their windows together. `on` is a condition, or a list of columns."""
        if how not in _JOINS:
            raise QueryError(f"no join `{how}`", code="bad-value", hint=nearest(how, _JOINS))
        start, right = self._open, other if other._is_source else other._nested()
        text = f"{_JOINS[how]} {right._from}"
        if how != "cross":
            text += f" ON {self._condition(on, right.name)}"
        return replace(start, joins=(*start.joins, text), aliases=(*start.aliases, right.name))

    def _condition(self, on: Column | Names, other: str) -> str:
        if isinstance(on, Column | str):
            return sql(on)
        pairs = [(f"{quoted(self.name)}.{quoted(key)}", f"{quoted(other)}.{quoted(key)}") for key in on]
        return " AND ".join(f"{mine} = {its}" for mine, its in pairs)

    # ------------------------------------------------------------ what it gives

    def select(self, *items: Column | str, **named: Column | str) -> Frame:
        """What is given for each row: expressions, and expressions by their names."""
        return replace(self._open, items=_items(items, named))

    def distinct(self) -> Frame:
        """Equal rows once."""
        return replace(self, is_distinct=True)

    def group_by(self, *keys: Column | str) -> Frame:
        """One answer for each combination of values: `agg` says which."""
        return replace(self._open, keys=tuple(sql(key) for key in keys), is_grouped=True)

    def agg(self, *items: Column | str, **named: Column | str) -> Frame:
        """What is given for each group, behind its keys."""
        return replace(self._open, items=(*self._open.keys, *_items(items, named)), is_grouped=True)

    def having(self, condition: Column | str) -> Frame:
        """The groups for which a condition holds."""
        return replace(self, having_=(*self.having_, sql(condition)))

    def qualify(self, condition: Column | str) -> Frame:
        """The answers whose rank meets a condition."""
        return replace(self, qualified=(*self.qualified, sql(condition)))

    def order_by(self, *keys: Column | str) -> Frame:
        """The order that `limit` takes the first of."""
        return replace(self, order=tuple(sql(key) for key in keys))

    def limit(self, count: int) -> Frame:
        """The first so many rows of each answer."""
        return replace(self, count=count)

    def istream(self) -> Frame:
        """Rows when they enter the answer."""
        return self._said("ISTREAM")

    def dstream(self) -> Frame:
        """Rows when they leave the answer."""
        return self._said("DSTREAM")

    def rstream(self) -> Frame:
        """The whole answer at every report."""
        return self._said("RSTREAM")

    def _said(self, word: str) -> Frame:
        start = self._nested() if self.word or self.whole else self
        return replace(start, word=word)

    def union_all(self, other: Frame) -> Frame:
        """The rows of both."""
        return self._and("UNION ALL", other)

    def union(self, other: Frame) -> Frame:
        """The rows of both, equal ones once."""
        return self._and("UNION", other)

    def intersect(self, other: Frame) -> Frame:
        """The rows that are in both, equal ones once."""
        return self._and("INTERSECT", other)

    def except_(self, other: Frame) -> Frame:
        """The rows that are not in the other, equal ones once."""
        return self._and("EXCEPT", other)

    def except_all(self, other: Frame) -> Frame:
        """The rows, less one for each equal one in the other."""
        return self._and("EXCEPT ALL", other)

    def _and(self, word: str, other: Frame) -> Frame:
        right = f"({other.sql()})" if other.whole else other.sql()
        return Frame("", name="query", whole=f"{self.sql()} {word} {right}", session=self.session)

    def pipe(self, step: Callable[..., Frame], *arguments: Any, **options: Any) -> Frame:
        """A step of your own: `frame.pipe(f, x)` is `f(frame, x)`."""
        return step(self, *arguments, **options)

    # ------------------------------------------------------------ the text

    def sql(self) -> str:
        """The query as window SQL."""
        if self.whole:
            return self.whole
        items = ", ".join(self.items if self.items is not None else self.keys or ("*",))
        given = f"{'DISTINCT ' if self.is_distinct else ''}{items}"
        return f"SELECT {f'{self.word}({given})' if self.word else given} {self._body}"

    def __str__(self) -> str:
        return self.sql()

    @property
    def _from(self) -> str:
        return f"{self.source}{self.window}{f' AS {quoted(self.name)}' if self.aliased else ''}"

    @property
    def _body(self) -> str:
        parts = [f"FROM {self._from}", *self.joins]
        parts += [f"WHERE {_all(self.conditions)}"] if self.conditions else []
        parts += [f"GROUP BY {', '.join(self.keys)}"] if self.keys else []
        parts += [f"HAVING {_all(self.having_)}"] if self.having_ else []
        parts += [f"QUALIFY {_all(self.qualified)}"] if self.qualified else []
        parts += [f"ORDER BY {', '.join(self.order)}"] if self.order else []
        parts += [f"LIMIT {self.count}"] if self.count is not None else []
        return ("\n" if self.joins else " ").join(parts)

    @property
    def _is_source(self) -> bool:
        """Whether it can stand in FROM as it is."""
        return not (self.joins or self.conditions or self._gives or self.is_grouped)

    @property
    def _gives(self) -> bool:
        """Whether it says already what it gives: what follows is about that."""
        return bool(self.items is not None or self.word or self.is_distinct or self.whole or self.count)

    @property
    def _open(self) -> Frame:
        """What can be told more of: itself, or a query on what it gives."""
        return self._nested() if self._gives else self

    def _nested(self) -> Frame:
        return Frame(f"({self.sql()})", name=self.name, aliased=True, session=self.session)

    # ------------------------------------------------------------ what can be done with it

    def query(
        self,
        name: str,
        sink: str | Callable[[pa.Table, int], None] | None = None,
        priority: int = 0,
        max_gap: int | None = None,
    ) -> Query:
        """Register it as a standing query."""
        return self._engine().query(name, self.sql(), sink=sink, priority=priority, max_gap=max_gap)

    def results(self) -> pa.Table:
        """Ask it once, about now."""
        return self._engine().select(self.sql())

    def explain(self) -> Explanation:
        """How it would run."""
        found: list[Explanation] = self._engine().sql(f"EXPLAIN {self.sql()}")
        return found[0]

    def _engine(self) -> Session:
        if self.session is None:
            raise QueryError(
                f"the frame of `{self.name}` belongs to no engine",
                code="no-engine",
                hint="begin it with w.from_(…), or give its text: w.query(name, frame.sql())",
            )
        return self.session


def _items(items: Sequence[Column | str], named: dict[str, Column | str]) -> tuple[str, ...]:
    plain = [item.item if isinstance(item, Column) else item for item in items]
    return (*plain, *(f"{sql(part)} AS {quoted(name)}" for name, part in named.items()))


def _all(conditions: Sequence[str]) -> str:
    return conditions[0] if len(conditions) == 1 else " AND ".join(f"({each})" for each in conditions)


def _partition(names: Names) -> list[str]:
    given = [names] if isinstance(names, str) else list(names)
    return [f"PARTITION BY {', '.join(map(quoted, given))}"] if given else []


def _length(length: Length) -> str:
    """A length of time as a window has it.

    >>> _length("5 minutes"), _length(60), _length(dt.timedelta(hours=2))
    ('5 minutes', '60', '7200000000 MICROSECONDS')
    """
    if isinstance(length, dt.timedelta):
        return f"{length // dt.timedelta(microseconds=1)} MICROSECONDS"
    return str(length)
