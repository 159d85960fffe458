"""What queries are asked about: declared streams and tables."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum
from fractions import Fraction

from windrow.algebra.expressions import Expression, Schema
from windrow.algebra.types import BIGINT, DOUBLE, MAX_PRECISION, TIMESTAMP, DataType, Kind, decimal
from windrow.errors import QueryError, nearest
from windrow.windows import ARRIVAL_TS, ROW_NUM, Domain, NoPolicy, Policy

#: attributes every stream has besides its columns; never part of `*`
PSEUDO_COLUMNS: dict[str, DataType] = {ROW_NUM: BIGINT, ARRIVAL_TS: TIMESTAMP}


#: the forms in which a TIMESTAMP may stand in a source as a number since 1970-01-01 UTC, and their
#: microseconds
EPOCHS = {"epoch_s": 1_000_000, "epoch_ms": 1_000, "epoch_us": 1}
#: columns by name, each with the form that its values have in the source: an epoch, or a pattern and perhaps
#: the zone of times that name none, as in `dd.MM.yyyy HH:mm ZONE Europe/Berlin`
Forms = tuple[tuple[str, str], ...]
#: columns by name, each with the expression it is computed by
Computed = tuple[tuple[str, "Expression"], ...]


def split_form(form: str) -> tuple[str, str | None]:
    """The pattern and the zone of a form; either may be missing.

    >>> split_form("HH:mm ZONE Europe/Berlin"), split_form("epoch_ms"), split_form("ZONE UTC")
    (('HH:mm', 'Europe/Berlin'), ('epoch_ms', None), ('', 'UTC'))
    """
    pattern, found, zone = f" {form}".rpartition(" ZONE ")
    return (pattern.strip(" "), zone) if found else (form, None)


def form_text(form: str) -> str:
    """A form as it stands in a declaration."""
    pattern, zone = split_form(form)
    quoted = pattern.replace("'", "''")
    parts = [f"FORMAT '{quoted}'"] if pattern else []
    return " ".join([*parts, f"ZONE '{zone}'"] if zone else parts)


class Late(Enum):
    """What becomes of a row below the punctuation."""

    DROP = "DROP"
    KEEP = "KEEP"
    TO = "TO"


class TableKind(Enum):
    """Whether changes of a table reach back to answers already given."""

    NRR = "NRR"
    RELATION = "RELATION"


def domain_of(kind: DataType) -> Domain | None:
    """The domain a windowing attribute of this type belongs to; None if it cannot be one."""
    if kind.is_time:
        return Domain.TIME
    return Domain.NUMBER if kind.is_integer else None


#: the greatest RESOLUTION, and the most digits that one has after the point
_COARSEST, _FINEST = 10**9, 18


def _digits(resolution: Decimal) -> int:
    """How many digits a number has after the point.

    >>> _digits(Decimal("0.250")), _digits(Decimal("10"))
    (2, 0)
    """
    exponent = resolution.normalize().as_tuple().exponent
    return max(0, -int(exponent))


def _scaled(kind: DataType, resolution: Decimal | None) -> Domain | None:
    """The domain of a DOUBLE or a DECIMAL by its resolution; None if it has none."""
    if kind.kind is Kind.DOUBLE and resolution is not None:
        return Domain("number", Fraction(resolution))
    if kind.kind is Kind.DECIMAL and kind.scale <= _FINEST:
        return Domain("number", Fraction(resolution or Decimal(1).scaleb(-kind.scale)), kind.scale)
    return None


def instant_type(domain: Domain) -> DataType:
    """The type of the instants of a domain, as answers have them."""
    if domain is Domain.TIME:
        return TIMESTAMP
    if domain.resolution is None:
        return BIGINT
    return DOUBLE if domain.scale is None else decimal(MAX_PRECISION, domain.scale)


@dataclass(frozen=True)
class ProgressRule:
    """How a stream knows that no more rows come below P.

    The policy does the arithmetic; `per`, `mark` and `when` say what it is fed with: the source
    column of PER, the expression of PUNCTUATED BY, and the condition of WHEN.
    """

    policy: Policy = field(default_factory=NoPolicy)
    per: str | None = None
    mark: Expression | None = None
    when: Expression | None = None


@dataclass(frozen=True)
class Keep:
    """How much of a stream is kept for queries that come later: so many ticks, or so many rows."""

    ticks: int | None = None
    rows: int | None = None


@dataclass(frozen=True)
class Expected:
    """What a declaration says of a stream for the planner: rows per second, or per unit of a number, and how
    many different values columns have."""

    rate: float
    values: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class Stream:
    """A declared stream."""

    name: str
    schema: Schema
    wattr: str
    progress: ProgressRule = ProgressRule()
    late: Late = Late.DROP
    late_sink: str | None = None
    sheddable: bool = False
    source: str | None = None
    #: None: rows are forgotten when no standing query needs them
    keep: Keep | None = None
    forms: Forms = ()
    #: what is known beforehand; it changes which plan is chosen, and nothing else
    expected: Expected | None = None
    #: columns that are computed where they are read, over the names of the schema
    computed: Computed = ()
    #: further attributes that windows of a live stream may be on, each with a policy of its own (ALSO)
    also: tuple[tuple[str, Policy], ...] = ()
    #: what one tick of the WATTR is, if that is a DOUBLE or a DECIMAL; of a DECIMAL its last digit, if None
    resolution: Decimal | None = None

    def __post_init__(self) -> None:
        reserved = next((name for name in self.schema.names if name.lower() in PSEUDO_COLUMNS), None)
        if reserved:
            raise QueryError(
                f"stream `{self.name}` cannot have a column `{reserved}`: every stream has one already",
                code="reserved-column",
                hint="rename the column",
            )
        if self.resolution is not None:
            self._check_resolution(self.resolution)
        if self.wattr not in self.attributes:
            self._refuse_wattr()
        for name, _ in self.also:
            if name not in self.schema or name not in self.attributes or name == self.wattr:
                self._refuse_also(name)
        if self.progress.per is not None:
            self.schema.index(self.progress.per)

    def _check_resolution(self, resolution: Decimal) -> None:
        """Refuse a RESOLUTION that no tick of the attribute can be."""
        if self.wattr not in self.schema:
            return
        kind = self.schema.column(self.wattr).type
        reason, hint = None, f"write a number such as 0.001, as in WATTR {self.wattr} RESOLUTION 0.001"
        if kind.kind not in (Kind.DOUBLE, Kind.DECIMAL):
            reason = f"is for a DOUBLE or a DECIMAL, and `{self.wattr}` is {kind}"
            hint = "leave RESOLUTION out"
        elif not 0 < resolution <= _COARSEST:
            reason = f"lies above 0 and is at most {_COARSEST}"
        elif _digits(resolution) > _FINEST or Fraction(resolution).numerator > _COARSEST:
            reason = f"has at most {_FINEST} digits after the point and {len(str(_COARSEST)) - 1} in all"
        elif kind.kind is Kind.DECIMAL and _digits(resolution) > kind.scale:
            reason = f"{resolution} is finer than `{self.wattr}`, which is {kind}"
            hint = f"write at most {kind.scale} digits after the point, or leave RESOLUTION out"
        if reason is not None:
            raise QueryError(f"stream `{self.name}`: RESOLUTION {reason}", code="bad-resolution", hint=hint)

    def _time_as_text(self) -> str | None:
        """How a column of text is declared as the time it may be, where no other column is one."""
        is_timed = any(field.type.kind in (Kind.TIMESTAMP, Kind.DATE) for field in self.schema)
        if is_timed or self.schema.column(self.wattr).type.kind is not Kind.STRING:
            return None
        form = {self.wattr: "TIMESTAMP FORMAT 'yyyy-MM-dd HH:mm:ss'"}
        columns = [f"{field.name} {form.get(field.name, field.type)}" for field in self.schema]
        return f"if it is a time, declare how it is written: ({', '.join(columns)})"

    def _refuse_wattr(self) -> None:
        if self.wattr in self.schema and self.schema.column(self.wattr).type.kind is Kind.DOUBLE:
            raise QueryError(
                f"`{self.wattr}` is DOUBLE; to be a windowing attribute it needs a RESOLUTION, of which all"
                " its values are multiples",
                code="bad-wattr",
                hint=f"write WATTR {self.wattr} RESOLUTION 0.001",
            )
        if self.wattr in self.schema:
            raise QueryError(
                f"`{self.wattr}` is {self.schema.column(self.wattr).type}; a windowing attribute must be a"
                " TIMESTAMP, a DATE or an integer",
                code="bad-wattr",
                hint=self._time_as_text() or nearest(self.wattr, self.attributes),
            )
        raise QueryError(
            f"stream `{self.name}` has no column `{self.wattr}` to be its WATTR",
            code="unknown-column",
            hint=nearest(self.wattr, self.attributes),
        )

    def _refuse_also(self, name: str) -> None:
        if name == self.wattr:
            reason, hint = "is its WATTR, which has its policy already", "leave ALSO out"
        elif name in self.schema:
            reason = f"is {self.schema.column(name).type}, and a windowing attribute is a time or an integer"
            hint = "name a column of type TIMESTAMP, DATE or of an integer type"
        else:
            reason, hint = "is no column of it", nearest(name, self.schema.names) or "name one of its columns"
        raise QueryError(f"stream `{self.name}`: ALSO `{name}` {reason}", code="bad-wattr", hint=hint)

    @property
    def attributes(self) -> dict[str, Domain]:
        """The attributes a window may be on, with their domains."""
        known = {column.name: domain_of(column.type) for column in self.schema}
        known |= {ROW_NUM: Domain.NUMBER, ARRIVAL_TS: Domain.TIME}
        if self.wattr in self.schema and known[self.wattr] is None:
            known[self.wattr] = _scaled(self.schema.column(self.wattr).type, self.resolution)
        return {name: domain for name, domain in known.items() if domain is not None}

    @property
    def title(self) -> str:
        """What messages call it."""
        return f"stream `{self.name}`"

    @property
    def domain(self) -> Domain:
        """The domain of the windowing attribute."""
        return self.attributes[self.wattr]


@dataclass(frozen=True)
class Table:
    """A declared table; `key` columns identify a row."""

    name: str
    schema: Schema
    kind: TableKind
    key: tuple[str, ...] = ()
    source: str | None = None
    forms: Forms = ()
    computed: Computed = ()

    def __post_init__(self) -> None:
        for name in self.key:
            self.schema.index(name)

    @property
    def title(self) -> str:
        """What messages call it."""
        return f"table `{self.name}`"
