"""Files appear whole, once, inside the directory, or not at all."""

from __future__ import annotations

import errno
import os
import pickle
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from windrow.errors import StateError
from windrow.state.store import LocalStore, Store


def test_a_created_file_is_read_back_and_listed_with_its_size(store: Store) -> None:
    store.create("commits/a.json", b"one", "manifest")
    assert store.read("commits/a.json") == b"one"
    assert store.map("commits/a.json").slice().to_pybytes() == b"one"
    assert store.list("commits") == {"commits/a.json": 3}
    assert store.list("tmp") == {}


def test_a_taken_name_stays_as_it_was(store: Store) -> None:
    store.create("commits/a.json", b"one", "manifest")
    with pytest.raises(FileExistsError):
        store.create("commits/a.json", b"two", "manifest")
    with pytest.raises(FileExistsError), store.writer("commits/a.json"):
        pass
    assert store.read("commits/a.json") == b"one"
    assert store.list("tmp") == {}


def test_of_many_who_create_one_name_exactly_one_succeeds(store: Store) -> None:
    def attempt(who: int) -> bool:
        try:
            store.create("commits/a.json", b"%d" % who * 1000, "manifest")
        except FileExistsError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(attempt, range(24)))
    assert won.count(True) == 1
    assert store.read("commits/a.json") == b"%d" % won.index(True) * 1000


def test_a_failed_writer_leaves_nothing(store: Store) -> None:
    with suppress(KeyboardInterrupt), store.writer("chunks/a") as file:
        file.write(b"part")
        raise KeyboardInterrupt
    assert store.list("chunks") == {}


def test_a_removed_file_stays_readable_for_who_has_mapped_it(store: Store) -> None:
    store.create("chunks/a", b"x" * 10_000, "manifest")
    mapped = store.map("chunks/a")
    store.remove("chunks/a")
    store.remove("chunks/a")
    assert mapped.slice().to_pybytes() == b"x" * 10_000


def test_an_empty_file_is_mapped_too(store: Store) -> None:
    store.create("chunks/a", b"", "manifest")
    assert store.map("chunks/a").size == 0


def test_a_store_can_be_sent_to_another_process(store: Store) -> None:
    assert pickle.loads(pickle.dumps(store)) == store


@pytest.mark.parametrize(
    "name",
    [
        "",
        "a",
        "/etc/passwd",
        "chunks/",
        "chunks/..",
        "chunks/../a",
        "chunks/a/b",
        "../a/b",
        "chunks/.hidden",
        "chunks/a\0",
        "chunks/a\n",
        "home/a",
        "chunks//a",
        "chunks\\a",
        "chunks/a b",
    ],
)
def test_names_that_could_leave_the_directory_are_refused(store: Store, name: str) -> None:
    for operation in (store.read, store.remove, store.map, store.place):
        with pytest.raises(StateError, match="not a name"):
            operation(name)


@given(name=st.text(max_size=30))
def test_every_accepted_name_lies_in_a_folder_of_the_root(name: str) -> None:
    root = Path("/state")
    try:
        place = Path(os.path.normpath(LocalStore(root).place(name)))
    except StateError:
        return
    assert place.parent.parent == root


def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(StateError, match="nowhere does not exist") as caught:
        LocalStore(tmp_path / "nowhere").list("commits")
    assert caught.value.code == "directory-missing"


def test_a_directory_of_other_things_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    (tmp_path / "tmp").mkdir()
    with pytest.raises(StateError, match=r"holds `thesis\.tex`") as caught:
        LocalStore(tmp_path).prepare()
    assert caught.value.code == "foreign-directory"
    with pytest.raises(StateError, match="is a file"):
        LocalStore(tmp_path / "thesis.tex").prepare()


@pytest.mark.parametrize(
    ("number", "code", "says"),
    [
        (errno.ENOSPC, "disk-full", "make room"),
        (errno.EDQUOT, "disk-full", "make room"),
        (errno.EACCES, "permission-denied", "let the user"),
        (errno.EROFS, "permission-denied", "let the user"),
        (errno.EIO, "file-system", "see to the disk"),
    ],
)
def test_errors_of_the_system_name_the_file_and_the_way_out(
    local: LocalStore, monkeypatch: pytest.MonkeyPatch, number: int, code: str, says: str
) -> None:
    def fail(*_: Any) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(StateError, match=r"cannot write .*commits/a.json") as caught:
        local.create("commits/a.json", b"one", "manifest")
    assert (caught.value.code, says in str(caught.value)) == (code, True)
    with pytest.raises(StateError, match=r"cannot write .*chunks/a"), local.writer("chunks/a"):
        pass
    monkeypatch.undo()
    assert local.list("commits") == local.list("chunks") == local.list("tmp") == {}


def test_files_of_a_commit_are_durable_when_they_settle(
    local: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        synced.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    grouped = local.grouped()
    for name in ("chunks/a", "chunks/b", "outbox/c"):
        with grouped.writer(name) as file:
            file.write(b"rows")
    assert synced == []
    local.remove("chunks/b")  # of an attempt that failed
    synced.clear()
    grouped.settle()
    places = [local.place(name) for name in ("chunks/a", "outbox/c")]
    assert sorted(synced) == sorted([*places, *(str(Path(place).parent) for place in places)])
    assert synced.index(places[0]) < synced.index(str(Path(places[0]).parent))
    synced.clear()
    grouped.settle()
    assert synced == []


def test_another_process_writes_each_file_durably(local: LocalStore) -> None:
    sent = pickle.loads(pickle.dumps(local.grouped()))
    assert type(sent) is LocalStore
    assert sent == local
