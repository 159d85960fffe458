"""How functions of the registry are computed on whole columns, one family per file.

`STRICT` functions get columns without NULLs: rows with a NULL argument are left out and are NULL in the
result. What is not here, or not for all types, is computed by values (`by_value`). `WHOLE` functions get
all rows, NULLs included. `LAZY` functions get compiled arguments, and compute each for the rows that need it.
"""

from windrow.kernels.columnar.functions import arithmetic, comparison, strings, times
from windrow.kernels.columnar.functions.base import Lazy, Strict, Whole

STRICT: dict[str, Strict] = {
    **arithmetic.FUNCTIONS,
    **strings.FUNCTIONS,
    **times.FUNCTIONS,
    **comparison.STRICT,
}
WHOLE: dict[str, Whole] = comparison.WHOLE
LAZY: dict[str, Lazy] = {**comparison.LAZY, **strings.LAZY}
