"""Functions of text that NULL does not always make NULL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windrow.algebra.functions.values.base import Value
from windrow.algebra.functions.values.strings import locate

if TYPE_CHECKING:
    from windrow.algebra.expressions import Call
    from windrow.reference.functions.base import Compiled, Lazy, Row, WindowContext


def _locate(_: Call, args: tuple[Compiled, ...]) -> Compiled:
    """Where a text stands, from a position on. A NULL position finds nothing, as in Hive."""

    def evaluate(row: Row, window: WindowContext | None) -> Value:
        position = args[2](row, window) if len(args) > 2 else 1
        if position is None:
            return 0
        wanted, text = args[0](row, window), args[1](row, window)
        return None if wanted is None or text is None else locate(wanted, text, position)

    return evaluate


def _concat_ws(_: Call, args: tuple[Compiled, ...]) -> Compiled:
    separator, *texts = args

    def evaluate(row: Row, window: WindowContext | None) -> Value:
        between = separator(row, window)
        if between is None:
            return None
        values = [text(row, window) for text in texts]
        return between.join(value for value in values if value is not None)

    return evaluate


LAZY: dict[str, Lazy] = {"locate": _locate, "concat_ws": _concat_ws}
