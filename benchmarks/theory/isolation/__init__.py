"""Reading a window that slides meanwhile: chapter 7 of Golab's thesis, played through.

operations.py   reads, writes, commits and aborts: what a history is made of
history.py      a history, what each of its queries has read, and a notation for it
graph.py        who comes before whom: the serialisation graph
levels.py       the four levels of isolation, by their definitions
policies.py     the policies of the thesis' experiments
attempt.py      one attempt of a query: what it has read, what it still wants, when it is lost
scheduler.py    who reads next, and what an update does to those who have read already
"""
