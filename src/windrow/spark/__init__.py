"""Everything that touches Spark. No other part of Windrow imports pyspark.

Importing this package starts nothing and does not import pyspark: a session costs seconds, so it is
made only where it is asked for, by `windrow.spark.session.start_session`.
"""
