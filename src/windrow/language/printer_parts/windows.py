"""Window specifications back to brackets, with names as they can stand in SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windrow.algebra.explain.brackets import bracket
from windrow.language.printer_parts.names import quoted

if TYPE_CHECKING:
    from collections.abc import Callable

    from windrow.algebra.plan import Window


def window_text(window: Window, names: Callable[[str], str]) -> str:
    """The bracket behind a stream or nested query."""
    streams = window.streams
    own = streams[0].wattr if streams else "at"
    return bracket(window.spec, window.domain, own, names, quoted)
