"""Aggregate states as columns: partials, their layout in tables, and the values they are lowered to."""
