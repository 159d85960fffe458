"""How a query runs, decided once: `plan_query` gives the plan that the engine runs and EXPLAIN prints."""

from windrow.physical.planner import PhysicalOperator, PhysicalPlan, plan_query

__all__ = ["PhysicalOperator", "PhysicalPlan", "plan_query"]
