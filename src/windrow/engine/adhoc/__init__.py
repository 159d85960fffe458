"""SELECT by itself: asked now, answered once, over the windows as they are.

select.py         all of it, for one SELECT: whose turn it is, its limits, and how it is stopped
question.py       a SELECT at a commit: which instant is now, what it needs, the answer on kernels
snapshot.py       a plan over windows, as a plan over the rows that are in them now
access_paths.py   where these rows can be had, and what that costs
from_synopses.py  the answer from the synopses that standing queries share, where they have what is asked for
on_spark.py       the answer on Spark, for more rows than one process should hold
"""
