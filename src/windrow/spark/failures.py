"""Spark's errors as Windrow's: one clear message, the cause named, the JVM's trace kept out of it.

What Spark's JVM says when it fails, in one line.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from traceback import walk_tb

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException

from windrow.errors import SourceError, WindrowError
from windrow.spark.sources.malformed_rows import told
from windrow.spark.sources.ranges import told_by_task

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
_MALFORMED = re.compile(r"MALFORMED_RECORD|MALFORMED_CSV_RECORD|FAILED_READ_FILE|BadRecordException")
#: of the lines that Spark writes about it, one says what is wrong and one names the file
_OTHER_HEADER = re.compile(
    r"CSV header[^\n]*\n(?:[^\n]*\n){0,2}? *(Expected[^\n]*|Header length[^\n]*)\nCSV file: (?:file://)?([^\n]*)"
)
_MISSING = re.compile(r"No module named '([\w.]+)'")
_OTHER_VERSION = re.compile(r"PYTHON_VERSION_MISMATCH|Python in worker has different version")


@contextmanager
def job_failed(what: str) -> Iterator[None]:
    """Errors of Spark while doing something become one of ours."""
    try:
        yield
    except SPARK_ERRORS as error:
        raise translated(str(error), what) from error
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


def translated(text: str, what: str) -> WindrowError:
    """What a failed job means to a user."""
    if "No space left on device" in text or "disk-full" in text:
        return WindrowError(
            f"the disk is full while {what}",
            code="disk-full",
            hint="make room and start again: nothing that was committed is lost",
        )
    if "FileNotFoundException" in text or "FILE_NOT_EXIST" in text or "PATH_NOT_FOUND" in text:
        return SourceError(
            f"{what}: {_cause(text, 'File')}",
            code="file-missing",
            hint="put the file back, or start with a new state directory",
        )
    by_source = told_by_task(text)
    if by_source is not None:
        return by_source
    malformed = told(text, what)
    if malformed is not None:
        return malformed
    header = _OTHER_HEADER.search(text)
    if header is not None:
        return SourceError(
            f"{what}: {header[2]} has another header than the first file: {header[1].strip()}",
            code="other-header",
            hint="give all files the same columns in the same order, or read them as streams of their own",
        )
    if _MALFORMED.search(text):
        return SourceError(
            f"{what}: {_cause(text, 'Malformed')}{_file(text)}",
            code="malformed-row",
            hint="mend or remove the file and start again, or let such rows be dropped with `malformed=drop`",
        )
    if is_late_worker(text):
        return WindrowError(
            f"{what}: Spark has started a Python process that was not there within ten seconds",
            code="worker-late",
            hint=f"the machine is very busy; {_GO_ON}",
        )
    missing = _MISSING.search(text)
    if missing or _OTHER_VERSION.search(text):
        found = f"have no module `{missing[1]}`" if missing else "are of another version"
        return WindrowError(
            f"{what}: Spark's Python workers run another Python than this program, and {found}",
            code="other-python",
            hint=f"set PYSPARK_PYTHON={sys.executable} before the session is made, or install windrow there",
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
