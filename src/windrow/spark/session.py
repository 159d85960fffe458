"""Spark sessions: on this machine or on a cluster, set up the way Windrow needs them, and quiet.

Spark reads some of its settings from the environment while its JVM starts. They are put there for just that
long, so that making a session leaves no trace in the process's environment.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
import pyspark
from pyspark import SparkContext, java_gateway
from pyspark.sql import SparkSession, functions as F

from windrow.errors import StateError, WindrowError
from windrow.spark.failures import job_failed
from windrow.spark.java import JavaHome, find_java

_THIS_MACHINE = "127.0.0.1"
#: the host's own name need not resolve, as in many containers; on a cluster others have to find it
_ON_THIS_MACHINE = {
    "spark.driver.host": _THIS_MACHINE,
    "spark.driver.bindAddress": _THIS_MACHINE,
    # On a busy machine everything takes longer, and nothing is wrong: a process on this machine that is
    # really gone is noticed at once, by its sockets. A machine that is gone is noticed by its silence alone.
    "spark.network.timeout": "600s",
}
_SHIP = (
    "ship it: its wheel, renamed to windrow.zip, with --conf spark.submit.pyFiles=windrow.zip where they have"
    " what it needs (of spark-submit: --py-files); a packed environment with --conf"
    " spark.archives=env.tar.gz#env --conf spark.pyspark.python=./env/bin/python; or an image that has it"
)
#: half a minute is over before the better compiler, or the collector with threads of its own, has paid off
_BRIEF = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
#: how often a task is tried before its job fails: on one machine Spark tries once, if it is not told more
_ATTEMPTS = 4


def start_session(
    app: str = "windrow",
    master: str | None = None,
    *,
    settings: Mapping[str, str] | None = None,
    is_brief: bool = False,
    jvm: Jvm | None = None,
) -> SparkSession:
    """The Spark session of this process, made if there is none yet; without a master, on this machine.

    `settings` go over Windrow's own. A session that is brief is there some seconds sooner: its Java compiles
    less, and is slower in the long run.
    """
    with job_failed("looking for the session of this process"):
        active = SparkSession.getActiveSession()
    if active is not None:
        return active
    where = _with_attempts(master or "local[*]")
    is_here = where.startswith("local")
    java = find_java()
    own = _settings((*(_BRIEF if is_brief else ()), *java.start_options))
    chosen = {**own, **(_ON_THIS_MACHINE if is_here else {}), **(settings or {})}
    # an option that only spark-submit would look at
    workers = chosen.get("spark.pyspark.python", sys.executable)
    builder = SparkSession.builder.appName(app).master(where).config(map=dict(chosen))
    environment = _environment(_start_environment(java, workers, is_here=is_here))
    with environment, jvm or Jvm(), job_failed("starting Spark"):
        return builder.getOrCreate()


def _with_attempts(master: str) -> str:
    """A master on this machine, with how often a task is tried: Spark tries once if it is not told more.

    >>> _with_attempts("local"), _with_attempts("local[2]"), _with_attempts("local[2,1]")
    ('local[1,4]', 'local[2,4]', 'local[2,1]')
    >>> _with_attempts("spark://host:7077")
    'spark://host:7077'
    """
    if master == "local":
        master = "local[1]"
    if master.startswith("local[") and "," not in master:
        return f"{master[:-1]},{_ATTEMPTS}]"
    return master


def prepared(spark: SparkSession) -> SparkSession:
    """A session of any origin, with what Windrow's tasks need: one thread of polars in each worker."""
    context = getattr(spark, "sparkContext", None)  # a session of Spark Connect has none
    if context is None:
        raise StateError(
            f"Windrow cannot run on this session: {type(spark).__module__}.{type(spark).__name__}",
            code="bad-session",
            hint="give a SparkSession that is not one of Spark Connect, or none",
        )
    if getattr(context, "_jsc", context) is None:
        raise StateError("the Spark session was stopped", code="bad-session", hint="give a new one, or none")
    context.environment.setdefault("POLARS_MAX_THREADS", "1")
    if not str(context.master).startswith("local"):
        check_workers(spark)
    return spark


def check_workers(spark: SparkSession) -> None:
    """The workers of a cluster have this version of Windrow; one small task tells."""
    what = "looking for Windrow on the workers"
    try:
        with job_failed(what):
            (found,) = spark.sparkContext.parallelize([0], 1).map(_version).collect()
    except WindrowError as error:
        reason = error.message.removeprefix(what).removeprefix(": ").strip()
        raise StateError(
            f"the cluster's workers cannot run a task of Windrow: {reason}",
            code="bad-workers",
            hint=_SHIP if error.code == "other-python" else error.hint,
        ) from error
    if found != _version():
        raise StateError(
            f"the cluster's workers have Windrow {found}, this process has {_version()}",
            code="bad-workers",
            hint=_SHIP,
        )


def _version(_: int = 0) -> str:
    try:
        return version("windrow")
    except PackageNotFoundError:  # as in a zip of the sources
        return "of an unknown version"


def parallelism(spark: SparkSession) -> int:
    """How many tasks run at once."""
    return max(1, int(spark.sparkContext.defaultParallelism))


