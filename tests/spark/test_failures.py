"""What goes wrong with Spark itself is told as an error of ours, with the way out."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark import SparkContext, java_gateway
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

import windrow as wr
from windrow.engine.loop import PASSING
from windrow.errors import StateError, WindrowError
from windrow.execution.malformed_rows import MARK
from windrow.spark import failures, session as module
from windrow.spark.failures import Cause, failure_of, is_away, is_late_worker, job_failed, translated
from windrow.spark.java import JavaHome
from windrow.spark.sources.kafka_source import SCHEMA, ReadMessages
from windrow.spark.sources.source import frame_of_parts
from windrow.spark.sources.urls import KafkaUrl

#: how long anything may take on a busy machine
PATIENCE = 240


def test_a_jvm_that_is_gone() -> None:
    """Some errors of its sockets py4j lets through as they are; they are told by where they come from."""
    in_py4j = {"__name__": "py4j.clientserver"}
    with pytest.raises(WindrowError) as told, job_failed("reading stream `s`"):
        exec("raise ConnectionRefusedError(111, 'Connection refused')", in_py4j)
    assert told.value.code == "spark-gone"
    assert "while reading stream `s`" in told.value.message
    assert "new process" in str(told.value.hint)


def test_another_connection_that_is_refused_says_nothing_of_spark() -> None:
    with pytest.raises(ConnectionRefusedError), job_failed("asking a table of yours"):
        raise ConnectionRefusedError("no database")


SPARK = "org.apache.spark.SparkException"
TIMEOUT = "java.net.SocketTimeoutException"
WORKERS = "org.apache.spark.api.python.PythonWorkerFactory"
#: what is said of failures, and may as well be what a value says
WORDS = (
    "No space left on device",
    "disk-full",
    "Python worker failed to connect back.",
    "Timed out while waiting for the Python worker to connect back",
    "Python worker exited unexpectedly (crashed)",
    "ModuleNotFoundError: No module named 'windrow'",
    "[PYTHON_VERSION_MISMATCH] Python in worker has different version",
    "OSError: [Errno 28] No space left on device",
    "CSV header does not conform to the schema.\nExpected: a but found: b\nCSV file: file:///in/a.csv",
    f"windrow.spark.sources.source.SourceTaskError: {b'{}'.hex()}",
    f"{MARK} {b'{}'.hex()}::-:",
)


def traceback(raised: str, *before: str) -> Cause:
    """What a Python worker has raised, and what it was raised in place of."""
    parts = [
        f'Traceback (most recent call last):\n  File "worker.py", line 1\n    act()\n{each}\n'
        for each in (*before, raised)
    ]
    between = "\nThe above exception was the direct cause of the following exception:\n\n"
    text = f"[PYTHON_EXCEPTION] An exception was thrown from the Python worker: {between.join(parts)}"
    return Cause(
        "org.apache.spark.api.python.PythonException",
        "PYTHON_EXCEPTION",
        "38000",
        f"{text} SQLSTATE: 38000",
        "org.apache.spark.api.python.BasePythonRunner$ReaderIterator",
    )


@pytest.fixture
def caused(monkeypatch: pytest.MonkeyPatch) -> Callable[..., WindrowError]:
    """What a failure with these causes is told as."""

    def told(*known: Cause) -> WindrowError:
        monkeypatch.setattr(failures, "causes", lambda _: [Cause(SPARK), *known])
        text = "\n".join(f"Caused by: {cause.kind}: {cause.message}" for cause in known)
        return translated(RuntimeError(f"An error occurred\n: {text}"), "reading stream `s`")

    return told


@pytest.mark.parametrize(
    ("known", "code", "part"),
    [
        ([traceback("ModuleNotFoundError: No module named 'windrow'")], "other-python", "`windrow`"),
        (
            [traceback("SerializationError: Caused by", "ModuleNotFoundError: No module named 'windrow.x'")],
            "other-python",
            "`windrow.x`",
        ),
        (
            [Cause(SPARK, message="\nError from python worker:\n  python: No module named pyspark\n")],
            "other-python",
            "`pyspark`",
        ),
        (
            [traceback("pyspark.errors.PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python in worker")],
            "other-python",
            "version",
        ),
        ([Cause(SPARK, thrower=WORKERS), Cause(TIMEOUT, thrower=WORKERS)], "worker-late", "ten seconds"),
        (
            [Cause(SPARK, thrower="org.apache.spark.api.python.BasePythonRunner$ReaderIterator$$anonfun$1")],
            "worker-died",
            "has died",
        ),
        ([Cause(SPARK), Cause("java.io.EOFException")], "worker-died", "has died"),
    ],
)
def test_what_is_wrong_with_workers(
    caused: Callable[..., WindrowError], known: list[Cause], code: str, part: str
) -> None:
    error = caused(*known)
    assert error.code == code
    assert part in error.message
    assert code != "other-python" or f"PYSPARK_PYTHON={sys.executable}" in str(error.hint)


@pytest.mark.parametrize(
    ("known", "is_full"),
    [
        ([traceback("OSError: [Errno 28] No space left on device")], True),
        ([traceback("windrow.errors.StateError: no room", "OSError: [Errno 122] Disk quota exceeded")], True),
        ([traceback("OSError: [Errno 5] No space left on device")], False),
        (
            [
                Cause(
                    "java.io.IOException",
                    message="No space left on device",
                    thrower="sun.nio.ch.FileDispatcher",
                )
            ],
            True,
        ),
        ([Cause("java.io.IOException", message="No space left on device", thrower="com.user.Reader")], False),
        ([Cause(SPARK, message="No space left on device", thrower="java.io.FileOutputStream")], False),
    ],
)
def test_a_full_disk_is_told_by_the_system(
    caused: Callable[..., WindrowError], known: list[Cause], is_full: bool
) -> None:
    assert (caused(*known).code == "disk-full") is is_full


def test_another_header_is_told_by_who_threw_it(caused: Callable[..., WindrowError]) -> None:
    text = "CSV header does not conform to the schema.\nExpected: a but found: b\nCSV file: file:///in/a.csv"
    failed = Cause(SPARK, "FAILED_READ_FILE.NO_HINT", "KD001")
    checker = "org.apache.spark.sql.catalyst.csv.CSVHeaderChecker"
    error = caused(
        failed, Cause("org.apache.spark.SparkIllegalArgumentException", message=text, thrower=checker)
    )
    assert error.code == "other-header"
    assert "/in/a.csv has another header than the first file: Expected: a but found: b" in error.message


@pytest.mark.parametrize("words", WORDS)
def test_what_a_value_says_decides_nothing(caused: Callable[..., WindrowError], words: str) -> None:
    """Wherever it stands: in what a cast refuses, in what Python raises, on a line of its own or not."""
    cast = Cause(
        "SparkRuntimeException", "CAST_INVALID_INPUT", "22018", f"The value '{words}' cannot be cast"
    )
    assert caused(cast).code == "malformed-row"
    for text in (words, f"x\n{words}", f"x\nTraceback (most recent call last):\n  File\n{words}\n"):
        assert caused(traceback(f"ValueError: {text}")).code == "job-failed"
        assert caused(traceback("KeyError: 'x'", f"ValueError: {text}")).code == "job-failed"
        assert caused(Cause("java.lang.RuntimeException", message=text)).code == "job-failed"


@pytest.mark.thorough
def test_what_a_value_of_a_real_job_says_decides_nothing(spark: SparkSession) -> None:
    words = "\n".join(WORDS)

    def fail(batches: Any) -> Any:
        raise ValueError(words)

    rows = spark.createDataFrame([(words,)], "word string")
    for frame, code in (
        (rows.selectExpr("CAST(word AS INT)"), "malformed-row"),
        (rows.mapInArrow(fail, "word string"), "job-failed"),
    ):
        with pytest.raises(WindrowError) as told, job_failed("reading stream `s`"):
            frame.toArrow()
        assert told.value.code == code


@pytest.mark.thorough
def test_failures_of_real_workers_are_told_by_their_causes(spark: SparkSession, tmp_path: Path) -> None:
    def fill(batches: Any) -> Any:
        raise OSError(28, "No space left on device")

    def leave(batches: Any) -> Any:
        os._exit(1)

    read_topic = ReadMessages("s", KafkaUrl("127.0.0.1:1", "nowhere", timeout=200_000))
    (tmp_path / "a.csv").write_text("b,a\n1,2\n")
    read = spark.read.schema("a INT, b INT").options(header=True, enforceSchema=False)
    rows = spark.range(1)
    for frame, code in (
        (rows.mapInArrow(fill, "id bigint"), "disk-full"),
        (rows.mapInArrow(leave, "id bigint"), "worker-died"),
        (read.csv(str(tmp_path / "a.csv")), "other-header"),
        (frame_of_parts(spark, [(0, 0, 9)], read_topic, SCHEMA), "kafka"),
    ):
        with pytest.raises(WindrowError) as told, job_failed("reading stream `s`"):
            frame.toArrow()
        assert told.value.code == code, told.value.message


@pytest.mark.thorough
def test_why_a_streaming_query_has_ended_is_told_by_its_causes(spark: SparkSession, tmp_path: Path) -> None:
    """What PySpark makes of them has none."""

    def leave(batches: Any) -> Any:
        os._exit(1)

    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("1\n")
    rows = spark.readStream.schema("a INT").csv(str(tmp_path / "in")).mapInArrow(leave, "a INT")
    writer = rows.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = writer.trigger(availableNow=True).start()
    with pytest.raises(StreamingQueryException):
        query.awaitTermination(PATIENCE)
    found = failure_of(query)
    assert found is not None
    assert not is_late_worker(found)
    assert translated(found, "reading stream `s`").code == "worker-died"


@pytest.mark.thorough
def test_failures_are_told_by_sparks_conditions(spark: SparkSession, tmp_path: Path) -> None:
    """The rows' fault, a source's facts, and everything else, which is tried again."""
    (tmp_path / "no.parquet").write_text("no parquet")
    pq.write_table(pa.table({"a": ["x"]}), tmp_path / "text.parquet")
    pq.write_table(pa.table({"a": [1]}), tmp_path / "gone.parquet")
    (tmp_path / "no.csv").write_text("1\nx\n")
    read = spark.read.schema("a BIGINT")
    gone = read.parquet(str(tmp_path / "gone.parquet"))
    (tmp_path / "gone.parquet").unlink()
    cases = {
        "file-missing": [gone, lambda: spark.read.parquet(str(tmp_path / "nowhere"))],
        "malformed-row": [
            read.parquet(str(tmp_path / "no.parquet")),
            read.parquet(str(tmp_path / "text.parquet")),
            read.option("mode", "FAILFAST").csv(str(tmp_path / "no.csv")),
            spark.sql("SELECT CAST(a AS INT) AS a FROM VALUES ('x') AS t(a)"),
        ],
        "job-failed": [lambda: spark.sql("SELECT * FROM nowhere")],
    }
    for code, frames in cases.items():
        for frame in frames:
            with pytest.raises(WindrowError) as told, job_failed("reading stream `s`"):  # noqa: PT012
                made: Any = frame if isinstance(frame, DataFrame) else frame()
                made.toArrow()
            assert told.value.code == code, told.value.message
            assert (told.value.code in PASSING) == (code == "job-failed")


@pytest.mark.parametrize(
    ("innermost", "code"),
    [
        ("java.net.SocketTimeoutException", "source-away"),
        ("java.io.IOException", "source-away"),
        ("java.lang.RuntimeException", "malformed-row"),
    ],
)
def test_a_store_that_does_not_answer_is_no_fault_of_the_file(
    monkeypatch: pytest.MonkeyPatch, innermost: str, code: str
) -> None:
    found = [Cause("org.apache.spark.SparkException", "FAILED_READ_FILE.NO_HINT", "KD001"), Cause(innermost)]
    monkeypatch.setattr(failures, "causes", lambda _: found)
    assert translated(RuntimeError("while reading file s3a://b/1.parquet."), "reading").code == code


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        (["java.lang.IllegalArgumentException", "java.net.UnknownHostException"], True),
        (["org.apache.hadoop.fs.s3a.AWSClientIOException", "software.amazon.awssdk.core.Any"], True),
        (["java.nio.file.AccessDeniedException", "software.amazon.awssdk.services.s3.S3Exception"], False),
        (["java.lang.RuntimeException", "java.lang.ClassNotFoundException"], False),
        (["org.apache.hadoop.fs.UnsupportedFileSystemException"], False),
        (["org.apache.spark.sql.AnalysisException"], False),
    ],
)
def test_a_store_that_answers_is_not_away(
    monkeypatch: pytest.MonkeyPatch, kinds: list[str], expected: bool
) -> None:
    monkeypatch.setattr(failures, "causes", lambda _: [Cause(kind) for kind in kinds])
    assert is_away(RuntimeError()) is expected


@pytest.mark.parametrize("sent", [KeyboardInterrupt, RuntimeError])
@pytest.mark.parametrize("is_connected", [False, True])
def test_a_start_that_is_interrupted_leaves_no_process(
    sent: type[BaseException], is_connected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection to it goes with it, if it came that far; one to another process stays."""
    started: list[Any] = []
    other = SimpleNamespace(proc=None)

    def interrupted(_: object) -> None:
        started.append(java_gateway.Popen(["sleep", "1000"]))
        if is_connected:
            SparkContext._gateway = SimpleNamespace(proc=started[0])
        raise sent

    monkeypatch.setattr(module, "find_java", lambda: JavaHome(Path("/"), (17,), "a test"))
    monkeypatch.setattr(module, "_start_environment", lambda *_, **__: {})
    monkeypatch.setattr(SparkContext, "_gateway", other)  # not that of the session which other tests have
    monkeypatch.setattr(SparkContext, "_jvm", other)
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    monkeypatch.setattr(SparkSession.Builder, "getOrCreate", interrupted)
    before = java_gateway.Popen
    with pytest.raises(sent):
        module.start_session()
    assert java_gateway.Popen is before
    assert started[0].returncode == -signal.SIGKILL
    assert SparkContext._gateway is SparkContext._jvm is (None if is_connected else other)


