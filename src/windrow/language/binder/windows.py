"""Window brackets: the clause as written, with its columns found and its LIFETIME typed.

A stream without a bracket has the window UNBOUNDED, as in CQL. A nested query's rows have no attribute
of their own: they are windowed by the instants they are about, called `at`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from windrow.algebra.operators import Union
from windrow.algebra.plan import Scan, Subquery, Window
from windrow.algebra.types import INTERVAL
from windrow.errors import QueryError, nearest
from windrow.language.binder.expressions import ExpressionBinder
from windrow.language.binder.places import at, refuse
from windrow.windows.clause import resolve
from windrow.windows.domain import ROW_NUM, Domain, refuse_resolution
from windrow.windows.ranges import UnboundedWindow

if TYPE_CHECKING:
    from windrow.algebra.expressions import Expression, Schema
    from windrow.language.binder.scope import Scope
    from windrow.language.syntax import PointSyntax, WindowSyntax
    from windrow.windows.clause import WindowClause

#: what the instants of a nested query's rows are called
INSTANT = "at"


def window(input: Scan | Subquery | Union, written: WindowSyntax | None, scope: Scope) -> Window:
    """The input under its window; `scope` holds the input's columns, for LIFETIME."""
    if written is None:
        return Window(input, UnboundedWindow())
    with at(written):
        if isinstance(input, Scan):
            found = _over_stream(input, written, scope)
        else:
            found = _over_query(input, written, scope)
    for point in written.points:
        _check_point(point, found)
    return found


def _check_point(point: PointSyntax, window: Window) -> None:
    """A time is no point of a number, and a number none of time."""
    if point.is_time and window.domain is not Domain.TIME:
        message = f"{point.word} is a time, but the window is on a number"
        refuse(point, message, "window-origin", f"write a number, as in {point.word} 100")
    if not point.is_time and window.domain is Domain.TIME:
        message = f"{point.word} is a number, but the window is on time"
        refuse(point, message, "window-origin", f"write a time, as in {point.word} '2024-01-31 07:00:00'")


def _over_stream(scan: Scan, written: WindowSyntax, scope: Scope) -> Window:
    stream = scan.stream
    attributes = stream.attributes
    clause = _with_columns(written.clause, stream.schema, f"stream `{stream.name}`")
    domain = attributes.get(clause.wattr or stream.wattr, stream.domain)
    clause = replace(clause, lifetime=_lifetime(written, scope, domain))
    return Window(scan, resolve(clause, attributes, stream.wattr))


def _over_query(input: Subquery | Union, written: WindowSyntax, scope: Scope) -> Window:
    wattr = written.clause.wattr or written.clause.rattr
    if wattr is not None and wattr.lower() not in (ROW_NUM, INSTANT):
        raise QueryError(
            f"rows of a nested query are windowed by the instants they are about, not by `{wattr}`",
            code="window-attribute",
            hint="leave it out, or window the stream inside by it",
        )
    subquery = next(node for node in input.walk() if isinstance(node, Subquery))
    domain = subquery.query.leaves[0].domain
    clause = _with_columns(written.clause, subquery.query.schema, "the nested query")
    clause = replace(clause, lifetime=_lifetime(written, scope, domain))
    return Window(input, resolve(clause, {INSTANT: domain}, INSTANT))


def _with_columns(clause: WindowClause, schema: Schema, owner: str) -> WindowClause:
    """PARTITION BY, spelled as declared."""
    known = {name.lower(): name for name in schema.names}
    for name in clause.partition_by:
        if name.lower() not in known:
            raise QueryError(
                f"{owner} has no column `{name}` to partition by",
                code="unknown-column",
                hint=nearest(name, schema.names),
            )
    return replace(clause, partition_by=tuple(known[name.lower()] for name in clause.partition_by))


def _lifetime(written: WindowSyntax, scope: Scope, domain: Domain) -> Expression | None:
    if written.lifetime is None:
        return None
    refuse_resolution(domain, "LIFETIME")
    bound = ExpressionBinder(scope, "LIFETIME").bind(written.lifetime)
    timed = bound.type == INTERVAL and domain is Domain.TIME
    if not (timed or bound.type.is_integer):
        wanted = "an INTERVAL or an integer" if domain is Domain.TIME else "an integer, as the attribute is"
        refuse(
            written.lifetime,
            f"LIFETIME is {wanted}, but this is {bound.type}",
            "bad-lifetime",
            "for example LIFETIME INTERVAL '5' MINUTES, or a column of that type",
        )
    if timed and written.clause.lifetime_scale != 1:
        refuse(written.lifetime, "an INTERVAL has its unit already", "bad-lifetime", "leave the unit out")
    return bound
