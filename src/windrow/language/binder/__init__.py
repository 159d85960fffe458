"""Binding: names get their columns, expressions their types, a query its plan.

    statements    CREATE, DROP, SHOW, EXPLAIN, SELECT      declarations    streams and tables
    queries       a SELECT or a set operation (`sets`), or WSTREAM (`wstream`), and the `Emit` above
    select        γ, HAVING, the select list (`select_list`), DISTINCT, LIMIT (`ordering`)
    from_where    FROM (`sources`, `windows`), WHERE (`joins`), EXISTS
    expressions   about rows; about groups in `aggregates`

Each file binds one part of the syntax; `context` carries what they share.
"""
