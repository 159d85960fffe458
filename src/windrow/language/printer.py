"""Plans back to SQL: canonical text that binds to the same plan again.

Every operator of a bound plan has its clause; where a rewritten plan stacks them in another order, the
lower ones become a nested query. A plan that no SQL can say raises a `QueryError`.

>>> from windrow.language.compile import Catalog, compile_query, declare_stream
>>> catalog = Catalog(declare_stream("bids", "item BIGINT, price DOUBLE, ts TIMESTAMP"))
>>> written = "select item, max(price) top from Bids[range 300 sec slide 1 min] b where price>1 group by 1"
>>> print(print_query(compile_query(written, catalog)))
SELECT item, MAX(price) AS top
FROM bids [RANGE 5 MINUTES SLIDE 1 MINUTE] AS b
WHERE price > 1.0D
GROUP BY item

Names are spelled plainly where that is safe, else in backticks.

>>> [quoted(name) for name in ("price", "bid-price", "select", "SUM(a)")]
['price', '`bid-price`', '`select`', '`SUM(a)`']

Which SELECT a plan is: the binder's order of operators, taken apart from the top.

    Project?  Limit  Distinct  Project  Filter  Aggregate  Exists*  Filter  TableJoin*  Join  sources

All but the sources may be missing. What does not fit is a source of its own: a nested query.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from windrow.algebra import Emit, Plan, Scan, StreamWord, Subquery, Window, operators as ops
from windrow.algebra.explain.operators import bracket, frame_text
from windrow.algebra.expressions import TRUE, ColumnRef, Expression, Literal, conjunction, conjuncts
from windrow.algebra.functions.sql_text import to_sql
from windrow.errors import QueryError
from windrow.language import compile, shape, vocabulary
from windrow.language.binder.names import call_sql, describe

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
#: words that mean something in some places
_SOFT = """
    INNER CROSS NATURAL LEFT RIGHT FULL OUTER SEMI ANTI USING NULLS MINUS FILTER WITH ESCAPE FIRST LAST
    INTERVAL DATE TIMESTAMP CAST TRY_CAST EXTRACT WINDOW ROWS RANGE SLIDE WATTR RATTR SATTR ORIGIN INTERNAL
    WSTREAM ISTREAM DSTREAM RSTREAM ISTREAM_RESTORE RSTREAM_RESTORE BOTH LEADING TRAILING
"""
_DELICATE = vocabulary.RESERVED | frozenset(_SOFT.split())


def quoted(name: str) -> str:
    """A name as it can stand anywhere."""
    if _PLAIN.fullmatch(name) and name.upper() not in _DELICATE:
        return name
    return "`" + name.replace("`", "``") + "`"


@dataclass(frozen=True)
class Names:
    """The spelling of the plan's columns in one SELECT; `qualified` says whether with their alias."""

    known: dict[str, tuple[str, str]] = field(default_factory=dict)
    qualified: bool = False

    def __call__(self, name: str) -> str:
        if name not in self.known:
            return name  # window_start, window_end
        alias, column = self.known[name]
        return f"{quoted(alias)}.{quoted(column)}" if self.qualified else quoted(column)


def columns_under(plan: Plan, alias: str) -> dict[str, tuple[str, str]]:
    """The columns of a plan that are called `alias.column`."""
    return {name: (alias, name.removeprefix(alias + ".")) for name in plan.schema.names}


Outputs = tuple[tuple[str, Expression], ...]


def group_shape(plan: Plan) -> tuple[ops.Aggregate | None, Expression, Plan]:
    """The γ, what HAVING asks of it, and the rows below."""
    if isinstance(plan, ops.Aggregate):
        return plan, TRUE, plan.input
    if isinstance(plan, ops.Filter) and isinstance(plan.input, ops.Aggregate):
        return plan.input, plan.predicate, plan.input.input
    return None, TRUE, plan


def renaming_alias(plan: Plan) -> str | None:
    """The alias of a nested query in FROM: a projection that only calls each column `alias.column`."""
    if not isinstance(plan, ops.Project) or len(plan.outputs) != len(plan.input.schema):
        return None
    aliases = set()
    for (name, expression), column in zip(plan.outputs, plan.input.schema.names, strict=True):
        if expression != plan.input.schema.column(column) or not name.endswith("." + column):
            return None
        aliases.add(name.removesuffix("." + column))
    return aliases.pop() if len(aliases) == 1 else None


