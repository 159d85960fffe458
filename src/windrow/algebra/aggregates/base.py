"""What an aggregate is: lift a row into a state, combine states, lower a state to a value.

States form a monoid: `combine` is associative and `identity()` is its neutral element. Some monoids
are groups: `subtract(combine(a, b), b)` is `a`, exactly. Everything else an aggregate declares are
facts, and executors ask for facts, never for names:

- `size` and `differential`: may a pane hold a state of constant size, and can a window follow from
  the window before it (full-differential, pseudo-differential, not at all)?
- `duplicate_insensitive`: does the value stay right if a row is counted twice, as it is when the
  states of overlapping predicates are combined?
- `gray`: distributive, algebraic or holistic;
- `error_bound`: how far the value may be from the exact one, for sketches.

NULL arguments lift to the identity unless an aggregate says otherwise. A state is an immutable value
that can be compared, hashed and pickled.

Constants are what sketches are given: errors, fractions, whole numbers and types, checked.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from copy import copy
from decimal import Decimal
from enum import Enum
from typing import Any, Self

from windrow.algebra.types import DataType, Kind
from windrow.errors import QueryError

Types = tuple["DataType", ...]
State = Any


class Size(Enum):
    """Is there a constant bound on the parts of a state? Those of a sketch grow, up to `most_cells`; those of
    lists are counts of all values, until their sub-window is over."""

    BOUNDED = "bounded"
    SKETCH = "sketch"
    LISTS = "lists"
    HOLISTIC = "holistic"


class Differential(Enum):
    """Does F(Y − X) follow from what is kept of Y and of X: in constant space, in more, or never?"""

    FULL = "full-differential"
    PSEUDO = "pseudo-differential"
    NONE = "non-differential"


class Gray(Enum):
    """Gray's classes: combined from values, from several such values, or only from all the data."""

    DISTRIBUTIVE = "distributive"
    ALGEBRAIC = "algebraic"
    HOLISTIC = "holistic"


class AggregateFunction(ABC):
    """One aggregate function with its constant parameters, and with its argument types once `bind` gave them.

    Attributes declare facts; a subclass states those that differ from the defaults below.
    """

    name: str
    #: least and greatest number of arguments, the latter None if there is no limit
    arity: tuple[int, int | None] = (1, 1)
    #: names of the constant parameters, which follow the arguments in a call
    parameters: tuple[str, ...] = ()
    #: constants that may follow those, each with what it is when it is not written
    options: tuple[tuple[str, Any], ...] = ()
    #: what arguments are cast to where that loses nothing; None: they are taken as they are
    takes: Types | None = None
    commutative: bool = True
    duplicate_insensitive: bool = False
    #: does a row's place in the row order matter (FIRST, LAST)?
    ordered: bool = False
    size: Size = Size.BOUNDED
    differential: Differential = Differential.NONE
    gray: Gray = Gray.DISTRIBUTIVE
    #: the most parts a sketch ever consists of; None for what is no sketch
    most_cells: int | None = None
    #: what a part of a sketch takes: its key, a count, and what else it keeps
    cell_bytes: int = 16
    #: how far the value may be from the exact one, in words; None where it is exact
    error_bound: str | None = None

    def __init__(self, *params: Any) -> None:
        left_out = len(self.parameters) + len(self.options) - len(params)
        if not 0 <= left_out <= len(self.options):
            names = [*self.parameters, *(f"perhaps {name}" for name, _ in self.options)]
            raise QueryError(
                f"{self.name} got {len(params)} constants",
                code="bad-aggregate",
                hint=f"it takes: {', '.join(names) or 'no constants'}",
            )
        self.params = params + tuple(value for _, value in self.options[len(self.options) - left_out :])
        self.types: Types | None = None
        self.result: DataType | None = None

    # ------------------------------------------------------------ the algebra

    @abstractmethod
    def identity(self) -> State:
        """The state of no rows."""

    @abstractmethod
    def lift(self, args: tuple[Any, ...], order: tuple[Any, ...] = ()) -> State:
        """The state of one row: its argument values, and its sortable key in the row order."""

    @abstractmethod
    def combine(self, a: State, b: State) -> State:
        """The state of the rows of `a` followed by those of `b`."""

    @abstractmethod
    def lower(self, state: State) -> Any:
        """The value of the aggregate over the rows of `state`."""

    def subtract(self, a: State, b: State) -> State:
        """The state of the rows of `a` without those of `b`; only where `invertible_for` the types."""
        raise NotImplementedError(f"{self.name} has no inverse")

    def fold(self, states: Iterable[State]) -> State:
        """All states combined, in their order."""
        result = self.identity()
        for state in states:
            result = self.combine(result, state)
        return result

    # ------------------------------------------------------------ types

    def result_type(self, types: Types) -> DataType:
        """The type of the value for arguments of these types; QueryError where there is none."""
        least, most = self.arity
        if len(types) < least or (most is not None and len(types) > most):
            wanted = f"{least} or more" if most is None else f"{least}"
            raise QueryError(
                f"{self!r} got {len(types)} arguments", code="bad-aggregate", hint=f"it takes {wanted}"
            )
        return self._result_type(types)

    def _result_type(self, types: Types) -> DataType:
        """`result_type`, for the right number of arguments: by default that of the first."""
        return types[0]

    def invertible_for(self, types: Types) -> bool:
        """Is `subtract` an exact inverse for arguments of these types?"""
        return False

    @property
    def invertible(self) -> bool:
        """`invertible_for` the types bound; before that, only what holds for all types."""
        return self.invertible_for(self.types or ())

    def bind(self, types: Types) -> Self:
        """The same aggregate, checked against and knowing the types of its arguments."""
        bound = copy(self)
        bound.types, bound.result = types, self.result_type(types)
        return bound

    # ------------------------------------------------------------ identity as a value

    @property
    def function(self) -> str:
        """The name by which a plan's calls keep it."""
        return self.name.lower()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AggregateFunction) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(map(repr, self.params))})" if self.params else self.name

    def _key(self) -> tuple[Any, ...]:
        return type(self), self.name, self.params, self.types


