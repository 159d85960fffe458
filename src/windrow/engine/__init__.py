"""The way of a query, put together: compile, optimise, run an epoch, commit, deliver.

explaining   text becomes a plan, a better plan, and an explanation of it
core         what is registered, and one epoch after the other
draft        the next commit, being made
delivering   from the committed outbox to the sinks
loop         when epochs happen: batches that wait, ticks, stops
connection   the Python API
"""

from windrow.engine.explaining import (
    Declared,
    declared,
    explain,
    explain_plan,
    explain_script,
)

__all__ = ["Declared", "declared", "explain", "explain_plan", "explain_script"]
