"""Theory that the benchmarks of the papers need, and the engine does not.

isolation/     histories of reads and updates, their serialisation graphs, and a scheduler of both
scheduling/    the thesis' techniques for refreshing groups of queries, and a simulation of them
synopsis.py    the basic interval synopsis, on which the costs of refreshes are measured
"""
