"""Many queries as one: synopses that several share, the rules by which they may, and when they are refreshed.

questions   a plan -> the data it needs, over which rows and windows
planner     queries -> synopses, who uses which by which rules, who is computed together
scheduling  who is refreshed when, if there is not time for all
"""

from windrow.sharing.planner import Planner, share
from windrow.sharing.rules import SharingPlan

__all__ = ["Planner", "SharingPlan", "share"]
