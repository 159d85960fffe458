"""Fingerprints of code: the same for the same functions in every process, and different after a change.

Compiled code is compared, without line numbers: comments and formatting do not count. Constants, defaults and
what a function closes over do, and all methods of a class; what is read from a module does not. A new version
of Python may compile the same text differently.

>>> fingerprint(lambda x: x + 1) == fingerprint(lambda x: x + 1) != fingerprint(lambda x: x + 2)
True
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from hashlib import blake2b
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

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
    plain = _plain(part)
    if plain is not None:
        yield plain
    elif depth > 0:
        for each in _inner(part):
            yield from _words(each, depth - 1)


def _plain(part: Any) -> str | None:
    match part:
        case None | bool() | int() | float() | complex() | str() | bytes():
            return repr(part)
        case ModuleType() | BuiltinFunctionType() | type():
            return f"{part.__name__}"
    return None


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
