"""What Spark's JVM says when it fails, in one line."""

from __future__ import annotations

import re

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

#: PySpark turns most errors of the JVM into its own, but not those of a job whose rows come as Arrow
SPARK_ERRORS = (PySparkException, Py4JJavaError)

_CAUSE = re.compile(r"^Caused by: [\w.$]+: (.*)$", re.MULTILINE)
_ERROR = re.compile(r"^: [\w.$]+: (.*)$", re.MULTILINE)


def reason(error: BaseException) -> str:
    """The message without its stack: of several causes the last one says most."""
    text = str(error)
    causes = _CAUSE.findall(text) or _ERROR.findall(text)
    return str(causes[-1]) if causes else text.split("SQLSTATE")[0].strip().splitlines()[0]
