"""Costs: the cost model, the estimates of each operator, and the statistics they rest on."""
