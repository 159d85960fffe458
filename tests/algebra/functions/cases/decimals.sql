-- Decimal arithmetic: result types with loss of precision allowed, rounding half up.
a DECIMAL(5,2): NULL, 0, 1.50, -1.50, 2.25, 999.99, -999.99, 0.01
b DECIMAL(4,3): NULL, 0, 0.333, -0.333, 9.999, 1.005
> a + b
> a - b
> a * b
> a / b
> a % b
> a div b
> pmod(a, b)
> a = b
> a < b
> a <=> b
> greatest(a, b)
> a IN (b, 1.5, 2)
> try_divide(a, b)
> try_mod(a, b)
> coalesce(a, b, 1)
> CASE WHEN a > b THEN a ELSE b END
> nullif(a, 2.25)
> a + 1
> a * 3
> a / 3
> 1 / a
> a + 100L
> a = 1
> a + NULL
> a || b
> a * 1.5D
---
a DECIMAL(5,2): NULL, 0, 1.50, -1.50, 2.25, 2.35, 999.99, -999.99, 0.01
> -a
> abs(a)
> sign(a)
> ceil(a)
> floor(a)
> round(a)
> round(a, 1)
> round(a, 5)
> round(a, -1)
> round(a, -2)
> round(a, -5)
> bround(a, 1)
> bround(a)
> bround(a, -1)
> sqrt(a)
> timestamp_seconds(a)
> CAST(a AS INT)
> CAST(a AS TINYINT)
> CAST(a AS BIGINT)
> CAST(a AS DECIMAL(3,1))
> CAST(a AS DECIMAL(20,8))
> CAST(a AS DOUBLE)
> CAST(a AS FLOAT)
> CAST(a AS STRING)
> CAST(a AS BOOLEAN)
> CAST(a AS TIMESTAMP)
> TRY_CAST(a AS DECIMAL(3,1))
---
a DECIMAL(38,10): NULL, 0, 1.5, -2.0000000001, 9999999999999999999999999999.9999999999, -9999999999999999999999999999.9999999999
b DECIMAL(38,18): 0, 3, 0.000000000000000001, -99999999999999999999.999999999999999999
> a + b
> a - b
> a * b
> a / b
> a % b
> a div b
> a = b
> a + a
> a * 2
> a / 3
> try_multiply(a, a)
> round(a, 3)
> ceil(a)
> CAST(a AS STRING)
> CAST(b AS STRING)
> CAST(a AS DECIMAL(38,18))
> CAST(a AS BIGINT)
> timestamp_seconds(b)
