"""An object store that fails, answers too late and lies: what was committed is there, and only that."""

from __future__ import annotations

import os
import pickle
import random
import threading
import time
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis.stateful import invariant
from obstore.store import MemoryStore as ObjectsInMemory
from tests.state.support import commit_values, manifests, overwrite, values_of, write_next
from tests.state.test_machine import StateMachine
from tests.support.object_stores import AlreadyExistsError, FaultyClient, RequestError, S3Server, faulty_proxy

from windrow.credentials import Resolved
from windrow.errors import StateError
from windrow.state import log as log_module, object_store
from windrow.state.block_cache import BlockCache
from windrow.state.history import History, discard, sweep
from windrow.state.log import CommitLog, Lease, Owner
from windrow.state.names import commit_name, owner_name
from windrow.state.object_store import BLOCK, ObjectStore, open_store

NO_SECRETS = Resolved()


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> FaultyClient:
    """What the store of a test asks; it behaves until it is told not to."""
    made = FaultyClient(ObjectsInMemory(), random.Random(0), often=0)
    monkeypatch.setattr(object_store, "_opened", lambda *_: (made, NO_SECRETS))
    monkeypatch.setattr(object_store, "_FIRST_PAUSE", 0.0)
    return made


@pytest.fixture
def faulty(client: FaultyClient, tmp_path: Path) -> ObjectStore:
    return ObjectStore(f"s3://lake/state?cache={tmp_path}/cache&patience=5&lease=60")


class Once:
    """Does something else the next time a method is called, and then no more."""

    def __init__(self, client: Any, method: str, deed: Any) -> None:
        self.client, self.method, self.deed, self.real = client, method, deed, getattr(client, method)
        setattr(client, method, self)

    def __call__(self, *arguments: Any, **how: Any) -> Any:
        setattr(self.client, self.method, self.real)
        return self.deed(lambda: self.real(*arguments, **how))


def fails(error: Exception, *, after: bool) -> Any:
    def deed(real: Any) -> Any:
        if after:
            real()
        raise error

    return deed


# ---------------------------------------------------------------- creating


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("error", [RequestError("timed out"), AlreadyExistsError("409")])
def test_whatever_the_answer_was_the_name_decides(
    faulty: ObjectStore, client: FaultyClient, error: Exception, after: bool
) -> None:
    with CommitLog.open(faulty) as log:
        Once(client, "put", fails(error, after=after))
        log.commit(log.last.successor(decisions={"round": 1}))
        log.commit(log.last.successor(decisions={"round": 2}))
        assert [each.decisions.get("round") for each in manifests(faulty)] == [None, 1, 2]


def test_another_owner_that_was_first_is_not_taken_for_oneself(
    faulty: ObjectStore, client: FaultyClient
) -> None:
    old = CommitLog.open(faulty)
    theirs: list[CommitLog] = []

    def overtake(_: Any) -> None:
        with mock.patch.object(Owner, "certainly_gone", return_value=True):
            theirs.append(CommitLog.open(faulty))
        raise RequestError("timed out")

    Once(client, "put", overtake)
    with pytest.raises(StateError, match="taken over by process"):
        old.commit(old.last.successor(decisions={"mine": True}))
    commit_values(theirs[0], [1])
    assert values_of(faulty, History(faulty).read(3)) == [1]


def test_a_put_that_nobody_answers_for_is_in_doubt_and_everything_stays(
    client: FaultyClient, tmp_path: Path
) -> None:
    """The request may be on its way still: what it names must not be removed, nor the number used again."""
    store = ObjectStore(f"s3://lake/state?cache={tmp_path}&patience=0.05&lease=60")
    log = CommitLog.open(store)
    made = write_next(log, [7])
    late = log.last.successor(chunks={0: (made,)})
    with mock.patch.object(client, "put", side_effect=RequestError("timed out")):
        with pytest.raises(StateError, match="nobody can tell whether") as caught:
            log.commit(late)
        assert caught.value.code == "outcome-unknown"
    discard(log)
    assert store.size(made.name) is not None
    with pytest.raises(StateError, match="may be durable or not"):
        log.commit(late)
    client.client.put(commit_name(late.number), late.encode())  # now it arrives
    log.close()
    with CommitLog.open(store) as after:
        assert values_of(store, after.last) == [7]


