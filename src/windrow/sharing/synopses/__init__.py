"""Synopses: states of the intervals of a window, kept once for all queries that can use them."""
