"""When groups are final one by one: a segment that is done is reported while others wait (WID, section 2).

If GROUP BY contains the column that punctuation is PER, each group has a clock of its own. That is sound
where a group's answer depends on the rows of its own source only: the column must reach the grouping
unchanged, from the only scan of that stream, through a window that does not count other sources' rows. Where
rows are joined, all must tell beforehand when they leave, so that some can wait for those of a source that is
behind; the rows of a RELATION do not. The column must also be in the answer, to tell whose answer a row is;
and when something is reported must not depend on other groups, as it does in the RSTREAM of a continuous
query.
"""

from __future__ import annotations

from windrow.algebra.catalog import Stream
from windrow.algebra.expressions import ColumnRef
from windrow.algebra.operators import Aggregate, Filter, Join, Project, TableJoin
from windrow.algebra.plan import Emit, Plan, Scan, StreamWord, Window
from windrow.windows import NoPolicy, OwnInterval


def is_final_by_group(emit: Emit, stream: Stream, column: str) -> bool:
    """Whether the answers of this query are final for each value of `column` by itself."""
    return group_place(emit, stream, column) is not None


def is_expected_by_group(emit: Emit, stream: Stream, column: str) -> bool:
    """Whether they will be, by how the stream is declared: PER this column, or without any rule, so that all
    that is ever known of it is promised from outside."""
    rule = stream.progress
    expected = rule.per == column or isinstance(rule.policy, NoPolicy)
    return expected and is_final_by_group(emit, stream, column)


def group_place(emit: Emit, stream: Stream, column: str) -> int | None:
    """The place in the answer of the column by whose values it becomes final; None if it does not."""
    scans = [node for node in emit.walk() if isinstance(node, Scan) and node.stream.name == stream.name]
    depends_on_others = emit.meaning is StreamWord.RSTREAM and not emit.reports_extents
    if len(scans) != 1 or depends_on_others or emit.word.restores or emit.is_internal:
        return None
    wanted = f"{scans[0].alias}.{column}"
    places = range(len(emit.schema))
    return next((p for p in places if _answered(emit.schema.names[p], emit.input, column) == wanted), None)


def _answered(name: str, plan: Plan, column: str) -> str | None:
    """The scanned column that an output of the query is, if the query groups by it."""
    match plan:
        case Filter():
            return _answered(name, plan.input, column)
        case Project(outputs=outputs):
            source = dict(outputs)[name]
            return _answered(source.name, plan.input, column) if isinstance(source, ColumnRef) else None
        case Aggregate(keys=keys):
            key = dict(keys).get(name)
            return _origin(key.name, plan.input, column) if isinstance(key, ColumnRef) else None
        case _:
            return None


def _origin(name: str, plan: Plan, column: str) -> str | None:
    """The scanned column that a column of the plan is, if it is one and its window keeps sources apart."""
    match plan:
        case Window():
            apart = isinstance(plan.spec, OwnInterval) or column in getattr(plan.spec, "partition_by", ())
            return _origin(name, plan.input, column) if apart else None
        case Scan():
            return name
        case Project(outputs=outputs):
            source = dict(outputs).get(name)
            return _origin(source.name, plan.input, column) if isinstance(source, ColumnRef) else None
        case Join(inputs=inputs):
            part = next((part for part in inputs if name in part.schema), None)
            known = all(isinstance(leaf.spec, OwnInterval) for leaf in plan.leaves)
            return _origin(name, part, column) if part and known else None
        case TableJoin(is_retroactive=True):
            return None
        case Filter() | TableJoin():
            return _origin(name, plan.input, column) if name in plan.input.schema else None
        case _:
            return None
