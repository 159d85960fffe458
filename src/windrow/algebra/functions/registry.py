"""The one table of scalar functions: what is callable, on which types, and how Spark spells it.

An operator is a function with a sign for a name (`+`, `and`, `is_null`), so that executors, printer
and documentation know one kind of thing. A family of functions is a file with a table (`family`);
`windrow.algebra.functions` installs them all. A function's `rule` does what Spark's analyzer does for
it: check the arguments, insert the implicit casts, find the result's type. A rule may also answer with
other functions (`nullif` becomes an `if`): such shorthands never appear in a tree.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from windrow.algebra import types as dt
from windrow.algebra.expressions import ARITIES, Call, Expression, Literal, cast, fits, mismatch
from windrow.errors import QueryError, nearest

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
    #: whether Spark has it and gives the same, so that Spark may compute it
    native: bool = True

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

    >>> from windrow.algebra.expressions import ColumnRef
    >>> from windrow.algebra.types import BIGINT, INT
    >>> call("+", [ColumnRef("n", dt.INT), ColumnRef("m", dt.BIGINT)]).args[0]
    Cast(arg=ColumnRef(name='n', data_type=INT), data_type=BIGINT, safe=False)
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


@dataclass(frozen=True)
class Parameter:
    """What an argument may be, in words and as a test that returns the argument as it is passed on."""

    wanted: str
    accept: Callable[[Expression], Expression | None]


def _as(target: dt.DataType, wanted: str, *also: dt.DataType) -> Parameter:
    """What fits a type, and some others that do not without being asked."""
    return Parameter(wanted, lambda arg: cast(arg, target) if fits(arg, target) or arg.type in also else None)


def _only(target: dt.DataType, wanted: str, *kinds: dt.DataType) -> Parameter:
    return Parameter(wanted, lambda arg: cast(arg, target) if arg.type in (*kinds, dt.NULL) else None)


def _any(wanted: str, null: dt.DataType, accepts: Callable[[dt.DataType], bool]) -> Parameter:
    """Arguments of several types as they are, NULL as one of them."""

    def accept(arg: Expression) -> Expression | None:
        return cast(arg, null) if arg.type == dt.NULL else arg if accepts(arg.type) else None

    return Parameter(wanted, accept)


def _printable(arg: Expression) -> Expression | None:
    # Spark writes numbers, times and truth values as text when it joins texts, and so do we.
    return None if arg.type.kind in (dt.Kind.ARRAY, dt.Kind.STRUCT, dt.Kind.BINARY) else cast(arg, dt.STRING)


TEXT = _as(dt.STRING, "text")
SHORT = _as(dt.INT, "an INT")
TRUTH = _as(dt.BOOLEAN, "a BOOLEAN")
INSTANT = _as(dt.TIMESTAMP, "a TIMESTAMP")
DAY = _as(dt.DATE, "a DATE", dt.TIMESTAMP)
PRINTABLE = Parameter("something with a text form", _printable)
NUMBER = _any("a number", dt.DOUBLE, lambda kind: kind.is_numeric)
INTEGER = _any("an integer", dt.INT, lambda kind: kind.is_integer)


def accept(name: str, args: tuple[Expression, ...], params: tuple[Parameter, ...]) -> tuple[Expression, ...]:
    """The arguments as the parameters want them; the last parameter repeats."""
    result = []
    for index, arg in enumerate(args):
        param = params[min(index, len(params) - 1)]
        accepted = param.accept(arg)
        if accepted is None:
            mismatch(name, args, ", ".join(param.wanted for param in params))
        result.append(accepted)
    return tuple(result)


def returns(
    result: dt.DataType | Callable[[tuple[Expression, ...]], dt.DataType], *params: Parameter
) -> Rule:
    """The rule of a function with one type per parameter."""

    def rule(name: str, args: tuple[Expression, ...]) -> Expression:
        accepted = accept(name, args, params)
        return Call(name, accepted, result if isinstance(result, dt.DataType) else result(accepted))

    return rule


def same(args: tuple[Expression, ...]) -> dt.DataType:
    """The result's type is that of the first argument."""
    return args[0].type


_PARAMETERS = {
    "text": TEXT,
    "int": SHORT,
    "bigint": _as(dt.BIGINT, "a BIGINT"),
    "real": _as(dt.DOUBLE, "a number"),
    "boolean": TRUTH,
    "timestamp": INSTANT,
    "instant": _only(dt.TIMESTAMP, "a TIMESTAMP", dt.TIMESTAMP),
    "interval": _as(dt.INTERVAL, "an INTERVAL"),
    "date": DAY,
    "bytes": _only(dt.BINARY, "text or bytes", dt.STRING, dt.BINARY),
    "text or bytes": Parameter(
        "text or bytes", lambda arg: arg if arg.type == dt.BINARY else TEXT.accept(arg)
    ),
    "printable": PRINTABLE,
    "number": NUMBER,
    "integer": INTEGER,
    "any": Parameter("a value", lambda arg: arg),
}
_HEAD = re.compile(r"(?P<names>.+?) \((?P<params>.*?)\) ?(?P<result>.*)")


def family(table: str, rules: Mapping[str, Rule] | None = None, **common: Any) -> tuple[Function, ...]:
    r"""The functions of a table, which share some facts.

    Each has a line of its names, parameters and result, then facts; and below it what it means, with an
    example. A parameter in brackets may be left out, `…` stands for any number of the last. A function with
    a rule in `rules` has no types of its own there. Facts are `fails` (`can_fail`), `sees NULL` (not
    `null_propagating`), `try f` (`try_form`), `binds n` (`precedence`) and `sql …`.

    >>> table = "left, l (text, [int]) STRING; fails; binds 50\n    the first characters | left('b') -> 'b'"
    >>> (left,) = family(table)
    >>> left.name, left.aliases, left.arity, left.can_fail, left.precedence, left.description
    ('left', ('l',), (1, 2), True, 50, 'the first characters')
    """
    entries = re.findall(r"^(\S.*)((?:\n    .*)+)", table, re.MULTILINE)
    return tuple(
        _function(head, words.replace("\n    ", " ").strip(), rules or {}, common) for head, words in entries
    )


def _function(head: str, words: str, rules: Mapping[str, Rule], common: Mapping[str, Any]) -> Function:
    form, *facts = head.split("; ")
    match = _HEAD.fullmatch(form)
    assert match is not None, head
    name, *aliases = match["names"].split(", ")
    params = match["params"].split(", ") if match["params"] else []
    least = sum(not param.startswith(("[", "…")) for param in params)
    known: dict[str, Any] = {**common}
    for fact in facts:
        word, _, value = fact.partition(" ")
        match word:
            case "fails":
                known["can_fail"] = True
            case "sees":
                known["null_propagating"] = False
            case "try":
                known["try_form"] = value
            case "binds":
                known["precedence"] = int(value)
            case "sql":
                known["sql"] = value
            case _:
                raise ValueError(f"no fact of a function: {fact}")
    rule = rules.get(name)
    if rule is None:
        kind = same if match["result"] == "same" else dt.parse_type(match["result"])
        rule = returns(kind, *(_PARAMETERS[param.strip("[]")] for param in params if param != "…"))
    description, example = words.split(" | ", 1)
    arity = (least, None if "…" in params else len(params))
    return Function(name, arity, rule, description, example, aliases=tuple(aliases), **known)


def constant(name: str, arg: Expression, what: str) -> Any:
    """The value of an argument that must be a literal."""
    if not isinstance(arg, Literal):
        raise QueryError(
            f"`{name}` wants {what} as a literal", code="not-constant", hint="write the value itself"
        )
    return arg.value
