"""Expressions: syntax to typed trees, one node at a time.

`ExpressionBinder` binds what is written about rows. What is written about groups (`aggregates.Grouped`) is
the same, except that names must be grouped and aggregates have a meaning.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn

from windrow.algebra import BOOLEAN, STRING, Kind, aggregates
from windrow.algebra.aggregates import user
from windrow.algebra.expressions import Cast, Expression, WindowBound, cast
from windrow.algebra.functions import call, catalogue, lookup
from windrow.errors import QueryError, nearest, one_letter_off
from windrow.language import syntax, tokens
from windrow.language.binder import constants, ways_out
from windrow.language.binder.scope import Scope
from windrow.language.syntax import children

if TYPE_CHECKING:
    from windrow.language.binder.aggregates import Overs

_INSTEAD_OF_AGGREGATE = {
    "WHERE": "put it in HAVING, which is about groups",
    "the argument of an aggregate": "select {0} AS x in a nested query, and aggregate x around it;"
    " or write WSTREAM({0})[ROWS 10]",
}

BOUNDS = ("window_start", "window_end")
_ABOUT_ROWS = ("the argument of an aggregate", "FILTER")


class ExpressionBinder:
    """Binds expressions about the rows of one scope, in the clause called `clause`."""

    def __init__(self, scope: Scope, clause: str, bound: Callable[[str], WindowBound] | None = None) -> None:
        self.scope = scope
        self.clause = clause
        #: makes `window_start` and `window_end`; None where they mean nothing
        self.bound = bound
        #: collects what is asked with OVER; None where that means nothing
        self.overs: Overs | None = None

    def bind(self, node: syntax.Node) -> Expression:
        """The expression a node means; errors point at the innermost node they are about."""
        node = self._hyphenated(node)
        with tokens.at(node):
            match node:
                case syntax.Constant():
                    return constants.literal(node)
                case syntax.Name():
                    return self.name(node)
                case syntax.CastTo():
                    return self._cast(node)
                case syntax.OverCall() if self.overs is not None:
                    return self.overs.column(node, self.bind)
                case syntax.Apply() if aggregates.is_aggregate(node.function):
                    return self.aggregate(node)
                case syntax.Apply():
                    return self._function(node)
        raise _misplaced(node)

    def _hyphenated(self, node: syntax.Node) -> syntax.Node:
        """A column whose name has a hyphen, as papers write it: `seg-id`, where there is no column `seg`."""
        match node:
            case syntax.Apply(
                function="-", args=(syntax.Name(parts=first) as left, syntax.Name(parts=(last,)))
            ):
                joined = syntax.Name(node.span, (*first[:-1], f"{first[-1]}-{last}"))
                return joined if not self.scope.knows(left) and self.scope.knows(joined) else node
        return node

    def condition(self, node: syntax.Node) -> Expression:
        """An expression that holds or not."""
        bound = self.bind(node)
        if bound.type.kind not in (Kind.BOOLEAN, Kind.NULL):
            message = f"{self.clause} needs a condition, but this is {bound.type}"
            tokens.refuse(node, message, "not-a-condition", "compare it with something")
        return cast(bound, BOOLEAN)

    def name(self, node: syntax.Name) -> Expression:
        """A column, or a bound of the window where no column is called so."""
        if is_bound(node) and not self.scope.knows(node):
            return self.window_bound(node)
        found = self.scope.resolve(node)
        if found.reads_window_bounds and self.clause in _ABOUT_ROWS:
            self._refuse_bound(node)
        return found

    def window_bound(self, node: syntax.Name) -> Expression:
        if self.bound is None:
            self._refuse_bound(node)
        return self.bound(node.parts[0].lower())

    def _refuse_bound(self, node: syntax.Name) -> NoReturn:
        tokens.refuse(
            node,
            f"`{node.parts[-1]}` is about the answer, not about a row of {self.clause}",
            "window-bounds",
            "it can stand in the select list, WHERE, HAVING and GROUP BY",
        )

    def aggregate(self, node: syntax.Apply) -> Expression:
        """Refused: there are only rows here."""
        elsewhere = "aggregates stand in the select list, HAVING and ORDER BY"
        hint = _INSTEAD_OF_AGGREGATE.get(self.clause, elsewhere).format(node.span.quoted)
        name = node.function.upper()
        tokens.refuse(
            node,
            f"{name} is about a group of rows, but {self.clause} is about one row",
            "misplaced-aggregate",
            hint,
        )

    def _function(self, node: syntax.Apply) -> Expression:
        if node.distinct or node.where is not None or node.order:
            word = "DISTINCT" if node.distinct else "ORDER BY" if node.order else "FILTER"
            tokens.refuse(
                node, f"`{node.function}` takes no {word}", "not-an-aggregate", "only aggregates do"
            )
        _check_known(node)
        if node.function == "=":
            self._check_quotes(*node.args)
        return call(node.function, [self.bind(arg) for arg in node.args])

    def _check_quotes(self, *compared: syntax.Node) -> None:
        """Refuse a text without quotes, as papers write it, where no column is called nearly so."""
        for one, other in (compared, compared[::-1]):
            match one, other:
                case syntax.Name() as column, syntax.Name(parts=(word,)) as text if not self.scope.knows(
                    text
                ):
                    near = nearest(word, [entry.name for entry in self.scope.entries]) or ""
                    is_text = self.scope.knows(column) and self.scope.resolve(column).type == STRING
                    if is_text and not near.startswith("did you mean") and not is_bound(text):
                        hint = f"a text stands in quotes: {'.'.join(column.parts)} = '{word}'"
                        tokens.refuse(text, f"no column `{word}`", "unknown-column", hint)

    def _cast(self, node: syntax.CastTo) -> Expression:
        target = constants.written_type(node.type_text)
        if isinstance(node.arg, syntax.Constant) and node.arg.kind == "NUMBER" and node.arg.span == node.span:
            return constants.suffixed(node.arg, target)
        arg = self.bind(node.arg)
        return Cast(arg, target, safe=True) if node.safe and arg.type != target else cast(arg, target)


def _misplaced(node: syntax.Node) -> QueryError:
    match node:
        case syntax.ExistsTest():
            message = "EXISTS has a meaning only as one of the conditions joined by AND in WHERE"
            hint = ways_out.exists_in_expression(node)
        case syntax.InTest():
            message = "IN (SELECT …) has a meaning only as one of the conditions joined by AND in WHERE"
            hint = ways_out.in_expression(node)
        case syntax.ScalarQuery():
            message = "a query is a value only in comparisons of WHERE, joined by AND to the other conditions"
            hint = ways_out.value_elsewhere(node)
        case syntax.OverCall():
            message = f"{node.function} OVER stands in the select list and in QUALIFY"
            hint = "select it in a nested query under a name, and read that"
        case syntax.Star():
            message, hint = "`*` is not a value", "name a column; COUNT(*) counts rows"
        case syntax.WStream():
            message = "WSTREAM is the whole select list, or inside an aggregate of it"
            hint = "put the rest into its parentheses, or into a query around it"
        case _:
            message, hint = "this cannot stand in an expression", "write a column, a constant or a function"
    return tokens.mistake(node, message, "misplaced", hint)


def _check_known(node: syntax.Apply) -> None:
    """Before its arguments are looked at: where an aggregate is misspelt, these are the lesser mistake."""
    if node.function.lower() == "unix_timestamp" and node.args:
        of = ", ".join(arg.span.quoted for arg in node.args)
        hint = f"write unix_seconds({of if len(node.args) == 1 else f'to_timestamp({of})'})"
        tokens.refuse(
            node,
            "`unix_timestamp` is the clock's; that of a time is `unix_seconds`",
            "unknown-function",
            hint,
        )
    try:
        lookup(node.function)
    except QueryError as error:
        functions = [name for each in catalogue() for name in (each.name, *each.aliases)]
        known = [*functions, *map(str.lower, aggregates.names()), *user.names()]
        written = [*(arg.span.quoted for arg in node.args), "…", "…", "…"]
        form = _ELSEWHERE.get(node.function.lower())
        meant = f"write {form.format(*written)}" if form else nearest(node.function, known, cutoff=_ALIKE)
        meant = meant or one_letter_off(node.function, known) or "docs/language.md lists the functions"
        tokens.refuse(node, error.message, error.code, meant)


#: functions of other systems, and what to write, with the arguments in their places
_ELSEWHERE = {
    name: form
    for names, form in {
        "row": "named_struct('a', {0})",
        "map": "from_json('{{\"a\": 1}}', 'MAP<STRING, INT>')",
        "json_value json_query json_extract json_extract_scalar extractjsonfield jsonb_extract_path_text": (
            "get_json_object({0}, {1})"
        ),
        "json_exists": "get_json_object({0}, {1}) IS NOT NULL",
        "json_tuple": "get_json_object({0}, '$.a') for each of them",
        "json_object jsonb_build_object": "to_json(named_struct({0}, {1}))",
        "json_string to_json_string to_jsonb row_to_json": "to_json({0})",
        "jsonb_array_elements json_array_elements": "UNNEST(from_json({0}, 'ARRAY<STRING>')) AS t(x) in FROM",
        "proctime getdate sysdate rowtime clock_timestamp": "arrival_ts, which is when a row was stored",
        "current_watermark": "window_end, or read `at`: every answer carries the instant it is about",
        "to_timestamp_ltz": "timestamp_millis({0})",
        "timestamp_trunc datetime_trunc": "date_trunc('{1}', {0})",
        "parse_timestamp stringtotimestamp": "to_timestamp({0}, {1})",
        "parse_date stringtodate": "to_date({0}, {1})",
        "strptime": "to_timestamp({0}, 'yyyy-MM-dd HH:mm:ss')",
        "timestamptostring format_timestamp format_date datetostring": "date_format({0}, {1})",
        "to_char strftime": "date_format({0}, 'yyyy-MM-dd HH:mm')",
        "monthname": "date_format({0}, 'MMMM')",
        "dayname": "date_format({0}, 'EEEE')",
        "convert_tz": "from_utc_timestamp(to_utc_timestamp({0}, {1}), {2})",
        "convert_timezone": "from_utc_timestamp(to_utc_timestamp({2}, {0}), {1})",
        "week": "weekofyear({0})",
        "epoch": "unix_seconds({0})",
        "epoch_ms": "unix_millis({0})",
        "epoch_us": "unix_micros({0})",
        "age": "{0} - {1}",
        "date_bin time_bucket": (
            "FROM TUMBLE(TABLE s, DESCRIPTOR({1}), {0}) GROUP BY window_start, window_end;"
            " of one row date_trunc('HOUR', {1})"
        ),
        "percentile_cont": "PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY x)",
        "quantile_cont quantile_disc": "QUANTILE({0}, {1})",
        "grouping": "GROUP BY ROLLUP (…), GROUPING SETS or CUBE, of which GROUPING tells the sets apart",
        "list collect json_agg jsonb_agg json_arrayagg": "ARRAY_AGG({0})",
        "count_distinct": "COUNT(DISTINCT {0})",
        "topk topkdistinct": "TOP_K({0}, {1})",
        "correlation": "CORR({0}, {1})",
        "stddev_sample": "STDDEV_SAMP({0})",
        "regr_r2": "power(CORR({0}, {1}), 2)",
        "regr_count": "COUNT(*) FILTER (WHERE {0} IS NOT NULL AND {1} IS NOT NULL)",
        "product": "exp(SUM(ln({0})))",
        "row_number": "ROW_NUMBER() OVER (PARTITION BY k ORDER BY x)",
        "rank": "RANK() OVER (PARTITION BY k ORDER BY x)",
        "dense_rank": "DENSE_RANK() OVER (PARTITION BY k ORDER BY x)",
        "lag": "LAG({0}) OVER (PARTITION BY k ORDER BY ts)",
        "struct_pack": "named_struct('a', {0})",
        "string_split str_split string_to_array regexp_split_to_array": "split({0}, {1})",
        "array_to_string": "array_join({0}, {1})",
        "array_length": "size({0})",
        "list_contains": "array_contains({0}, {1})",
        "filter transform reduce aggregate exists forall list_filter list_transform array_max array_min"
        " array_distinct array_sort list_sum list_avg list_distinct flatten array_remove array_position"
        " array_union array_except array_intersect": "UNNEST({0}) AS t(x) in FROM, and what you want of x",
        "posexplode posexplode_outer": "UNNEST({0}) WITH ORDINALITY AS t(x, n) in FROM",
        "inline inline_outer": "UNNEST({0}) AS t(a, b) in FROM",
        "generate_series range sequence stack": "a TABLE of these rows, and join it",
        "decode": "CASE WHEN {0} = {1} THEN {2} END",
        "convert": "CAST({1} AS {0})",
        "safe_cast to_number": "TRY_CAST({0} AS DOUBLE)",
        "strpos": "instr({0}, {1})",
        "starts_with prefix": "startswith({0}, {1})",
        "suffix": "endswith({0}, {1})",
        "regexp_match regexp_matches regexp_full_match": "{0} RLIKE {1}",
        "regexp_substr": "regexp_extract({0}, {1}, 0)",
        "format printf format_string": "concat({1}, …)",
        "sha224": "sha2({0}, 224)",
        "sha256": "sha2({0}, 256)",
        "sha384": "sha2({0}, 384)",
        "sha512": "sha2({0}, 512)",
        "hash xxhash64": "crc32(string({0}))",
        "tumble_start tumble_end tumble_rowtime": "GROUP BY TUMBLE({0}, {1}), of which this is a bound",
        "hop_start hop_end hop_rowtime": "GROUP BY HOP({0}, {1}, {2}), of which this is a bound",
        "session_start session_end session_rowtime": "GROUP BY SESSION({0}, {1}), of which this is a bound",
        "tumble_proctime hop_proctime session_proctime": "the time of the rows: window_end",
    }.items()
    for name in names.split()
}
#: a name that is less alike than this is no misspelling: a hint that leads astray is worse than none
_ALIKE = 0.75


def is_bound(node: syntax.Node) -> bool:
    """Whether a node could be `window_start` or `window_end`."""
    return isinstance(node, syntax.Name) and len(node.parts) == 1 and node.parts[0].lower() in BOUNDS


def has_aggregate(node: syntax.Node) -> bool:
    """Whether any aggregate of a group is called in an expression; before OVER it is one of a frame."""
    if isinstance(node, syntax.Apply) and aggregates.is_aggregate(node.function):
        return True
    parts = [part for part in children(node) if not isinstance(part, syntax.QueryExpression)]
    if isinstance(node, syntax.OverCall):
        parts = [*children(node.call), *(part for part in parts if part is not node.call)]
    return any(map(has_aggregate, parts))


def conditions(node: syntax.Node | None) -> list[syntax.Node]:
    """The written conditions that must all hold."""
    if node is None:
        return []
    if isinstance(node, syntax.Apply) and node.function == "and":
        return [part for arg in node.args for part in conditions(arg)]
    return [node]
