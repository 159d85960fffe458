"""All benchmarks: the modules of `windrow.bench.benchmarks`, by name."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from windrow.bench import benchmarks
from windrow.bench.benchmark import Benchmark


def all_benchmarks() -> dict[str, Benchmark]:
    """Every benchmark there is.

    >>> {"keys", "latency", "overlap", "queries", "start"} <= set(all_benchmarks())
    True
    """
    modules = (
        import_module(f"{benchmarks.__name__}.{each.name}") for each in iter_modules(benchmarks.__path__)
    )
    found: list[Benchmark] = [module.BENCHMARK for module in modules]
    return {each.name: each for each in found}