class ChosenState(AggregateFunction):
    """An aggregate that makes one state of two by `choose`; None is that of no rows."""

    choose: staticmethod[[Any, Any], Any]

    def identity(self) -> State:
        return None

    def combine(self, a: State, b: State) -> State:
        if a is None or b is None:
            return b if a is None else a
        return self.choose(a, b)


# ------------------------------------------------------------ constant arguments


def error_of(name: str, given: Any, least: float) -> float:
    """A relative error from `least` to below 1.

    >>> error_of("APPROX_QUANTILE", Decimal("0.02"), 0.001)
    0.02
    """
    hint = f"the error is a number from {least:g} to below 1"
    return _number(given, lambda error: least <= error < 1, f"{name} with an error of", hint)


def fraction_of(name: str, given: Any) -> float:
    """A fraction from 0 to 1."""
    hint = "the fraction is a number from 0 to 1"
    return _number(given, lambda fraction: 0 <= fraction <= 1, f"{name} at", hint)


def _number(given: Any, fits: Callable[[Any], bool], what: str, hint: str) -> float:
    is_number = isinstance(given, int | float | Decimal) and not isinstance(given, bool)
    if not is_number or not fits(given):
        raise QueryError(f"no {what} {_shown(given)}", code="bad-aggregate", hint=hint)
    return float(given)


def whole_of(name: str, given: Any, what: str, least: int = 1) -> int:
    """A whole number from `least` on."""
    if not isinstance(given, int) or isinstance(given, bool) or given < least:
        raise QueryError(
            f"no {name} with {what} = {_shown(given)}",
            code="bad-aggregate",
            hint=f"{what} is a whole number from {least} on",
        )
    return given


def whole_number(name: str, types: Types, hint: str) -> DataType:
    """The first argument's type, which is that of whole numbers."""
    if not types[0].is_integer:
        raise QueryError(f"{name} takes whole numbers, not {types[0]}", code="bad-argument-type", hint=hint)
    return types[0]


def refuse_nested(name: str, kind: DataType) -> None:
    """Arrays and structs have no hash and no order that would mean anything."""
    if kind.kind in (Kind.ARRAY, Kind.STRUCT):
        raise QueryError(
            f"{name} of {kind} has no meaning", code="bad-argument-type", hint="take one of its parts"
        )


def _shown(given: Any) -> str:
    return str(given) if isinstance(given, Decimal) else repr(given)
