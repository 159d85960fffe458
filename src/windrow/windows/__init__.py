"""Windows: what the words in brackets mean, as arithmetic on integers. No clock, no input, no output.

Read `clause` (what is written), `spec` (what every window can do), then one file per kind: `ranges`,
`landmark`, `lifetime`, `rows`, `slide_by_tuple`, `session`. `patterns` and `panes` derive facts,
`progress` says when extents are complete.
"""
