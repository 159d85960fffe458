"""No changed, cut or lengthened file is ever taken for what was written, and the error always names it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, strategies as st
from tests.state.memory_store import MemoryStore
from tests.state.support import commit_values, numbers, overwrite, verify
from tests.support.object_stores import KINDS, S3Server

from windrow.errors import StateError
from windrow.state.chunk import chunk_writer, open_chunk
from windrow.state.history import History
from windrow.state.log import CommitLog
from windrow.state.manifest import Manifest
from windrow.state.object_store import ObjectStore
from windrow.state.store import LocalStore, Store

if TYPE_CHECKING:
    from windrow.state.manifest import ChunkRef


@st.composite
def damages(draw: Any, data: bytes) -> Any:
    """The data with one byte changed, its end cut off, something added, or a stretch zeroed."""
    at = draw(st.integers(0, len(data) - 1))
    match draw(st.sampled_from(["flip", "cut", "add", "zero"])):
        case "flip":
            return data[:at] + bytes([data[at] ^ draw(st.integers(1, 255))]) + data[at + 1 :]
        case "cut":
            return data[:at]
        case "add":
            return data + draw(st.binary(min_size=1, max_size=100))
    zeroed = data[:at] + bytes(min(64, len(data) - at)) + data[at + 64 :]
    return zeroed if zeroed != data else data[:at]


@pytest.fixture(scope="module", params=KINDS)
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Store:
    folder = tmp_path_factory.mktemp("state")
    if request.param == "directory":
        return LocalStore(folder)
    cache = tmp_path_factory.mktemp("cache")
    if request.param == "objects":
        return ObjectStore(f"file://{folder}?cache={cache}")
    server: S3Server = request.getfixturevalue("s3")
    return ObjectStore(server.new_prefix(cache=cache))


@pytest.fixture(scope="module")
def chunk(place: Store) -> tuple[Store, ChunkRef, bytes]:
    store = place.nested("archives", "chunk")
    store.prepare()
    with chunk_writer(store, "chunks/whole", {"epoch": 1}) as writer:
        writer.add(("sum", 0), numbers(range(50)), 0, 49)
        writer.add(("join", 3), numbers([]))
        writer.add(("sum", 1), numbers(range(7)), 50, 56)
    return store, writer.ref, store.read("chunks/whole")


@given(choices=st.data())
def test_a_damaged_chunk_is_detected_and_named(choices: Any, chunk: Any) -> None:
    store, ref, whole = chunk
    overwrite(store, "chunks/whole", choices.draw(damages(whole)))
    for known_as in (ref, "chunks/whole"):
        with pytest.raises(StateError, match="chunks/whole") as caught:
            verify(open_chunk(store, known_as))
        assert caught.value.hint


def test_every_byte_of_a_chunk_is_under_a_checksum(chunk: Any) -> None:
    _, ref, whole = chunk
    store = MemoryStore()
    for at in range(len(whole)):
        store.visible[ref.name] = whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :]
        with pytest.raises(StateError, match="chunks/whole"):
            verify(open_chunk(store, ref))
    store.visible[ref.name] = whole
    verify(open_chunk(store, ref))


@pytest.fixture(scope="module")
def committed(place: Store) -> tuple[Store, str, bytes]:
    store = place.nested("archives", "manifest")
    with CommitLog.open(store) as log:
        commit_values(log, [1, 2, 3])
    name = max(store.list("commits"))
    return store, name, store.read(name)


@given(choices=st.data())
def test_a_damaged_manifest_is_detected_and_named(choices: Any, committed: Any) -> None:
    store, name, whole = committed
    overwrite(store, name, choices.draw(damages(whole)))
    with pytest.raises(StateError, match=name) as caught:
        History(store).latest()
    assert "restore" in str(caught.value)
    with pytest.raises(StateError, match=name):
        CommitLog.open(store)


def test_every_byte_of_a_manifest_is_under_its_checksum(committed: Any) -> None:
    _, name, whole = committed
    for at in range(len(whole)):
        changed = whole[:at] + bytes([whole[at] ^ 0x02]) + whole[at + 1 :]
        with pytest.raises(StateError, match=name):
            Manifest.decode(changed, name)
