"""Spark's errors as Windrow's: one clear message, the cause named, the JVM's trace kept out of it.

What Spark's JVM says when it fails, in one line.

Frames of Spark: its own types, for those above that name them, and kept sub-windows as frames.
"""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import PurePath
from secrets import token_hex
from traceback import walk_tb
from typing import TYPE_CHECKING, Any

from py4j.java_gateway import is_instance_of
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkContext, StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812  as everybody calls it
from pyspark.sql.streaming.query import StreamingQuery

from windrow.errors import SourceError, WindrowError
from windrow.physical.native_sql import moment_sql, quoted
from windrow.spark.sources.malformed_rows import told
from windrow.spark.sources.ranges import told_by_task

if TYPE_CHECKING:
    from windrow.algebra.catalog import Stream


#: PySpark turns most errors of the JVM into its own, but not those of a job whose rows come as Arrow
SPARK_ERRORS = (PySparkException, Py4JJavaError)

_JAVA_ERROR_CAUSE = re.compile(r"^Caused by: [\w.$]+: (.*)$", re.MULTILINE)
_ERROR = re.compile(r"^: [\w.$]+: (.*)$", re.MULTILINE)


def reason(error: BaseException) -> str:
    """The message without its stack: of several causes the last one says most."""
    text = str(error)
    causes = _JAVA_ERROR_CAUSE.findall(text) or _ERROR.findall(text)
    return str(causes[-1]) if causes else text.split("SQLSTATE")[0].strip().splitlines()[0]


#: the class and text of an exception in a Java stack trace
_CAUSE = re.compile(r"^(?:Caused by: )?([\w.$]+(?:Exception|Error)): (.*)$", re.MULTILINE)
_READING = re.compile(r"while reading file (?:file://)?(\S+\w)")
#: of the lines that Spark writes about it, one says what is wrong and one names the file
_OTHER_HEADER = re.compile(
    r"CSV header[^\n]*\n(?:[^\n]*\n){0,2}? *(Expected[^\n]*|Header length[^\n]*)\nCSV file: (?:file://)?([^\n]*)"
)
_MISSING = re.compile(r"No module named '([\w.]+)'")
#: Spark's conditions, and what is Java's where Spark has none: a source is not what it was
_GONE = ("FAILED_READ_FILE.FILE_NOT_EXIST", "PATH_NOT_FOUND", "java.io.FileNotFoundException")
#: rows are not what they should be; so is all that SQL calls a data exception
_OF_ROWS = ("FAILED_READ_FILE", "MALFORMED_RECORD_IN_PARSING", "MALFORMED_CSV_RECORD")
_DATA_EXCEPTION = "22"
#: what stands between here and there has failed, while a file was read: it is not the file's fault
_ON_THE_WAY = re.compile(
    r"java\.net\.|javax\.net\.|java\.io\.(IO|InterruptedIO)Exception$|.*Timeout|.*amazonaws|.*azure"
)
#: a process that a task talks to is gone
_HUNG_UP = ("java.io.EOFException", "java.net.SocketException")
_MOST_CAUSES = 20


@dataclass(frozen=True)
class Cause:
    """One of the exceptions that led to a failure: its class, and Spark's condition and SQL state for it."""

    kind: str
    condition: str = ""
    state: str = ""

    def is_one_of(self, names: Sequence[str]) -> bool:
        """Whether it is of one of these conditions, which may have parts, or classes."""
        return self.kind in names or any(f"{self.condition}.".startswith(f"{name}.") for name in names)


def causes(error: BaseException) -> list[Cause]:
    """Why something failed in the JVM, the innermost last; nothing if it cannot be asked any more."""
    found: list[Cause] = []
    try:
        each: Any = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
        while each is not None and len(found) < _MOST_CAUSES:
            kind = str(each.getClass().getName())
            tells = is_instance_of(SparkContext._gateway, each, "org.apache.spark.SparkThrowable")
            known = (each.getCondition(), each.getSqlState()) if tells else ("", "")
            found.append(Cause(kind, *(str(part or "") for part in known)))
            each = each.getCause()
    except (Py4JError, OSError, AttributeError):
        return found
    return found


@contextmanager
def job_failed(what: str) -> Iterator[None]:
    """Errors of Spark while doing something become one of ours."""
    try:
        yield
    except SPARK_ERRORS as error:
        raise translated(error, what) from error
    except Py4JError as error:
        raise _gone(error, what) from error
    except (OSError, EOFError) as error:  # py4j lets some errors of its sockets through as they are
        if not _is_of_py4j(error):
            raise
        raise _gone(error, what) from error