def test_no_right_to_write_is_said_at_once(faulty: ObjectStore, client: FaultyClient) -> None:
    class PermissionDeniedError(Exception):
        """As the library calls it."""

    with mock.patch.object(client, "put", side_effect=PermissionDeniedError("403")) as asked:
        with pytest.raises(StateError, match=r"permission denied .*list, read, write and delete") as caught:
            faulty.create("commits/a.json", b"", "manifest")
        assert (caught.value.code, asked.call_count) == ("permission-denied", 1)


# ---------------------------------------------------------------- lists


def test_the_last_commit_is_found_though_lists_are_behind(faulty: ObjectStore, client: FaultyClient) -> None:
    with CommitLog.open(faulty) as log:
        commit_values(log, [1])
        early = client.list("commits/").collect()
        for value in range(2, 20):
            commit_values(log, [value])
            if value % 5 == 0:
                sweep(log, keep=2)
    for known in ([], early, early[:1]):
        with mock.patch.object(client, "list", return_value=FaultyClient._List(known)):
            last = History(faulty).latest()
            assert last is not None
            assert (last.number, values_of(faulty, last)) == (20, list(range(1, 20)))


def test_an_owner_is_seen_though_lists_are_behind(faulty: ObjectStore, client: FaultyClient) -> None:
    for _ in range(3):
        CommitLog.open(faulty).close()
    behind = mock.patch.object(client, "list", return_value=FaultyClient._List([]))
    with behind, CommitLog.open(faulty) as log:
        assert log.owner.epoch == 4


# ---------------------------------------------------------------- owners


