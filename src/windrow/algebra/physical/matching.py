"""Joins, EXISTS and differences: what finds the partners of a row, and how results expire."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windrow.algebra.expressions import Call, Expression, conjuncts
from windrow.algebra.functions.printing import to_sql
from windrow.algebra.patterns import Pattern
from windrow.algebra.physical.layouts import Implementation, Layout, Physical
from windrow.algebra.physical.reading import Around, kept

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windrow.algebra.operators import Except, Exists, Join
    from windrow.algebra.plan import Plan


def join(node: Join, around: Around) -> Physical:
    """⋈: a hash index per input on the equalities; nested loops where there are none.

    Rows of count-based windows expire in the order of their own window only, so a result is found by the
    expiry of any of its parts: a catalogue per input (Patroumpas and Sellis, 4.4).
    """
    keys = equalities(node.predicate, node.inputs)
    how = Implementation.HASH_JOIN if keys else Implementation.LOOP_JOIN
    if node.label.pattern is Pattern.STR and not around.why_unread:
        why = "a result expires with any of its parts, and which comes first is not known"
        return Physical(how, Layout.CATALOGUES, why, _by(keys))
    return kept(how, node.label, around, _by(keys))


def match(node: Exists, around: Around) -> Physical:
    """EXISTS and NOT EXISTS: rows of the left side with, or without, a partner on the right."""
    keys = equalities(node.predicate, (node.left, node.right))
    how = Implementation.HASH_MATCH if keys else Implementation.LOOP_MATCH
    if node.negated:
        return _withdrawing(how, (node.left, node.right), _by(keys))
    return kept(how, node.label, around, _by(keys))


def difference(node: Except, around: Around) -> Physical:
    """EXCEPT ALL."""
    return _withdrawing(Implementation.DIFFERENCE, (node.left, node.right))


def _withdrawing(how: Implementation, sides: Sequence[Plan], by: str = "") -> Physical:
    """Results leave on time, or early when a partner comes: few should be early (thesis, 3.5.2)."""
    if any(side.label.pattern is Pattern.STR for side in sides):
        why = "an input expires unpredictably, so every expiry is a negative row"
        return Physical(how, Layout.HASH, why, by)
    why = "results expire on time, unless a match comes first"
    return Physical(how, Layout.CALENDAR_NEGATIVE, why, by)


def equalities(predicate: Expression, inputs: Sequence[Plan]) -> tuple[Expression, ...]:
    """The conjuncts that equate a value of one input with a value of another."""
    names = [frozenset(part.schema.names) for part in inputs]

    def homes(side: Expression) -> set[int]:
        return {place for place, known in enumerate(names) if side.columns & known}

    def relates(part: Expression) -> bool:
        if not isinstance(part, Call) or part.function != "=":
            return False
        left, right = (homes(side) for side in part.args)
        return len(left) == len(right) == 1 and left != right

    return tuple(part for part in conjuncts(predicate) if relates(part))


def _by(keys: Sequence[Expression]) -> str:
    return "on " + " AND ".join(to_sql(key, str) for key in keys) if keys else "as there is no equality"
