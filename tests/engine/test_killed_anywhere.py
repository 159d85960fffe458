"""SIGKILL at random moments, by seed, and at every crash point: what was pushed or read is in the sink once,
when a life ends in order.

The engine runs without Spark in a process that is forked before anything of Arrow or polars
has begun threads; so a life costs no start, and many of them can be ended.
"""

from __future__ import annotations

import json
import logging
import os
import random
import signal
import sys
from collections.abc import Callable
from itertools import count
from multiprocessing import get_context
from pathlib import Path
from typing import Any, cast

import pyarrow.parquet as pq
import pytest
from confluent_kafka import Producer
from pyspark.sql.types import LongType, StructField, StructType
from tests.engine.test_loop import Script
from tests.support.history import BATCHES, COLUMNS, OPTIONS, STREAM, SUMS, rows_in, table_of
from tests.support.life import Life
from tests.support.oracle import oracle
from tests.support.patience import PATIENCE

from windrow.algebra.catalog import Stream
from windrow.engine import engine as core, epoch as draft
from windrow.session import Windrow
from windrow.spark.sources import Source, files_source
from windrow.spark.sources.kafka_source import KafkaSource, ReadMessages
from windrow.spark.sources.source import Offsets, Position
from windrow.spark.sources.urls import FilesUrl, KafkaUrl
from windrow.state import shard
from windrow.state.crash import POINTS, VARIABLE

LOG = logging.getLogger(__name__)
#: seconds after which a life is ended, at most; what a life needs is about half of it
LONGEST = 0.6
#: a window of more panes than epochs write at once: it lives in several files, which are merged
LONG_SUMS = SUMS.replace("RANGE 20", "RANGE 60")
PUSHED = f"CREATE STREAM s ({COLUMNS}) {OPTIONS} FROM 'push:'"


#: seconds in which a client of Kafka finds its brokers
TO_FIND_BROKERS = 1.5


def parquet_files(stream: Stream, folder: Path) -> Source:
    """The source of files itself; what it would ask Spark for is known."""
    known = StructType([StructField(name, LongType()) for name in stream.schema.names]).jsonValue()
    files_source._order_key = lambda *_: {}
    files_source._Reader.look_at = lambda self, _: setattr(self, "columns", {"schema": known})  # type: ignore[method-assign]
    wanted = FilesUrl(f"{folder}/in/*.parquet", format="parquet", files_per_batch=1)
    return files_source.FilesSource(cast("Any", None), stream, wanted)


class Messages(KafkaSource):
    """The source of Kafka itself; messages of one batch each are read as tasks read them, and parsed here."""

    def frame(self, start: Position, end: Offsets) -> Any:
        read = ReadMessages("s", self._wanted)
        batches = [batch for part in self._parts(start, end) for batch in read(part)]
        return table_of(
            [row for batch in batches for text in batch.column(0).to_pylist() for row in json.loads(text)]
        )


def source_of(kind: str, stream: Stream, folder: Path) -> Source:
    """What a life reads."""
    if kind == "files":
        return parquet_files(stream, folder)
    if kind == "kafka":
        url = KafkaUrl((folder / "server").read_text(), folder.name, rows_per_batch=1)
        return Messages(cast("Any", None), stream, url)
    return Script(*BATCHES)


def hurry() -> None:
    """Sweeps and compactions happen all the time."""
    core.SWEEP_EVERY, core.PATIENCE, core.KEEP, draft.MOST_WAITING = 2, 0, 2, 3
    shard.MOST_FILES = 1


def live(kind: str, folder: str, crash_at: str = "") -> None:
    """A life that takes everything, and ends in order if nobody ends it."""
    hurry()
    os.environ[VARIABLE] = crash_at
    w = Life(Path(folder) / "state")
    w.sql(PUSHED if kind == "push" else STREAM)
    w.query("q", LONG_SUMS, sink=f"files://{folder}/out")
    if kind != "push":
        w._sources["s"] = source_of(kind, w.engine.streams["s"].stream, Path(folder))
        w.run(once=True)
    else:
        w.start()
        for number, batch in enumerate(BATCHES):
            Windrow.push(w, "s", list(batch), key=f"batch {number}")
        w.stop()
    w.end()
    w.close()


def judge(folder: str) -> None:
    """Ends with 0 if the sink has what the oracle says."""
    sys.exit(0 if rows_in(Path(folder) / "out", "*.parquet") == oracle(LONG_SUMS) else 1)


@pytest.fixture(scope="module")
def cluster() -> Producer:
    """A broker of Kafka in this process."""
    return Producer({"bootstrap.servers": "mock", "test.mock.num.brokers": 1, "log_level": 2})


