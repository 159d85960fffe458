"""Conditions as sets of terms, to see which synopses together hold the rows of a query."""
