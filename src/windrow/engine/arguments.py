"""Arguments of the Python API, checked when a call is made: a wrong one is told by name, with the way out.

Without that, a number in the place of a text fails somewhere inside, with an error about our code. The
annotations say what is taken; those of foreign classes are left to whoever uses the value.

>>> @checked
... def stream(name: str, slack: str | int | None = None) -> None: ...
>>> stream("bids", slack=[5])
Traceback (most recent call last):
windrow.errors.QueryError: `slack` of stream() is a text or a whole number, not a list (it is given: [5])
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from numbers import Integral, Real
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

from windrow.errors import QueryError, nearest

_Function = TypeVar("_Function", bound=Callable[..., Any])


class _Kind(NamedTuple):
    """A kind of argument: what it is called, and whether a value is of it."""

    title: str
    fits: Callable[[Any], bool]


def _of(title: str, *classes: type) -> _Kind:
    return _Kind(title, lambda value: isinstance(value, classes))


def _are_texts(value: Any) -> bool:
    """A text is a sequence of texts as well, which is never what is meant."""
    is_list = isinstance(value, Sequence) and not isinstance(value, str | bytes)
    return is_list and all(isinstance(each, str) for each in value)


_KINDS = {
    "str": _of("a text", str),
    "int": _of("a whole number", Integral),
    "float": _of("a number", Real),
    "bool": _of("True or False", bool),
    "None": _of("None", type(None)),
    "Path": _of("a path", Path),
    "tuple": _of("a tuple", tuple),
    "Mapping": _of("a dictionary", Mapping),
    "Callable": _Kind("a function", callable),
    "Sequence": _Kind("a list of texts", _are_texts),
}
#: the parameters of a generic type
_PARAMETERS = re.compile(r"\[(?:[^\[\]]|\[[^\[\]]*\])*\]")


def checked(function: _Function) -> _Function:
    """The same function, whose arguments are checked by their annotations first."""
    signature = inspect.signature(function)
    names = function.__globals__
    kinds = {name: _kinds(each.annotation, names) for name, each in signature.parameters.items()}
    known = {name: found for name, found in kinds.items() if found}
    takes = [name for name in signature.parameters if name != "self"]
    takes_any = any(each.kind is each.VAR_KEYWORD for each in signature.parameters.values())

    @wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        check_known(f"{function.__name__}()", () if takes_any else named, takes)
        given = signature.bind(*arguments, **named).arguments
        for name, found in known.items():
            if name in given:
                _check(function.__name__, name, given[name], found)
        return function(*arguments, **named)

    return cast("_Function", call)


def check_known(what: str, given: Iterable[str], known: Sequence[str]) -> None:
    """Arguments that are passed on under their names: each is one that is known."""
    for name in given:
        if name not in known:
            raise QueryError(
                f"{what} has no argument `{name}`", code="bad-argument", hint=nearest(name, known)
            )


def _kinds(annotation: Any, names: Mapping[str, Any]) -> tuple[_Kind, ...]:
    """What an annotation allows, where its module knows these names; nothing if that cannot be told.

    >>> [kind.title for kind in _kinds("str | Callable[[pa.Table, int], None] | None", {})]
    ['a text', 'a function', 'None']
    >>> _kinds("SparkSession | None", {}), _kinds("Any", {"Any": Any})
    ((), ())
    """
    found = []
    for name in _PARAMETERS.sub("", str(annotation)).split("|"):
        known = names.get(name.strip())
        if name.strip() in _KINDS:
            found.append(_KINDS[name.strip()])
        elif isinstance(known, type) and known is not Any:
            found.append(_of(f"a {known.__name__}", known))
        else:
            return ()
    return tuple(found)


def _check(function: str, name: str, value: Any, kinds: Sequence[_Kind]) -> None:
    if any(kind.fits(value) for kind in kinds):
        return
    wanted = " or ".join(kind.title for kind in kinds if kind.title != "None")
    found = type(value).__name__
    article = "an" if found[0].lower() in "aeiou" else "a"
    raise QueryError(
        f"`{name}` of {function}() is {wanted}, not {article} {found}",
        code="bad-argument",
        hint=f"it is given: {_shown(value)}",
    )


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
