-- Text: positions from 1, characters are code points, order by bytes.
s STRING: NULL, '', 'abc', ' a b ', 'Straße', 'ΑΣ ΑΣΑ', '😀x😀', 'a%b_c', 'a\\b', 'HELLO wORLD-foo', '\t x', 'İi', 'ﬁn ǆ', 'a\nb'
t STRING: NULL, '', 'a', 'b', '😀', ' ', '%', 'ß'
> s || t
> concat(s, t, '!')
> concat_ws(t, s, NULL, 'z')
> s = t
> s < t
> s >= t
> s <=> t
> greatest(s, t)
> least(s, t)
> s IN (t, 'abc')
> s BETWEEN t AND 'z'
> replace(s, t)
> replace(s, t, 'XY')
> instr(s, t)
> locate(t, s)
> locate(t, s, 2)
> locate(t, s, 0)
> position(t, s)
> lpad(s, 6, t)
> rpad(s, 6, t)
> split_part(s, t, 1)
> split_part(s, t, -1)
> split_part(s, t, 2)
> split_part(s, t, 0)
> startswith(s, t)
> endswith(s, t)
> contains(s, t)
> translate(s, 'ab ', t)
> translate(s, t, 'ab ')
> trim(t FROM s)
> trim(t, s)
> ltrim(t, s)
> rtrim(t, s)
> btrim(s, t)
> s LIKE concat('%', t)
> s ILIKE concat('%', t)
> s ILIKE t
> NOT s ILIKE concat(upper(t), 'A%')
> s ILIKE concat('%', t, 'X%') ESCAPE 'X'
> s ILIKE concat('%', t, 'X%') ESCAPE 'x'
> s LIKE concat(t, '\\', t)
> coalesce(s, t)
> nullif(s, t)
---
s STRING: NULL, '', 'abc', ' a b ', 'Straße', 'ΑΣ ΑΣΑ', '😀x😀', 'a%b_c', 'a\\b', 'HELLO wORLD-foo', '\t x', 'İi', 'ﬁn ǆ', 'a\nb', 'a  b', 'o\'neil x.y'
> length(s)
> octet_length(s)
> upper(s)
> lower(s)
> initcap(s)
> trim(s)
> ltrim(s)
> rtrim(s)
> reverse(s)
> ascii(s)
> md5(s)
> sha1(s)
> sha2(s, 256)
> sha2(s, 0)
> sha2(s, 224)
> sha2(s, 7)
> crc32(s)
> hex(s)
> CAST(s AS BINARY)
> CAST(CAST(s AS BINARY) AS STRING)
> s IS NULL
> repeat(s, 2)
> space(3) || s
> s LIKE 'a%'
> s LIKE '%b%'
> s LIKE 'a_b_c'
> s LIKE 'a\\%b\\_c'
> s LIKE 'a\\\\b'
> s LIKE 'a!%b%' ESCAPE '!'
> s LIKE ''
> s LIKE '%'
> s LIKE '_x_'
> s LIKE '%a%b%'
> s NOT LIKE '%x%'
> s RLIKE 'a'
> s RLIKE '^a.b'
> s RLIKE '^[a-z]+$'
> s RLIKE '[^a-z]'
> s RLIKE '(foo|bar)+$'
> s RLIKE '\\s'
> s RLIKE '\\w{3}'
> s RLIKE '^\\W'
> s RLIKE 'b$'
> s RLIKE ''
> regexp_extract(s, '([a-z]+)[^a-z]?([a-z]*)', 2)
> regexp_extract(s, '([a-z]+)')
> regexp_extract(s, '[a-z]?', 0)
> regexp_extract(s, 'x(y)?', 1)
> regexp_replace(s, '[a-z]', '#')
> regexp_replace(s, '([a-z])([a-z])', '$2$1')
---
s STRING: NULL, '', 'abc', '😀x😀y'
n INT: NULL, 0, 1, 2, 3, 9, -1, -2, -9, 2147483647, -2147483648
> substring(s, n)
> substring(s, n, 2)
> substring(s, n, -1)
> substring(s, 2, n)
> substring(s, -2, n)
> left(s, n)
> right(s, n)
> split_part('a.b.c', '.', n)
> locate('x', s, n)
> locate('', s, n)
> if(n < 100, lpad(s, n, 'xy'), NULL)
> if(n < 100, rpad(s, n), NULL)
> if(n < 100, repeat(s, n), NULL)
> chr(n)
