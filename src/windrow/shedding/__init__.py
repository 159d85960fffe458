"""Window-aware load shedding: under overload whole windows are left out, and every answer given is right.

After Tatbul and Zdonik, "Window-Aware Load Shedding for Aggregation Queries over Data Streams" (VLDB 2006).
Nothing here runs a query: these are the rules which windows are left out, which rows are then needless, and
how much must be left out.

rules        WinDrop for pipelines and for plans that share a stream (their Table 2)
reach        which rows a final window depends on, exactly
agreement    which queries may lose windows, and why others may not
phases       the decision for each window, as a function of a seed and its cycle
sharing      queries that read the same streams: common slots
droppable    the rows that nobody needs any more
gaps         what is missing from an answer
load, controller, losses, placement, admission     how much is shed, where, and by whom
model        what shedding saves (their section 3.6)
strategies   other ways to shed, and what they do not promise
"""
