"""Questions about Arrow types that do not depend on how the values lie in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyarrow import types

if TYPE_CHECKING:
    import pyarrow as pa


def is_text(kind: pa.DataType) -> bool:
    """Whether it is a type of strings.

    >>> import pyarrow as pa
    >>> is_text(pa.string()), is_text(pa.large_string()), is_text(pa.binary())
    (True, True, False)
    """
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def is_bytes(kind: pa.DataType) -> bool:
    """Whether it is a type of byte strings."""
    variable = types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind)
    return bool(variable or types.is_fixed_size_binary(kind))


def is_list(kind: pa.DataType) -> bool:
    """Whether it is a type of arrays."""
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def is_number(kind: pa.DataType) -> bool:
    """Whether it is a type of numbers."""
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))
