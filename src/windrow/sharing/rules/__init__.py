"""The sharing rules of the thesis' chapter 8, each in a file of its name.

SS1 to SS4 say which queries may share state, CS1 to CS8 which of them may be computed together.
"""
