"""`windrow.aggregate`: how a user defines an aggregate, by a class, an object or functions.

>>> @aggregate(returns="DOUBLE", takes="DOUBLE")
... class geometric_mean:
...     def init(self):
...         return 1.0, 0
...
...     def step(self, state, x):
...         return state if x is None else (state[0] * x, state[1] + 1)
...
...     def merge(self, a, b):
...         return a[0] * b[0], a[1] + b[1]
...
...     def final(self, state):
...         return state[0] ** (1 / state[1]) if state[1] else None
>>> from windrow.algebra.aggregates import make
>>> mean = make("Geometric_Mean")
>>> mean.lower(mean.fold(mean.lift((x,)) for x in (2.0, None, 8.0)))
4.0
>>> user.forget("geometric_mean")

Fingerprints of code: the same for the same functions in every process, and different after a change.

Compiled code is compared, without line numbers: comments and formatting do not count. Constants, defaults and
what a function closes over do, and all methods of a class; what is read from a module does not. A new version
of Python may compile the same text differently.

>>> fingerprint(lambda x: x + 1) == fingerprint(lambda x: x + 1) != fingerprint(lambda x: x + 2)
True
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from functools import partial
from hashlib import blake2b
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from windrow.algebra import functions
from windrow.algebra.aggregates import names, user
from windrow.algebra.aggregates.definition import Definition
from windrow.algebra.plan import StreamWord
from windrow.algebra.types import DataType, parse_type
from windrow.errors import QueryError

#: how deep values within values are looked at
_DEPTH = 8


def fingerprint(*parts: Any) -> str:
    """A short text that stands for functions and plain values."""
    digest = blake2b(digest_size=8)
    for part in parts:
        for word in _words(part, _DEPTH):
            digest.update(word.encode("utf-8", "surrogatepass") + b"\0")
    return digest.hexdigest()


def members(thing: Any) -> list[Any]:
    """All functions of an object's classes, and its own attributes."""
    found = [
        (name, getattr(value, "__func__", value))
        for kind in type(thing).__mro__
        for name, value in vars(kind).items()
        if isinstance(value, FunctionType | staticmethod | classmethod)
    ]
    return [*sorted(found, key=lambda pair: pair[0]), *_attributes(thing)]


def _words(part: Any, depth: int) -> Iterator[str]:
    """Everything that counts, as text without addresses."""
    yield type(part).__name__
    match part:
        case None | bool() | int() | float() | complex() | str() | bytes():
            yield repr(part)
        case ModuleType() | BuiltinFunctionType() | type():
            yield part.__name__
        case _:
            for each in _inner(part) if depth > 0 else ():
                yield from _words(each, depth - 1)


def _inner(part: Any) -> list[Any]:
    match part:
        case CodeType():
            return [part.co_code, part.co_names, part.co_varnames, *part.co_consts]
        case FunctionType():
            cells = [cell.cell_contents for cell in part.__closure__ or ()]
            outer = [cell for cell in cells if cell is not part]
            return [part.__code__, part.__defaults__, part.__kwdefaults__, outer]
        case MethodType():
            return [part.__func__, _attributes(part.__self__)]
        case partial():
            return [part.func, part.args, part.keywords]
        case set() | frozenset():
            return sorted(part, key=repr)
        case dict():
            return list(part.items())
        case tuple() | list():
            return list(part)
    return _attributes(part)


def _attributes(thing: Any) -> list[Any]:
    return sorted(getattr(thing, "__dict__", {}).items(), key=lambda pair: pair[0])


_REQUIRED = ("init", "step", "final")
_OPTIONAL = ("merge", "inverse")


