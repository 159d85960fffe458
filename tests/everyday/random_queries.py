"""Random queries in everyday SQL, as text: what a user would write over windows, and what a database reads.

Joins of all kinds, IN and NOT IN, EXISTS, comparisons with a query, set operations, ranks, QUALIFY, OVER,
UNNEST and groups stand inside one another. Every stream in FROM is an occurrence with its own window: for
a database it is a table of what that window holds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

STREAM_NAMES = ("l", "r", "m")
JOINS = ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")
SETS = ("UNION", "UNION ALL", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL")
#: the forms that tests hold to be drawn
FORMS = frozenset(
    (
        *JOINS,
        *SETS,
        *("IN", "NOT IN", "EXISTS", "NOT EXISTS", "scalar", "RANK", "DENSE_RANK"),
        *("QUALIFY", "OVER (PARTITION BY)", "UNNEST", "DISTINCT"),
    )
)


@dataclass(frozen=True)
class Occurrence:
    """A stream in FROM, under the name of its place."""

    alias: str
    stream: str


@dataclass(frozen=True)
class RandomQuery:
    """A text with a place for each occurrence, `{t1}`."""

    text: str
    occurrences: tuple[Occurrence, ...]
    forms: frozenset[str]

    def over(self, windows: dict[str, str]) -> str:
        """With a source for each occurrence, by its alias: a stream under a window."""
        return self.text.format_map(windows)

    @property
    def over_tables(self) -> str:
        """Over tables that are called as the occurrences are."""
        return self.text.format_map({each.alias: each.alias for each in self.occurrences})


@dataclass
class QueryDrawer:
    """Draws texts with a generator of random numbers: one draw of Hypothesis instead of hundreds."""

    random: Random
    occurrences: list[Occurrence] = field(default_factory=list)
    forms: set[str] = field(default_factory=set)
    count: int = 0

    def query(self) -> RandomQuery:
        text = self.relation(self.pick([0, 1, 1, 2]))
        return RandomQuery(text, tuple(self.occurrences), frozenset(self.forms))

    def pick(self, choices: Any) -> Any:
        return self.random.choice(list(choices))

    def chance(self, of: float) -> bool:
        return self.random.random() < of

    def name(self, letter: str) -> str:
        self.count += 1
        return f"{letter}{self.count}"

    def says(self, form: str) -> str:
        self.forms.add(form)
        return form

    # Relations of two numbers, `a` and `b`.

    def relation(self, depth: int) -> str:
        if depth > 0 and self.chance(0.25):
            word = self.says(self.pick(SETS))
            return f"({self.relation(depth - 1)}) {word} ({self.relation(depth - 1)})"
        source, columns = self.sources(depth)
        where = " AND ".join(self.condition(columns, depth) for _ in range(self.pick([0, 0, 1, 1, 2])))
        body = f"FROM {source}" + (f" WHERE {where}" if where else "")
        shapes = [self.plain, self.plain, self.grouped, self.of_all, self.ranked, self.beside_groups]
        return str(self.pick(shapes)(body, columns))

    def plain(self, body: str, columns: list[str]) -> str:
        distinct = self.says("DISTINCT") + " " if self.chance(0.2) else ""
        a, b = self.pick(columns), self.pick(columns)
        value = self.pick([b, b, f"{b} + 1", f"COALESCE({b}, {a})", f"CASE WHEN {a} > 0 THEN {b} END"])
        return f"SELECT {distinct}{a} AS a, {value} AS b {body}"

    def grouped(self, body: str, columns: list[str]) -> str:
        key = self.pick(columns)
        having = " HAVING COUNT(*) > 1" if self.chance(0.3) else ""
        return f"SELECT {key} AS a, {self.aggregate(columns)} AS b {body} GROUP BY {key}{having}"

    def of_all(self, body: str, columns: list[str]) -> str:
        """Where there is nothing to count a standing query has no row, hence HAVING for the database."""
        both = f"{self.aggregate(columns)} AS a, {self.aggregate(columns)} AS b"
        return f"SELECT {both} {body} HAVING COUNT(*) > 0"

    def aggregate(self, columns: list[str]) -> str:
        column, other = self.pick(columns), self.pick(columns)
        choices = [
            "COUNT(*)",
            f"COUNT({column})",
            f"COUNT(DISTINCT {column})",
            f"SUM({column})",
            f"MIN({column})",
            f"MAX({column})",
            f"COUNT(*) FILTER (WHERE {column} > {other})",
            f"BIT_OR({column})",
            f"CAST(BOOL_AND({column} > 0) AS INT)",
        ]
        return str(self.pick(choices))

    def ranked(self, body: str, columns: list[str]) -> str:
        kind, name = self.says(self.pick(["RANK", "DENSE_RANK"])), self.name("p")
        partition = f"PARTITION BY {self.pick(columns)} " if self.chance(0.6) else ""
        keys = [f"{self.pick(columns)}{self.pick(['', ' DESC'])}" for _ in range(self.pick([1, 2]))]
        over = f"{kind}() OVER ({partition}ORDER BY {', '.join(keys)}) AS {name}"
        rank = f"SELECT {self.pick(columns)} AS a, {over} {body}"
        if self.chance(0.4):
            rank = f"{rank} {self.says('QUALIFY')} {name} <= {self.pick([1, 2])}"
        where = f" WHERE q.{name} <= 2" if self.chance(0.3) else ""
        return f"SELECT q.a, q.{name} AS b FROM ({rank}) AS q{where}"

    def beside_groups(self, body: str, columns: list[str]) -> str:
        self.says("OVER (PARTITION BY)")
        partition = f"PARTITION BY {self.pick(columns)}" if self.chance(0.7) else ""
        value = f"{self.pick(['SUM', 'COUNT', 'MAX'])}({self.pick(columns)}) OVER ({partition})"
        return f"SELECT {self.pick(columns)} AS a, {value} AS b {body}"

    # FROM.

    def sources(self, depth: int) -> tuple[str, list[str]]:
        text, columns = self.source(depth)
        for _ in range(self.pick([0, 0, 1, 1, 2])):
            other, more = self.source(depth - 1)
            text = f"{text} {self.says(self.pick(JOINS))} {other} ON {self.on(columns, more)}"
            columns = columns + more
        if self.chance(0.15):
            self.says("UNNEST")
            alias = self.name("u")
            array = f"UNNEST(ARRAY[{self.pick(columns)}, {self.pick(columns)}]) AS {alias}(e)"
            text += f" LEFT JOIN {array} ON TRUE" if self.chance(0.5) else f" CROSS JOIN {array}"
            columns = [*columns, f"{alias}.e"]
        return text, columns

    def source(self, depth: int) -> tuple[str, list[str]]:
        if depth > 0 and self.chance(0.4):
            alias = self.name("q")
            return f"({self.relation(depth - 1)}) AS {alias}", [f"{alias}.a", f"{alias}.b"]
        return self.occurrence()

    def occurrence(self) -> tuple[str, list[str]]:
        alias = self.name("t")
        self.occurrences.append(Occurrence(alias, self.pick(STREAM_NAMES)))
        return f"{{{alias}}}", [f"{alias}.k", f"{alias}.v"]

    def on(self, left: list[str], right: list[str]) -> str:
        first = f"{self.pick(left)} {self.pick(['=', '=', '=', '<'])} {self.pick(right)}"
        a, b = self.pick(left), self.pick(right)
        more = self.pick([f"{a} > 0", f"{b} < 2", f"{a} <= {b}"])
        return f"{first} AND {more}" if self.chance(0.3) else first

    # WHERE.

    def condition(self, columns: list[str], depth: int) -> str:
        column, other = self.pick(columns), self.pick(columns)
        match self.pick(["compare", "null", "columns", "in", "in", "exists", "scalar", "pair"]):
            case "compare":
                return f"{column} {self.pick(['>', '<>', '<='])} {self.pick([0, 1, 2])}"
            case "null":
                return f"{column} IS {self.pick(['', 'NOT '])}NULL"
            case "columns":
                return f"({column} = {other} OR {column} > 1)"
            case "in":
                word = self.says(self.pick(["IN", "NOT IN"]))
                return f"{column} {word} ({self.one_column(columns, depth)})"
            case "exists":
                word = self.says(self.pick(["EXISTS", "NOT EXISTS"]))
                text, inner = self.occurrence()
                test = f"{self.pick(inner)} {self.pick(['=', '<'])} {column}"
                return f"{word} (SELECT 1 FROM {text} WHERE {test})"
            case "scalar":
                self.says("scalar")
                text, inner = self.occurrence()
                where = f" WHERE {self.pick(inner)} = {other}" if self.chance(0.3) else ""
                value = f"{self.pick(['MAX', 'MIN', 'SUM', 'COUNT'])}({self.pick(inner)})"
                query = f"SELECT {value} FROM {text}{where} HAVING COUNT(*) > 0"
                return f"{column} {self.pick(['>=', '<', '='])} ({query})"
        self.says("IN")
        text, inner = self.occurrence()
        return f"({column}, {other}) IN (SELECT {', '.join(inner)} FROM {text})"

    def one_column(self, columns: list[str], depth: int) -> str:
        if depth > 0 and self.chance(0.3):
            alias = self.name("q")
            return f"SELECT {alias}.a FROM ({self.relation(depth - 1)}) AS {alias}"
        text, inner = self.occurrence()
        where = self.pick(["", f" WHERE {inner[0]} > 0", f" WHERE {inner[0]} = {self.pick(columns)}"])
        return f"SELECT {inner[1]} FROM {text}{where}"


#: in Berlin clocks are put forward in the night to 2024-03-31, a Sunday
_DAY = 86_400_000_000
SPRING = 19_811 * _DAY
#: instants of streams of time are so far apart
STEP = _DAY // 4


class WindowDrawer:
    """Windows of all kinds for the streams of a query, over numbers or times around a change of clocks."""

    def __init__(self, random: Random, *, times: bool) -> None:
        self.random = random
        self.times = times
        #: all windows slide, or any do
        self.periodic = random.random() < 0.5

    def source(self, occurrence: Occurrence) -> str:
        drawn = self.random.choice(self.periodic_forms() + ([] if self.periodic else self.other_forms()))
        if drawn.startswith("["):
            return f"{occurrence.stream} {drawn} AS {occurrence.alias}"
        function = drawn.replace("STREAM", f"TABLE {occurrence.stream}", 1)
        if self.periodic:
            return f"{function} AS {occurrence.alias}"
        return f"(SELECT * FROM {function}) AS {occurrence.alias}"

    def length(self, least: int = 1, most: int = 8) -> str:
        return self.of(self.random.randint(least, most))

    def of(self, number: int) -> str:
        return f"INTERVAL '{6 * number}' HOUR" if self.times else str(number)

    def periodic_forms(self) -> list[str]:
        step, parts = self.random.randint(1, 3), self.random.randint(1, 4)
        forms = [
            f"[RANGE {self.length()} SLIDE {self.length(1, 5)}]",
            f"[RANGE {self.length()} SLIDE {self.length(1, 5)} LAG {self.length(1, 4)}]",
            f"[LANDMARK SLIDE {self.length(1, 5)}]",
            f"[CUMULATE {self.of(step * parts)} SLIDE {self.of(step)}]",
            f"TUMBLE(STREAM, DESCRIPTOR(n), {self.length(1, 5)})",
            f"TUMBLE(STREAM, DESCRIPTOR(n), {self.length(2, 5)}, {self.of(1)})",
            f"HOP(STREAM, DESCRIPTOR(n), {self.length(1, 4)}, {self.length(2, 8)})",
            f"CUMULATE(STREAM, DESCRIPTOR(n), {self.of(step)}, {self.of(step * parts)}, {self.of(1)})",
        ]
        return forms + (self.calendar_forms() * 2 if self.times else [])

    def calendar_forms(self) -> list[str]:
        zone = self.random.choice(["Europe/Berlin", "America/New_York", "UTC"])
        days = self.random.randint(1, 2)
        return [
            f"[RANGE {self.random.randint(1, 3)} DAYS SLIDE {days} DAY ZONE '{zone}']",
            f"[RANGE 18 HOURS SLIDE {days} DAY ZONE '{zone}']",
            f"[RANGE 1 MONTH SLIDE {days} DAY ZONE '{zone}']",
            f"[RANGE 1 DAY SLIDE 1 DAY ORIGIN '02:30' ZONE '{zone}']",
        ]

    def other_forms(self) -> list[str]:
        gap, rows = self.length(1, 4), self.random.randint(1, 5)
        return [
            f"[RANGE {self.length()}]",
            f"[RANGE {self.length()}]",
            f"[RANGE {self.length()} LAG {self.length(1, 4)}]",
            f"[ROWS {rows}]",
            f"[ROWS {rows} PARTITION BY k]",
            f"[ROWS {rows + 1} SLIDE 2 ROWS]",
            f"[ROWS {rows} SLIDE {self.length(1, 4)}]",
            f"[SESSION {gap} PARTITION BY k]",
            f"[SESSION {gap} INCLUSIVE]",
            "[UNBOUNDED]",
            "[NOW]",
        ]
