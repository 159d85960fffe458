"""CREATE STREAM and CREATE TABLE: columns, the windowing attribute, progress, keys.

CREATE ARCHIVE: whether what is named is there, whether rows can be found by the key, and when they expire.

What lives in an archive, and until when:

    a stream                     its accepted rows, for KEEP
    a query that emits a stream  each row it emits, for KEEP: extents that are reported, ISTREAM, …
    a query that emits '+' and '-'    the rows of the answer, for as long as they are in it, and KEEP at most

The last has to be known when a row comes, so the answer must expire by time alone.
"""

from __future__ import annotations

from dataclasses import replace

from windrow.algebra import Kind, catalog
from windrow.algebra.catalog import EPOCHS, Expected, Keep, ProgressRule, Stream, Table, domain_of
from windrow.algebra.expressions import Expression, Field, Schema, cast
from windrow.algebra.functions.time_patterns import reader
from windrow.errors import QueryError, nearest
from windrow.language.binder import constants, scope
from windrow.language.binder.expressions import ExpressionBinder
from windrow.language.catalog import Catalog, Inference, StandingArchive, StandingQuery
from windrow.language.statements import CreateArchive
from windrow.language.syntax import ColumnDef, CreateStream, CreateTable, Name, Node, ProgressSyntax, walk
from windrow.language.tokens import at, refuse
from windrow.windows import NoPolicy, Ordered, OrderedPer, Pattern, Policy, Punctuated, Slack, SlackRows
from windrow.windows.domain import ROW_NUM, Domain, refuse_resolution

#: values of these are not in an order that files could be searched by
_NO_KEYS = frozenset({Kind.FLOAT, Kind.DOUBLE, Kind.NULL, Kind.INTERVAL, Kind.ARRAY, Kind.STRUCT})
#: the column of a query's answers that says when
AT = "at"


def bind_archive(statement: CreateArchive, catalog: Catalog) -> StandingArchive:
    with at(statement.source_at):
        source = catalog.find(statement.source)
        if isinstance(source, Table):
            raise QueryError(
                f"`{source.name}` is a table: its rows do not expire",
                code="archive-source",
                hint="an archive is ON a stream or a query",
            )
        if isinstance(source, StandingQuery):
            check_lifetimes(source)
    with at(statement.key_at):
        key = _key(statement.key, source)
    with at(statement.keep_at):
        domain = source.domain if isinstance(source, Stream) else source.plan.leaves[0].domain
        refuse_resolution(domain, "an archive")
        keep = statement.ticks(domain)
    return StandingArchive(statement.name, source.name, key, keep, statement.layout)


def check_lifetimes(query: StandingQuery) -> None:
    """Whether it is known, when a row of the answer comes, until when it stays."""
    label = query.plan.label
    is_known = label.pattern is not Pattern.STR and not query.plan.is_internal
    if query.plan.emits_deletions and not is_known:
        reason = "results outlive INTERNAL windows" if query.plan.is_internal else label.reason
        raise QueryError(
            f"nobody knows how long rows stay in the answer of query `{query.name}`: {reason}",
            code="archive-source",
            hint="give its windows a SLIDE, or write SELECT ISTREAM(…), to keep what it emits",
        )


def _key(written: str, source: Stream | StandingQuery) -> str:
    """The key column, as it is spelled in the rows of the source."""
    if isinstance(source, Stream):
        columns = {field.name: field.type for field in source.schema}
    else:
        columns = {AT: catalog.instant_type(source.plan.leaves[0].domain)}
        columns |= {field.name + "_" * (field.name == AT): field.type for field in source.plan.schema}
    spelled = {name.lower(): name for name in columns}
    if written.lower() not in spelled:
        raise QueryError(
            f"`{source.name}` has no column `{written}`",
            code="unknown-column",
            hint=nearest(written, columns),
        )
    key = spelled[written.lower()]
    if columns[key].kind in _NO_KEYS:
        raise QueryError(
            f"`{key}` is {columns[key]}, which is no good key",
            code="key",
            hint="choose a column of whole numbers, decimals, text, dates or times",
        )
    return key


