"""Archives in the engine: how rows get into them, and how they are read."""
