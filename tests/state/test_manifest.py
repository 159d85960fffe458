"""A manifest comes back as it was written; equal ones are written alike; others are refused."""

from __future__ import annotations

from dataclasses import replace
from hashlib import blake2b
from typing import Any

import pytest
from hypothesis import given, strategies as st

from windrow.errors import StateError
from windrow.state.manifest import (
    FORMAT,
    ChunkRef,
    Facts,
    Manifest,
    OutboxEntry,
    QueryState,
    SourceFile,
    SourceState,
    StreamState,
)
from windrow.state.names import DRIVER
from windrow.windows.progress import Progress

names = st.text(max_size=6)
counts = st.integers(0, 2**64)
instants = st.one_of(st.integers(-(2**63), 2**63), st.sampled_from([float("inf"), float("-inf")]))
json_values = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), names
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(names, inner, max_size=3)),
    max_leaves=5,
)
json_objects = st.dictionaries(names, json_values, max_size=3)
facts = st.builds(Facts, counts, counts, instants, instants)
refs = st.builds(
    ChunkRef, names, counts, names, counts, st.dictionaries(names, facts, max_size=3), json_objects
)
files = st.builds(SourceFile, names, counts, counts)
sources = st.builds(SourceState, names, json_objects, st.lists(files, max_size=2).map(tuple))
progresses = st.builds(lambda p: Progress().with_progress(p).to_json(), instants)
streams = st.builds(
    StreamState, progresses, counts, counts, counts, counts, st.booleans(), sources, json_objects
)
queries = st.builds(
    QueryState,
    names,
    names,
    json_objects,
    instants,
    instants,
    st.sampled_from(["running", "failed"]),
    st.none() | json_objects,
)
entries = st.builds(OutboxEntry, counts, refs, st.lists(names, max_size=3).map(tuple))
manifests = st.builds(
    Manifest,
    counts,
    counts,
    counts,
    st.dictionaries(names, streams, max_size=2),
    st.dictionaries(names, streams, max_size=2),
    st.dictionaries(names, queries, max_size=2),
    st.dictionaries(st.integers(DRIVER, 9), st.lists(refs, max_size=3).map(tuple), max_size=3),
    st.lists(entries, max_size=2).map(tuple),
    json_objects,
)


@given(manifest=manifests)
def test_a_manifest_comes_back_as_it_was_written(manifest: Manifest) -> None:
    written = manifest.encode()
    read = Manifest.decode(written, "commits/x")
    assert read == manifest
    assert read.encode() == written


@given(manifest=manifests, data=st.data())
def test_equal_manifests_are_written_alike(manifest: Manifest, data: Any) -> None:
    shuffled = data.draw(st.permutations(list(manifest.streams.items())))
    assert replace(manifest, streams=dict(shuffled)).encode() == manifest.encode()


def test_the_successor_keeps_all_but_the_number_and_the_decisions() -> None:
    manifest = Manifest(4, 2, 8, {"bids": StreamState(accepted=3)}, decisions={"idle": ["s6"]})
    after = manifest.successor(shards=16)
    assert after == Manifest(5, 2, 16, {"bids": StreamState(accepted=3)})


def test_a_newer_format_is_refused_with_the_way_out() -> None:
    body = b'{"future":true}'
    checksum = blake2b(b"%d\n" % (FORMAT + 1) + body, digest_size=16).hexdigest().encode()
    newer = b'{"format":%d,"checksum":"%s","body":%s}\n' % (FORMAT + 1, checksum, body)
    with pytest.raises(StateError, match=r"commits/9 has format 8, .* or a newer one") as caught:
        Manifest.decode(newer, "commits/9")
    assert caught.value.code == "format-too-new"


def test_an_older_format_is_refused_with_the_way_out() -> None:
    body = b'{"past":true}'
    checksum = blake2b(b"1\n" + body, digest_size=16).hexdigest().encode()
    with pytest.raises(StateError, match=r"commits/9 has format 1, and .* reads format 7 only") as caught:
        Manifest.decode(b'{"format":1,"checksum":"%s","body":%s}\n' % (checksum, body), "commits/9")
    assert caught.value.code == "format-too-old"


@pytest.mark.parametrize("body", [b"{}", b"[]", b'{"number":1}', b'{"streams":3,"tables":{},"queries":{}}'])
def test_a_body_that_makes_no_sense_is_refused(body: bytes) -> None:
    checksum = blake2b(b"%d\n" % FORMAT + body, digest_size=16).hexdigest().encode()
    odd = b'{"format":%d,"checksum":"%s","body":%s}\n' % (FORMAT, checksum, body)
    with pytest.raises(StateError, match="commits/9 is damaged: its contents make no sense"):
        Manifest.decode(odd, "commits/9")


def test_a_query_has_one_of_the_known_statuses() -> None:
    with pytest.raises(ValueError, match="cannot be `lost`, only one of running"):
        QueryState("SELECT 1", "f00d", status="lost")
