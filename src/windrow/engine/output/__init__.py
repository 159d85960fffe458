"""Output: from a commit's outbox to the sinks, in the order and the schema that users see."""