def bind_stream(statement: CreateStream, inference: Inference | None = None) -> Stream:
    schema = _schema(columns := _source_columns(statement, inference))
    with at(statement):
        named = _declared(statement.wattr, schema) if statement.wattr else None
        _refuse_computed(statement, columns)
        wattr = named or _default_wattr(statement.name, schema)
        plain = Stream(statement.name, schema, wattr, resolution=statement.resolution)
    return Stream(
        statement.name,
        schema,
        wattr,
        _progress(statement.progress, plain),
        catalog.Late(statement.late),
        statement.late_sink,
        statement.sheddable,
        statement.source,
        _keep(statement, plain),
        _forms(columns, schema),
        _expected(statement, plain),
        _computed(columns, schema),
        _also(statement, plain),
        statement.resolution,
    )


def _also(statement: CreateStream, stream: Stream) -> tuple[tuple[str, Policy], ...]:
    """Further windowing attributes, each once, with their policies."""
    found: dict[str, Policy] = {}
    for written, progress in statement.also:
        with at(progress):
            name = _column(written, stream.schema, stream.title, "window on")
            if statement.late == "KEEP":
                raise QueryError(
                    "LATE KEEP is about the WATTR only, so it does not go with ALSO",
                    code="bad-wattr",
                    hint=f"write LATE DROP, or declare another stream over the same source with WATTR {name}",
                )
            if name in found:
                raise QueryError(f"ALSO `{name}` is there twice", code="syntax", hint="leave one out")
            replace(stream, also=((name, Ordered()),))
            found[name] = _policy(progress, stream.attributes[name])
    return tuple(found.items())


def bind_table(statement: CreateTable, inference: Inference | None = None) -> Table:
    schema = _schema(columns := _source_columns(statement, inference))
    with at(statement):
        owner = f"table `{statement.name}`"
        key = tuple(_column(name, schema, owner, "be its KEY") for name in statement.key)
        forms = _forms(columns, schema)
        computed = _computed(columns, schema)
        kind = catalog.TableKind(statement.kind)
        return Table(statement.name, schema, kind, key, statement.source, forms, computed)


def _refuse_computed(statement: CreateStream, columns: tuple[ColumnDef, ...]) -> None:
    """The WATTR is a column of the source: lateness is judged before anything is computed."""
    wanted = (statement.wattr or "").lower()
    found = next((c for c in columns if c.computed is not None and c.name.lower() == wanted), None)
    if found is None or found.computed is None:
        return
    names = {column.name.lower(): column for column in columns if column.computed is None}
    read = [part.parts[-1] for part in walk(found.computed) if isinstance(part, Name)]
    source = names.get(read[0].lower()) if read else None
    name = source.name if source else "ts"
    numeric = source is not None and constants.written_type(source.type_text).is_numeric
    form = "epoch_ms" if numeric else "yyyy-MM-dd HH:mm:ss"
    refuse(
        statement,
        f"`{found.name}` is computed, and a WATTR is a column of the source",
        "computed-wattr",
        f"read it as a time: {name} TIMESTAMP FORMAT '{form}', and WATTR {name} instead of `{found.name}`",
    )


def _source_columns(
    statement: CreateStream | CreateTable, inference: Inference | None
) -> tuple[ColumnDef, ...]:
    """The columns, computed ones included; those that the source has are told from it if none is declared."""
    kind = "STREAM" if isinstance(statement, CreateStream) else "TABLE"
    if any(column.computed is None for column in statement.columns):
        return statement.columns
    with at(statement):
        if statement.source is None or inference is None:
            hint = f"write CREATE {kind} {statement.name} (column TYPE, …), or name files behind FROM"
            refuse(statement, f"`{statement.name}` has no columns", "no-columns", hint)
        found = inference(kind, statement.name, statement.source)
    told = (ColumnDef(statement.span, name, kind) for name, kind in found)
    return (*told, *statement.columns)


