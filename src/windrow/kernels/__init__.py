"""Kernels: stateful operators as pure functions over Arrow tables. No Spark, no files, no clock."""
