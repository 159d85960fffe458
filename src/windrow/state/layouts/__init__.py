"""How an operator's state is cut into chunks and sections, by its update pattern: one layout per file.

A layout is bookkeeping only: which of the live chunks a reader needs, which sections of them, and which a new
clock makes superfluous. It never opens a file. `base` says what every layout can do.
"""
