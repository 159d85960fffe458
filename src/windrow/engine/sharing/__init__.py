"""Sharing in the engine: shared states, common subplans, followers, and the report of them."""
