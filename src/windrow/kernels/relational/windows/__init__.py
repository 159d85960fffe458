"""Windows: rows of a stream become rows with validity intervals."""
