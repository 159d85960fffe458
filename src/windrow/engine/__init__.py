"""The way of a query, put together: compile, optimise, run an epoch, commit, deliver.

explain      text becomes a plan, a better plan, and an explanation of it
engine       what is registered, and one epoch after the other
epoch        the next commit, being made
output       from the committed outbox to the sinks
loop         when epochs happen: batches that wait, ticks, stops
"""
