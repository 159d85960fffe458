"""The thesis' ways to refresh groups of queries (8.4), and schedules played through."""
