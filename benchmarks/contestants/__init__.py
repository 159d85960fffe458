"""Those who answer the same question over the same rows, one per module."""
