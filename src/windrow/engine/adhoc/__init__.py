"""SELECT by itself: asked now, answered once, over the windows as they are.

present.py      which instant is "now" at a commit
snapshot.py     a plan over windows, as a plan over the rows that are in them now
needs.py        which rows of a stream a window needs, and which of them it holds
columns.py      which columns of them it reads
ways.py         where these rows can be had, and what that costs
answers.py      the last answer of a standing query, and whether one is what is asked for
synopses.py     the synopses that standing queries share, as a commit has them
fitting.py      whether they have what is asked for
from_synopses.py  reading them, and the answer from them
reading.py      sub-window by sub-window, while commits go on
turns.py        who reads next: higher priorities overtake
watch.py        limits, and cancelling
evaluating.py   from rows to the relation, on kernels
on_spark.py     the same, on Spark, for more rows than one process should hold
asking.py       all of it, for one SELECT
"""