def _schema(columns: tuple[ColumnDef, ...]) -> Schema:
    fields: dict[str, Field] = {}
    for column in columns:
        if column.computed is not None:
            continue
        with at(column):
            kind = constants.written_type(column.type_text)
        if kind.kind is Kind.NULL:
            refuse(column, f"`{column.name}` would only ever be NULL", "bad-type", "give it a type of values")
        if column.name.lower() in fields:
            refuse(column, f"two columns are called `{column.name}`", "duplicate-column", "rename one")
        fields[column.name.lower()] = Field(column.name, kind)
    return Schema(tuple(fields.values()))


def _computed(columns: tuple[ColumnDef, ...], schema: Schema) -> catalog.Computed:
    """The columns that are computed from those before them, each an expression over what rows have."""
    found: dict[str, Expression] = {}
    for column in columns:
        if column.computed is None:
            continue
        if column.name.lower() in {name.lower() for name in (*schema.names, *found)}:
            refuse(column, f"two columns are called `{column.name}`", "duplicate-column", "rename one")
        own = [scope.NamedColumn("", name, schema.column(name)) for name in schema.names]
        made = [scope.NamedColumn("", name, value) for name, value in found.items()]
        value = ExpressionBinder(scope.Scope((*own, *made)), "a computed column").bind(column.computed)
        with at(column):
            found[column.name] = (
                cast(value, constants.written_type(column.type_text)) if column.type_text else value
            )
    return tuple(found.items())


def _forms(columns: tuple[ColumnDef, ...], schema: Schema) -> catalog.Forms:
    """How values stand in the source, where that is said."""
    found: list[tuple[str, str]] = []
    for column in columns:
        if column.form is None and column.zone is None:
            continue
        if schema.column(column.name).type.kind is not Kind.TIMESTAMP:
            word = "FORMAT" if column.form is not None else "ZONE"
            refuse(column, f"{word} is for the values of a TIMESTAMP", "bad-format", f"leave {word} out")
        with at(column):
            found.append((column.name, _form(column)))
    return tuple(found)


def _form(column: ColumnDef) -> str:
    """An epoch, or a pattern with the zone of times that name none."""
    written = column.form or ""
    if written.lower() in EPOCHS or written.lower().startswith("epoch"):
        if written.lower() not in EPOCHS:
            refuse(column, f"no FORMAT '{written}'", "bad-format", _FORMS_HINT)
        if column.zone is not None:
            refuse(column, "a number since 1970 is of no zone", "bad-format", "leave ZONE out")
        return written.lower()
    pattern = reader(written, column.zone or "UTC")
    if written and pattern.names_zone and column.zone is not None:
        refuse(column, "these times have an offset or a zone of their own", "bad-format", "leave ZONE out")
    zone = f"ZONE {column.zone}" if column.zone is not None else ""
    return f"{written} {zone}".strip(" ")


_FORMS_HINT = (
    "there are 'epoch_s', 'epoch_ms', 'epoch_us', and patterns such as 'dd/MMM/yyyy:HH:mm:ss Z';"
    " text as in 2024-01-31T07:00:00Z needs none"
)


def _declared(name: str, schema: Schema) -> str:
    """A column as it is spelled in the declaration; unknown names are left for others to refuse."""
    return next((known for known in schema.names if known.lower() == name.lower()), name)


def _column(name: str, schema: Schema, owner: str, purpose: str) -> str:
    """A column that must be there, as it is spelled in the declaration."""
    found = _declared(name, schema)
    if found not in schema:
        raise QueryError(
            f"{owner} has no column `{name}` to {purpose}",
            code="unknown-column",
            hint=nearest(name, schema.names),
        )
    return found