def _shown_of_hidden(plan: Plan) -> Outputs | None:
    """The outputs above a LIMIT by keys that are not among them."""
    if not (isinstance(plan, ops.Project) and isinstance(plan.input, ops.Limit)):
        return None
    below = plan.input.schema
    same = all(isinstance(e, ColumnRef) and e.name == name for name, e in plan.outputs)
    return plan.outputs if same and below.names[: len(plan.outputs)] == plan.schema.names else None


@shape.roomy
def print_query(emit: Emit) -> str:
    return _streams(emit.branches)


def _streams(branches: Sequence[Emit]) -> str:
    """A query, or the union of several."""
    if len(branches) == 1:
        return _relation(branches[0].input, branches[0].word)
    return _union([(each.input, each.word) for each in branches])


def _union(sides: Sequence[tuple[Plan, StreamWord]]) -> str:
    first, *others = sides
    return "\nUNION ALL\n".join([_first_side(*first), *(_side(*each) for each in others)])


def _relation(plan: Plan, word: StreamWord) -> str:
    match plan:
        case ops.Union(inputs):
            return _union([(each, word) for each in inputs])
        case ops.Except(left, right):
            return f"{_first_side(left, word)}\nEXCEPT ALL\n{_side(right, word)}"
        case ops.Rank():
            return _numbered(plan)
        case ops.Over():
            return _framed(plan)
        case ops.Unnest():
            return _unnested(plan)
    return _Select(plan, word).text()


def _numbered(plan: ops.Rank) -> str:
    """The rows of a nested query, with their numbers."""
    keys = [to_sql(key, quoted) + (" DESC" if descending else "") for key, descending in plan.order]
    number = f"{plan.kind}() OVER ({_over(plan.partition, ', '.join(keys))}) AS {quoted(plan.name)}"
    return f"SELECT *, {number}\nFROM {_nested(_relation(plan.input, StreamWord.AUTO))} AS ranked"


def _framed(plan: ops.Over) -> str:
    """The rows of a nested query, with the values of their frames."""
    domain, order = plan.leaves[0].domain, to_sql(plan.order, quoted)
    values = []
    for name, framed in plan.calls:
        window = f"{_over(framed.partition, order)} {frame_text(framed.frame, domain)}"
        values.append(f"{call_sql(framed.call, quoted)} OVER ({window}) AS {quoted(name)}")
    rows = _nested(_relation(plan.input, StreamWord.AUTO))
    return f"SELECT *, {', '.join(values)}\nFROM {rows} AS framed"


def _over(partition: Sequence[Expression], order: str) -> str:
    by = ", ".join(to_sql(part, quoted) for part in partition)
    return f"PARTITION BY {by} ORDER BY {order}" if by else f"ORDER BY {order}"


def _unnested(plan: ops.Unnest) -> str:
    """The rows of a nested query, with the elements of their arrays."""
    rows, array = _nested(_relation(plan.input, StreamWord.AUTO)), to_sql(plan.array, quoted)
    names = [plan.position, *plan.names] if plan.position else [*plan.names]
    columns = ", ".join(map(quoted, names))
    if plan.spreads:
        kind, on = ("LEFT", " ON TRUE") if plan.outer else ("CROSS", "")
        word = "POSEXPLODE" if plan.position else "UNNEST"
        return f"SELECT *\nFROM {rows} AS unnesting\n{kind} JOIN {word}({array}) AS element({columns}){on}"
    view = f"LATERAL VIEW {'OUTER ' * plan.outer}{'posexplode' if plan.position else 'explode'}({array})"
    return f"SELECT *\nFROM {rows} AS unnesting\n{view} element AS {columns}"


def _first_side(plan: Plan, word: StreamWord) -> str:
    """Set operations are read from left to right, so one on the left needs no parentheses."""
    return _relation(plan, word) if isinstance(plan, ops.Union | ops.Except) else _side(plan, word)


def _side(plan: Plan, word: StreamWord) -> str:
    text = _relation(plan, word)
    limited = isinstance(plan, ops.Limit) or (
        isinstance(plan, ops.Project) and isinstance(plan.input, ops.Limit)
    )
    return _nested(text) if limited or isinstance(plan, ops.Union | ops.Except) else text


def _nested(text: str) -> str:
    return "(\n  " + text.replace("\n", "\n  ") + "\n)"


