"""Comparisons that see NULL, or stop when the answer is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windrow.algebra.functions.values.base import Value
from windrow.algebra.functions.values.comparison import equality, less

if TYPE_CHECKING:
    from collections.abc import Callable

    from windrow.algebra.expressions import Call
    from windrow.algebra.types import DataType
    from windrow.reference.functions.base import Compiled, Lazy, Row, WindowContext


def _null_safe(call: Call, args: tuple[Compiled, ...]) -> Compiled:
    same = equality(call.args[0].type)
    left, right = args

    def evaluate(row: Row, window: WindowContext | None) -> bool:
        a, b = left(row, window), right(row, window)
        return a is b if a is None or b is None else same(a, b)

    return evaluate


def _in(call: Call, args: tuple[Compiled, ...]) -> Compiled:
    same = equality(call.args[0].type)
    value, *items = args

    def evaluate(row: Row, window: WindowContext | None) -> bool | None:
        wanted = value(row, window)
        if wanted is None:
            return None
        unknown = False
        for item in items:
            found = item(row, window)
            if found is None:
                unknown = True
            elif same(wanted, found):
                return True
        return None if unknown else False

    return evaluate


def _extremum(better: Callable[[DataType], Callable[[Value, Value], bool]]) -> Lazy:
    def build(call: Call, args: tuple[Compiled, ...]) -> Compiled:
        beats = better(call.type)

        def evaluate(row: Row, window: WindowContext | None) -> Value:
            best = None
            for arg in args:
                value = arg(row, window)
                if value is not None and (best is None or beats(value, best)):
                    best = value
            return best

        return evaluate

    return build


def _greater_than(kind: DataType) -> Callable[[Value, Value], bool]:
    below = less(kind)
    return lambda a, b: below(b, a)


def _isnan(_: Call, args: tuple[Compiled, ...]) -> Compiled:
    def evaluate(row: Row, window: WindowContext | None) -> bool:
        value = args[0](row, window)
        return value is not None and value != value

    return evaluate


LAZY: dict[str, Lazy] = {
    "<=>": _null_safe,
    "in": _in,
    "greatest": _extremum(_greater_than),
    "least": _extremum(less),
    "isnan": _isnan,
}
