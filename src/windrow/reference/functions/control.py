"""Logic and choices: arguments are computed in order and only as far as needed, as Spark does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windrow.algebra.functions.values.base import Value

if TYPE_CHECKING:
    from windrow.algebra.expressions import Call
    from windrow.reference.functions.base import Compiled, Lazy, Row, WindowContext


def _connective(decisive: bool) -> Lazy:
    """AND is decided by the first FALSE, OR by the first TRUE; NULL means that it is not known."""

    def build(_: Call, args: tuple[Compiled, ...]) -> Compiled:
        left, right = args

        def evaluate(row: Row, window: WindowContext | None) -> Value:
            first = left(row, window)
            if first is decisive:
                return decisive
            second = right(row, window)
            if second is decisive:
                return decisive
            return None if first is None or second is None else not decisive

        return evaluate

    return build


def _is_null(_: Call, args: tuple[Compiled, ...]) -> Compiled:
    return lambda row, window: args[0](row, window) is None


def _is_not_null(_: Call, args: tuple[Compiled, ...]) -> Compiled:
    return lambda row, window: args[0](row, window) is not None


def _case(_: Call, args: tuple[Compiled, ...]) -> Compiled:
    branches = tuple(zip(args[::2], args[1::2], strict=False))
    otherwise = args[-1] if len(args) % 2 else lambda row, window: None

    def evaluate(row: Row, window: WindowContext | None) -> Value:
        for condition, value in branches:
            if condition(row, window):
                return value(row, window)
        return otherwise(row, window)

    return evaluate


def _coalesce(_: Call, args: tuple[Compiled, ...]) -> Compiled:
    def evaluate(row: Row, window: WindowContext | None) -> Value:
        for arg in args:
            value = arg(row, window)
            if value is not None:
                return value
        return None

    return evaluate


def _array(_: Call, args: tuple[Compiled, ...]) -> Compiled:
    return lambda row, window: tuple(arg(row, window) for arg in args)


def _named_struct(_: Call, args: tuple[Compiled, ...]) -> Compiled:
    return lambda row, window: tuple(arg(row, window) for arg in args[1::2])


LAZY: dict[str, Lazy] = {
    "array": _array,
    "named_struct": _named_struct,
    "and": _connective(False),
    "or": _connective(True),
    "is_null": _is_null,
    "is_not_null": _is_not_null,
    "case": _case,
    "if": _case,
    "coalesce": _coalesce,
}
