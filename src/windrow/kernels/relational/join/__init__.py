"""⋈: n-way window joins, their probe order, and the expiry of their state."""