def prepare(kind: str, folder: Path, cluster: Producer) -> None:
    """What lives are to read."""
    if kind == "files":
        (folder / "in").mkdir()
    for number, batch in enumerate(BATCHES):
        if kind == "files":
            pq.write_table(table_of(batch), folder / "in" / f"{number}.parquet")
            os.utime(folder / "in" / f"{number}.parquet", (1_700_000_000 + number,) * 2)
        elif kind == "kafka":
            cluster.produce(folder.name, value=json.dumps(batch), partition=0)
    if kind == "kafka":
        assert cluster.flush(PATIENCE) == 0
        (metadata,) = cluster.list_topics(timeout=PATIENCE).brokers.values()
        (folder / "server").write_text(f"{metadata.host}:{metadata.port}")


FORK = get_context("forkserver")


def begun(target: Callable[..., None], *arguments: Any) -> Any:
    """A process of its own that does something."""
    FORK.set_forkserver_preload(["tests.engine.test_killed_anywhere", "windrow.session"])
    child = FORK.Process(target=target, args=arguments, daemon=True)
    child.start()
    return child


def ended(target: Callable[..., None], *arguments: Any) -> int | None:
    """How a process ends that nobody disturbs."""
    child = begun(target, *arguments)
    child.join()
    return cast("int | None", child.exitcode)


def check(kind: str, folder: Path, told: str) -> None:
    """A last life, after which the sink has what the oracle says."""
    # one that had come to its end refuses more rows of a sealed stream
    assert ended(live, kind, str(folder)) in (0, 1)
    assert ended(judge, str(folder)) == 0, f"{kind}, {told}: the sink has other rows than the oracle"


def kill_lives(kind: str, folder: Path, seed: int, kills: int, cluster: Producer) -> tuple[int, int]:
    """End lives one after the other at random moments; the last is let be. How many were really ended, and
    how many of them after a commit of their own."""
    chance, killed, midst, commits = random.Random(seed), 0, 0, 0
    longest = LONGEST + (TO_FIND_BROKERS if kind == "kafka" else 0)
    prepare(kind, folder, cluster)
    for _ in range(kills):
        child = begun(live, kind, str(folder))
        child.join(chance.uniform(0.02, longest))
        child.kill()  # it may just have come to its end
        child.join()
        if child.exitcode == -signal.SIGKILL:
            killed += 1
            commits, before = commits_of(folder), commits
            midst += commits > before
        elif child.exitcode == 0:
            break
    check(kind, folder, f"seed {seed}")
    return killed, midst


def commits_of(folder: Path) -> int:
    """The number of the last commit."""
    return max((int(path.stem) for path in (folder / "state" / "commits").glob("*.json")), default=0)


KINDS = ("read", "push", "files", "kafka")


@pytest.mark.thorough
@pytest.mark.parametrize("kind", KINDS)
def test_killed_at_random_moments_nothing_is_lost_or_doubled(
    kind: str, tmp_path: Path, cluster: Producer
) -> None:
    for seed in count(1):
        folder = tmp_path / f"once-{seed}"  # a topic is called like its folder
        folder.mkdir()
        killed, _ = kill_lives(kind, folder, seed, 6, cluster)
        if killed:  # lives are not all as long as they are meant to be
            break


#: so many lives are ended for each kind of source, and this part of them at least after commits of their own
KILLS, MIDST = int(os.environ.get("WINDROW_KILLS", "25")), 0.2


@pytest.mark.thorough
@pytest.mark.parametrize("kind", KINDS)
def test_killed_at_many_random_moments_nothing_is_lost_or_doubled(
    kind: str, tmp_path: Path, cluster: Producer
) -> None:
    killed = midst = 0
    for seed in count(int(os.environ.get("WINDROW_SEED", "0"))):
        (tmp_path / str(seed)).mkdir()
        more, after = kill_lives(kind, tmp_path / str(seed), seed, 10, cluster)
        killed, midst = killed + more, midst + after
        if killed >= KILLS:
            break
    LOG.info("%s: %s lives ended, %s of them after commits of their own", kind, killed, midst)
    assert midst >= MIDST * killed


#: reached only where Spark itself hands batches over
ELSEWHERE = {"before-spark-commit"}


@pytest.mark.part(17)
@pytest.mark.parametrize("kind", KINDS[1:])
@pytest.mark.parametrize("point", [point for point in POINTS if point not in ELSEWHERE])
def test_killed_at_each_crash_point_nothing_is_lost_or_doubled(
    kind: str, point: str, tmp_path: Path, cluster: Producer
) -> None:
    """One life after the other over the same state, each of which is ended at a later passage."""
    prepare(kind, tmp_path, cluster)
    ends = [ended(live, kind, str(tmp_path), f"{point}:{passage}") for passage in (1, 2, 4)]
    assert ends[0] == -signal.SIGKILL, f"{point} was not reached"
    check(kind, tmp_path, point)
