"""What the benchmarks of the papers' own experiments do, on kernels alone.

They are apart from `benchmarks.suite`, whose modules are read to know their options and so load
little.

    steps.py         any query, step by step, with its state as a value
    extents.py       sliding aggregates three ways: panes, no panes, a buffer
    arrivals.py      rows out of order, their moments, and what is answered when
    connections.py   rows of network links
    join_streams.py  streams of known rates and values
    costs.py         tables and charts
"""
