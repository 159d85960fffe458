"""One benchmark per module, each with a `BENCHMARK`; `benchmarks.registry` finds them."""
