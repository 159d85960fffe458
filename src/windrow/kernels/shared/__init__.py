"""One state for many queries: what is kept once of a stream and a grouping, and how all are answered from it.

shared_state   what is kept: grids of panes, in each the entries that queries need; an epoch's clock, and who
asks value_counts   what has no constant size: counts of values, cells of sketches, lists of frequent values
request        what a query asks of a shared state kernel         state, delta, clock -> next state, answers
of all queries that are due
"""
