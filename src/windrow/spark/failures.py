"""Spark's errors as Windrow's: one clear message, the cause named, the JVM's trace kept out of it.

What class a failure is of is told by Spark's condition for it, or by the class of an exception and the one
that threw it; never by words that may be a value's. Spark 4.3 has no condition for a Python process that
comes too late or dies, for a header of CSV that is another, and for a full disk. What a Python worker raised
stands in one line of its traceback, before anything that its message may go on with.
"""

from __future__ import annotations

import errno
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import chain
from traceback import walk_tb
from typing import Any

from py4j.java_gateway import is_instance_of
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql.streaming.query import StreamingQuery

from windrow.errors import SourceError, WindrowError

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
#: of the lines that Spark writes about another header, the last but one says what is wrong and the last
#: names the file
_OTHER_HEADER = re.compile(r"\n *([^\n]*)\nCSV file: (?:file://)?([^\n]*)\Z")
#: who throws what there is no condition for
_HEADERS = "org.apache.spark.sql.catalyst.csv.CSVHeaderChecker"
_WORKERS, _STARTS_WORKERS = "org.apache.spark.api.python.", "org.apache.spark.api.python.PythonWorkerFactory"
_WRITES = ("java.io.", "sun.nio.")
#: what Python workers raise, as the one line of a traceback that says so
_PYTHON = ("PYTHON_EXCEPTION", "PYTHON_DATA_SOURCE_ERROR", "PYTHON_STREAMING_DATA_SOURCE_RUNTIME_ERROR")
_RAISED = re.compile(r"Traceback \(most recent call last\):\n(?:[ \n].*\n?)*(\S.*)")
_MISSING = re.compile(r"(?:ModuleNotFoundError|ImportError): No module named '?([\w.]+)'?")
_OTHER_VERSION = re.compile(r"[\w.]*PySparkRuntimeError: \[PYTHON_VERSION_MISMATCH\]")
_SYSTEM = re.compile(r"OSError: \[Errno (\d+)\]")
#: what a Python says that cannot even start, before it has any rows
_NO_START, _LACKED = "\nError from python worker:", re.compile(r"No module named '?([\w.]+)'?")
#: the disk is full, or as much of it as somebody may have
_FULL = (errno.ENOSPC, errno.EDQUOT)
#: Spark's conditions, and what is Java's where Spark has none: a source is not what it was
_GONE = ("FAILED_READ_FILE.FILE_NOT_EXIST", "PATH_NOT_FOUND", "java.io.FileNotFoundException")
#: rows are not what they should be; so is all that SQL calls a data exception
_OF_ROWS = ("FAILED_READ_FILE", "MALFORMED_RECORD_IN_PARSING", "MALFORMED_CSV_RECORD")
_DATA_EXCEPTION = "22"
#: what stands between here and there has failed, while a file was read: it is not the file's fault
_ON_THE_WAY = re.compile(
    r"java\.net\.|javax\.net\.|java\.io\.(IO|InterruptedIO)Exception$|.*Timeout|.*amazonaws|.*amazon\.awssdk|.*azure"
)
#: it has answered, and said no: that stays so until somebody changes it
_REFUSED = re.compile(
    r".*\.(AccessDenied|AccessControl|UnknownStore|NoAuthWithAWS|UnsupportedFileSystem|ClassNotFound)Exception$"
)
#: a process that a task talks to is gone
_HUNG_UP = ("java.io.EOFException", "java.net.SocketException")
_MOST_CAUSES = 20


@dataclass(frozen=True)
class Cause:
    """One of the exceptions that led to a failure: its class, Spark's condition and SQL state for it, what it
    says and the class that threw it."""

    kind: str
    condition: str = ""
    state: str = ""
    message: str = ""
    thrower: str = ""

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
            stack = each.getStackTrace()
            thrower = stack[0].getClassName() if len(stack) else ""
            found.append(Cause(kind, *(str(part or "") for part in (*known, each.getMessage(), thrower))))
            each = each.getCause()
    except (Py4JError, OSError, AttributeError):
        return found
    return found


def failure_of(query: StreamingQuery) -> BaseException | None:
    """Why a streaming query has ended, if not in order. PySpark's exception has words only: the JVM's goes
    along with it."""
    found = query.exception()
    if found is not None:
        with suppress(Py4JError, AttributeError):
            found.java_exception = query._jsq.exception().get()  # type: ignore[attr-defined]
    return found


def _raised(known: Sequence[Cause]) -> list[str]:
    """What Python workers raised: of each traceback the line below its frames, where it is named first."""
    messages = [cause.message for cause in known if cause.is_one_of(_PYTHON)]
    return [found[1] for message in messages if (found := _RAISED.search(message))]


@contextmanager
def job_failed(what: str) -> Iterator[None]:
    """Errors of Spark while doing something become one of ours."""
    try:
        yield
    except SPARK_ERRORS as error:
        raise translated(error, what) from error
    except (Py4JError, OSError, EOFError) as error:
        if not isinstance(error, Py4JError) and not _is_of_py4j(error):
            raise
        raise WindrowError(
            f"Spark is gone while {what}: {_first_line(str(error))}",
            code="spark-gone",
            hint="its Java process has ended; start again in a new process: nothing that was committed is"
            " lost",
        ) from error


