"""What is refused, with a code and a way out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from windrow.errors import WindrowError

if TYPE_CHECKING:
    from collections.abc import Callable


def refusal(action: Callable[[], object], code: str, kind: type[WindrowError] = WindrowError) -> WindrowError:
    """The error of an action that is refused."""
    with pytest.raises(kind) as refused:
        action()
    assert refused.value.code == code
    assert refused.value.hint
    return refused.value
