"""Window-aware load shedding: under overload whole windows are left out, and every answer given is right.

After Tatbul and Zdonik, "Window-Aware Load Shedding for Aggregation Queries over Data Streams" (VLDB 2006).
Nothing here runs a query: these are the rules which windows are left out, which rows are then needless, and
how much must be left out.
"""
