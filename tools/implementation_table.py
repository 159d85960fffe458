"""The table operator × window → label → implementation, by building each plan and looking at what it became.

Where an operator has a predicate, it is an equality.

>>> print(markdown().splitlines()[2])  # doctest: +ELLIPSIS
| σ | WKS | sliding; sliding, SLIDE divides RANGE; tumbling; ...; NOW | row by row; leaves expiry alone |
"""

from __future__ import annotations

from dataclasses import replace

from tools.pattern_table import OPERATORS, WINDOWS, built
from windrow.algebra.functions import call
from windrow.algebra.operators import Exists, Join
from windrow.algebra.plan import Emit, Plan
from windrow.kernels.relational.implementations import report
from windrow.kernels.relational.program import RelationalProgram


def markdown() -> str:
    """The table as the documentation shows it; windows that come to the same are in one line."""
    lines = ["| operator | label | windows | implementation |", "|---|---|---|---|"]
    for operator in OPERATORS:
        alike: dict[tuple[str, str], list[str]] = {}
        for name, spec in WINDOWS.items():
            plan = _on_equal_keys(built(operator, spec))
            alike.setdefault((str(plan.label.pattern), _implementation_of(plan)), []).append(name)
        lines += [
            f"| {operator} | {label} | {'; '.join(names)} | {how} |" for (label, how), names in alike.items()
        ]
    return "\n".join(lines)


def _implementation_of(plan: Plan) -> str:
    """How an operator runs, if it is what a query asks for."""
    program = RelationalProgram(Emit(plan))
    return str(report(program, plan, program.builder.built[id(plan)]))


def _on_equal_keys(plan: Plan) -> Plan:
    if not isinstance(plan, Join | Exists):
        return plan
    left, right = plan.children
    return replace(plan, predicate=call("=", [left.schema.column("a.k"), right.schema.column("b.k")]))