def _default_wattr(stream: str, schema: Schema) -> str:
    """The only time column; where there is none, the last integer column."""
    times = [field.name for field in schema if domain_of(field.type) is Domain.TIME]
    numbers = [field.name for field in schema if domain_of(field.type) is Domain.NUMBER]
    if len(times) > 1:
        listed = " and ".join(f"`{name}`" for name in times)
        raise QueryError(
            f"stream `{stream}` could be ordered by {listed}",
            code="which-wattr",
            hint=f"say which: WATTR {times[-1]}",
        )
    if not times and not numbers:
        raise QueryError(
            f"stream `{stream}` has no column it could be ordered by",
            code="which-wattr",
            hint="add a TIMESTAMP, a DATE or an integer column, or say WATTR arrival_ts",
        )
    return times[0] if times else numbers[-1]


def _progress(written: ProgressSyntax | None, stream: Stream) -> ProgressRule:
    if written is None:
        return ProgressRule()
    columns = (stream.schema.column(name) for name in stream.schema.names)
    own = scope.Scope(tuple(scope.NamedColumn(stream.name, column.name, column) for column in columns))
    values = ExpressionBinder(own, "PUNCTUATED BY")
    with at(written):
        owner = f"stream `{stream.name}`"
        per = _column(written.per, stream.schema, owner, "tell sources apart by") if written.per else None
        mark = _mark(written.mark, values, stream) if written.mark is not None else None
        when = ExpressionBinder(own, "WHEN").condition(written.when) if written.when is not None else None
        return ProgressRule(_policy(written, stream.domain), per, mark, when)


def _expected(statement: CreateStream, stream: Stream) -> Expected | None:
    """What the planner is told; it is about columns that there are."""
    if statement.expected is None:
        return None
    rate, values = statement.expected
    with at(statement):
        if rate < 1 or any(count < 1 for _, count in values):
            raise QueryError(
                "EXPECT is about rows that come and values that there are",
                code="bad-value",
                hint="numbers are whole, from 1 on; leave EXPECT out to let the engine see for itself",
            )
        named = [(_column(name, stream.schema, stream.title, "be counted"), n) for name, n in values]
        return Expected(float(rate), tuple(named))


def _keep(statement: CreateStream, stream: Stream) -> Keep | None:
    amount = statement.keep
    if amount is None:
        return None
    with at(statement):
        keep = Keep(rows=amount.count()) if amount.in_rows else Keep(amount.ticks(stream.domain))
        if (keep.rows or keep.ticks or 0) < 1:
            raise QueryError(f"KEEP {amount} keeps nothing", code="bad-keep", hint="leave KEEP out")
        refuse_resolution(stream.domain, "KEEP")
        if stream.wattr == ROW_NUM:
            raise QueryError(
                "rows are kept by their place in time, and this stream has none of its own",
                code="bad-keep",
                hint="give it a WATTR that is a column, or WATTR arrival_ts",
            )
        return keep


def _policy(written: ProgressSyntax, domain: Domain) -> Policy:
    match written.kind:
        case "SLACK" if written.amount.in_rows:
            return SlackRows(written.amount.count())
        case "SLACK":
            return Slack(written.amount.ticks(domain))
        case "ORDERED" if written.per is not None:
            return OrderedPer(written.idle.ticks(Domain.TIME) if written.idle is not None else None)
        case "ORDERED":
            return Ordered()
        case "PUNCTUATED":
            return Punctuated(per=written.per is not None)
    return NoPolicy()


def _mark(node: Node, values: ExpressionBinder, stream: Stream) -> Expression:
    refuse_resolution(stream.domain, "PUNCTUATED BY")
    mark = values.bind(node)
    if domain_of(mark.type) is not stream.domain:
        wanted = "a TIMESTAMP or a DATE" if stream.domain is Domain.TIME else "an integer"
        refuse(
            node,
            f"punctuation on `{stream.wattr}` is {wanted}, but this is {mark.type}",
            "bad-punctuation",
            f"it says up to where `{stream.wattr}` is complete",
        )
    return mark
