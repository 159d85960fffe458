"""Every function is described, and does what its example says."""

from __future__ import annotations

import pytest

from windrow.algebra.expressions import Call
from windrow.algebra.functions import Function, call, catalogue
from windrow.algebra.functions.values import STRICT
from windrow.reference.expressions import LAZY, evaluate

CALLABLE = [function for function in catalogue() if function.deterministic]


def name(function: Function) -> str:
    return function.name


@pytest.mark.parametrize("function", CALLABLE, ids=name)
def test_the_example_holds(function, parse):
    text, expected = function.example.split(" -> ")
    assert evaluate(call("<=>", (parse(text), parse(expected))), {}) is True


@pytest.mark.parametrize("function", CALLABLE, ids=name)
def test_the_example_shows_the_function(function, parse):
    """It is in the tree, or it is a shorthand and stands for others."""
    tree = parse(function.example.split(" -> ")[0])
    used = {node.function for node in tree.walk() if isinstance(node, Call)}
    assert function.name in used or function.name not in STRICT | LAZY


@pytest.mark.parametrize("function", catalogue(), ids=name)
def test_it_is_described(function):
    assert function.category
    assert function.description
    assert not function.description.endswith(".")


@pytest.mark.parametrize("function", catalogue(), ids=name)
def test_the_try_form_exists_and_never_fails(function):
    forms = [other for other in catalogue() if other.name == function.try_form]
    assert function.try_form is None or (forms and function.can_fail and not forms[0].can_fail)


def test_strict_functions_are_those_that_propagate_null():
    for function in catalogue():
        if function.name in LAZY:
            assert not function.null_propagating, function.name
        if function.name in STRICT:
            assert function.null_propagating, function.name
    assert not STRICT.keys() & LAZY.keys()
