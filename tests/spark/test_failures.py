"""What goes wrong with Spark itself is told as an error of ours, with the way out."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from pyspark import SparkContext, java_gateway
from pyspark.sql import SparkSession

from windrow.errors import StateError, WindrowError
from windrow.spark import session as module
from windrow.spark.failures import job_failed, translated

if TYPE_CHECKING:
    from collections.abc import Callable

REPOSITORY = Path(__file__).parents[2]
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


@pytest.mark.parametrize(
    ("text", "code", "part"),
    [
        ("PythonException: ModuleNotFoundError: No module named 'windrow'", "other-python", "`windrow`"),
        ("[PYTHON_VERSION_MISMATCH] Python in worker has different version", "other-python", "version"),
        ("SparkException: Python worker failed to connect back.", "worker-late", "ten seconds"),
    ],
)
def test_what_workers_lack(text: str, code: str, part: str) -> None:
    error = translated(text, "reading stream `s`")
    assert error.code == code
    assert part in error.message
    assert code != "other-python" or f"PYSPARK_PYTHON={sys.executable}" in str(error.hint)


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

    monkeypatch.setattr(module, "_start_environment", dict)
    monkeypatch.setattr(SparkContext, "_gateway", other)  # not that of the session which other tests have
    monkeypatch.setattr(SparkContext, "_jvm", other)
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    monkeypatch.setattr(SparkSession.Builder, "getOrCreate", interrupted)
    before = java_gateway.Popen
    with pytest.raises(sent):
        module.local_session()
    assert java_gateway.Popen is before
    assert started[0].returncode == -signal.SIGKILL
    assert SparkContext._gateway is SparkContext._jvm is (None if is_connected else other)


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
w = wr.connect(state=None)
w.sql(\"\"\"{GENERATOR}\"\"\")
w.start()
while not w.queries["q"].progress.rows:
    assert w.is_running, w.problems
    time.sleep(0.05)
os.kill(w.spark.sparkContext._gateway.proc.pid, signal.SIGKILL)
for act in (w.close, lambda: wr.connect(state=None)):
    try:
        act()
    except wr.WindrowError as error:
        print(error.code)
"""
OTHER_PYTHON = """
import sys
from pyspark.sql import SparkSession
import windrow as wr
from windrow.spark.session import _environment, _start_environment
with _environment({**_start_environment(), "PYSPARK_PYTHON": sys.argv[1]}):
    spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
spark.sparkContext.setLogLevel("OFF")
w = wr.connect(spark, state=None)
w.stream("s", spark.range(5).selectExpr("id AS k", "id AS t"), wattr="t")
w.query("q", "SELECT MEDIAN(k) AS m FROM s [RANGE 10 SLIDE 10]")
try:
    w.run(once=True)
except wr.WindrowError as error:
    print(error.render())
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


def wait_until(happened: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < until
        time.sleep(0.05)


def group(leader: int) -> list[str]:
    """The commands of a process group that are there."""
    listed = subprocess.run(["ps", "-eo", "pgid=,stat=,args="], capture_output=True, text=True, check=True)
    fields = [line.split(None, 2) for line in listed.stdout.splitlines()]
    return [args for pgid, stat, args in fields if int(pgid) == leader and not stat.startswith("Z")]


@pytest.mark.jvm
def test_ctrl_c_while_spark_starts_leaves_nothing_behind(tmp_path: Path) -> None:
    """As a terminal sends it: to all processes of the group, while the JVM is coming up."""
    (tmp_path / "q.cql").write_text(GENERATOR)
    code = "from windrow.cli.main import main; main(['run', 'q.cql'])"
    process = python(code, cwd=tmp_path, start_new_session=True)
    try:
        wait_until(
            lambda: any(
                "PythonGatewayServer" in each or "pyspark-shell" in each for each in group(process.pid)
            )
        )
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE)
        assert (process.returncode, out) == (0, ""), err
        assert "Traceback" not in err
        wait_until(lambda: not group(process.pid))
    finally:
        if group(process.pid):
            os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.jvm
def test_a_jvm_that_is_killed_is_told() -> None:
    out, err = python(KILLED).communicate(timeout=PATIENCE)
    assert out.splitlines() == ["spark-gone", "spark-gone"], err


@pytest.mark.jvm
def test_workers_of_another_python_are_told(tmp_path: Path) -> None:
    """A Python that knows PySpark, and neither Windrow nor what it needs."""
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -c "$(cat {tmp_path}/daemon.py)" "$@"\n')
    bare.chmod(0o755)
    (tmp_path / "daemon.py").write_text(
        "import runpy, sys; sys.modules['windrow'] = None; sys.argv = sys.argv[1:];"
        " runpy.run_module(sys.argv[1], run_name='__main__', alter_sys=True)"
    )
    out, err = python(OTHER_PYTHON, str(bare)).communicate(timeout=PATIENCE)
    assert out.startswith("error[other-python]: "), out + err
    assert f"PYSPARK_PYTHON={sys.executable}" in out
