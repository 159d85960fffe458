"""Binding: names get their columns, expressions their types, a query its plan.

    declarations  streams, tables and archives
    queries       a SELECT or a set operation, the select list (`select_list`), and the `Emit` above
    from_where    FROM (`sources`), WHERE, and the queries in its conditions
    expressions   about rows; about groups, and OVER, in `aggregates`
    once          a SELECT by itself

Each file binds one part of the syntax; `context` and `scope` have what they share.
"""
