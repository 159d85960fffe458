"""Emission: from the changing relation to the changes that a query reports, and when."""
