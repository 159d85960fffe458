"""Parquet files: their columns, told from their footers, and few rows of them, read without Spark.

What is read here is what Spark would read. So columns are taken only if their types are the declared ones,
or hold fewer values of the same kind; anything else is left to Spark, which reads it or says why not.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as is_a

from windrow.spark.sources.listing import is_local, unread

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import SparkSession

#: a column in a schema as Parquet writes it: how often it is there, its type, its name, and what it means
_FIELD = re.compile(r"^  \w+ \S+ (.+?)(?: \(.*\))?(?: = \d+)?(?:;| \{)$", re.MULTILINE)
_UTC = ("UTC", "Etc/UTC", "+00:00", None)


def columns_here(paths: Sequence[str]) -> Iterator[tuple[str, set[str]]]:
    """The columns of files of this machine, in lower case; nothing of what is no Parquet file."""
    for path in filter(is_local, paths):
        with suppress(OSError, pa.ArrowException):
            yield path, {name.lower() for name in pq.read_schema(path).names}


def columns_elsewhere(spark: SparkSession, paths: Sequence[str]) -> Iterator[tuple[str, set[str]]]:
    """The columns of Parquet files elsewhere, in lower case. Parquet's library reads their footers, side by
    side; the calls of the JVM are as many for a thousand files as for one."""
    known: Any = unread(spark, paths)._jdf
    jvm: Any = spark._jvm
    listed = known.queryExecution().analyzed().relation().location().allFiles()
    files = jvm.scala.jdk.javaapi.CollectionConverters.asJava(listed)
    conf = known.sparkSession().sessionState().newHadoopConf()
    footers = jvm.org.apache.parquet.hadoop.ParquetFileReader.readAllFootersInParallel(conf, files, True)
    utilities = jvm.org.apache.commons.collections4

    def of_each(*getters: str) -> list[str]:
        found = footers
        for getter in getters:
            transformer = utilities.TransformerUtils.invokerTransformer(getter)
            found = utilities.CollectionUtils.collect(found, transformer)
        return str(jvm.org.apache.commons.lang3.StringUtils.join(found, "\0")).split("\0")

    schemas = of_each("getParquetMetadata", "getFileMetaData", "getSchema")
    columns = {schema: {name.lower() for name in _FIELD.findall(schema)} for schema in set(schemas)}
    for path, schema in zip(of_each("getFile"), schemas, strict=True):
        yield path, columns[schema]


def parquet_rows(path: str, names: Sequence[str], declared: pa.Schema) -> pa.Table | None:
    """The rows of a file as declared, whose columns have these names there; None if that is not for us."""
    with pq.ParquetFile(path) as file:
        schema = file.schema_arrow
        if len(set(map(str.lower, schema.names))) < len(schema.names) or not set(names) <= set(schema.names):
            return None
        kinds = [schema.field(name).type for name in names]
        if not all(map(is_same, kinds, declared.types)):
            return None
        table = file.read(columns=list(names)).select(list(names))
    table.validate(full=True)  # text that is no UTF-8 is told by Spark
    return table.rename_columns(declared.names).cast(declared)


def is_same(given: pa.DataType, declared: pa.DataType) -> bool:
    """Whether all values of a type are the same values of the declared one.

    >>> is_same(pa.int32(), pa.int64()), is_same(pa.int64(), pa.int32()), is_same(pa.int64(), pa.float64())
    (True, False, False)
    """
    if given == declared:
        return True
    if is_a.is_timestamp(given) and is_a.is_timestamp(declared):
        return given.unit in ("us", "ms") and given.tz in _UTC
    if is_a.is_signed_integer(given) and is_a.is_signed_integer(declared):
        return bool(given.bit_width < declared.bit_width)
    if is_a.is_large_string(given) or is_a.is_large_binary(given):
        return is_same(pa.string() if is_a.is_large_string(given) else pa.binary(), declared)
    return bool(is_a.is_float32(given) and is_a.is_float64(declared))


def numbered(tables: Sequence[pa.Table], order: Sequence[str]) -> pa.Table:
    """The rows of several files, in the order of the files; `order` are columns to tell it by.

    >>> some = [pa.table({"a": [7, 8]}), pa.table({"a": [9]})]
    >>> numbered(some, ["file", "row"]).to_pydict()
    {'a': [7, 8, 9], 'file': [0, 0, 1], 'row': [0, 1, 0]}
    """
    whole = pa.concat_tables(tables)
    counts = [table.num_rows for table in tables]
    files = pa.array(np.repeat(np.arange(len(tables), dtype=np.int64), counts))
    rows = pa.array(np.concatenate([np.arange(count, dtype=np.int64) for count in counts]))
    for name in order:
        whole = whole.append_column(name, rows if name == order[-1] else files)
    return whole