def elsewhere(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("socket.gethostname", lambda: "elsewhere")
    patch.setattr(log_module, "_boot", lambda: "another boot")


def patient(store: ObjectStore) -> ObjectStore:
    """With a lease that lasts, however busy the machine is."""
    return ObjectStore(store.url.replace("lease=0.5", "lease=6"))


def abandon(store: ObjectStore) -> CommitLog:
    """The log of an engine on another machine, which dies."""
    with pytest.MonkeyPatch.context() as there:
        elsewhere(there)
        log = CommitLog.open(store)
    assert isinstance(log._lock, Lease)
    log._lock.release()
    return log


def test_an_owner_elsewhere_that_lives_is_not_disturbed(objects: ObjectStore) -> None:
    objects = patient(objects)
    with pytest.MonkeyPatch.context() as there:
        elsewhere(there)
        log = CommitLog.open(objects)
    with pytest.raises(StateError, match=r"in use by process .* on elsewhere") as caught:
        CommitLog.open(objects)
    assert caught.value.code == "two-owners"
    commit_values(log, [1])
    log.close()


def test_an_owner_elsewhere_that_died_is_succeeded_when_its_lease_is_over(objects: ObjectStore) -> None:
    old = abandon(objects)
    prepared = write_next(old, [1])
    with CommitLog.open(objects) as new:
        assert new.owner.epoch == 2
        commit_values(new, [2])
        with pytest.raises(StateError, match="taken over"):  # it was only slow, and comes back
            old.commit(old.last.successor(chunks={0: (prepared,)}))
        assert values_of(objects, new.last) == [2]


def test_a_lease_that_was_over_long_ago_is_not_waited_for(objects: ObjectStore) -> None:
    store = ObjectStore(objects.url.replace("lease=0.5", "lease=3000"))
    log = abandon(store)
    path = Path(str(objects).removeprefix("file://")) / owner_name(log.owner.epoch, "lease")
    os.utime(path, (time.time() - 4000,) * 2)
    began = time.monotonic()
    CommitLog.open(store).close()
    assert time.monotonic() - began < 1000


def test_the_users_word_ends_a_lease(objects: ObjectStore) -> None:
    store = ObjectStore(objects.url.replace("lease=0.5", "lease=3000"))
    abandon(store)
    with CommitLog.open(store, takeover=True) as log:
        assert log.owner.epoch == 2


def test_containers_of_one_machine_do_not_judge_each_other_by_their_processes(objects: ObjectStore) -> None:
    """Both are process 1 of the same kernel, by their own account; only the lease tells."""
    objects = patient(objects)
    with pytest.MonkeyPatch.context() as there:
        there.setattr("socket.gethostname", lambda: "pod-1")
        there.setattr(log_module, "_born", lambda pid: "another start")
        log = CommitLog.open(objects)
    with pytest.raises(StateError, match="in use by process"):
        CommitLog.open(objects)
    log.close()


def test_the_loss_of_the_last_manifest_is_told_by_the_last_sign_of_life(objects: ObjectStore) -> None:
    log = CommitLog.open(objects)
    log.commit(log.last.successor(shards=2))
    assert isinstance(log._lock, Lease)
    log._lock._give()
    log.close()
    overwrite(objects, commit_name(2), None)
    with pytest.raises(StateError, match=r"000000000002.json is missing, but the last owner has made it"):
        CommitLog.open(objects)


# ---------------------------------------------------------------- blocks and their cache


def test_large_objects_are_read_in_parts_and_only_those_that_are_asked_for(
    faulty: ObjectStore, client: FaultyClient
) -> None:
    whole = random.Random(1).randbytes(2 * BLOCK + 100)
    with faulty.writer("chunks/big") as file:
        file.write(whole)
    faulty.cache.drop(["chunks/big"])
    asked: list[Any] = []
    real = client.get

    def get(path: str, **how: Any) -> Any:
        asked.append(how["options"]["range"])
        return real(path, **how)

    client.get = get  # type: ignore[method-assign]
    found = faulty.map("chunks/big")
    assert found.size == len(whole)
    assert found.slice(2 * BLOCK + 90).to_pybytes() == whole[-10:]
    assert sorted(asked) == [(0, BLOCK), (2 * BLOCK, 3 * BLOCK)]
    assert found.slice(BLOCK - 5, BLOCK + 10).to_pybytes() == whole[BLOCK - 5 : 2 * BLOCK + 5]
    assert faulty.map("chunks/big").slice().to_pybytes() == whole
    assert len(asked) == 3


def test_what_was_written_here_is_read_from_the_cache(faulty: ObjectStore, client: FaultyClient) -> None:
    with CommitLog.open(faulty) as log:
        commit_values(log, [1, 2])
        with mock.patch.object(client, "get", side_effect=RequestError("away")):
            assert values_of(faulty, log.last) == [1, 2]


def test_a_damaged_block_is_fetched_again(faulty: ObjectStore) -> None:
    with faulty.writer("chunks/a") as file:
        file.write(b"rows" * 100)
    path = faulty.cache.path("chunks/a", 0)
    whole = path.read_bytes()
    for bad in (whole[:-1], b"", b"x" + whole[1:], whole[:-9] + b"\xff" + whole[-8:]):
        path.unlink()
        path.write_bytes(bad)
        assert faulty.map("chunks/a").slice().to_pybytes() == b"rows" * 100
        assert path.read_bytes() == whole


def test_an_answer_that_is_cut_off_is_not_believed(faulty: ObjectStore, client: FaultyClient) -> None:
    faulty.create("chunks/a", b"rows", "manifest")

    class Cut:
        meta = {"size": 4}  # noqa: RUF012

        def bytes(self) -> bytes:
            return b"ro"

    with (
        mock.patch.object(client, "get", return_value=Cut()),
        pytest.raises(StateError, match="chunks/a: the answer was cut off"),
    ):
        faulty.map("chunks/a")
    assert faulty.map("chunks/a").slice().to_pybytes() == b"rows"


def test_the_cache_is_bounded_and_what_was_used_last_stays(tmp_path: Path) -> None:
    cache = BlockCache(tmp_path, "lake", 20_000)
    for number in range(100):
        cache.keep(f"chunks/{number}", 0, pa.py_buffer(bytes(1000)), 1000)
        with suppress(FileNotFoundError):
            os.utime(cache.path(f"chunks/{number}", 0), (number, number))
        assert sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()) <= 20_000 + 1100
    assert cache.find("chunks/99", 0) is not None
    assert cache.find("chunks/0", 0) is None


