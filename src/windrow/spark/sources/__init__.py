"""Where the rows of a stream come from: files, generators, Kafka, frames and tables.

Names are loaded when they are first used: `check_url` needs no Spark, and starting Spark needs no source.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from windrow.spark.sources.source import Bounded, Source

if TYPE_CHECKING:
    from windrow.spark.sources.check import check_url, is_bounded
    from windrow.spark.sources.data import infer_schema, open_data, open_url
    from windrow.spark.sources.inference import infer_columns

__all__ = [
    "Bounded",
    "Source",
    "check_url",
    "infer_columns",
    "infer_schema",
    "is_bounded",
    "open_data",
    "open_url",
]

#: where the names are that are loaded later
_HOMES = {
    "check_url": "windrow.spark.sources.check",
    "is_bounded": "windrow.spark.sources.check",
    "infer_columns": "windrow.spark.sources.inference",
    "infer_schema": "windrow.spark.sources.data",
    "open_data": "windrow.spark.sources.data",
    "open_url": "windrow.spark.sources.data",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module `windrow.spark.sources` has no attribute `{name}`")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
