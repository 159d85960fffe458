"""One benchmark per module, each with a `BENCHMARK`; `windrow.bench.registry` finds them."""