def test_a_cache_that_cannot_be_written_to_is_done_without(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    cache = BlockCache(tmp_path / "file", "lake", 1000)
    cache.keep("chunks/a", 0, pa.py_buffer(b"x"), 1)
    assert cache.find("chunks/a", 0) is None


def test_many_read_and_write_one_cache(objects: ObjectStore) -> None:
    with objects.writer("chunks/a") as file:
        file.write(b"rows" * 1000)
    wrong: list[Any] = []

    def read() -> None:
        for _ in range(50):
            objects.cache.drop(["chunks/a"])
            if objects.map("chunks/a").slice().to_pybytes() != b"rows" * 1000:
                wrong.append("other bytes")

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


# ---------------------------------------------------------------- the files of a commit


def test_files_of_a_commit_are_sent_at_once_and_are_there_when_they_settle(
    faulty: ObjectStore, client: FaultyClient
) -> None:
    grouped, held, real = faulty.grouped(), threading.Event(), client.put

    def put(*arguments: Any, **how: Any) -> Any:
        held.wait(10)
        return real(*arguments, **how)

    client.put = put  # type: ignore[method-assign]
    for name in ("chunks/a", "chunks/b"):
        with grouped.writer(name) as file:
            file.write(name.encode())
    assert faulty.map("chunks/a").slice().to_pybytes() == b"chunks/a"  # from the cache, long before
    assert client.client.list("chunks/").collect() == []
    held.set()
    grouped.settle()
    assert set(faulty.list("chunks")) == {"chunks/a", "chunks/b"}


def test_another_process_finds_everything_that_was_written(faulty: ObjectStore, client: FaultyClient) -> None:
    grouped = faulty.grouped()
    with grouped.writer("chunks/a") as file:
        file.write(b"rows")
    sent = pickle.loads(pickle.dumps(grouped))
    assert (type(sent), sent) == (ObjectStore, faulty)
    assert client.client.head("chunks/a")["size"] == 4


def test_a_file_that_could_not_be_sent_fails_the_commit(client: FaultyClient, tmp_path: Path) -> None:
    store = ObjectStore(f"s3://lake/state?cache={tmp_path}&patience=0.05")
    grouped = store.grouped()
    with mock.patch.object(client, "put", side_effect=RequestError("503")):
        with grouped.writer("chunks/a") as file:
            file.write(b"rows")
        with pytest.raises(StateError, match="chunks/a"):
            grouped.settle()
    grouped.settle()


# ---------------------------------------------------------------- URLs and secrets


def test_secrets_travel_neither_in_stores_nor_in_messages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKE_SECRET", "hunter2hunter2")
    url = f"s3://lake/x?endpoint=http://127.0.0.1:9&patience=0.1&cache={tmp_path}"
    store = ObjectStore(url + "&access_key_id=${env:LAKE_KEY}&secret_access_key=${env:LAKE_SECRET}")
    with pytest.raises(StateError, match="the environment variable LAKE_KEY, which is not set"):
        store.list("commits")
    assert b"hunter2" not in pickle.dumps(store)
    assert str(store) == "s3://lake/x"
    monkeypatch.setenv("LAKE_KEY", "hunter2hunter2")
    with pytest.raises(StateError) as caught:
        store.list("commits")
    assert "hunter2" not in str(caught.value)
    with pytest.raises(StateError, match="is a secret"):
        ObjectStore(url + "&secret_access_key=hunter2hunter2")


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("s3://", "names no bucket"),
        ("ftp://host/state", "`ftp:` is no place for state"),
        ("s3://lake/x?lease=long", "`lease=long` is no number of seconds"),
        ("s3://lake/x?cache_bytes=much", "`cache_bytes=much` is no size"),
        ("s3://lake/x?regoin=eu", "cannot be opened: Configuration key: 'regoin' is not valid"),
    ],
)
def test_bad_urls_are_told(url: str, says: str) -> None:
    def use() -> None:
        store = open_store(url)
        assert isinstance(store, ObjectStore)
        assert store.lease
        assert store.cache
        store.list("commits")

    with pytest.raises(StateError, match=says):
        use()