def test_a_session_is_made_beside_something_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "start_session", lambda **how: how)
    with module.starting(app="a") as session:
        made: Any = session()
    assert made["app"] == "a"


def test_what_stops_a_start_is_told_to_whoever_calls_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(**_: Any) -> None:
        raise StateError("no Java", code="no-java")

    monkeypatch.setattr(module, "start_session", refused)
    with pytest.raises(StateError, match="no Java"), module.starting() as session:
        session()


@pytest.mark.parametrize("is_there", [False, True])
def test_who_fails_before_the_session_is_there_takes_it_along(
    is_there: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A JVM that is starting ends, and none is started after that; a session that is there stays."""
    started: list[Any] = []
    is_up, too_late = Event(), Event()

    def starts(jvm: module.Jvm) -> str:
        with jvm:
            started.append(java_gateway.Popen(["sleep", "1000"]))
            is_up.set()
            if not is_there:
                started[0].wait()
                with pytest.raises(WindrowError, match="given up"):
                    java_gateway.Popen(["sleep", "1000"])
                too_late.set()
                raise RuntimeError("the gateway process exited")
            return "session"

    def fails() -> None:
        with module.starting() as session:
            assert is_up.wait(60)
            if is_there:
                assert session() == "session"  # type: ignore[comparison-overlap]
            raise StateError("in use", code="state-in-use")

    monkeypatch.setattr(module, "start_session", starts)
    with pytest.raises(StateError, match="in use"):
        fails()
    assert too_late.is_set() is not is_there
    assert started[0].poll() == (None if is_there else -signal.SIGKILL)
    started[0].kill()
    started[0].wait()


def test_a_session_that_was_stopped_is_refused(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark.sparkContext, "_jsc", None)
    with pytest.raises(StateError, match="was stopped"):
        module.prepared(spark)


# ------------------------------------------------------------ processes of their own

GENERATOR = """\
CREATE STREAM s (segment BIGINT, speed DOUBLE, ts TIMESTAMP)
  WATTR ts ORDERED FROM 'generator:traffic?rate=100&event_rate=100';
CREATE QUERY q AS SELECT COUNT(*) AS n FROM s [RANGE 1 SECOND SLIDE 1 SECOND];
"""
KILLED = f"""
import os, signal, sys, time
import windrow as wr
wr.aggregate(  # what users define runs on Spark, however few the rows are
    name="counted", returns="BIGINT", takes="DOUBLE", init=lambda: 0, step=lambda state, v: state + 1,
    merge=lambda a, b: a + b, final=lambda state: state,
)
w = wr.connect(state=None)
w.sql(\"\"\"{GENERATOR.replace("COUNT(*)", "counted(speed)")}\"\"\")
w.start()
while not w.queries["q"].progress.rows:
    assert w.is_running, w.problems
    time.sleep(0.05)
os.kill(w.spark.sparkContext._gateway.proc.pid, signal.SIGKILL)
while w.is_running:
    time.sleep(0.05)
for act in (w.close, lambda: wr.connect(state=None)):
    try:
        act()
    except wr.WindrowError as error:
        print(error.code)
"""
#: a Java that starts whatever it is told to start, and then never says where it listens
SILENT_JAVA = """\
#!/bin/sh
case "$*" in
  -version) echo 'openjdk version "21.0.8"' >&2 ;;
  *launcher.Main*) printf '\\0\\n%s\\0' "$0" ;;
  *) echo $$ > {told}.draft && mv {told}.draft {told} && exec sleep 1000 > /dev/null 2>&1 ;;
