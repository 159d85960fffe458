"""Plain values as bytes: what comes back is equal and of the same types, and nothing that is read runs."""

from __future__ import annotations

import contextlib
import math
import pickle
import struct
from collections import Counter, OrderedDict, namedtuple
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from windrow.algebra.aggregates.definition import Definition
from windrow.algebra.aggregates.plain_values import NotPlainError, decoded, encoded
from windrow.algebra.types import BIGINT
from windrow.errors import StateError

ZONES = st.none() | st.integers(-1439, 1439).map(lambda m: timezone(timedelta(minutes=m))) | st.just(UTC)
NUMBERS = (
    st.integers() | st.floats() | st.booleans() | st.sampled_from([2**63, -(2**63), -(2**63) - 1, 2**4000])
)
HASHABLE = st.recursive(
    st.none()
    | NUMBERS
    | st.complex_numbers(allow_nan=True)
    | st.text(st.characters(exclude_categories=()))
    | st.binary(max_size=9)
    | st.decimals(allow_nan=False)  # a signalling one is in no set
    | st.dates()
    | st.times(timezones=ZONES)
    | st.datetimes(timezones=ZONES)
    | st.timedeltas(),
    lambda inner: st.lists(inner, max_size=3).map(tuple) | st.frozensets(inner, max_size=3),
    max_leaves=6,
)
ARRAYS = st.builds(
    lambda kind, size: np.arange(size).astype(kind),
    st.sampled_from(["<i4", ">f8", "|b1", "<c16"]),
    st.integers(0, 4),
)
VALUES = st.recursive(
    HASHABLE | st.binary(max_size=5).map(bytearray) | ARRAYS | ARRAYS.map(lambda a: a.sum()),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(HASHABLE, inner, max_size=4)
        | st.sets(HASHABLE, max_size=4)
    ),
    max_leaves=15,
)


def exactly(a: Any, b: Any) -> bool:
    """Whether no code could tell one value from the other."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray | np.generic):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, float):
        return struct.pack("d", a) == struct.pack("d", b)
    if isinstance(a, complex):
        return exactly(a.real, b.real) and exactly(a.imag, b.imag)
    if isinstance(a, Decimal):
        return a.as_tuple() == b.as_tuple()
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(exactly, a, b))
    if isinstance(a, dict):
        return exactly([*a.items()], [*b.items()])
    if isinstance(a, set | frozenset):
        return encoded(a) == encoded(b)
    if isinstance(a, datetime | time):
        return a.replace(tzinfo=None) == b.replace(tzinfo=None) and (a.fold, a.tzinfo) == (b.fold, b.tzinfo)
    return bool(a == b)


@given(VALUES)
def test_every_value_comes_back_exactly(value: Any) -> None:
    data = encoded(value)
    again = decoded(data)
    assert exactly(again, value)
    assert encoded(again) == data


@pytest.mark.parametrize(
    "value",
    [-0.0, math.nan, -math.inf, 2**70, -(2**64), True, 1, (), [()], {1: (2,), "1": [2]},
     {frozenset({1}), 2.0},     Decimal("-0E+3"), Decimal("sNaN12"), "\ud800\u2028",
     datetime(1, 1, 1, fold=1), timedelta.min, date.max,
     time(1, tzinfo=UTC), np.float32(0.1), np.zeros((0, 3)), np.arange(6).reshape(2, 3)[:, ::-1]],
    ids=repr,
)  # fmt: skip
def test_values_with_an_edge(value: Any) -> None:
    assert exactly(decoded(encoded(value)), value)


def test_what_comes_back_is_nobody_elses_and_may_be_changed() -> None:
    state = {"seen": [1], "grid": np.zeros(2)}
    data = encoded(state)
    again = decoded(data)
    again["seen"].append(2)
    again["grid"][0] = 7
    assert decoded(data)["seen"] == [1] == state["seen"]
    assert decoded(data)["grid"].tolist() == [0, 0]


class _Level(IntEnum):
    LOW = 1


@pytest.mark.parametrize(
    ("value", "named"),
    [(Counter("ab"), "Counter"), (OrderedDict(), "OrderedDict"), (_Level.LOW, "_Level"),
     (print, "builtin_function"),     (namedtuple("Point", "x")(1), "Point"), (object(), "object"),
     (int, "type"), (range(3), "range"),
     (np.array([None]), "ndarray"), (np.datetime64(0, "s"), "datetime64"), ({1: [Counter()]}, "Counter"),
     (datetime(2024, 1, 1, tzinfo=timezone(timedelta(0), "mine")), "zone called mine")],
    ids=lambda each: each if isinstance(each, str) else type(each).__name__,
)  # fmt: skip
def test_other_types_are_refused_by_name(value: Any, named: str) -> None:
    with pytest.raises(NotPlainError, match=named):
        encoded(value)


def test_a_value_that_holds_itself_is_refused() -> None:
    knot: list[Any] = []
    knot.append(knot)
    with pytest.raises(NotPlainError, match="holds itself"):
        encoded(knot)


@given(VALUES, st.data())
def test_damaged_bytes_are_another_value_or_refused_and_nothing_else(value: Any, data: st.DataObject) -> None:
    good = bytearray(encoded(value))
    good[data.draw(st.integers(0, len(good) - 1))] ^= data.draw(st.integers(1, 255))
    for bad in (bytes(good), bytes(good[: data.draw(st.integers(0, len(good) - 1))]), bytes(good) + b"N"):
        with contextlib.suppress(NotPlainError):
            decoded(bad)


@given(st.binary(max_size=40))
def test_any_bytes_are_a_value_or_refused(data: bytes) -> None:
    with contextlib.suppress(NotPlainError):
        decoded(data)


class _Evil:
    """A pickle of it makes a file when it is read."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


def test_a_pickle_in_the_place_of_a_state_is_refused_and_not_run(tmp_path: Path) -> None:
    evil = pickle.dumps(_Evil(tmp_path / "ran"))
    total = Definition("total", int, lambda s, x: s + x, int, BIGINT, merge=lambda a, b: a + b)
    for read in (total.loaded, lambda state: total.merged(state, total.stored(1, "step"))):
        with pytest.raises(StateError, match="a stored state of the aggregate total is damaged"):
            read(evil)
    assert not (tmp_path / "ran").exists()
    pickle.loads(evil)
    assert (tmp_path / "ran").exists()