class _Rows:
    """FROM and WHERE of one SELECT; `around` are the names of a query that an EXISTS stands in."""

    def __init__(self, plan: Plan, around: Names | None) -> None:
        self.around = around
        self.exists: list[ops.Exists] = []
        while isinstance(plan, ops.Exists):
            self.exists.insert(0, plan)
            plan = plan.left
        self.where: Expression = TRUE
        if isinstance(plan, ops.Filter):
            self.where, plan = plan.predicate, plan.input
        self.tables: list[ops.TableJoin] = []
        while isinstance(plan, ops.TableJoin):
            self.tables.insert(0, plan)
            plan = plan.input
        inputs, self.join = (plan.inputs, plan.predicate) if isinstance(plan, ops.Join) else ((plan,), TRUE)
        self.sources = [self._source(each, number) for number, each in enumerate(inputs, 1)]
        known = {name: column for _, columns in self.sources for name, column in columns.items()}
        for join in self.tables:
            known |= columns_under(join.table, join.table.alias)
        several = len(self.sources) + len(self.tables) > 1
        self.names = Names(known, qualified=several or bool(self.exists) or around is not None)
        #: of a nested EXISTS also the names around it
        self.reach = Names(known | around.known, qualified=True) if around else self.names

    def text(self, foreign: Expression = TRUE) -> str:
        """The two clauses; `foreign` conditions read the query around."""
        where = [self._sql(part) for part in (*conjuncts(self.where), *conjuncts(foreign))]
        where += [self._exists(test) for test in self.exists]
        return f"\nFROM {self._from()}" + (f"\nWHERE {' AND '.join(where)}" if where else "")

    def _from(self) -> str:
        """The sources, each condition of the join at the first one that has all it reads, but in order."""
        placed: list[list[Expression]] = [[] for _ in self.sources]
        place = 1
        for part in conjuncts(self.join):
            needed = [i for i, (_, columns) in enumerate(self.sources) if columns.keys() & part.columns]
            place = max([place, *needed])
            placed[place].append(part)
        text = self.sources[0][0]
        for (source, _), conditions in zip(self.sources[1:], placed[1:], strict=True):
            text += self._joined(source, conjunction(tuple(conditions)))
        for join in self.tables:
            table = join.table
            source = _aliased(table.table.name, table.alias)
            text += self._joined(source, join.predicate, "LEFT " if join.outer else "")
        return text

    def _joined(self, source: str, condition: Expression, kind: str = "") -> str:
        if condition == TRUE:
            return f"\n{kind}JOIN {source} ON TRUE" if kind else f"\nCROSS JOIN {source}"
        return f"\n{kind}JOIN {source} ON {' AND '.join(self._sql(part) for part in conjuncts(condition))}"

    def _sql(self, part: Expression) -> str:
        text = to_sql(part, self.reach)
        return f"({text})" if getattr(part, "function", "") == "or" else text

    def _exists(self, test: ops.Exists) -> str:
        word = "NOT EXISTS" if test.negated else "EXISTS"
        if isinstance(test.right, ops.Union | ops.Except):
            return f"{word} {_nested(_relation(test.right, StreamWord.AUTO))}"
        aggregate, having, plan = group_shape(test.right)
        rows = _Rows(plan, self.names)
        text = f"SELECT *{rows.text(test.predicate)}" if aggregate is None else f"SELECT 1{rows.text()}"
        text += _Groups(aggregate, rows.names).text(having) if aggregate else ""
        return f"{word} {_nested(text)}"

    def _source(self, plan: Plan, number: int) -> tuple[str, dict[str, tuple[str, str]]]:
        """An entry of FROM, and its columns: their names in the plan, and alias and name in the text."""
        alias = renaming_alias(plan)
        if alias is not None:
            text = _nested(_relation(plan.children[0], StreamWord.AUTO))
            return f"{text} AS {quoted(alias)}", columns_under(plan, alias)
        if isinstance(plan, Window):
            return self._windowed(plan)
        alias = f"nested_{number}"
        columns = {name: (alias, name) for name in plan.schema.names}
        return f"{_nested(_relation(plan, StreamWord.AUTO))} AS {alias}", columns

    def _bracket(self, window: Window, columns: dict[str, tuple[str, str]]) -> str:
        streams = window.streams
        own = streams[0].wattr if streams else "at"
        return bracket(window.spec, window.domain, own, Names(columns), quoted)

    def _windowed(self, window: Window) -> tuple[str, dict[str, tuple[str, str]]]:
        match window.input:
            case Scan(stream, alias):
                columns = columns_under(window, alias)
                return _aliased(stream.name, alias, self._bracket(window, columns)), columns
            case Subquery(_, alias) as only:
                return self._windowed_query(window, [only], alias)
            case ops.Union(inputs):
                queries = [part for part in inputs if isinstance(part, Subquery)]
                if len(queries) == len(inputs) and len({part.alias for part in queries}) == 1:
                    return self._windowed_query(window, queries, queries[0].alias)
        raise QueryError(
            f"a window over a {type(window.input).__name__} has no SQL form",
            code="not-printable",
            hint="print the plan before it is rewritten",
        )

    def _windowed_query(
        self, window: Window, queries: Sequence[Subquery], alias: str
    ) -> tuple[str, dict[str, tuple[str, str]]]:
        columns = columns_under(window, alias)
        text = _nested(_streams([part.query for part in queries]))
        return f"{text} {self._bracket(window, columns)} AS {quoted(alias)}", columns


