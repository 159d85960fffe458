-- Three-valued logic, and truth values as other types.
p BOOLEAN: NULL, TRUE, FALSE
q BOOLEAN: NULL, TRUE, FALSE
> p AND q
> p OR q
> NOT p
> NOT (p AND NOT q)
> p = q
> p <> q
> p < q
> p <=> q
> p IN (q, TRUE)
> p IS NULL
> p IS NOT NULL
> CASE WHEN p THEN 1 WHEN q THEN 2 ELSE 3 END
> CASE WHEN p THEN 1 END
> if(p, 'yes', 'no')
> coalesce(p, q)
> greatest(p, q)
> p AND 1 / 0 > 0 AND FALSE
> CAST(p AS INT)
> CAST(p AS TINYINT)
> CAST(p AS BIGINT)
> CAST(p AS DOUBLE)
> CAST(p AS FLOAT)
> CAST(p AS DECIMAL(3,2))
> CAST(p AS DECIMAL(2,2))
> CAST(p AS STRING)
> TRY_CAST(p AS DECIMAL(1,1))
> concat('is ', p)
