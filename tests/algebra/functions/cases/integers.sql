-- Integer arithmetic: overflow and division by zero are errors, narrow types widen.
a INT: NULL, 0, 1, -1, 7, -8, 2147483647, -2147483648
b INT: NULL, 0, 1, -1, 3, -3, 2147483647, -2147483648
> a + b
> a - b
> a * b
> a / b
> a % b
> a div b
> pmod(a, b)
> try_add(a, b)
> try_subtract(a, b)
> try_multiply(a, b)
> try_divide(a, b)
> try_mod(a, b)
> a & b
> a | b
> a ^ b
> shiftleft(a, b)
> shiftright(a, b)
> a = b
> a <> b
> a < b
> a <= b
> a > b
> a >= b
> a <=> b
> a IN (b, 7)
> a NOT IN (1, NULL)
> a BETWEEN b AND 7
> greatest(a, b, 3)
> least(a, b, NULL)
> CASE WHEN b <> 0 THEN a div b WHEN a > 0 THEN 0 END
> CASE WHEN a > b THEN 'more' ELSE 'not more' END
> if(b = 0, NULL, a % b)
> coalesce(a, b, 0L)
> nullif(a, b)
> nvl(a, b)
> nvl2(a, a, b)
> zeroifnull(a)
> nullifzero(a)
> b <> 0 AND a div b > 0
> b = 0 OR a div b > 0
> a + NULL
> a / NULL
> 1 / a
> a * 1.5
> a / 1.5
> a + 1L
> a = 1.5
> a = 1L
> 'a' || a
> concat(a, '-', b)
> concat_ws(',', a, b, 'x')
---
a INT: NULL, 0, 1, -1, 7, -5, 15, 25, -25, 12345, 2147483647, -2147483648
> -a
> abs(a)
> ~a
> sign(a)
> ceil(a)
> floor(a)
> round(a)
> round(a, -1)
> round(a, -9)
> round(a, -11)
> round(a, 2)
> bround(a, -1)
> sqrt(a)
> bit_count(a)
> chr(a)
> a IS NULL
> a IS NOT NULL
> NOT a > 0
> hypot(a, 3)
> from_unixtime(a)
> timestamp_seconds(a)
> timestamp_millis(a)
> timestamp_micros(a)
> date_from_unix_date(a)
> CAST(a AS TINYINT)
> CAST(a AS SMALLINT)
> CAST(a AS BIGINT)
> CAST(a AS FLOAT)
> CAST(a AS DOUBLE)
> CAST(a AS DECIMAL(10,0))
> CAST(a AS DECIMAL(4,2))
> CAST(a AS STRING)
> CAST(a AS BOOLEAN)
> CAST(a AS TIMESTAMP)
> TRY_CAST(a AS TINYINT)
> TRY_CAST(a AS DECIMAL(3,1))
---
a BIGINT: NULL, 0, -1, 3, 9007199254740993, 9223372036854775807, -9223372036854775808
b BIGINT: 0, -1, 2, 9223372036854775807, -9223372036854775808
> a + b
> a - b
> a * b
> a / b
> a % b
> a div b
> pmod(a, b)
> try_add(a, b)
> try_multiply(a, b)
> abs(a)
> -a
> a & b
> shiftleft(a, 40)
> shiftright(a, 3)
> round(a, -3)
> bround(a, -18)
> round(a, -19)
> CAST(a AS INT)
> CAST(a AS DOUBLE)
> CAST(a AS FLOAT)
> CAST(a AS DECIMAL(38,10))
> CAST(a AS TIMESTAMP)
> timestamp_seconds(a)
> timestamp_millis(a)
> timestamp_micros(a)
> from_unixtime(a)
> bit_count(a)
> a + 0.5
> a * 1.00
> a = 9007199254740992.0
> a = 9007199254740992D
---
a TINYINT: NULL, 0, 1, 5, 127, -128
b SMALLINT: 0, 3, -1, 32767, -32768
> a + a
> a + b
> a * a
> a * b
> a / b
> a % b
> a div b
> -a
> abs(b)
> ~a
> shiftleft(a, 9)
> a & b
> round(a, -1)
> round(b, -2)
> a + 1
> a + 1.5
> greatest(a, b)
> a = b
> CAST(a AS STRING)
> CAST(b AS TINYINT)
> bit_count(a)
