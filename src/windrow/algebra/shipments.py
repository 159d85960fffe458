"""Shipments: plans and reports as bytes, on their way between the processes of one Spark job.

The only place where pickles are read. They are as safe as the functions that travel with the same job: both
come from a process of the same engine, by Spark's own channels, and are gone when the job is. Nothing that
was on a disk or in a store comes this way: states are Arrow and JSON, states of users' aggregates are plain
values (`windrow.algebra.aggregates.plain_values`), and users' functions are given anew by the program.
"""

from __future__ import annotations

import pickle
from typing import Any


def packed(content: Any) -> bytes:
    """Anything, ready to travel."""
    return pickle.dumps(content)


def unpacked(shipment: bytes) -> Any:
    """What another process of the same job has packed."""
    return pickle.loads(shipment)