def test_a_prefix_of_other_things_is_refused(objects: ObjectStore) -> None:
    objects._client.put("thesis.tex", b"")
    with pytest.raises(StateError, match=r"holds `thesis\.tex`"):
        objects.prepare()


# ---------------------------------------------------------------- a real server, behind a network that fails


@pytest.mark.integration
@pytest.mark.skipif("WINDROW_INTEGRATION" not in os.environ, reason="run by make test-integration")
@pytest.mark.parametrize("seed", range(2))
def test_requests_to_a_server_are_lost_refused_delayed_and_cut_off(
    tmp_path: Path, s3: S3Server, seed: int
) -> None:
    with faulty_proxy(s3, seed) as proxy:
        store = ObjectStore(proxy.new_prefix(cache=tmp_path / "cache", patience=60))
        for begin in range(0, 24, 8):
            with CommitLog.open(store) as log:
                for value in range(begin, begin + 8):
                    commit_values(log, [value])
                    store.cache.drop([*log.last.files])
                    assert values_of(store, log.last) == list(range(value + 1))
                sweep(log, keep=2)
        with CommitLog.open(store) as log:
            sweep(log, keep=1)
            assert set(store.list("chunks")) == set(log.last.files)


# ---------------------------------------------------------------- anything, in any order


class ObjectMachine(StateMachine):
    """The machine of all stores, over objects that a faulty client writes and lists that are behind."""

    def make_store(self) -> Any:
        self.folder = TemporaryDirectory(prefix="windrow-")
        self.client = FaultyClient(ObjectsInMemory(), random.Random(7))
        self.opens = mock.patch.object(object_store, "_opened", return_value=(self.client, NO_SECRETS))
        self.opens.start()
        self.more = [
            mock.patch.object(object_store, "_FIRST_PAUSE", 0.0),
            mock.patch.object(Owner, "certainly_gone", return_value=True),
        ]
        for patch in self.more:
            patch.start()
        return _Mortal(f"s3://lake/state?lease=3000&cache={self.folder.name}")

    def lose_power(self, data: Any) -> None:
        self._end_lease()
        super().lose_power(data)

    @invariant()
    def nothing_removed_comes_back(self) -> None:
        there = {each["path"] for each in self.client.client.list("chunks/").collect()}
        assert not self.removed & (there | self.log.last.files.keys())

    def _end_lease(self) -> None:
        if isinstance(self.log._lock, Lease):
            self.log._lock.release()

    def teardown(self) -> None:
        super().teardown()
        self._end_lease()
        for patch in [*self.more, self.opens]:
            patch.stop()
        self.folder.cleanup()


class _Mortal(ObjectStore):
    """What is written is there: losing power takes nothing but the cache of the machine."""

    locked = False

    def lose_power(self, survives: Any) -> None:
        if not survives():
            self.cache.drop([*self.list("chunks")])


ObjectMachine.TestCase.settings = settings(stateful_step_count=20, max_examples=40, deadline=None)
TestObjectMachine = ObjectMachine.TestCase
