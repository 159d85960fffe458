"""The oracle: a plan evaluated from scratch at every instant, straight from the definitions.

It is slow and obvious on purpose. `scopes` says which rows are in a window at an instant, `snapshot`
evaluates the relational operators on such states, `streams` derives ISTREAM, DSTREAM and RSTREAM, and
`pieces` is the same algebra on validity intervals, kept honest against `snapshot` by tests.
"""
