"""All benchmarks: the modules of `benchmarks.suite`, by name."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from benchmarks import suite
from benchmarks.benchmark import Benchmark


def all_benchmarks() -> dict[str, Benchmark]:
    """Every benchmark there is.

    >>> {"keys", "latency", "overlap", "queries", "start"} <= set(all_benchmarks())
    True
    """
    modules = (import_module(f"{suite.__name__}.{each.name}") for each in iter_modules(suite.__path__))
    found: list[Benchmark] = [module.BENCHMARK for module in modules]
    return {each.name: each for each in found}