def _settings(java_options: Sequence[str]) -> dict[str, str]:
    logging = Path(str(files("windrow.spark"))) / "log4j2.properties"
    java = (
        "-Xss8m",  # Spark walks plans recursively, and ours are deep
        "-Duser.timezone=UTC",
        f'"-Dlog4j2.configurationFile={logging.as_uri()}"',
        *java_options,
    )
    return {
        "spark.sql.session.timeZone": "UTC",
        # Plans are chosen by Windrow; Spark changing them while they run would make updates hard to predict.
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        # A folder with more files than this is listed by a job, which takes longer than looking at them here.
        "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
        "spark.python.authenticate.socketTimeout": "300s",  # on a busy machine everything takes longer
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # Every call that builds a column would tell the JVM where it comes from, by four calls more.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        # Nobody sees the text of plans that Spark keeps for its page.
        "spark.sql.ui.explainMode": "simple",
        "spark.driver.extraJavaOptions": " ".join(java),
    }


def _start_environment(java: JavaHome, workers: str, *, is_here: bool) -> dict[str, str]:
    here = {"SPARK_LOCAL_IP": _THIS_MACHINE} if is_here else {}
    return here | {
        "JAVA_HOME": str(java.home),
        # The Spark inside this pyspark, not another one that the user may have installed.
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "PYSPARK_PYTHON": workers,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
    }


class Jvm:
    """The JVM of a start. It ends with a start that comes to nothing: cut off before it has told where it
    listens, it would neither be found nor find out, and wait for ever.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._processes: list[subprocess.Popen[bytes]] = []
        self._is_unwanted = False

    def __enter__(self) -> Self:
        self._before = vars(java_gateway)["Popen"]
        vars(java_gateway)["Popen"] = self._begin
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        vars(java_gateway)["Popen"] = self._before
        if kind is not None:
            self.kill()
            if getattr(SparkContext._gateway, "proc", None) in self._processes:
                SparkContext._gateway = SparkContext._jvm = None

    def _begin(self, *arguments: Any, **how: Any) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._is_unwanted:
                raise WindrowError("the start of Spark was given up", code="spark-gone")
            self._processes.append(subprocess.Popen(*arguments, **how))
            return self._processes[-1]

    def kill(self) -> None:
        """It is not wanted any more, nor is another."""
        with self._lock:
            self._is_unwanted = True
            for process in self._processes:
                process.kill()
                process.wait()


@contextmanager
def starting(**how: Any) -> Iterator[Callable[[], SparkSession]]:
    """A session that is made as `start_session` does, while the block does something else: it calls for it
    when it needs it. A block that fails before it is there takes it along."""
    jvm, session = Jvm(), Future[SparkSession]()

    def make() -> None:
        try:
            session.set_result(start_session(**how, jvm=jvm))
        except BaseException as error:  # noqa: BLE001  whoever calls for the session has it
            session.set_exception(error)

    thread = threading.Thread(target=make, name="windrow starts Spark", daemon=True)
    thread.start()
    try:
        yield session.result
    except BaseException:
        if not session.done():
            jvm.kill()
            thread.join()
        raise


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    """Set these variables, and put back afterwards what was there before."""
    before = {name: os.environ[name] for name in values if name in os.environ}
    os.environ.update(values)
    try:
        yield
    finally:
        for name in values:
            os.environ.pop(name, None)
        os.environ.update(before)


# ------------------------------------------------------------ warmup
#
# A new Spark does everything for the first time: it loads classes, and its Python workers load modules. A
# small job that needs the same of both is run beside whatever comes next, so that the first real one finds
# them there. It is nobody's business how it ends.


def warm(spark: SparkSession) -> threading.Thread:
    """Begin to warm up, in the background; an engine need not wait for it."""
    return _in_background(spark, _first_job)


#: seconds after which a worker without a task is ended by Spark, less what a look at the clock may be late
_WORKERS_STAY = 40.0
#: seconds for which workers are kept although nothing came that needed them
_WORTH_KEEPING = 600.0


class KeptWorkers:
    """Python workers that are there when they are needed again: Spark ends one that has had no task for a
    minute, and a new one loads for a second what its tasks need.
    """

    def __init__(self, spark: SparkSession, clock: Callable[[], float] = time.monotonic) -> None:
        self._spark, self._clock = spark, clock
        self._used = self._busy = -_WORTH_KEEPING
        self._job: threading.Thread | None = None

    def used(self) -> None:
        """A job that needs them begins."""
        self._used = self._busy = self._clock()

    def keep(self) -> None:
        """Give them a small task if Spark is about to end them."""
        now = self._clock()
        is_due = now - self._busy >= _WORKERS_STAY and now - self._used < _WORTH_KEEPING
        if is_due and (self._job is None or not self._job.is_alive()):
            self._busy, self._job = now, _in_background(self._spark, _task_for_each)


def _in_background(spark: SparkSession, job: Callable[[SparkSession], None]) -> threading.Thread:
    def run() -> None:
        with suppress(Exception):  # Spark may be stopped meanwhile
            spark.sparkContext.setJobGroup("windrow warming", "loading what the next jobs need")
            job(spark)

    thread = threading.Thread(target=run, name="windrow warming", daemon=True)
    thread.start()
    return thread


def _first_job(spark: SparkSession) -> None:
    rows = spark.range(0, 64, 1, 2).select((F.col("id") % 8).alias("key"), F.col("id").alias("value"))
    panes = rows.groupBy("key").agg(F.sum("value").alias("value"), F.max("value").alias("most"))
    panes.mapInArrow(_loaded, "key long").toArrow()


def _task_for_each(spark: SparkSession) -> None:
    """Those that have waited longest are taken first."""
    slots = parallelism(spark)
    numbers = spark.range(0, slots, 1, slots).select(F.col("id").alias("key"))
    numbers.mapInArrow(_loaded, "key long").toArrow()


def _loaded(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What the tasks of an epoch need is in this worker from now on."""
    import windrow.execution.close
    import windrow.execution.ingest  # noqa: F401  to have it loaded

    for batch in batches:
        yield batch.select(["key"])
