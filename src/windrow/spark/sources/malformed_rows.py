"""A row that cannot be read: how a job tells of it, and what the user is told.

The job raises one error whose text carries the row as it stands in the source, or hands the same text on in a
column of its own. What is wrong with it, and in which line of the file it is, is found out afterwards.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from urllib.parse import unquote

from pyspark.sql import Column, DataFrame, SparkSession, functions as F

from windrow.errors import DataError, WindrowError
from windrow.execution.malformed_rows import MARK, RowShape, Told, csv_values

#: so many bytes of a row travel with an error
_MOST_BYTES = 1 << 14
#: so many lines that might be the one are looked at
_CANDIDATES = 1000


def file_of(frame: DataFrame) -> Column:
    """The path of a row's file, whatever the columns of the files are called."""
    return frame.metadataColumn("_metadata").getField("file_path")


def telling(
    shape: RowShape,
    place: Column | None,
    text: Column | None = None,
    values: Sequence[Column] = (),
    most: int | None = _MOST_BYTES,
) -> Column:
    """A row that is none, as one text: where it comes from, and its text or else its values, of each of which
    at most so many bytes are told."""
    constant = json.dumps(vars(shape)).encode().hex().upper()
    parts = [_hex(place, "", most), _hex(text, "-", most)]
    told = F.concat_ws(",", *(_hex(value, "-", most) for value in values))
    return F.concat_ws(":", F.lit(f"{MARK} {constant}"), *parts, told)


def _hex(value: Column | None, without: str, most: int | None) -> Column:
    if value is None:
        return F.lit(without)
    data = value.cast("string").cast("binary")
    return F.coalesce(F.hex(data if most is None else F.substring(data, 1, most)), F.lit(without))


def told(text: str, what: str) -> WindrowError | None:
    """The error of a row that could not be read, out of what Spark says of a failed job."""
    found = Told.find(text)
    if found is None:
        return None
    where, fault = found.where, found.fault
    if found.shape.in_lines:
        line = _line(found)
        where += f", line {line:,}" if line else ""
    column = f"column `{fault.column}`" if fault.column else ""
    begun = ", ".join(part for part in (where, column) if part)
    hint = "mend it and start again, or leave such rows out with `malformed=drop`"
    return DataError(
        f"{what}: {begun}{': ' if begun else ''}{fault.text}",
        code="malformed-row",
        hint=f"{fault.hint}; or {hint}" if fault.hint else hint,
    )


# Which line it is.


def _line(told: Told) -> int | None:
    """The number of the first line of a file that is this row; None if it cannot be found out."""
    # a thread other than the one that made the session has none that is active
    spark = SparkSession.getActiveSession() or SparkSession._instantiatedSession
    if spark is None or not told.place:
        return None
    with suppress(Exception):  # it only adds to a message, which must not get lost for it
        return _searched(spark, told)
    return None


def _searched(spark: SparkSession, told: Told) -> int | None:
    values = [value for value in told.values if value]
    needle = told.raw if told.raw is not None else max(values, key=len, default=b"")
    lines = spark.read.format("text").option("__globPaths__", "false").load(unquote(told.place))
    block = lines.metadataColumn("_metadata").getField("file_block_start")
    # the ids of a partition's lines are without gaps, and a block is in one partition
    numbered = lines.select(block.alias("b"), F.monotonically_increasing_id().alias("i"), "value")
    blocks = numbered.groupBy("b").agg(F.min("i"), F.count("i")).orderBy("b").collect()
    candidates = (
        numbered.where(F.col("value").contains(F.lit(bytearray(needle)).cast("string")))
        .select("b", "i", F.col("value").cast("binary"))
        .orderBy("b", "i")
        .limit(_CANDIDATES)
        .collect()
    )
    before, known = 0, {}
    for start, first, count in blocks:
        known[start] = before - first + 1
        before += count
    return next((known[b] + i for b, i, line in candidates if _is_it(bytes(line), told)), None)


def _is_it(line: bytes, told: Told) -> bool:
    if told.raw is not None:
        return line[:_MOST_BYTES] == told.raw
    found = csv_values(line.decode("utf-8", "surrogateescape"), told.shape.delimiter)
    wanted = [(value or b"").decode("utf-8", "surrogateescape") for value in told.values]
    return set(wanted) <= {*found, ""}
