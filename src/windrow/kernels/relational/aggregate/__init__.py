"""γ: GROUP BY over rows that come and go, with the rows kept or without."""
