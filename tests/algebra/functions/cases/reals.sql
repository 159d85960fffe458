-- Floating point: NaN equals itself and is greatest, -0.0 equals 0.0, division by zero is an error.
-- No value here is one that Java before 19 writes with a digit too many, such as 1e23.
a DOUBLE: NULL, 0.0D, -0.0D, 1.5D, -2.5D, double('NaN'), double('Infinity'), double('-Infinity'), 1e300, 5e-324
b DOUBLE: NULL, 0.0D, -0.0D, 1.5D, double('NaN'), double('Infinity'), -3.0D
> a + b
> a - b
> a * b
> a / b
> a % b
> pmod(a, b)
> a = b
> a <> b
> a < b
> a <= b
> a > b
> a >= b
> a <=> b
> a IN (b, 1.5)
> a BETWEEN b AND 2
> greatest(a, b)
> least(a, b)
> try_add(a, b)
> try_divide(a, b)
> try_mod(a, b)
~ power(a, b)
~ log(a, b)
~ atan2(a, b)
~ hypot(a, b)
> nullif(a, b)
> coalesce(a, b)
> a = 1
> a + 1
> a + 1.5
---
a DOUBLE: NULL, 0.0D, -0.0D, 0.5D, 1.5D, 2.5D, -2.5D, 0.125D, 2.675D, 1234.5678D, double('NaN'), double('Infinity'), double('-Infinity'), 1e300, 1e-7, 9.007199254740993E15, 123456789.125D, 2147483647.9D, -128.9D, 9.223372036854775807E18, 100.0D, 1e7, 0.001D, 9.999e-4, 5e-324, 1.7976931348623157E308, 0.1D
> -a
> abs(a)
> sign(a)
> isnan(a)
> ceil(a)
> floor(a)
> round(a)
> round(a, 1)
> round(a, 2)
> round(a, -2)
> bround(a)
> bround(a, 2)
~ sqrt(a)
~ cbrt(a)
~ exp(a)
~ expm1(a)
~ ln(a)
~ log(a)
~ log10(a)
~ log2(a)
~ log1p(a)
~ sin(a)
~ cos(a)
~ tan(a)
~ asin(a)
~ acos(a)
~ atan(a)
~ sinh(a)
~ cosh(a)
~ tanh(a)
~ degrees(a)
~ radians(a)
> CAST(a AS TINYINT)
> CAST(a AS SMALLINT)
> CAST(a AS INT)
> CAST(a AS BIGINT)
> CAST(a AS FLOAT)
> CAST(a AS DECIMAL(10,3))
> CAST(a AS DECIMAL(38,18))
> CAST(a AS STRING)
> CAST(a AS BOOLEAN)
> CAST(a AS TIMESTAMP)
> TRY_CAST(a AS INT)
> timestamp_seconds(a)
> concat('<', a, '>')
---
a FLOAT: NULL, float(0), float('-0.0'), float(0.1), float(2.5), float('NaN'), float('Infinity'), float(16777217), float(3.4e38), float(1e-45), float(1e10), float(0.3)
b FLOAT: float(0), float(0.2), float(3), float('NaN')
> a + b
> a - b
> a * b
> a / b
> a % b
> a = b
> a < b
> a <=> b
> -a
> abs(a)
> greatest(a, b)
> a + 1
> a * 0.1
> a + 0.1D
> round(a, 1)
> ceil(a)
> CAST(a AS STRING)
> CAST(a AS DOUBLE)
> CAST(a AS INT)
> CAST(a AS DECIMAL(12,4))
> CAST(a AS BOOLEAN)
> CAST(a AS TIMESTAMP)
> timestamp_seconds(a)
~ sqrt(a)
