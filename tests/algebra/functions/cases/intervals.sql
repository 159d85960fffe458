-- Intervals are numbers of microseconds that know they are.
i INTERVAL: NULL, INTERVAL '0 00:00:00' DAY TO SECOND, INTERVAL '1 02:03:04.5' DAY TO SECOND, INTERVAL '-1 02:03:04.567891' DAY TO SECOND, INTERVAL '106751991 04:00:54.775807' DAY TO SECOND, INTERVAL '0 00:00:00.000001' DAY TO SECOND
j INTERVAL: NULL, INTERVAL '0 00:00:00' DAY TO SECOND, INTERVAL '0 01:00:00' DAY TO SECOND, INTERVAL '-2 00:00:00' DAY TO SECOND
> i + j
> i - j
> i div j
> i = j
> i < j
> i >= j
> i <=> j
> greatest(i, j)
> i IN (j, i)
> coalesce(i, j)
> try_add(i, j)
> try_subtract(j, i)
> -i
> abs(i)
> EXTRACT(DAY FROM i)
> EXTRACT(HOUR FROM i)
> EXTRACT(MINUTE FROM i)
> EXTRACT(SECOND FROM i)
> CAST(i AS STRING)
> concat('', j)
> CASE WHEN i > j THEN i END
---
i INTERVAL: NULL, INTERVAL '1 02:03:04.5' DAY TO SECOND, INTERVAL '-0 00:00:00.000005' DAY TO SECOND, INTERVAL '106751991 00:00:00' DAY TO SECOND
n INT: NULL, 0, 1, -3, 2
x DOUBLE: 0.0D, 1.5D, -0.5D, double('NaN'), double('Infinity')
y DECIMAL(3,1): 0, 0.5, -2.5
> i * n
> n * i
> i / n
> i * x
> i / x
> i * y
> i / y
> try_multiply(i, n)
> try_divide(i, n)
> i * 2L
> i / 7
