"""Physical plans: how each operator works and keeps its state, chosen by update patterns (thesis, 3.5.2).

`choose` gives a tree of the same shape as the plan. Every choice is two words an executor can branch on, an
`Implementation` and a `Layout`, and a reason for people. A choice is always right, only not always possible
yet: an executor may refuse what it cannot run, and must not run it differently.
"""

from windrow.algebra.physical.choose import PhysicalPlan, choose
from windrow.algebra.physical.grouping import panes_of
from windrow.algebra.physical.layouts import Implementation, Layout, Physical

__all__ = ["Implementation", "Layout", "Physical", "PhysicalPlan", "choose", "panes_of"]
