"""What a user wrote of an aggregate: its functions, their types, and a fingerprint of their code.

A definition is plain data, so that it can be shipped to worker processes by whatever pickles functions.
Errors of the user's code become `DataError`s that name the aggregate and the function that failed.

>>> from windrow.algebra.types import DOUBLE
>>> half = Definition("half", lambda: 0, lambda state, x: x, lambda state: state / 2, DOUBLE)
>>> half.result(half.stepped(half.started(), [(7,)]))
3.5
>>> half.result(half.stepped(half.started(), [("seven",)]))
Traceback (most recent call last):
windrow.errors.DataError: half failed in final: TypeError: unsupported operand type(s) for /: ...

Names that know which definition they mean.

The name of a user-defined aggregate can be given to another definition. A plan must not change its meaning
then, and must not be taken for the plan of the new definition: its calls keep a name with a version.

>>> old, new = VersionedName("gm", "a1"), VersionedName("gm", "b2")
>>> old == new, old.upper(), str(old), {old: 1}.get(VersionedName("gm", "a1"))
(False, 'GM', 'gm', 1)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from windrow.algebra.aggregates.plain_values import KEPT, NotPlainError, decoded, encoded
from windrow.algebra.types import INTERVAL, DataType
from windrow.algebra.values import canonical
from windrow.errors import DataError, StateError


@dataclass(frozen=True)
class Definition:
    """The functions of one aggregate; without `merge` its rows are kept and folded in their order."""

    name: str
    init: Callable[[], Any]
    step: Callable[..., Any]
    final: Callable[[Any], Any]
    returns: DataType
    takes: tuple[DataType, ...] | None = None
    merge: Callable[[Any, Any], Any] | None = None
    inverse: Callable[[Any, Any], Any] | None = None
    #: least and greatest number of arguments, the latter None if there is no limit
    arity: tuple[int, int | None] = (1, 1)
    #: changes with the code, and with nothing else
    fingerprint: str = ""

    def started(self) -> Any:
        """The state of no rows; a copy, so that it may be changed in place."""
        return self._guarded("init", deepcopy, self._run("init"))

    def stepped(self, state: Any, rows: Iterable[tuple[Any, ...]]) -> Any:
        """The state after some rows; `state` may have changed too."""
        for args in rows:
            state = self._run("step", state, *args)
        return state

    def result(self, state: Any) -> Any:
        """The value of a state, as one of the declared type."""
        value = self._run("final", state)
        if type(value).__module__ == "numpy":
            value = value.item()
        try:
            fits = self.returns != INTERVAL or value is None or type(value) is int
            return canonical(value, self.returns, self.name) if fits else self._unfit(value)
        except DataError:
            return self._unfit(value)

    def folded(self, rows: Iterable[tuple[Any, ...]]) -> Any:
        """The value over rows in their order."""
        return self.result(self.stepped(self.started(), rows))

    # ------------------------------------------------------------ states as bytes

    def stored(self, state: Any, phase: str) -> bytes:
        """A state as it is kept: plain values, from which no code is ever made again."""
        try:
            return encoded(state)
        except NotPlainError as error:
            raise DataError(
                f"the state of {self.name} after {phase} cannot be kept: {error}",
                code="user-aggregate",
                hint=f"what is kept is {KEPT}; make the state of these (a Counter can be a dict,"
                " an object a tuple of its parts), or leave out merge: its rows are kept then, and no states",
            ) from error

    def loaded(self, state: bytes) -> Any:
        """A state that is nobody else's."""
        try:
            return decoded(state)
        except NotPlainError as error:
            raise StateError(
                f"a stored state of the aggregate {self.name} is damaged: {error}",
                code="damaged",
                hint=f"DROP the query that calls `{self.name}` and create it again",
            ) from error

    def merged(self, a: bytes, b: bytes) -> bytes:
        """The state of the rows of both."""
        return self._of_two("merge", a, b)

    def without(self, a: bytes, b: bytes) -> bytes:
        """The state of the rows of `a` without those of `b`."""
        return self._of_two("inverse", a, b)

    def _of_two(self, phase: str, a: bytes, b: bytes) -> bytes:
        return self.stored(self._run(phase, self.loaded(a), self.loaded(b)), phase)

    def _run(self, phase: str, *args: Any) -> Any:
        return self._guarded(phase, getattr(self, phase), *args)

    def _guarded(self, phase: str, function: Callable[..., Any], *args: Any) -> Any:
        try:
            return function(*args)
        except (Exception, SystemExit) as error:  # a user's function ends its own query at most
            raise DataError(
                f"{self.name} failed in {phase}: {type(error).__name__}: {error}",
                code="user-aggregate",
                hint=f"the aggregate `{self.name}` is user-defined; mend its {phase}, or leave such rows out",
            ) from error

    def _unfit(self, value: Any) -> Any:
        raise DataError(
            f"{self.name} failed in final: it returned {value!r}, which is no {self.returns}",
            code="user-aggregate",
            hint=f"`{self.name}` was declared with returns={str(self.returns)!r}",
        )


class VersionedName(str):
    """A name, printed as such; two are equal if their versions are."""

    __slots__ = ("version",)
    version: str

    def __new__(cls, name: str, version: str) -> VersionedName:
        made = super().__new__(cls, name)
        made.version = version
        return made

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VersionedName) and (str(self), self.version) == (str(other), other.version)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((str(self), self.version))

    def __repr__(self) -> str:
        return f"{str(self)!r}@{self.version}"

    def __reduce__(self) -> tuple[Any, ...]:
        return VersionedName, (str(self), self.version)
