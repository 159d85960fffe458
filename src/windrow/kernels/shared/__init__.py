"""One state for many queries: what is kept once of a stream and a grouping, and how all are answered from it.

ledger     what is kept: sheets of intervals, in each the entries that queries need
lifting    rows of the stream -> states by interval and group, all entries at once
matrices   a sheet as dense matrices of intervals and groups; windows of any length from it
asking     what a query asks of a ledger
kernel     state, delta, clock -> next state, answers of all queries that are due
"""