def aggregate(
    source: Any = None,
    /,
    *,
    returns: str | DataType,
    takes: str | None = None,
    name: str | None = None,
    **written: Callable[..., Any],
) -> Any:
    """Define an aggregate for all queries of this process, under its name in any case.

    As a decorator of a class with the methods `init`, `step`, `final` and perhaps `merge` and `inverse`; or
    as a call with functions of these names, which gives the `Definition`. The same name again replaces the
    aggregate; plans made before keep what they were made with.
    """

    def define(kind: Any) -> Any:
        made = kind() if isinstance(kind, type) else kind
        found = {part: getattr(made, part, None) for part in (*_REQUIRED, *_OPTIONAL)}
        user.install(
            [
                _definition(
                    name or str(getattr(kind, "__name__", type(kind).__name__)),
                    found,
                    returns,
                    takes,
                    members(made),
                )
            ]
        )
        return kind

    if not written:
        return define if source is None else define(source)
    strange = sorted({*written} - {*_REQUIRED, *_OPTIONAL})
    if source is not None or strange:
        raise _mistake(
            f"an aggregate has no part `{strange[0]}`" if strange else "a class and functions at once",
            f"the parts are {', '.join((*_REQUIRED, *_OPTIONAL))}",
        )
    definition = _definition(name or "", dict(written), returns, takes)
    user.install([definition])
    return definition


def _definition(
    name: str, parts: dict[str, Any], returns: str | DataType, takes: str | None, around: Any = None
) -> Definition:
    _check_name(name)
    missing = [part for part in _REQUIRED if not callable(parts.get(part))]
    if missing:
        raise _mistake(
            f"the aggregate `{name}` has no {missing[0]}",
            "it needs init(), step(state, x, …) and final(state); merge(a, b) makes it fast",
        )
    if parts.get("inverse") is not None and parts.get("merge") is None:
        raise _mistake(
            f"the aggregate `{name}` has an inverse, but no merge",
            "states that cannot be merged are not kept",
        )
    result = returns if isinstance(returns, DataType) else parse_type(returns)
    arguments = None if takes is None else _types(takes)
    arity = _arity(name, parts["step"], arguments)
    known: dict[str, Any] = {part: parts.get(part) for part in (*_REQUIRED, *_OPTIONAL)}
    types = [str(kind) for kind in (result, *(arguments or ()))]
    mark = fingerprint(name.lower(), types, list(known.values()), around)
    return Definition(name, returns=result, takes=arguments, arity=arity, fingerprint=mark, **known)


def _check_name(name: str) -> None:
    if not re.fullmatch(r"[A-Za-z_]\w*", name):
        raise _mistake(
            f"an aggregate cannot be called {name!r}", "give it a name of letters, digits and underscores"
        )
    taken = name.upper() in (*names(), "WSTREAM", *(word.value for word in StreamWord))
    if taken or any(name.lower() in (each.name, *each.aliases) for each in functions.catalogue()):
        raise _mistake(f"`{name}` is a built-in function", "give the aggregate another name")


def _types(takes: str) -> tuple[DataType, ...]:
    """Types separated by commas, except for those in parentheses.

    >>> _types("DECIMAL(10, 2), BIGINT")
    (DECIMAL(10,2), BIGINT)
    """
    return tuple(map(parse_type, re.split(r",(?![^(]*\))", takes)))


def _arity(name: str, step: Callable[..., Any], takes: tuple[DataType, ...] | None) -> tuple[int, int | None]:
    """How many arguments `step` takes beside the state."""
    try:
        parameters = list(inspect.signature(step).parameters.values())
    except ValueError:  # a function of C that tells nothing
        return (1, None) if takes is None else (len(takes), len(takes))
    placed = [each for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    least = sum(each.default is each.empty for each in placed) - 1
    most = None if any(each.kind is each.VAR_POSITIONAL for each in parameters) else len(placed) - 1
    wanted = 1 if takes is None else len(takes)
    if (most is not None and most < wanted) or (takes is not None and least > wanted):
        raise _mistake(
            f"step of the aggregate `{name}` cannot take a state and {wanted} values",
            "write step(state, x, …), with one parameter for each argument",
        )
    return (max(1, least), most) if takes is None else (wanted, wanted)


def _mistake(message: str, hint: str) -> QueryError:
    return QueryError(message, code="bad-aggregate", hint=hint)
