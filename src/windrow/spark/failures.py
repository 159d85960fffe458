"""Spark's errors as Windrow's: one clear message, the cause named, the JVM's trace kept out of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError

from windrow.errors import SourceError, WindrowError
from windrow.spark.sources.java_errors import SPARK_ERRORS

#: the class and text of an exception in a Java stack trace
_CAUSE = re.compile(r"^(?:Caused by: )?([\w.$]+(?:Exception|Error)): (.*)$", re.MULTILINE)
_READING = re.compile(r"while reading file (?:file://)?(\S+\w)")
_MALFORMED = re.compile(r"MALFORMED_RECORD|MALFORMED_CSV_RECORD|FAILED_READ_FILE|BadRecordException")


@contextmanager
def job_failed(what: str) -> Iterator[None]:
    """Errors of Spark while doing something become one of ours."""
    try:
        yield
    except SPARK_ERRORS as error:
        raise translated(str(error), what) from error
    except Py4JError as error:
        raise WindrowError(
            f"Spark is gone while {what}: {_first_line(str(error))}",
            code="spark-gone",
            hint="start again: nothing that was committed is lost",
        ) from error


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
    if _MALFORMED.search(text):
        return SourceError(
            f"{what}: {_cause(text, 'Malformed')}{_file(text)}",
            code="malformed-row",
            hint="mend or remove the file and start again, or let such rows be dropped with `malformed=drop`",
        )
    return WindrowError(f"{what} failed: {_cause(text)}", code="job-failed", hint=_GO_ON)


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
