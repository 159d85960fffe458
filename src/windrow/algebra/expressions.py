"""Scalar expressions: immutable, typed trees that every executor evaluates alike.

There are few node kinds. Operators, functions, CASE and conditionals are all `Call`s, named as in
the function registry (`windrow.algebra.functions`), so that a new function is a registry entry and
never a new node.

Implicit casts: where Spark's ANSI mode would insert one, and where Windrow would rather ask.

Numbers widen, a DATE becomes a TIMESTAMP, a string *literal* next to a time or in its place is read as
a time, NULL becomes whatever is wanted. Spark goes further and reads every string as a number when it
stands next to one; one bad row would then stop a standing query, so Windrow asks for a CAST (or
TRY_CAST) instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Context, Decimal
from functools import cached_property, reduce
from typing import Any, NoReturn

from windrow.algebra.types import BOOLEAN, DOUBLE, MAX_PRECISION, NULL, STRING, DataType, Kind, common_type
from windrow.errors import QueryError, nearest


class Expression:
    """The root of all expressions; their type is known when the node is made."""

    data_type: DataType

    @property
    def type(self) -> DataType:
        """The type of its values."""
        return self.data_type

    @property
    def children(self) -> tuple[Expression, ...]:
        return ()

    def with_children(self, children: tuple[Expression, ...]) -> Expression:
        """The same node over other children."""
        assert not children
        return self

    def walk(self) -> Iterator[Expression]:
        """This node and all below it, parents first."""
        yield self
        for child in self.children:
            yield from child.walk()

    def rewrite(self, change: Callable[[Expression], Expression]) -> Expression:
        """The tree with `change` applied to every node, children first."""
        children = tuple(child.rewrite(change) for child in self.children)
        return change(self if children == self.children else self.with_children(children))

    @property
    def reads_window_bounds(self) -> bool:
        """Whether it asks for the bounds of the reported extent."""
        return any(isinstance(node, WindowBound) for node in self.walk())

    @property
    def columns(self) -> frozenset[str]:
        """The names of all columns it reads."""
        return frozenset(node.name for node in self.walk() if isinstance(node, ColumnRef))


@dataclass(frozen=True)
class Literal(Expression):
    """A constant. TIMESTAMP, DATE and INTERVAL constants are integer microseconds."""

    value: Any
    data_type: DataType

    def __eq__(self, other: object) -> bool:
        # 1, 1.0, TRUE and -0.0 compare equal in Python, but are different constants.
        return (
            isinstance(other, Literal)
            and self.data_type == other.data_type
            and repr(self.value) == repr(other.value)
        )

    def __hash__(self) -> int:
        return hash((self.data_type, repr(self.value)))


@dataclass(frozen=True)
class ColumnRef(Expression):
    """A column of the input, by its unique name in the input's schema."""

    name: str
    data_type: DataType


#: how many arguments each function takes, at least and at most: the registry's, as far as it is filled
ARITIES: dict[str, tuple[int, int | None]] = {}


@dataclass(frozen=True)
class Call(Expression):
    """An operator or function of the registry, applied; `data_type` follows from it and the arguments.

    Users' text is checked by the registry's `call`, with an error for them. Here a tree that no executor
    could evaluate is refused where it is made, whoever makes it: more than two parts of AND or OR are
    `conjunction` and `disjunction`.
    """

    function: str
    args: tuple[Expression, ...]
    data_type: DataType

    def __post_init__(self) -> None:
        least, most = ARITIES.get(self.function, (0, None))
        if not least <= len(self.args) <= (len(self.args) if most is None else most):
            raise ValueError(f"a call of `{self.function}` with {len(self.args)} arguments")

    @property
    def children(self) -> tuple[Expression, ...]:
        return self.args

    def with_children(self, children: tuple[Expression, ...]) -> Expression:
        return replace(self, args=children)


@dataclass(frozen=True)
class Cast(Expression):
    """CAST, or TRY_CAST (`safe`), which gives NULL where CAST would fail."""

    arg: Expression
    data_type: DataType
    safe: bool = False

    @property
    def children(self) -> tuple[Expression, ...]:
        return (self.arg,)

    def with_children(self, children: tuple[Expression, ...]) -> Expression:
        return replace(self, arg=children[0])


