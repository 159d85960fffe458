"""Windrow: fresh answers of standing queries over sliding windows of streams.

>>> import windrow as wr
>>> plan = wr.explain("SELECT ISTREAM(a) FROM s [RANGE 5 SECONDS]", streams={"s": "a BIGINT, ts TIMESTAMP"})
>>> plan.word, plan.final
('ISTREAM', 'a change, when the clock has passed its instant')

Names are loaded when they are first used, so that `import windrow` is quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from windrow.errors import DataError, QueryError, SinkError, SourceError, StateError, WindrowError

if TYPE_CHECKING:
    from windrow.algebra.aggregates.declare import aggregate
    from windrow.algebra.values import Change
    from windrow.engine.explain import explain
    from windrow.frame import Frame, from_
    from windrow.session import Windrow, connect

__all__ = [
    "Change",
    "DataError",
    "Frame",
    "QueryError",
    "SinkError",
    "SourceError",
    "StateError",
    "Windrow",
    "WindrowError",
    "aggregate",
    "connect",
    "explain",
    "from_",
]

#: where the names are that are loaded later
_HOMES = {
    "Change": "windrow.algebra.values",
    "Frame": "windrow.frame",
    "Windrow": "windrow.session",
    "aggregate": "windrow.algebra.aggregates.declare",
    "connect": "windrow.session",
    "explain": "windrow.engine.explain",
    "from_": "windrow.frame",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module `windrow` has no attribute `{name}`")
    return getattr(import_module(_HOMES[name]), name)


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext windrow`: cells that begin with `%%windrow` are statements."""
    import_module("windrow.notebook").register(shell)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
