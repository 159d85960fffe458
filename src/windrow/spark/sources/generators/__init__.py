"""Streams made up on the spot: the rows are a pure function of the settings and the row number.

No part of this package knows Spark: a generator gives Arrow tables for a range of rows.

>>> from windrow.spark.sources.generators.generator import Settings
>>> from windrow.spark.sources.generators.registry import TRAFFIC
>>> whole = TRAFFIC.rows(Settings(), 0, 1000)
>>> whole.slice(300, 50).equals(TRAFFIC.rows(Settings(), 300, 350))
True
"""