def _is_of_py4j(error: BaseException) -> bool:
    """Whether the connection to Spark's JVM broke, and no other: py4j lets some errors of its sockets through
    as they are."""
    modules = (str(frame.f_globals.get("__name__", "")) for frame, _ in walk_tb(error.__traceback__))
    return any(module.partition(".")[0] == "py4j" for module in modules)


def is_gone(error: BaseException) -> bool:
    """Whether files are not there any more."""
    return any(cause.is_one_of(_GONE) for cause in causes(error))


def is_away(error: BaseException) -> bool:
    """Whether a store does not answer, so that it may answer later."""
    kinds = [cause.kind for cause in causes(error)]
    return any(map(_ON_THE_WAY.match, kinds)) and not any(map(_REFUSED.match, kinds))


def is_unanswered(error: BaseException) -> bool:
    """Whether what stands between here and a store is at the bottom of a failure."""
    known = causes(error)
    return bool(known) and _ON_THE_WAY.match(known[-1].kind) is not None


def translated(error: BaseException, what: str) -> WindrowError:
    """What a failed job means to a user. Of three classes: what rows are at fault for, and what is so about
    their source, is told; all else is `job-failed` or the like, and may pass."""
    # loaded here: Spark is started by somebody who has no rows yet
    from windrow.spark.sources.malformed_rows import told
    from windrow.spark.sources.source import told_by_task

    text, known = str(error), causes(error)
    if _is_full(known):
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
    by_tasks = map(told_by_task, _raised(known))
    of_rows = (told(cause.message, what) for cause in known if cause.is_one_of(("USER_RAISED_EXCEPTION",)))
    found = next(filter(None, chain(by_tasks, of_rows)), None)
    return found or _of_files(text, known, what) or _of_workers(text, known, what)


def _is_full(known: Sequence[Cause]) -> bool:
    """Whether a disk is full. Java has no class for it, but the system's own words."""
    numbers = [int(found[1]) for line in _raised(known) if (found := _SYSTEM.match(line))]
    words = tuple(map(os.strerror, _FULL))
    return any(number in _FULL for number in numbers) or any(
        cause.kind in ("java.io.IOException", "java.nio.file.FileSystemException")
        and cause.thrower.startswith(_WRITES)
        and cause.message.endswith(words)
        for cause in known
    )


def _of_files(text: str, known: Sequence[Cause], what: str) -> WindrowError | None:
    """What is wrong with the files that were read, or with the way to them."""
    headers = [_OTHER_HEADER.search(cause.message) for cause in known if cause.thrower.startswith(_HEADERS)]
    if headers and headers[0] is not None:
        return SourceError(
            f"{what}: {headers[0][2]} has another header than the first file: {headers[0][1].strip()}",
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
    if _is_late(known):
        return WindrowError(
            f"{what}: Spark has started a Python process that was not there within ten seconds",
            code="worker-late",
            hint=f"the machine is very busy; {_GO_ON}",
        )
    lacked = _lacked(known)
    if lacked is not None:
        return WindrowError(
            f"{what}: Spark's Python workers run another Python than this program, and {lacked}",
            code="other-python",
            hint=f"set PYSPARK_PYTHON={sys.executable} before the session is made, or install windrow there",
        )
    if any(cause.kind in _HUNG_UP or _is_of_workers(cause) for cause in known):
        return WindrowError(
            f"{what}: a Python worker has died",
            code="worker-died",
            hint=f"it may have had too little memory, or a library in it has crashed; {_GO_ON}",
        )
    return WindrowError(f"{what} failed: {_cause(text)}", code="job-failed", hint=_GO_ON)


def _lacked(known: Sequence[Cause]) -> str | None:
    """What another Python than this one has not."""
    raised = _raised(known)
    begun = [cause.message for cause in known if cause.message.startswith(_NO_START) and not cause.condition]
    missing = [*filter(None, map(_MISSING.match, raised)), *filter(None, map(_LACKED.search, begun))]
    if missing:
        return f"have no module `{missing[0][1]}`"
    return "are of another version" if any(map(_OTHER_VERSION.match, raised)) else None


def _is_of_workers(cause: Cause) -> bool:
    is_plain = cause.kind == "org.apache.spark.SparkException" and not cause.condition
    return is_plain and cause.thrower.startswith(_WORKERS)


def is_late_worker(error: BaseException) -> bool:
    """Whether Spark has given up on a Python process that had ten seconds to come up: it cannot be told to
    give more."""
    return _is_late(causes(error))


def _is_late(known: Sequence[Cause]) -> bool:
    late = "java.net.SocketTimeoutException"
    return any(cause.kind == late and cause.thrower.startswith(_STARTS_WORKERS) for cause in known)


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
