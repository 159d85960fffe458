-- Dates and timestamps, before and after the epoch.
d DATE: NULL, DATE '1970-01-01', DATE '1969-12-31', DATE '2024-02-29', DATE '2023-12-31', DATE '2024-01-01', DATE '2021-01-03', DATE '1582-10-10', DATE '0001-01-01', DATE '9999-12-31', DATE '2024-08-31'
n INT: NULL, 0, 1, -1, 12, 31, -400, 2147483647
> date_add(d, n)
> date_sub(d, n)
> d + n
> d - n
> d + 1
> add_months(d, n)
> make_date(n, 1, 1)
> date_from_unix_date(n)
> make_date(2024, n, 1)
> make_date(2023, 2, n)
> datediff(d, DATE '2000-01-01') + 0
---
d DATE: NULL, DATE '1970-01-01', DATE '1969-12-31', DATE '2024-02-29', DATE '2023-12-31', DATE '2024-01-01', DATE '2021-01-03', DATE '2020-12-31', DATE '1582-10-10', DATE '0001-01-01', DATE '9999-12-31', DATE '2024-08-31'
e DATE: NULL, DATE '2024-02-29', DATE '1900-03-01'
> d - e
> datediff(d, e)
> d = e
> d < e
> d <=> e
> greatest(d, e)
> d = '2024-02-29'
> d > '2024'
> d IN ('2024-02-29', e)
> d BETWEEN e AND '2024-12-31'
> coalesce(d, e)
> coalesce(d, '2000-01-01')
> d = TIMESTAMP '2024-02-29 00:00:00'
> d - TIMESTAMP '2024-02-29 01:00:00'
> year(d)
> quarter(d)
> month(d)
> day(d)
> dayofweek(d)
> weekday(d)
> dayofyear(d)
> weekofyear(d)
> hour(d)
> EXTRACT(YEAROFWEEK FROM d)
> EXTRACT(WEEK FROM d)
> EXTRACT(DOW FROM d)
> EXTRACT(DOW_ISO FROM d)
> EXTRACT(DOY FROM d)
> EXTRACT(QUARTER FROM d)
> date_part('MONTH', d)
> last_day(d)
> add_months(d, 1)
> add_months(d, -13)
> trunc(d, 'YEAR')
> trunc(d, 'quarter')
> trunc(d, 'MM')
> trunc(d, 'week')
> date_trunc('MONTH', d)
> unix_date(d)
> to_date(d)
> to_timestamp(d)
> CAST(d AS TIMESTAMP)
> CAST(d AS STRING)
> concat('on ', d)
> d + INTERVAL '1 02:00:00' DAY TO SECOND
> d - INTERVAL '0 00:00:01' DAY TO SECOND
---
a TIMESTAMP: NULL, TIMESTAMP '1970-01-01 00:00:00', TIMESTAMP '1969-12-31 23:59:59.999999', TIMESTAMP '2024-02-29 13:14:15.123456', TIMESTAMP '2024-12-31 23:59:59.5', TIMESTAMP '1900-01-01 00:00:00.000001', TIMESTAMP '0001-01-01 00:00:00', TIMESTAMP '9999-12-31 23:59:59.999999'
b TIMESTAMP: NULL, TIMESTAMP '2024-02-29 13:14:15.123456', TIMESTAMP '1969-07-20 20:17:40'
> a - b
> a = b
> a <> b
> a < b
> a >= b
> a <=> b
> least(a, b)
> a = '2024-02-29 13:14:15.123456'
> a > '2024-02-29'
> a < DATE '2024-02-29'
> a IN (b, '1970-01-01')
> a BETWEEN '2000-01-01' AND b
> coalesce(a, b)
> a - DATE '2024-01-01'
> a - '2024-01-01'
> a + INTERVAL '1 02:03:04.000005' DAY TO SECOND
> a - INTERVAL '1 02:03:04.000005' DAY TO SECOND
> INTERVAL '0 00:00:01' DAY TO SECOND + a
> try_add(a, INTERVAL '1 00:00:00' DAY TO SECOND)
> year(a)
> month(a)
> day(a)
> dayofweek(a)
> weekofyear(a)
> hour(a)
> minute(a)
> second(a)
> EXTRACT(SECOND FROM a)
> EXTRACT(HOUR FROM a)
> EXTRACT(MINUTE FROM a)
> date_trunc('YEAR', a)
> date_trunc('QUARTER', a)
> date_trunc('MONTH', a)
> date_trunc('WEEK', a)
> date_trunc('DAY', a)
> date_trunc('HOUR', a)
> date_trunc('minute', a)
> date_trunc('SECOND', a)
> date_trunc('MILLISECOND', a)
> date_trunc('MICROSECOND', a)
> date_format(a, 'yyyy-MM-dd HH:mm:ss')
> date_format(a, 'y M d H m s')
> date_format(a, 'yy/MMM/dd hh:mm a')
> date_format(a, 'EEE EEEE MMMM D DDD')
> date_format(a, 'HH.mm.ss.SSSSSS S')
> trunc(a, 'MONTH')
> date_add(a, 1)
> datediff(a, b)
> last_day(a)
> unix_seconds(a)
> unix_millis(a)
> unix_micros(a)
> to_date(a)
> CAST(a AS DATE)
> CAST(a AS STRING)
> CAST(a AS BIGINT)
> CAST(a AS INT)
> CAST(a AS SMALLINT)
> CAST(a AS DOUBLE)
> CAST(a AS FLOAT)
> CAST(a AS DECIMAL(20,6))
> CAST(a AS DECIMAL(12,1))
> TRY_CAST(a AS INT)
---
m BIGINT: NULL, 0, 9223372036854775807, -9223372036854775808, -62135596800000001, 253402300800000000
> CAST(timestamp_micros(m) AS STRING)
> timestamp_micros(m) + INTERVAL '0 00:00:01' DAY TO SECOND
> timestamp_micros(m) - INTERVAL '0 00:00:01' DAY TO SECOND
> timestamp_micros(m) - TIMESTAMP '1970-01-01 00:00:01'
> timestamp_micros(m) - TIMESTAMP '1969-12-31 23:59:59'
> year(timestamp_micros(m))
> CAST(CAST(timestamp_micros(m) AS DATE) AS STRING)
> date_trunc('YEAR', timestamp_micros(m))
> last_day(timestamp_micros(m))
> weekofyear(timestamp_micros(m))
---
s STRING: NULL, '', '2024-02-29 13:14:15', '2024-02-30 00:00:00', '2024-2-9 1:2:3', ' 2024-02-29 13:14:15', '29/Feb/2024:13:14:15 +0100', '29/feb/2024:13:14:15 -0530', '1/1/24 12:05 AM', '1/1/24 12:05 PM', '2024-02-29T13:14:15.123456Z', '2024-02-29T13:14:15.5+02:00', '2024-366', '2023-366', '20240229', 'soon'
> to_timestamp(s, 'yyyy-MM-dd HH:mm:ss')
> to_timestamp(s, 'yyyy-M-d H:m:s')
> try_to_timestamp(s, 'dd/MMM/yyyy:HH:mm:ss Z')
> to_timestamp(s, 'd/M/yy hh:mm a')
> to_timestamp(s, 'yyyy-MM-dd\'T\'HH:mm:ss.SSSSSSXXX')
> to_timestamp(s, 'yyyy-DDD')
> try_to_timestamp(s, 'yyyyMMdd')
> to_date(s, 'yyyy-MM-dd HH:mm:ss')
> to_date(s, 'yyyyMMdd')
---
t TIMESTAMP: NULL, TIMESTAMP '1970-01-01 00:00:00', TIMESTAMP '2024-03-31 00:59:59.999999', TIMESTAMP '2024-03-31 01:00:00', TIMESTAMP '2024-03-31 02:30:00', TIMESTAMP '2024-10-27 00:30:00', TIMESTAMP '2024-10-27 01:30:00', TIMESTAMP '2024-10-27 02:30:00', TIMESTAMP '2040-07-01 12:00:00', TIMESTAMP '1950-07-01 12:00:00'
> from_utc_timestamp(t, 'Europe/Berlin')
> from_utc_timestamp(t, 'America/New_York')
> from_utc_timestamp(t, 'Asia/Kathmandu')
> from_utc_timestamp(t, '+05:30')
> to_utc_timestamp(t, 'Europe/Berlin')
> to_utc_timestamp(t, 'America/New_York')
> to_utc_timestamp(t, '-03:00')
