"""A Spark cluster of processes on this machine, and `windrow run` as it runs there.

    python -m tests.spark.cluster run SCRIPT.cql …        `windrow run`, with all work done by tasks of Spark
    WINDROW_TWICE=FOLDER python -m tests.spark.cluster …  and tasks that wait until another attempt has ended

A master and two workers come from pyspark's wheel. The workers have different names of one machine, as Spark
runs no second attempt of a task where the first one runs.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self
from urllib.request import urlopen

import pyspark
from pyspark import TaskContext
from pyspark.sql.classic.dataframe import DataFrame
from tests.support.patience import PATIENCE, wait_until

from windrow.cli.main import main
from windrow.execution import local
from windrow.spark.java import find_java

REPOSITORY = Path(__file__).parents[2]
TWICE = "WINDROW_TWICE"
_HERE, _WORKERS = "127.0.0.1", ("127.0.0.1", "localhost")
_MEMORY = "512m"
#: what a driver is told of a cluster as small as this
SETTINGS = {
    "spark.driver.host": _HERE,
    "spark.driver.bindAddress": _HERE,
    "spark.driver.memory": _MEMORY,
    "spark.executor.memory": _MEMORY,
    "spark.executor.cores": "1",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


@dataclass
class Cluster:
    """A master and its workers, each in a session of processes, by which all that it starts is found."""

    folder: Path
    #: how many tasks a worker runs at once
    tasks: int = 1
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def __enter__(self) -> Self:
        port, self._page = _free_port(), _free_port()
        self.url = f"spark://{_HERE}:{port}"
        where = ("--host", _HERE, "--port", str(port), "--webui-port", str(self._page))
        try:
            self._start("master", "master.Master", *where)
            wait_until(lambda: self._alive() is not None, self._ended)
            for name in _WORKERS:
                self.add(name)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes.values():
            _kill(lambda _: True, process.pid)
            process.wait(PATIENCE)

    def add(self, name: str) -> None:
        """A worker, where there is none of that name."""
        before = self._alive() or 0
        folder = ("--work-dir", str(self.folder / f"work-{name}"))
        size = ("--host", name, "--cores", str(self.tasks), "--memory", _MEMORY, "--webui-port", "0")
        self._start(name, "worker.Worker", *size, *folder, self.url)
        wait_until(lambda: (self._alive() or 0) > before, self._ended)

    def kill_executors(self) -> int:
        """End all executors, and nothing else; how many there were."""
        return sum(
            _kill(lambda command: "CoarseGrainedExecutorBackend" in command, self.processes[name].pid)
            for name in _WORKERS
            if name in self.processes
        )

    def kill_worker(self, name: str) -> int:
        """End a worker with all it has started, as if its machine had gone; how many processes that were."""
        process = self.processes.pop(name)
        ended = _kill(lambda _: True, process.pid)
        process.wait(PATIENCE)
        return ended

    def _start(self, name: str, program: str, *arguments: str) -> None:
        home = Path(pyspark.__file__).parent
        environment = {
            **os.environ,
            "JAVA_HOME": str(find_java().home),
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_IP": _HERE,
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
            "PYTHONPATH": os.pathsep.join([str(REPOSITORY), *sys.path]),
        }
        command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{program}", *arguments]
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                command, env=environment, cwd=self.folder, stdout=log, stderr=log, start_new_session=True
            )

    def _alive(self) -> int | None:
        """How many workers the master knows; None while it does not answer."""
        try:
            with urlopen(f"http://{_HERE}:{self._page}/json/", timeout=PATIENCE) as answer:
                return int(json.load(answer)["aliveworkers"])
        except (OSError, ValueError):
            return None

    def _ended(self) -> str | None:
        for name, process in self.processes.items():
            if process.poll() is not None:
                return f"{name}: {(self.folder / f'{name}.log').read_text()}"
        return None


@dataclass
class Driver:
    """`windrow run` over a script, on a cluster."""

    folder: Path
    process: subprocess.Popen[bytes]

    @classmethod
    def start(
        cls, master: str, folder: Path, conf: Mapping[str, str] | None = None, twice: Path | None = None
    ) -> Self:
        settings = [f"--conf={name}={value}" for name, value in {**SETTINGS, **(conf or {})}.items()]
        command = [sys.executable, "-m", "tests.spark.cluster", "run", str(folder / "script.cql")]
        command += ["--master", master, "--state", str(folder / "state"), "--flush", *settings]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(REPOSITORY), *sys.path])}
        environment |= {TWICE: str(twice)} if twice else {}
        with (folder / "log").open("ab") as log:
            return cls(
                folder,
                subprocess.Popen(
                    command, env=environment, cwd=REPOSITORY, stdout=log, stderr=log, start_new_session=True
                ),
            )

    @property
    def commits(self) -> int:
        """The last commit."""
        return max((int(path.stem) for path in (self.folder / "state" / "commits").glob("*.json")), default=0)

    def wait_for(self, commit: int) -> None:
        """Until that commit is there."""
        wait_until(
            lambda: self.commits >= commit, lambda: self.log if self.process.poll() is not None else None
        )

    def kill(self) -> int:
        """End the driver with its JVM, as if its machine had gone."""
        ended = _kill(lambda _: True, self.process.pid)
        self.process.wait(PATIENCE)
        return ended

    @property
    def log(self) -> str:
        """What it has said."""
        return (self.folder / "log").read_text()


def _free_port() -> int:
    with socket.socket() as found:
        found.bind((_HERE, 0))
        return int(found.getsockname()[1])


def _kill(wanted: Callable[[str], bool], session: int) -> int:
    """SIGKILL for the processes of a session with such a command; how many there were."""
    ended = 0
    for pid in list(_of_session(session)):
        with suppress(OSError):
            if wanted(Path(f"/proc/{pid}/cmdline").read_text(errors="replace")):
                os.kill(pid, signal.SIGKILL)
                ended += 1
    return ended


def _of_session(session: int) -> Iterator[int]:
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _, _, found = path.read_text(errors="replace").rpartition(")")[2].split()[:4]
            if int(found) == session and state != "Z":
                yield int(path.parent.name)


@dataclass(frozen=True)
class AwaitsAnother:
    """A task whose first attempt in partition 0 has written all its files, and waits for a second one."""

    task: Callable[[Iterator[Any]], Iterator[Any]]
    folder: str

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        made = list(self.task(batches))
        context = TaskContext.get()
        assert context is not None
        name = Path(self.folder) / f"{context.stageId()}-{context.partitionId()}"
        name.with_suffix(f".{context.attemptNumber()}").touch()
        if context.partitionId() == context.attemptNumber() == 0:
            wait_until(name.with_suffix(".1").exists)
        yield from made


def wait_in_tasks(folder: str) -> None:
    """From here on all tasks in Python are such."""
    run = DataFrame.mapInArrow

    def twice(frame: DataFrame, task: Any, *more: Any) -> DataFrame:
        return run(frame, AwaitsAnother(task, folder), *more)

    vars_of: Any = DataFrame
    vars_of.mapInArrow = twice


def python_without_windrow(folder: Path) -> Path:
    """A Python that has what Windrow needs, and not Windrow itself: packages, but no links to checkouts."""
    script, packages = folder / "python", Path(pyspark.__file__).parents[1]
    script.write_text(f'#!/bin/sh\nPYTHONPATH="{packages}" exec "{sys.executable}" -S "$@"\n')
    script.chmod(0o755)
    return script


def wheel_as_zip(folder: Path) -> Path:
    """This checkout as a wheel, under a name by which Spark takes it for a package."""
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*build, "--wheel-dir", str(folder), str(REPOSITORY)], check=True)
    (wheel,) = folder.glob("windrow-*.whl")
    return Path(shutil.copy(wheel, folder / "windrow.zip"))


if __name__ == "__main__":
    vars(local).update(is_small=lambda _: False, is_for_here=lambda *_, **__: False, SMALL_FEED=0)
    if TWICE in os.environ:
        wait_in_tasks(os.environ[TWICE])
    sys.exit(main(sys.argv[1:]))
