"""Columns: values of our types in Arrow and polars, and expressions and functions on whole columns."""