def _gone(error: BaseException, what: str) -> WindrowError:
    return WindrowError(
        f"Spark is gone while {what}: {_first_line(str(error))}",
        code="spark-gone",
        hint="its Java process has ended; start again in a new process: nothing that was committed is lost",
    )


def _is_of_py4j(error: BaseException) -> bool:
    """Whether the connection to Spark's JVM broke, and no other."""
    modules = (str(frame.f_globals.get("__name__", "")) for frame, _ in walk_tb(error.__traceback__))
    return any(module.partition(".")[0] == "py4j" for module in modules)


def is_gone(error: BaseException) -> bool:
    """Whether files are not there any more."""
    return any(cause.is_one_of(_GONE) for cause in causes(error))


def translated(error: BaseException, what: str) -> WindrowError:
    """What a failed job means to a user. Of three classes: what rows are at fault for, and what is so about
    their source, is told; all else is `job-failed` or the like, and may pass."""
    text, known = str(error), causes(error)
    # a value that rows are at fault for may say anything
    is_of_rows = any(cause.state.startswith(_DATA_EXCEPTION) for cause in known)
    if ("No space left on device" in text or "disk-full" in text) and not is_of_rows:
        return WindrowError(
            f"the disk is full while {what}",
            code="disk-full",
            hint="make room and start again: nothing that was committed is lost",
        )
    if any(cause.is_one_of(_GONE) for cause in known):
        return SourceError(
            f"{what}: {_cause(text, 'File')}",
            code="file-missing",
            hint="put the file back, or start with a new state directory",
        )
    return (
        told_by_task(text)
        or told(text, what)
        or _of_files(text, known, what)
        or _of_workers(text, known, what)
    )


def _of_files(text: str, known: Sequence[Cause], what: str) -> WindrowError | None:
    """What is wrong with the files that were read, or with the way to them."""
    header = _OTHER_HEADER.search(text)
    if header is not None:
        return SourceError(
            f"{what}: {header[2]} has another header than the first file: {header[1].strip()}",
            code="other-header",
            hint="give all files the same columns in the same order, or read them as streams of their own",
        )
    if any(cause.is_one_of(("FAILED_READ_FILE",)) for cause in known) and _ON_THE_WAY.match(known[-1].kind):
        return SourceError(f"{what}: {_cause(text)}{_file(text)}", code="source-away", hint=_GO_ON)
    if any(cause.is_one_of(_OF_ROWS) or cause.state.startswith(_DATA_EXCEPTION) for cause in known):
        return SourceError(
            f"{what}: {_cause(text, 'Malformed')}{_file(text)}",
            code="malformed-row",
            hint="mend or remove the file and start again, or let such rows be dropped with `malformed=drop`",
        )
    return None


def _of_workers(text: str, known: Sequence[Cause], what: str) -> WindrowError:
    """What is wrong with the processes that run tasks."""
    if is_late_worker(text):
        return WindrowError(
            f"{what}: Spark has started a Python process that was not there within ten seconds",
            code="worker-late",
            hint=f"the machine is very busy; {_GO_ON}",
        )
    missing = _MISSING.search(text)
    if missing or "PYTHON_VERSION_MISMATCH" in text:
        found = f"have no module `{missing[1]}`" if missing else "are of another version"
        return WindrowError(
            f"{what}: Spark's Python workers run another Python than this program, and {found}",
            code="other-python",
            hint=f"set PYSPARK_PYTHON={sys.executable} before the session is made, or install windrow there",
        )
    if "Python worker exited unexpectedly" in text or any(cause.kind in _HUNG_UP for cause in known):
        return WindrowError(
            f"{what}: a Python worker has died",
            code="worker-died",
            hint=f"it may have had too little memory, or a library in it has crashed; {_GO_ON}",
        )
    return WindrowError(f"{what} failed: {_cause(text)}", code="job-failed", hint=_GO_ON)


def is_late_worker(text: str) -> bool:
    """Whether Spark has given up on a Python process that had ten seconds to come up: it cannot be told to
    give more."""
    return "failed to connect back" in text


_GO_ON = "nothing that was committed is lost; start again to go on from there"


