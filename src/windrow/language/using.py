"""JOIN … USING (k): a condition on the two sources, and `k` without a qualifier then means the left one."""

from __future__ import annotations

from dataclasses import dataclass, field

from windrow.errors import QueryError, Span
from windrow.language.syntax import Apply, Name, Node, SelectItem, Source, Star


@dataclass
class Using:
    """The columns that USING has merged in one SELECT, and the source each is read from."""

    owners: dict[str, str] = field(default_factory=dict)

    def condition(self, column: str, span: Span, sources: list[Source]) -> Node:
        """The condition that USING stands for; the last of the sources is the one that is joined."""
        right = _called(sources[-1], span)
        left = self.owners.get(column.lower())
        if left is None:
            if len(sources) != 2:
                raise QueryError(
                    f"USING does not say whose `{column}` it is",
                    code="bad-using",
                    span=span,
                    hint=f"write ON a.{column} = {right}.{column}",
                )
            left = self.owners[column.lower()] = _called(sources[0], span)
        return Apply(span, "=", (Name(span, (left, column)), Name(span, (right, column))))

    def resolve(self, name: Name) -> Name:
        """The name, qualified if USING has merged it."""
        owner = self.owners.get(name.parts[0].lower()) if len(name.parts) == 1 else None
        return Name(name.span, (owner, *name.parts)) if owner else name

    def refuse_star(self, items: tuple[SelectItem, ...]) -> None:
        """`*` would give the merged columns twice."""
        for item in items:
            if self.owners and isinstance(item.expression, Star) and item.expression.qualifier is None:
                raise QueryError(
                    "`*` after USING would give the joined columns twice",
                    code="bad-using",
                    span=item.span,
                    hint="name the columns, or write ON",
                )


def _called(source: Source, span: Span) -> str:
    name = source.alias or source.name
    if name is None:
        raise QueryError(
            "USING needs names on both sides",
            code="bad-using",
            span=span,
            hint="give the nested query an alias",
        )
    return name
