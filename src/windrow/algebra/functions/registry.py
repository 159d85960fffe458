"""The one table of scalar functions: what is callable, on which types, and how Spark spells it.

An operator is a function with a sign for a name (`+`, `and`, `is_null`), so that executors, printer
and documentation know one kind of thing. A family of functions is a file with a tuple of `Function`s;
`windrow.algebra.functions` installs them all. A function's `rule` does what Spark's analyzer does for
it: check the arguments, insert the implicit casts, find the result's type. A rule may also answer with
other functions (`nullif` becomes an `if`): such shorthands never appear in a tree.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from windrow.algebra.expressions import ARITIES, Expression
from windrow.errors import QueryError, nearest

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Rule = Callable[[str, tuple[Expression, ...]], Expression]

#: binds tighter than every operator: calls, columns, literals
ATOM = 100


@dataclass(frozen=True)
class Function:
    """A function of the language; executors add how it is computed."""

    name: str
    arity: tuple[int, int | None]
    rule: Rule
    description: str
    #: `call -> value`, both as SQL; every one is a test
    example: str
    #: how it is printed: `{0}`, `{1}` are arguments, `{*}` all of them, `[…{2}…]` is
    #: left out where there is no such argument; by default a plain call
    sql: str = ""
    #: how tightly its operator binds; arguments that bind no tighter are put in parentheses
    precedence: int = ATOM
    aliases: tuple[str, ...] = ()
    category: str = ""
    deterministic: bool = True
    #: strict: one NULL argument makes the result NULL
    null_propagating: bool = True
    #: some arguments make it a `DataError` (overflow, division by zero, …)
    can_fail: bool = False
    #: the function that gives NULL where this one fails
    try_form: str | None = None

    @property
    def template(self) -> str:
        return self.sql or self.name + "({*})"

    def accepts(self, count: int) -> bool:
        least, most = self.arity
        return least <= count and (most is None or count <= most)


_FUNCTIONS: dict[str, Function] = {}
_NAMES: dict[str, str] = {}


def install(category: str, functions: Iterable[Function]) -> None:
    """Make a family of functions callable."""
    for function in functions:
        _FUNCTIONS[function.name] = replace(function, category=category)
        ARITIES[function.name] = function.arity
        for name in (function.name, *function.aliases):
            assert name not in _NAMES, f"two functions are called {name}"
            _NAMES[name] = function.name


def lookup(name: str) -> Function:
    """The function called `name`, in any case and by any of its names.

    >>> lookup("CEILING").name
    'ceil'
    """
    canonical = _NAMES.get(name.lower())
    if canonical is None:
        raise QueryError(f"no function `{name}`", code="unknown-function", hint=nearest(name, _NAMES))
    return _FUNCTIONS[canonical]


def call(name: str, args: Sequence[Expression]) -> Expression:
    """The function applied, with Spark's implicit casts written out.

    >>> from windrow.algebra.expressions import Column
    >>> from windrow.algebra.types import BIGINT, INT
    >>> call("+", [Column("n", INT), Column("m", BIGINT)]).args[0]
    Cast(arg=Column(name='n', data_type=INT), data_type=BIGINT, safe=False)
    """
    function = lookup(name)
    if not function.accepts(len(args)):
        raise QueryError(
            f"`{name}` takes {_counted(function.arity)}, not {len(args)}",
            code="wrong-arity",
            hint=f"for example {function.example.split(' -> ')[0]}" if function.example else None,
        )
    return function.rule(function.name, tuple(args))


def catalogue() -> tuple[Function, ...]:
    """Every function, in the order of the families and of their files."""
    return tuple(_FUNCTIONS.values())


def _counted(arity: tuple[int, int | None]) -> str:
    least, most = arity
    if least == most:
        return f"{least} argument{'' if least == 1 else 's'}"
    return f"at least {least}" if most is None else f"{least} to {most} arguments"
