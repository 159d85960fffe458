"""Engines with their state in an object store: killed, overtaken, moved, they answer what the oracle says."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import pytest
from tests.engine.archived import values_of
from tests.engine.spark_world import Files
from tests.state.processes import run
from tests.support.history import BATCHES, MEDIANS, STREAM, SUMS, as_rows
from tests.support.life import Life
from tests.support.object_stores import KINDS, S3Server
from tests.support.oracle import oracle
from tests.support.world import World

from windrow.archive.snapshot import read_archive
from windrow.engine.rescale import rescale
from windrow.errors import SourceError, StateError
from windrow.state.crash import VARIABLE
from windrow.state.history import History
from windrow.state.log import CommitLog, Owner
from windrow.state.object_store import ObjectStore

REPOSITORY = Path(__file__).parents[2]
#: both kinds of sinks that know a repetition
SINKS = {"files": SUMS, "delta": MEDIANS}
SCRIPT = f"""
{STREAM} KEEP 1000;
CREATE TABLE names (k BIGINT, name STRING);
CREATE ARCHIVE a ON s KEY k KEEP 1000
"""


@pytest.fixture(params=KINDS[1:])
def new_store(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], ObjectStore]:
    """Makes empty object stores."""

    def made() -> ObjectStore:
        if request.param == "s3":
            server: S3Server = request.getfixturevalue("s3")
            return ObjectStore(server.new_prefix(cache=tmp_path / "cache"))
        return ObjectStore(f"file://{tmp_path}/bucket?cache={tmp_path}/cache")

    return made


def life(folder: str, url: str, crash_at: str = "") -> None:
    """A process that goes on where the state is."""
    if crash_at:
        os.environ[VARIABLE] = crash_at
    World(Path(folder), dict(SINKS), place=ObjectStore(url)).live()


@pytest.mark.part(4)
@pytest.mark.parametrize("passage", [1, 4])
@pytest.mark.parametrize(
    "point", ["chunk-written", "manifest-temp-written", "manifest-linked", "sink-delivered"]
)
def test_after_a_crash_every_sink_has_what_the_oracle_says(tmp_path: Path, point: str, passage: int) -> None:
    store = ObjectStore(f"file://{tmp_path}/now/bucket?lease=3000&cache={tmp_path}/now/cache")
    world = World(tmp_path, place=store)
    assert world.die(point, passage)
    with mock.patch.object(Owner, "certainly_gone", return_value=True):
        world.live()
    world.check()


@pytest.mark.integration
@pytest.mark.skipif("WINDROW_INTEGRATION" not in os.environ, reason="run by make test-integration")
def test_killed_again_and_again_every_sink_has_what_the_oracle_says(tmp_path: Path, s3: S3Server) -> None:
    url, points = s3.new_prefix(cache=tmp_path / "cache"), ("chunk-written:4", "manifest-linked:3")
    for point in (*points, "sink-written:1", "sink-delivered:1"):
        assert run(life, str(tmp_path), url, point) == -signal.SIGKILL
    assert run(life, str(tmp_path), url) == 0
    World(tmp_path, dict(SINKS)).check()


def routed(url: str, shards: int, crash_at: str = "") -> None:
    """A process that routes the state to another number of shards."""
    if crash_at:
        os.environ[VARIABLE] = crash_at
    with CommitLog.open(ObjectStore(url)) as log:
        rescale(log, shards)


@pytest.mark.thorough
@pytest.mark.parametrize(("point", "shards"), [("chunk-written:2", 2), ("manifest-linked:2", 3)])
def test_killed_while_the_number_of_shards_changes(
    tmp_path: Path, new_store: Callable[[], ObjectStore], point: str, shards: int
) -> None:
    store = new_store()
    assert run(life, str(tmp_path), store.url, "manifest-linked:5") == -signal.SIGKILL
    assert run(routed, store.url, 3, point) == -signal.SIGKILL
    latest = History(store).latest()
    assert latest is not None
    assert latest.shards == shards
    assert run(routed, store.url, 5) == 0
    assert run(life, str(tmp_path), store.url) == 0
    World(tmp_path, dict(SINKS)).check()


def test_it_goes_on_on_another_machine(tmp_path: Path, new_store: Callable[[], ObjectStore]) -> None:
    """Nothing but the object store is left: no cache, no directory."""
    store = new_store()
    with Life(store) as w:
        w.sql(SCRIPT)
        w.query("sums", SUMS)
        w.update("names", insert=[(1, "one")])
        for number, batch in enumerate(BATCHES[:4]):
            w.push(*batch, number=number)
        before = values_of(w.archives["a"].scan(), "valid_to")
        asked = values_of(w.select("SELECT k, v, t FROM s [RANGE 1000]"))
        early = w.rows("sums")
    there = ObjectStore(store.url.replace("/cache", "/other-cache"))
    assert not there.cache.root.exists()
    with Life(there) as w:
        w.sql(SCRIPT)
        w.query("sums", SUMS)
        assert values_of(w.archives["a"].scan(), "valid_to") == before
        assert values_of(w.select("SELECT k, v, t FROM s [RANGE 1000]")) == asked
        assert w.select("SELECT name FROM names")["name"].to_pylist() == ["one"]
        for number, batch in enumerate(BATCHES[4:], 4):
            w.push(*batch, number=number)
        w.end()
        assert sorted(early + w.rows("sums")) == as_rows(oracle(SUMS))
        folder = w.archives["a"].folder
    assert folder.startswith(str(store))
    assert len(read_archive(there.nested("archives", folder.rpartition("/")[2])).scan()) >= len(before)


def test_what_an_overtaken_engine_delivers_late_changes_nothing(
    tmp_path: Path, new_store: Callable[[], ObjectStore]
) -> None:
    """A commit number belongs to one owner for ever, and sinks know a commit by its number."""
    store = new_store()
    slow = World(tmp_path, dict(SINKS), place=store)
    life = slow.open()
    old = life.engine
    with mock.patch.object(type(old.delivering), "deliver"):
        life.follow(BATCHES[:4])
    with mock.patch.object(Owner, "certainly_gone", return_value=True):
        World(tmp_path, dict(SINKS), place=store).live()
    before = {name: slow.answers(name) for name in SINKS}
    old.deliver()
    with pytest.raises(StateError, match="taken over by process"):
        old.commit()
    assert {name: slow.answers(name) for name in SINKS} == before
    slow.check()


def test_a_streaming_frame_is_refused_with_a_way_out(tmp_path: Path) -> None:
    from windrow import session
    from windrow.spark.sources.streaming_frame import StreamingFrame

    frame = StreamingFrame(mock.Mock(), "frame")
    with Life(ObjectStore(f"file://{tmp_path}/bucket?cache={tmp_path}/cache")) as w:
        w.sql(STREAM)
        with (
            mock.patch.object(session, "open_data", return_value=frame),
            pytest.raises(SourceError, match=r"Spark keeps notes of it in a directory.*FROM 'kafka:…'"),
        ):
            w.stream("s", object())


def test_a_server_remembers_its_statements_on_another_machine(tmp_path: Path) -> None:
    from windrow.server.service import Caller, Service

    url = f"file://{tmp_path}/bucket?cache={tmp_path}"
    for cache, text in (("one", f"{STREAM}; CREATE QUERY sums AS {SUMS}"), ("two", "")):
        service = Service(Life(ObjectStore(f"{url}/{cache}")), needs_sources=False)
        if text:
            service.statements(text, Caller("me", "local"))
        assert list(service.windrow.queries) == ["sums"]
        service.close()


ON_SPARK = """
import sys
from pathlib import Path
from tests.engine.spark_world import Files
from windrow.execution import local
from windrow.session import Windrow

