"""Rewriting of plans: rules that always help, alternatives with a price, and what plans cost.

A rule is a file, named by its verb: a function from plans to plans that give the same changes.
`windrow.rules.optimise.RULES` is the order of all rules, `windrow.rules.alternatives.ALTERNATIVES` lists
what may go either way, `windrow.rules.cost` says what a plan costs and keeps.
"""
