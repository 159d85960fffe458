"""Synopses of joins: intervals go by the time at which results expire (thesis, 8.3.2)."""
