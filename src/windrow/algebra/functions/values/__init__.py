"""What strict functions and casts give, on plain Python values: the one definition that all executors share.

A *strict* function answers NULL to NULL, so it is defined here on other values only. Functions that see
NULL, or that compute only some of their arguments (CASE, AND, IN), belong to each executor, since it
alone knows how an argument is computed.

>>> from windrow.algebra.expressions import Literal
>>> from windrow.algebra.functions import call
>>> from windrow.algebra.types import STRING
>>> STRICT["upper"](call("upper", [Literal("straße", STRING)]))("straße")
'STRASSE'
"""

from windrow.algebra.functions.values import arithmetic, comparison, nested, strings, times
from windrow.algebra.functions.values.base import Strict

STRICT: dict[str, Strict] = {
    **arithmetic.FUNCTIONS,
    **comparison.FUNCTIONS,
    **arithmetic.NUMERIC,
    **arithmetic.BITS,
    **strings.FUNCTIONS,
    **strings.PATTERNS,
    **times.FUNCTIONS,
    **nested.FUNCTIONS,
}
