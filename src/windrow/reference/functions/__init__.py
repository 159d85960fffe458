"""How each function of the registry is computed on plain Python values, one family per file."""

from windrow.reference.functions import (
    arithmetic,
    bits,
    comparison,
    control,
    numeric,
    patterns,
    strings,
    times,
)
from windrow.reference.functions.base import Lazy, Strict

STRICT: dict[str, Strict] = {
    **arithmetic.FUNCTIONS,
    **comparison.FUNCTIONS,
    **numeric.FUNCTIONS,
    **bits.FUNCTIONS,
    **strings.FUNCTIONS,
    **patterns.FUNCTIONS,
    **times.FUNCTIONS,
}

LAZY: dict[str, Lazy] = {
    **comparison.LAZY,
    **control.LAZY,
    **strings.LAZY,
}
