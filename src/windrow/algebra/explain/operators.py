"""One line of SQL-like text per operator, with the signs of the algebra."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from windrow.algebra import operators as ops
from windrow.algebra.explain.brackets import bracket, frame_text
from windrow.algebra.expressions import TRUE, Expression
from windrow.algebra.functions.sql_text import constant_sql, to_sql
from windrow.algebra.over import FramedCall, Over
from windrow.algebra.plan import Emit, Plan, Scan, StreamUnion, Subquery, TableScan, Window

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from windrow.windows.domain import Domain


_PREFIX = re.compile(r"\b[A-Za-z_]\w*\.(?=[A-Za-z_])")


@dataclass(frozen=True)
class Spelling:
    """How columns are called in the text of one query: with one source, and no doubt, without its alias."""

    bare: bool = False

    @classmethod
    def of(cls, emit: Emit) -> Spelling:
        nodes = list(_own_nodes(emit))
        names = {name for node in nodes for name in node.schema.names if _PREFIX.search(name)}
        sources = sum(isinstance(node, Scan | Subquery | TableScan) for node in nodes)
        return cls(bare=sources == 1 and len({_PREFIX.sub("", name) for name in names}) == len(names))

    def __call__(self, name: str) -> str:
        """
        >>> Spelling(bare=True)("MAX(b.price)"), Spelling()("b.price")
        ('MAX(price)', 'b.price')
        """
        return _PREFIX.sub("", name) if self.bare else name

    def sql(self, expression: Expression) -> str:
        return to_sql(expression, self)


def word_text(emit: Emit) -> str:
    """The stream word, or what stands for it where rows come and go."""
    return " ∪ ".join(dict.fromkeys(branch.meaning.value or "'+' and '-'" for branch in emit.branches))


def _order(order: Iterable[tuple[Expression, bool]], spelling: Spelling) -> str:
    return ", ".join(spelling.sql(key) + (" DESC" if descending else "") for key, descending in order)


def operator_text(node: Plan, spelling: Spelling) -> str:  # noqa: C901  # one line for each operator
    """The operator and its parameters."""
    match node:
        case Emit():
            return "emit the rows of all branches" if node.is_union else f"emit {word_text(node)}"
        case StreamUnion():
            return "∪ UNION ALL of streams, each with a clock of its own"
        case ops.Project(outputs=outputs):
            return f"π {_named(outputs, spelling)}"
        case ops.Filter(predicate=predicate):
            return f"σ {spelling.sql(predicate)}"
        case ops.Union():
            return "∪ UNION ALL"
        case ops.Distinct():
            return "δ DISTINCT"
        case ops.Except():
            return "− EXCEPT ALL"
        case ops.TableJoin(predicate=predicate, outer=True):
            return f"⟕ {spelling.sql(predicate) if predicate != TRUE else 'every pair'}"
        case ops.Join(predicate=predicate) | ops.TableJoin(predicate=predicate):
            return f"⋈ {spelling.sql(predicate) if predicate != TRUE else 'every pair'}"
        case ops.Exists(predicate=predicate, negated=negated):
            condition = spelling.sql(predicate) if predicate != TRUE else "any row"
            return f"{'▷ NOT EXISTS' if negated else '⋉ EXISTS'} {condition}"
        case ops.Aggregate():
            return _aggregate(node, spelling)
        case ops.Rank(kind=kind, partition=partition, order=order):
            apart = f" of {', '.join(map(spelling.sql, partition))}" if partition else ""
            return f"# {kind}{apart} by {_order(order, spelling)}"
        case ops.Unnest(array=array, outer=outer):
            return f"{'OUTER ' * outer}UNNEST {spelling.sql(array)} AS {', '.join(map(spelling, node.names))}"
        case Over(calls=calls):
            domain = node.leaves[0].domain
            texts = (f"{call_text(each.call, spelling)} {_over(each, domain, spelling)}" for _, each in calls)
            return ", ".join(texts)
        case ops.Limit(order=order, count=count):
            return f"first {count}" + (f" by {listed}" if (listed := _order(order, spelling)) else "")
    return _source(node, spelling)


def _source(node: Plan, spelling: Spelling) -> str:
    match node:
        case Window():
            return f"window {window_text(node, spelling)}"
        case Scan(stream=stream, alias=alias):
            return f"stream {_aliased(stream.name, alias)}"
        case Subquery(alias=alias):
            return f"nested query AS {alias}"
        case TableScan(table=table, alias=alias):
            return f"table {_aliased(table.name, alias)} {table.kind.value}"
    raise TypeError(f"no text for {type(node).__name__}")


def window_text(node: Window, spelling: Spelling) -> str:
    """What a window is over, and its bracket."""
    over = [
        _aliased(origin.stream.name, origin.alias) if isinstance(origin, Scan) else origin.alias
        for origin in node.origins
    ]
    own = node.streams[0].wattr if node.streams else "at"
    return f"{' ∪ '.join(over)} {bracket(node.spec, node.domain, own, spelling)}"


def call_text(call: ops.AggregateCall, spelling: Spelling) -> str:
    """An aggregate call.

    >>> from windrow.algebra.expressions import ColumnRef
    >>> from windrow.algebra.types import DOUBLE
    >>> call_text(ops.AggregateCall("quantile", (ColumnRef("s.x", DOUBLE),), DOUBLE, (0.95,)), Spelling("s"))
    'QUANTILE(x, 0.95)'
    """
    args = [spelling.sql(arg) for arg in call.args] or ["*"]
    args += [constant_sql(param) for param in call.params]
    where = f" FILTER (WHERE {spelling.sql(call.where)})" if call.where != TRUE else ""
    return f"{call.function.upper()}({'DISTINCT ' if call.distinct else ''}{', '.join(args)}){where}"


def _over(framed: FramedCall, domain: Domain, spelling: Spelling) -> str:
    apart = f"PARTITION BY {', '.join(map(spelling.sql, framed.partition))} " if framed.partition else ""
    return f"OVER ({apart}{frame_text(framed.frame, domain)})"


def _aggregate(node: ops.Aggregate, spelling: Spelling) -> str:
    calls = [_as(call_text(call, spelling), spelling(name)) for name, call in node.aggregates]
    keys = _named(node.keys, spelling) or "all rows"
    return f"γ {keys}" + (f": {', '.join(calls)}" if calls else "")


def _named(outputs: Iterable[tuple[str, Expression]], spelling: Spelling) -> str:
    return ", ".join(_as(spelling.sql(value), spelling(name)) for name, value in outputs)


def _as(text: str, name: str) -> str:
    return text if text == name or text.endswith("." + name) else f"{text} AS {name}"


def _aliased(name: str, alias: str) -> str:
    return name if name == alias else f"{name} AS {alias}"


def _own_nodes(plan: Plan) -> Iterator[Plan]:
    """The nodes of this query, without those of nested queries."""
    yield plan
    for child in () if isinstance(plan, Subquery) else plan.children:
        yield from _own_nodes(child)
