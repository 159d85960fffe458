"""How each function of the registry is computed, row by row.

`STRICT` functions are those of `windrow.algebra.functions.values`; `LAZY` ones compute the arguments they
need, one family per file.
"""

from windrow.algebra.functions.values import STRICT
from windrow.algebra.functions.values import casts as text_reading
from windrow.reference.functions import comparison, control, strings
from windrow.reference.functions.base import Lazy

__all__ = ["LAZY", "STRICT", "text_reading"]

LAZY: dict[str, Lazy] = {
    **comparison.LAZY,
    **control.LAZY,
    **strings.LAZY,
}
