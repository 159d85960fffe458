"""One state for many queries: what is kept once of a stream and a grouping, and how all are answered from it.

ledger     what is kept: sheets of intervals, in each the entries that queries need
tallies    what has no constant size: counts of values, cells of sketches, lists of frequent values
sums       what a tally adds up to over windows of each length
counting   an epoch of all tallies
lifting    rows of the stream -> states by interval and group, all entries at once
asking     what a query asks of a ledger
following  queries that take some of another's answers
turn       an epoch: the clock, and who asks
keeping    what a sheet keeps between epochs
matrices   intervals and groups as a matrix; windows of any length from it
combining  states of several entries as one
book       all sheets of a ledger, with the groups numbered once
answering  states -> rows, of all queries of one form at once
kernel     state, delta, clock -> next state, answers of all queries that are due
"""
