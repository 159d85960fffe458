"""Measuring Windrow against others: same rows, same answers, side by side, in one run.

    benchmark.py     what a benchmark is, and what it finds
    registry.py      all of them: the modules of `suite/`
    setting.py       where one runs: directories, Spark, how many rounds
    workload.py      rows on disk, made once
    contestants/     those who answer, one per file
    rounds.py        alternating rounds, and the first one discarded
    checks.py        whether the answers agree
    statistics.py    medians, spread, ratios
    targets.py       what is to be reached, and whether it is
    table.py, chart.py, plot.py, docs.py    what a reader sees
    report.py        all of it, as JSON
    running.py       the way from options to a report
    command.py       the command line: what follows `windrow bench`
    studies/         the experiments of the papers, on kernels alone
    theory/          what only these need: serialisation graphs, scheduling techniques, simulations

It is not in the wheel; `windrow bench` finds it in a checkout of the repository.
To add a benchmark, put a module into `suite/` that has a `BENCHMARK`; nothing else has to know of it.
"""
