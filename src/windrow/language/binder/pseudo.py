"""Which pseudo columns a query reads, found in its text before its plan is made.

`row_num` and `arrival_ts` are columns of every stream, but a scan brings them along only for a query
that names them. A name in an EXISTS belongs to the query around it if its alias does.

`window_start` and `window_end`: facts of the extent an answer is about.

They are instants where the windows slide in time, and numbers where the attribute is a number or the
window counts rows.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, TypeAlias

from windrow.algebra.catalog import PSEUDO_COLUMNS, instant_type
from windrow.algebra.checks import window_bounds_are_defined
from windrow.algebra.expressions import WindowBound
from windrow.language import syntax
from windrow.language.binder.places import walk
from windrow.windows.domain import Domain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from windrow.algebra.plan import Plan, Window


@dataclass(frozen=True)
class Leaves:
    """The windows of a SELECT, before anything is made of them."""

    leaves: tuple[Window, ...]


def bounds_over(plan: Plan | Leaves) -> Callable[[str], WindowBound]:
    """What makes the bounds of the windows below."""

    def make(which: str) -> WindowBound:
        leaves = plan.leaves
        counted = any(leaf.spec.reports_positions for leaf in leaves)
        domains = {leaf.domain for leaf in leaves}
        domain = domains.pop() if len(domains) == 1 and not counted else Domain.NUMBER
        bound = WindowBound(which, instant_type(domain), domain.step)
        window_bounds_are_defined(plan, [bound])
        return bound

    return make


#: (alias or None, pseudo column), in small letters
Reads: TypeAlias = frozenset[tuple[str | None, str]]


def pseudo_reads(select: syntax.Select) -> Reads:
    """The pseudo columns named anywhere in a SELECT, with the alias they were named by."""
    found = set(_named(select))
    for part in parts(select):
        for node in walk(part):
            if isinstance(node, syntax.ExistsTest | syntax.InTest | syntax.ScalarQuery):
                found |= {(alias, name) for alias, name in _around(node.query) if alias is not None}
    return frozenset(found)


def pseudo_of(source: syntax.FromEntry, alias: str, reads: Reads) -> tuple[str, ...]:
    """Those that a source must bring, its own LIFETIME included."""
    if source.window is not None and source.window.lifetime is not None:
        reads |= frozenset(_names(source.window.lifetime))
    return tuple(name for name in PSEUDO_COLUMNS if (None, name) in reads or (alias.lower(), name) in reads)


def _around(query: syntax.QueryExpression) -> set[tuple[str | None, str]]:
    """What a nested query names that is not its own."""
    if isinstance(query, syntax.SetOperation):
        return _around(query.left) | _around(query.right)
    assert isinstance(query, syntax.Select)
    own = {(source.alias or source.name or "").lower() for source in query.sources}
    return {(alias, name) for alias, name in pseudo_reads(query) if alias is not None and alias not in own}


def _named(select: syntax.Select) -> Iterator[tuple[str | None, str]]:
    for part in parts(select):
        yield from _names(part)


def _names(part: syntax.Node) -> Iterator[tuple[str | None, str]]:
    for node in walk(part):
        if (
            isinstance(node, syntax.Name)
            and node.parts[-1].lower() in PSEUDO_COLUMNS
            and len(node.parts) <= 2
        ):
            alias = node.parts[0].lower() if len(node.parts) == 2 else None
            yield alias, node.parts[-1].lower()


def parts(select: syntax.Select) -> Iterator[syntax.Node]:
    """Everything but FROM."""
    for field in fields(select):
        value = getattr(select, field.name)
        for item in value if isinstance(value, tuple) else (value,):
            part = item[0] if isinstance(item, tuple) else item
            if isinstance(part, syntax.FromEntry):
                yield from part.on
            elif isinstance(part, syntax.Node):
                yield part
