"""Kernels for any plan: operators on signed pieces, with state laid out by update pattern.

`signed_rows` says what travels, `operator` what an operator is, `build` which one a plan node becomes,
`program` runs a query. The sliding aggregates of `windrow.kernels` are a special case, and faster there.
"""