@dataclass(frozen=True)
class WindowBound(Expression):
    """`window_start` or `window_end`: a fact of the reported extent, not of a row."""

    which: str
    data_type: DataType
    #: the value of one tick, if that is a RESOLUTION
    step: Decimal | None = None


TRUE, FALSE = Literal(True, BOOLEAN), Literal(False, BOOLEAN)
#: so many parts of a conjunction may stand in a row, each a level deeper than the last
_MANY = 64


def substituted(expression: Expression, values: Mapping[str, Expression]) -> Expression:
    """The expression with columns replaced by what they stand for; other columns stay."""
    return expression.rewrite(
        lambda node: values.get(node.name, node) if isinstance(node, ColumnRef) else node
    )


def conjuncts(predicate: Expression) -> tuple[Expression, ...]:
    """The parts of a predicate that must all hold.

    >>> a, b = ColumnRef("a", BOOLEAN), ColumnRef("b", BOOLEAN)
    >>> [part.name for part in conjuncts(conjunction((a, b)))]
    ['a', 'b']
    """
    if isinstance(predicate, Call) and predicate.function == "and":
        return tuple(part for arg in predicate.args for part in conjuncts(arg))
    return () if predicate == TRUE else (predicate,)


def conjunction(parts: tuple[Expression, ...]) -> Expression:
    """The predicate that holds where all `parts` hold; TRUE for none. Many parts make no deep tree."""
    return _chained("and", parts) if parts else TRUE


def disjunction(parts: tuple[Expression, ...]) -> Expression:
    """The predicate that holds where any of `parts` holds; FALSE for none.

    >>> a, b, c = (ColumnRef(name, BOOLEAN) for name in "abc")
    >>> disjunction((a, b, c)) == Call("or", (Call("or", (a, b), BOOLEAN), c), BOOLEAN)
    True
    """
    return _chained("or", parts) if parts else FALSE


def _chained(connective: str, parts: tuple[Expression, ...]) -> Expression:
    """The parts in order, two by two."""
    if len(parts) > _MANY:
        middle = len(parts) // 2
        halves = _chained(connective, parts[:middle]), _chained(connective, parts[middle:])
        return Call(connective, halves, BOOLEAN)
    return reduce(lambda left, right: Call(connective, (left, right), BOOLEAN), parts)


# ------------------------------------------------------------ schema
#
# What rows look like: named, typed fields. Names are unique within a relation.


@dataclass(frozen=True)
class Field:
    """One column."""

    name: str
    type: DataType


@dataclass(frozen=True)
class Schema:
    """The columns of a relation, in order.

    >>> from windrow.algebra.types import BIGINT, STRING
    >>> schema = Schema((Field("item", BIGINT), Field("name", STRING)))
    >>> schema.index("name"), schema.column("item").type
    (1, BIGINT)
    """

    fields: tuple[Field, ...]

    def __post_init__(self) -> None:
        for name in self._positions:
            wrong = None
            if name == "*" or (name[:1] == "^" and name[-1:] == "$"):
                wrong = f"`{name}`: that stands for many columns"
            elif "\x1f" in name:  # begins names of columns that are added on the way
                wrong = f"{name!r}: nobody can read '\\x1f'"
            if wrong is not None:
                hint = "rename it, with AS or in the source"
                raise QueryError(f"a column cannot be called {wrong}", code="bad-name", hint=hint)
        if len(self._positions) != len(self.fields):
            names = [field.name for field in self.fields]
            twice = next(name for name in names if names.count(name) > 1)
            raise QueryError(
                f"two columns are called `{twice}`", code="duplicate-column", hint="rename one with AS"
            )

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {field.name: position for position, field in enumerate(self.fields)}

    def __iter__(self) -> Iterator[Field]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)

    def __contains__(self, name: str) -> bool:
        return name in self._positions

    def __add__(self, other: Schema) -> Schema:
        return Schema(self.fields + other.fields)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(field.name for field in self.fields)

    @property
    def types(self) -> tuple[DataType, ...]:
        return tuple(field.type for field in self.fields)

    def index(self, name: str) -> int:
        """The position of a column."""
        if name not in self._positions:
            raise QueryError(f"no column `{name}`", code="unknown-column", hint=nearest(name, self.names))
        return self._positions[name]

    def column(self, name: str) -> ColumnRef:
        """A reference to a column, typed."""
        return ColumnRef(name, self.fields[self.index(name)].type)

    def prefixed(self, alias: str) -> Schema:
        """The same columns under `alias.name`."""
        return Schema(tuple(Field(f"{alias}.{field.name}", field.type) for field in self.fields))

    def accepts(self, other: Schema) -> bool:
        """Whether rows of `other` may stand where rows of this schema stand (UNION, EXCEPT)."""
        return self.types == other.types


