"""Rewriting of plans: rules that always help, alternatives with a price, and what plans cost.

A rule is a file, named by its verb: a function from plans to plans that give the same changes. All of them
are listed in `optimizer`, as `RULES` and as `ALTERNATIVES`; `costs` says what a plan costs.
"""
