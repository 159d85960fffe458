"""Names and what they stand for: the columns of a FROM clause, under the aliases of their sources.

A column's name in the plan is `alias.column`, unique in the whole query. Names are found in any case.
A nested EXISTS sees the columns of the query around it, behind its own.
"""

from __future__ import annotations

from dataclasses import dataclass

from windrow.algebra import STRING, ColumnRef, Expression, Kind, Literal
from windrow.algebra.functions import call
from windrow.algebra.functions.refusals import CLOCK_WORDS, clock_refusal
from windrow.errors import QueryError, nearest
from windrow.language.syntax import Name
from windrow.language.tokens import mistake, refuse


@dataclass(frozen=True)
class NamedColumn:
    """A column that can be named, or a bound of a source's window. Pseudo columns are not part of `*`."""

    source: str
    name: str
    column: Expression
    pseudo: bool = False

    @property
    def full_name(self) -> str:
        return f"{self.source}.{self.name}"


@dataclass(frozen=True)
class Scope:
    """The columns that can be named here, in the order of FROM.

    >>> from windrow.algebra.types import INT
    >>> from windrow.language.syntax import Name
    >>> from windrow.errors import Span
    >>> scope = Scope(tuple(NamedColumn(name, "a", ColumnRef(f"{name}.a", INT)) for name in "ST"))
    >>> scope.resolve(Name(Span(0, 3), ("s", "A"))).name
    'S.a'
    >>> scope.resolve(Name(Span(0, 1), ("a",)))
    Traceback (most recent call last):
    windrow.errors.QueryError: `a` could be `S.a` or `T.a` (say which, as in S.a)
    """

    entries: tuple[NamedColumn, ...]
    outer: Scope | None = None

    @property
    def sources(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(entry.source for entry in self.entries))

    @property
    def plan_names(self) -> frozenset[str]:
        return frozenset(entry.column.name for entry in self.entries if isinstance(entry.column, ColumnRef))

    def find(self, parts: tuple[str, ...]) -> list[NamedColumn]:
        """The own columns that a written name could mean."""
        *qualifier, name = (part.lower() for part in parts)
        return [
            entry
            for entry in self.entries
            if entry.name.lower() == name and (not qualifier or [entry.source.lower()] == qualifier)
        ]

    def knows(self, name: Name) -> bool:
        own = bool(self.find(name.parts)) or self._field_of(name) is not None
        return own or (self.outer is not None and self.outer.knows(name))

    def _field_of(self, name: Name) -> Expression | None:
        """The field of a struct that a name with parts stands for."""
        for length in range(min(2, len(name.parts) - 1), 0, -1):
            found = self.find(name.parts[:length])
            if len(found) == 1 and found[0].column.type.kind is Kind.STRUCT:
                value = found[0].column
                for field in name.parts[length:]:
                    value = call("get_field", [value, Literal(field, STRING)])
                return value
        return None

    def resolve(self, name: Name) -> Expression:
        """The column a name stands for; the query around is asked if there is none here.

        Windows of one query that move together have the same bounds, so these are not told apart.
        """
        found = self.find(name.parts)
        one_bound = len({entry.column for entry in found}) == 1 and not isinstance(found[0].column, ColumnRef)
        if len(found) > 1 and not one_bound:
            candidates = " or ".join(f"`{entry.full_name}`" for entry in found)
            written, first = ".".join(name.parts), found[0].full_name
            refuse(
                name, f"`{written}` could be {candidates}", "ambiguous-column", f"say which, as in {first}"
            )
        if found:
            return found[0].column
        field = self._field_of(name)
        if field is not None:
            return field
        if self.outer is None or not self.outer.knows(name):
            only = [entry for entry in self.entries if not entry.pseudo]
            if len(only) == 1 and _is_of(only[0], name):
                return only[0].column
            raise self._unknown(name)
        if not self.outer.find(name.parts):
            refuse(
                name,
                f"`{'.'.join(name.parts)}` belongs to a query two levels around this EXISTS",
                "correlation-depth",
                "an EXISTS can only read the query right around it",
            )
        return self.outer.resolve(name)

    def of_source(self, qualifier: str | None) -> list[NamedColumn]:
        """What `*` or `alias.*` stands for."""
        return [
            entry
            for entry in self.entries
            if not entry.pseudo and (qualifier is None or entry.source.lower() == qualifier.lower())
        ]

    def _unknown(self, name: Name) -> QueryError:
        written = ".".join(name.parts)
        if len(name.parts) > 2:
            message, hint = f"`{written}` has too many parts", "write `column` or `alias.column`"
            return mistake(name, message, "unknown-column", hint)
        if len(name.parts) == 2 and not any(s.lower() == name.parts[0].lower() for s in self._all_sources):
            hint = nearest(name.parts[0], self._all_sources) or "FROM names the sources"
            message = f"nothing in FROM is called `{name.parts[0]}`"
            return mistake(name, message, "unknown-source", hint)
        own = [entry for entry in self.entries if len(name.parts) == 1 or _same(entry.source, name.parts[0])]
        unnamed = next((entry for entry in own if _is_of(entry, name)), None)
        near: str | None
        if written.lower() in _ELSEWHERE:
            near = f"write {_ELSEWHERE[written.lower()]}"
        elif written.lower() in CLOCK_WORDS:
            refused = clock_refusal(written.lower())
            refused.span = name.span
            return refused
        elif unnamed is not None:
            near = f"give it that name in the nested query: {unnamed.name} AS {name.parts[-1]}"
        else:
            near = nearest(name.parts[-1], [entry.name for entry in own])
        return mistake(name, f"no column `{written}`", "unknown-column", near)

    @property
    def _all_sources(self) -> tuple[str, ...]:
        return self.sources + (self.outer.sources if self.outer else ())


#: columns that other systems have by themselves
_ELSEWHERE = {
    "rowtime": "the windowing attribute of the stream; arrival_ts is when a row was stored",
    "windowstart": "window_start",
    "windowend": "window_end",
    "rownum": "row_num, which counts the rows of a stream; of an answer ROW_NUMBER() OVER (ORDER BY …)",
    "_rowid": "row_num, which counts the rows of a stream",
}


def _is_of(entry: NamedColumn, name: Name) -> bool:
    """Whether a column without a name of its own is a function of what is named: SUM(a) of a."""
    _, found, inside = entry.name.partition("(")
    return bool(found) and _same(inside.removesuffix(")"), name.parts[-1])


def _same(one: str, other: str) -> bool:
    return one.lower() == other.lower()
