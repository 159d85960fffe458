"""How functions of the registry are computed on whole columns, one family per file.

`STRICT` functions get columns without NULLs: rows with a NULL argument are left out and are NULL in the
result. `WHOLE` functions get all rows, NULLs included, of arguments that are computed for all of them.
`LAZY` functions get compiled arguments, and compute each for the rows that need it.
"""

from windrow.kernels.functions import arithmetic, comparison, control, numeric
from windrow.kernels.functions.base import Lazy, Strict, Whole

STRICT: dict[str, Strict] = {**arithmetic.FUNCTIONS, **numeric.FUNCTIONS}
WHOLE: dict[str, Whole] = comparison.FUNCTIONS
LAZY: dict[str, Lazy] = control.FUNCTIONS
