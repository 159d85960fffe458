"""Rewriting of plans: rules that always help, alternatives with a price, and what plans cost.

A rule is a file, named by its verb: a function from plans to plans that give the same changes.
`optimizer.RULES` is the order of all rules, `alternatives.ALTERNATIVES` lists what may go either way,
`cost.model` says what a plan costs and keeps.
"""