class _Groups:
    """GROUP BY and HAVING; expressions over groups are printed with keys and aggregates in place."""

    def __init__(self, aggregate: ops.Aggregate, names: Names) -> None:
        self.aggregate = aggregate
        self.names = names
        self.keys = dict(aggregate.keys)
        self.calls = dict(aggregate.aggregates)

    def sql(self, expression: Expression, names: Names | None = None) -> str:
        spelled = names or self.names
        keyed = expression.rewrite(
            lambda node: self.keys.get(node.name, node) if isinstance(node, ColumnRef) else node
        )
        return to_sql(
            keyed, lambda name: call_sql(self.calls[name], spelled) if name in self.calls else spelled(name)
        )

    def text(self, having: Expression) -> str:
        keys = ", ".join(to_sql(key, self.names) for key in self.keys.values())
        if not keys and not self.calls:
            keys = "TRUE"
        text = f"\nGROUP BY {keys}" if keys else ""
        return text + (f"\nHAVING {self.sql(having)}" if having != TRUE else "")


class _Select:
    """One SELECT; of all outputs some may be keys of ORDER BY only."""

    def __init__(self, plan: Plan, word: StreamWord) -> None:
        self.word = word
        shown = _shown_of_hidden(plan)
        if shown is not None:
            (plan,) = plan.children
        self.limit = plan if isinstance(plan, ops.Limit) else None
        plan = self.limit.input if self.limit else plan
        self.distinct = isinstance(plan, ops.Distinct)
        plan = plan.input if isinstance(plan, ops.Distinct) else plan
        outputs: Outputs = tuple((name, plan.schema.column(name)) for name in plan.schema.names)
        if isinstance(plan, ops.Project) and renaming_alias(plan) is None:
            outputs, plan = plan.outputs, plan.input
        aggregate, self.having, plan = group_shape(plan)
        self.all_outputs = dict(outputs)
        self.outputs = outputs[: len(shown)] if shown is not None else outputs
        self.rows = _Rows(plan, None)
        self.groups = _Groups(aggregate, self.rows.names) if aggregate else None

    def text(self) -> str:
        items = ", ".join(self._item(name, expression) for name, expression in self.outputs)
        items = f"DISTINCT {items}" if self.distinct else items
        text = f"SELECT {self.word.value}({items})" if self.word.value else f"SELECT {items}"
        text += self.rows.text()
        text += self.groups.text(self.having) if self.groups else ""
        return text + self._limit()

    def _item(self, name: str, expression: Expression) -> str:
        text = self._sql(expression, self.rows.names)
        likely = text.endswith(quoted(name)) or text == name
        # A constant keeps its alias, by which ORDER BY can name it.
        if likely and not isinstance(expression, Literal) and _is_called(text, name):
            return text
        return f"{text} AS {quoted(name)}"

    def _sql(self, expression: Expression, names: Names) -> str:
        return self.groups.sql(expression, names) if self.groups else to_sql(expression, names)

    def _limit(self) -> str:
        limit = self.limit
        if limit is None:
            return ""
        everything = tuple((limit.schema.column(name), False) for name in limit.schema.names)
        keys = [] if limit.order == everything else [self._key(*key) for key in limit.order]
        order = f"\nORDER BY {', '.join(keys)}" if keys else ""
        return f"{order}\nLIMIT {limit.count}"

    def _key(self, key: Expression, descending: bool) -> str:
        outputs = self.all_outputs
        meant = key.rewrite(lambda node: outputs[node.name] if isinstance(node, ColumnRef) else node)
        # A number would be a position; an output that is one always has an alias.
        if isinstance(meant, Literal) and isinstance(key, ColumnRef):
            text = quoted(key.name)
        else:
            text = self._sql(meant, Names(self.rows.names.known, qualified=True))
        return f"{text} DESC" if descending else text


def _is_called(text: str, name: str) -> bool:
    """Whether an output of this text has this name without an alias."""
    try:
        return describe(compile.parse_expression(text)) == name
    except QueryError:
        return False  # casts and parentheses that were not written can make it too deep to be read


def _aliased(name: str, alias: str, window: str = "") -> str:
    text = f"{quoted(name)} {window}".rstrip()
    return text if alias == name else f"{text} AS {quoted(alias)}"
