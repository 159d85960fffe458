"""The select list: `*` expanded, aliases looked up, output names made unique.

An output is called by its alias, else by its column's own name, else by its text. Columns of several
sources that would have one name, from `*` or written without an alias, are called `alias_column`
instead, numbered if even that is taken, so that `SELECT *` of a join always works:

    SELECT * FROM s […], t […]      both with columns a, b      →  s_a, s_b, t_a, t_b

Any other two outputs of one name are a mistake.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from windrow.errors import nearest
from windrow.language.binder import constants, expressions, names
from windrow.language.binder.scope import NamedColumn, Scope
from windrow.language.syntax import Name, Node, SelectItem, Star, rebuilt
from windrow.language.tokens import refuse


@dataclass(frozen=True)
class Item:
    """One output: its expression, its alias, and the column it is, if it is a plain one."""

    node: Node
    alias: str | None = None
    column: NamedColumn | None = None
    from_star: bool = False

    @property
    def label(self) -> str:
        return self.alias or (self.column.name if self.column else names.describe(self.node))

    @property
    def key(self) -> str:
        return self.label.lower()


@dataclass(frozen=True)
class SelectList:
    """All outputs of a SELECT."""

    items: tuple[Item, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The output names, unique in any case."""
        written = Counter(item.key for item in self.items if not item.from_star)
        count = Counter(item.key for item in self.items)
        for key in (key for key, times in written.items() if times > 1):
            _refuse_unless_columns([item for item in self.items if item.key == key and not item.from_star])
        # the plain columns that cannot have their own name
        meeting = {item for item in self.items if (count if item.from_star else written)[item.key] > 1}
        used = {item.key for item in self.items if item not in meeting}
        names: list[str] = []
        for item in self.items:
            names.append(_after_source(item, used) if item in meeting else item.label)
            used.add(names[-1].lower())
        return tuple(names)

    def aliased(self, name: Name) -> Node | None:
        """The expression that an alias stands for."""
        if len(name.parts) > 1:
            return None
        wanted = name.parts[0].lower()
        return next((item.node for item in self.items if item.alias and item.alias.lower() == wanted), None)

    def dereferenced(self, node: Node, columns_win: Scope | None = None) -> Node:
        """A key of GROUP BY or ORDER BY, or a condition of HAVING, with positions and aliases replaced.

        In ORDER BY aliases win over columns, elsewhere columns over aliases.
        """
        position = constants.whole_number(node)
        if position is None:
            return self.without_aliases(node, columns_win)
        if not 1 <= position <= len(self.items):
            count = len(self.items)
            refuse(
                node,
                f"there is no output {position} in a select list of {count}",
                "bad-position",
                "positions count from 1",
            )
        return self.items[position - 1].node

    def without_aliases(self, node: Node, columns_win: Scope | None = None) -> Node:
        if isinstance(node, Name):
            if columns_win is not None and columns_win.knows(node):
                return node
            return self.aliased(node) or node
        return rebuilt(node, lambda part: self.without_aliases(part, columns_win))


def expand(written: tuple[SelectItem, ...], scope: Scope) -> SelectList:
    """The select list with every `*` replaced by the columns it stands for, and names given before."""
    items: list[Item] = []
    for item in written:
        if isinstance(item.expression, Star):
            items += _columns(item.expression, item.alias, scope)
        else:
            meant = _with_names_before(SelectList(tuple(items)), item.expression, scope)
            alias = item.alias
            if alias is None and isinstance(item.expression, Name) and meant is not item.expression:
                alias = item.expression.parts[-1]  # an alias that is selected again is called so again
            items.append(Item(meant, alias, _plain_column(item, scope)))
    return SelectList(tuple(items))


def _with_names_before(before: SelectList, node: Node, scope: Scope) -> Node:
    """An expression that may read the outputs before it; columns and bounds of windows go first."""
    if isinstance(node, Name):
        own = scope.knows(node) or expressions.is_bound(node)
        return node if own else before.aliased(node) or node
    return rebuilt(node, lambda part: _with_names_before(before, part, scope))


def _plain_column(item: SelectItem, scope: Scope) -> NamedColumn | None:
    if item.alias is not None or not isinstance(item.expression, Name):
        return None
    found = scope.find(item.expression.parts)
    return found[0] if len(found) == 1 else None


def _columns(star: Star, alias: str | None, scope: Scope) -> list[Item]:
    if alias is not None:
        refuse(star, "`*` stands for many columns and takes no alias", "star-alias", "name the columns")
    found = scope.of_source(star.qualifier)
    if not found:
        sources = ", ".join(f"`{source}`" for source in scope.sources)
        refuse(star, f"nothing in FROM is called `{star.qualifier}`", "unknown-source", f"FROM has {sources}")
    left_out = [_only(name.parts[-1], name, found) for name in star.without]
    instead = {_only(item.alias or "", item, found): item for item in star.instead}
    return [
        Item(instead[entry].expression, instead[entry].alias)
        if entry in instead
        else Item(Name(star.span, (entry.source, entry.name)), None, entry, from_star=True)
        for entry in found
        if entry not in left_out
    ]


def _only(name: str, at: Node, found: Sequence[NamedColumn]) -> NamedColumn:
    """The one column of `*` that EXCEPT or REPLACE names."""
    same = [entry for entry in found if entry.name.lower() == name.lower()]
    if isinstance(at, Name) and len(at.parts) > 1:
        same = [entry for entry in same if entry.source.lower() == at.parts[-2].lower()]
    if len(same) != 1:
        what = "no column" if not same else "more than one column"
        known = nearest(name, [entry.name for entry in found])
        hint = known if not same else f"write {same[0].source}.{name}"
        refuse(at, f"`*` has {what} `{name}`", "unknown-column", hint)
    return same[0]


def _after_source(item: Item, used: set[str]) -> str:
    assert item.column is not None
    name = f"{item.column.source}_{item.column.name}"
    candidates = [name, *(f"{name}_{number}" for number in range(2, len(used) + 3))]
    return next(candidate for candidate in candidates if candidate.lower() not in used)


def _refuse_unless_columns(same: list[Item]) -> None:
    """Written outputs may share a name only if they are columns of different sources."""
    columns = {item.column for item in same}
    if None in columns or len(columns) < len(same):
        message = f"two outputs are called `{same[0].label}`"
        refuse(same[1].node, message, "duplicate-column", "rename one with AS")