local.SMALL_ROWS = local.SMALL_NATIVE = local.SMALL_STATE = 0  # tasks of Spark do all of it
files = Files.__new__(Files)
files.folder, files.url = Path(sys.argv[1]), ""
with Windrow(None, sys.argv[2]) as w:
    files.declare(w)
    w.run(once=True, flush=True)
"""


@pytest.mark.integration
@pytest.mark.process
@pytest.mark.skipif("WINDROW_INTEGRATION" not in os.environ, reason="run by make test-integration")
def test_tasks_of_spark_read_and_write_it_and_a_killed_driver_goes_on(tmp_path: Path, s3: S3Server) -> None:
    """Workers are processes of their own: they are sent a URL, and find credentials in their environment."""
    files, url = Files(tmp_path), s3.new_prefix(cache=tmp_path / "cache")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(REPOSITORY), *sys.path])}
    command = [sys.executable, "-c", ON_SPARK, str(tmp_path), url]
    with (tmp_path / "log").open("wb") as log:
        ended = [
            subprocess.run(
                command, env={**environment, **more}, cwd=REPOSITORY, stdout=log, stderr=log, check=False
            ).returncode
            for more in ({VARIABLE: "manifest-linked:6"}, {})
        ]
    assert ended == [-signal.SIGKILL, 0], (tmp_path / "log").read_text()
    files.check()
    secret = os.environ.get("AWS_SECRET_ACCESS_KEY", "no secret")
    store = ObjectStore(url)
    assert secret not in (tmp_path / "log").read_text()
    assert all(secret.encode() not in store.read(name) for name in store.list("commits"))