# ------------------------------------------------------------ implicit casts


_EXACT_IN_DOUBLE = 1 << 53
_READABLE = (Kind.DATE, Kind.TIMESTAMP, Kind.INTERVAL)


def cast(expression: Expression, target: DataType) -> Expression:
    """The expression as `target`; a number that is a literal is written as one of that type.

    >>> from windrow.algebra.types import INT
    >>> cast(Literal(3, INT), DOUBLE)
    Literal(value=3.0, data_type=DOUBLE)
    """
    if expression.type == target:
        return expression
    if isinstance(expression, Literal):
        return _converted(expression, target) or Cast(expression, target)
    return Cast(expression, target)


def _converted(literal: Literal, target: DataType) -> Literal | None:
    value = literal.value
    if value is None:
        return Literal(None, target)
    if literal.type.is_integer:
        if target.is_integer and target.bounds[0] <= value <= target.bounds[1]:
            return Literal(value, target)
        if target == DOUBLE and abs(value) <= _EXACT_IN_DOUBLE:
            return Literal(float(value), target)
    if target.kind is Kind.DECIMAL and (literal.type.is_integer or literal.type.kind is Kind.DECIMAL):
        return _exact(Decimal(value), target)
    return None


def _exact(value: Decimal, target: DataType) -> Literal | None:
    """The value with the target's digits, if none is lost."""
    fraction = max(0, -int(value.as_tuple().exponent))
    if fraction > target.scale or value.adjusted() >= target.precision - target.scale:
        return None
    return Literal(
        value.quantize(Decimal(1).scaleb(-target.scale), context=Context(prec=MAX_PRECISION)), target
    )


def is_text_literal(expression: Expression) -> bool:
    return isinstance(expression, Literal) and expression.type == STRING


def fits(expression: Expression, target: DataType) -> bool:
    """Whether Windrow casts it to `target` without being asked."""
    source = expression.type
    if source in (target, NULL):
        return True
    if source == STRING:
        return target.kind in _READABLE and is_text_literal(expression)
    return common_type(source, target) == target or (target == DOUBLE and source.is_numeric)


def widest(name: str, args: Iterable[Expression]) -> DataType:
    """The type all arguments of a CASE, COALESCE, IN, … become."""
    arguments = tuple(args)
    typed = [each for each in arguments if not is_text_literal(each)]
    result = NULL
    for each in typed or arguments:
        result = _wider(name, arguments, result, each.type)
    if len(typed) < len(arguments) and result.kind not in _READABLE:
        result = _wider(name, arguments, result, STRING)
    return result


def unify(name: str, args: Sequence[Expression]) -> tuple[Expression, ...]:
    """The arguments, all as their widest type."""
    target = widest(name, args)
    return tuple(cast(each, target) for each in args)


def mismatch(name: str, args: Iterable[Expression], wanted: str = "") -> NoReturn:
    """Refuse the arguments, saying what they are and which cast is missing."""
    arguments = tuple(args)
    types = [each.type for each in arguments]
    given = " and ".join(
        [", ".join(map(str, types[:-1])), str(types[-1])] if len(types) > 1 else map(str, types)
    )
    message = f"`{name}` does not work on {given}" + (f"; it wants {wanted}" if wanted else "")
    raise QueryError(message, code="type-mismatch", hint=_way_out(types))


def _wider(name: str, arguments: Iterable[Expression], left: DataType, right: DataType) -> DataType:
    found = common_type(left, right)
    if found is None:
        mismatch(name, arguments, "one common type")
    return found


def _way_out(types: list[DataType]) -> str | None:
    others = [each for each in types if each not in (STRING, NULL)]
    if STRING in types and others:
        return f"text is not converted silently: CAST(… AS {others[0]}), or TRY_CAST for NULL where it fails"
    return None