def _cause(text: str, wanted: str = "") -> str:
    """The most telling line of a trace: the innermost cause, or the first that has a wanted word."""
    causes = [f"{name.rpartition('.')[2]}: {message}" for name, message in _CAUSE.findall(text)]
    fitting = [cause for cause in causes if wanted and wanted.lower() in cause.lower()]
    chosen = fitting or causes[-1:] or [_first_line(text)]
    return chosen[0].strip()


def _file(text: str) -> str:
    """Which file it is about, where Spark says so.

    >>> _file("Encountered error while reading file file:///in/1.parquet. Expected Spark type bigint")
    ', in /in/1.parquet'
    """
    found = _READING.search(text)
    return f", in {found[1]}" if found else ""


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "no message")


__all__ = ["DataFrame", "SparkSession", "StreamingQuery"]


# ------------------------------------------------------------ kept frames
#
# Kept sub-windows as Spark frames, and the rows of them that are in a window: all of it native.
#
# A frame that is staged was read: its rows stay with Spark while it is held, whatever becomes of the files.


_FILE, _MOMENT, _RANK = "__file", "__moment", "__rank"


@dataclass(frozen=True)
class KeptRange:
    """Rows of files with first <= attribute <= last, and of these the last `rows` of each partition."""

    files: Sequence[str]
    first: int | None
    last: int
    rows: int | None = None
    partition_by: tuple[str, ...] = ()


class Staging:
    """Reads sub-windows of streams and holds their rows, to the end of the block."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._held = ExitStack()
        self._frames: dict[str, list[DataFrame]] = {}
        #: what was read, by stream
        self.files: dict[str, set[str]] = {}

    def __enter__(self) -> Staging:
        return self

    def __exit__(self, *error: object) -> None:
        self._held.close()

    def read(self, stream: Stream, files: Sequence[str], *, hold: bool) -> None:
        """Read files that were not read yet; if they are held, all of them before this returns."""
        if not files:
            return
        name = F.col("_metadata.file_name").alias(_FILE)
        moment = F.expr(moment_sql(stream)).alias(_MOMENT)
        columns = [F.col(quoted(column)) for column in stream.schema.names]
        frame = self._spark.read.parquet(*files).select(*columns, name, moment)
        if hold:
            frame = frame.persist(StorageLevel.MEMORY_AND_DISK)
            self._held.callback(frame.unpersist)
            with job_failed(f"reading stream `{stream.name}`"):
                frame.count()
        self._frames.setdefault(stream.name, []).append(frame)
        self.files.setdefault(stream.name, set()).update(files)

    def rows(self, stream: Stream, chosen: KeptRange) -> DataFrame:
        """The rows that are in a window."""
        found = self._frames[stream.name]
        frame = found[0]
        for other in found[1:]:
            frame = frame.unionByName(other)
        names = [PurePath(file).name for file in chosen.files]
        inside = F.col(_FILE).isin(names) & (F.col(_MOMENT) <= chosen.last)
        if chosen.first is not None:
            inside &= F.col(_MOMENT) >= chosen.first
        frame = frame.filter(inside)
        columns = [F.col(quoted(column)) for column in stream.schema.names]
        if chosen.rows is not None:
            # the order of rows is by attribute, then by all columns, NULL first and NaN last, as Spark sorts
            order = [F.col(_MOMENT).desc(), *(column.desc() for column in columns)]
            if chosen.partition_by:
                keys = [F.col(quoted(name)) for name in chosen.partition_by]
                rank = F.row_number().over(Window.partitionBy(*keys).orderBy(*order))
                frame = frame.withColumn(_RANK, rank).filter(F.col(_RANK) <= chosen.rows)
            else:
                frame = frame.orderBy(*order).limit(chosen.rows)
        return frame.select(*columns)


@contextlib.contextmanager
def own_jobs(spark: SparkSession, what: str) -> Iterator[Callable[[], None]]:
    """Jobs started in the block, by this thread, are a group; what is given cancels them."""
    context, group = spark.sparkContext, f"windrow-{token_hex(8)}"
    before = {name: context.getLocalProperty(name) for name in _GROUP}
    context.setJobGroup(group, what, interruptOnCancel=True)
    try:
        yield lambda: context.cancelJobGroup(group)
    finally:
        for name, value in before.items():
            context.setLocalProperty(name, value)  # type: ignore[arg-type]


_GROUP = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")
