"""Reading a window that slides meanwhile.

A window of n sub-windows is a ring of n slots. Update j puts fresh rows into slot j mod n, over the oldest; a
query reads slots one after the other. An update in the midst of a query makes the difference between answers
about one instant, about the latest instant, and about no instant that ever was. The ideas are those of
chapter 7 of Golab's thesis, "Sliding Window Query Processing over Data Streams" (2006).

    operations.py   reads, writes, commits and aborts: what a history is made of
    history.py      a history, what each of its queries has read, and a notation for it
    graph.py        who comes before whom: the serialisation graph
    levels.py       the four levels of isolation, by their definitions
    orders.py       in which order a query reads its sub-windows
    attempt.py      one attempt of a query: what it has read, what it still wants, when it is lost
    scheduler.py    who reads next, and what an update does to those who have read already
"""
