"""Scripts for developers, and the generators of tables in the documents."""