esac
"""
#: a Python that knows PySpark and what it needs, and not Windrow
WITHOUT_WINDROW = """\
import runpy, sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "windrow":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
del sys.argv[:2]  # this program, and -m
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""


def python(code: str, *arguments: str, **how: Any) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **how,
    )


def executable(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_ctrl_c_while_spark_starts_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a terminal sends it: to all processes of the group, while the JVM is coming up."""
    told = tmp_path / "pid"
    java = executable(tmp_path / "java" / "bin" / "java", SILENT_JAVA.format(told=told))
    monkeypatch.setenv("JAVA_HOME", str(java.parents[1]))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "q.cql").write_text(GENERATOR)
    code = "from windrow.cli.main import main; main(['run', 'q.cql'])"
    process = python(code, cwd=tmp_path, start_new_session=True)
    until = time.monotonic() + PATIENCE
    try:
        while not told.exists():
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < until, "Java was not started"
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE)
        assert (process.returncode, out) == (0, ""), err
        assert "Traceback" not in err
        with pytest.raises(ProcessLookupError):
            os.kill(int(told.read_text()), 0)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.process
@pytest.mark.thorough
def test_a_jvm_that_is_killed_is_told() -> None:
    out, err = python(KILLED).communicate(timeout=PATIENCE)
    assert out.splitlines() == ["spark-gone", "spark-gone"], err


@pytest.mark.thorough
def test_workers_of_another_python_are_told(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every attempt of the task fails the same way; the cause is told, not the last sign of it."""
    (tmp_path / "without.py").write_text(WITHOUT_WINDROW)
    other = executable(tmp_path / "python", f'#!/bin/sh\nexec {sys.executable} {tmp_path}/without.py "$@"\n')
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(other))
    with wr.connect(spark, state=None) as w:
        w.stream("s", spark.range(0, 5, 1, 1).selectExpr("id AS k", "id AS t"), wattr="t")
        w.query("q", "SELECT MEDIAN(k) AS m FROM s [RANGE 10 SLIDE 10]")
        with pytest.raises(WindrowError) as told:
            w.run(once=True)
    assert told.value.code == "other-python"
    assert "no module `windrow" in told.value.message
    assert f"PYSPARK_PYTHON={sys.executable}" in str(told.value.hint)
