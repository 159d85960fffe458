"""Many queries as one: synopses that several share, by which rules, and when they are refreshed."""
