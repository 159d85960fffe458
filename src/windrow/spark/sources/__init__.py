"""Where the rows of a stream come from: files, generators, Kafka, frames and tables.

Names are loaded when they are first used: `check_url` needs no Spark, and starting Spark needs no source.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from windrow.spark.sources.source import Bounded, Source
from windrow.spark.sources.urls import check_url, is_bounded

if TYPE_CHECKING:
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
_HOMES = {"infer_columns": "inference", "infer_schema": "data", "open_data": "data", "open_url": "data"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module `windrow.spark.sources` has no attribute `{name}`")
    return getattr(import_module(f"windrow.spark.sources.{_HOMES[name]}"), name)
