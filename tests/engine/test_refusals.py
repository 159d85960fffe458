"""What the engine refuses to go on with: each time it says what is wrong, where, and the way out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from hashlib import blake2b
from typing import TYPE_CHECKING

import pytest
from tests.support.history import BATCHES, STREAM, SUMS, as_rows
from tests.support.life import Life
from tests.support.oracle import oracle
from tests.support.refusal import refusal

import windrow as wr
from windrow.algebra.aggregates import user
from windrow.engine.records import StreamRecord
from windrow.errors import DataError, StateError
from windrow.language.compile import declare_stream
from windrow.state.manifest import StreamState

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def lived(state: Path, query: str = SUMS) -> Path:
    """A state directory with a past, and with answers that nobody has taken yet."""

    def nobody(*_: object) -> None:
        raise RuntimeError("not now")

    w = Life(state)
    w.sql(STREAM)
    w.query("q", query, sink=nobody)
    for number, batch in enumerate(BATCHES[:3]):
        w.push(*batch, number=number)
    w.vanish()
    return state


def go_on(state: Path, stream: str = STREAM, query: str = SUMS) -> Life:
    w = Life(state)
    try:
        w.sql(stream)
        w.query("q", query)
        begun = w.engine.streams["s"].read.offsets.get("batch", -1) + 1
        for number, batch in enumerate(BATCHES[begun:], start=begun):
            w.push(*batch, number=number)
        w.end()
    except BaseException:
        w.vanish()
        raise
    return w


def test_an_untouched_state_goes_on(tmp_path: Path) -> None:
    assert go_on(lived(tmp_path / "state")).rows("q") == as_rows(oracle(SUMS))


# ------------------------------------------------------------ two engines


def test_a_second_engine_in_the_same_process_is_refused(tmp_path: Path) -> None:
    with Life(tmp_path / "state"):
        error = refusal(lambda: Life(tmp_path / "state"), "two-owners")
        assert f"process {os.getpid()}" in error.message
        assert "stop that engine first" in str(error.hint)
    Life(tmp_path / "state").close()


def test_a_second_engine_in_another_process_is_refused(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path\n"
        "from windrow.state.log import CommitLog; from windrow.state.store import LocalStore\n"
        "from windrow.errors import StateError\n"
        "try: CommitLog.open(LocalStore(Path(sys.argv[1])))\n"
        "except StateError as error: print(error.code, error.message)\n"
    )
    with Life(tmp_path / "state"):
        command = [sys.executable, "-c", script, str(tmp_path / "state")]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert said.startswith("two-owners")
    assert f"in use by process {os.getpid()}" in said


# ------------------------------------------------------------ damage


@pytest.mark.part(2)
@pytest.mark.parametrize("pattern", ["chunks/*-s*", "chunks/*-driver-*", "outbox/*"])
@pytest.mark.parametrize("how", ["cut off", "one bit", "gone"])
def test_a_damaged_file_is_named_and_stops_no_query_for_good(tmp_path: Path, pattern: str, how: str) -> None:
    state = lived(tmp_path / "state")
    damaged = max(state.glob(pattern), key=lambda path: (path.name[:12], path.stat().st_size))
    whole = damaged.read_bytes()
    _damage(damaged, how)
    error = refusal(lambda: go_on(state), "chunk-missing" if how == "gone" else "damaged")
    assert isinstance(error, StateError)
    assert damaged.name in error.message
    assert "restore the whole state directory" in str(error.hint)
    manifest = json.loads(max((state / "commits").iterdir()).read_text())["body"]
    assert manifest["queries"]["q"]["status"] == "running"
    damaged.write_bytes(whole)
    assert go_on(state).rows("q") == as_rows(oracle(SUMS))


def _damage(path: Path, how: str) -> None:
    data = bytearray(path.read_bytes())
    if how == "gone":
        path.unlink()
    elif how == "cut off":
        path.write_bytes(data[: len(data) // 2])
    else:
        for place in range(16, len(data), 64):  # wherever something is read, a bit is wrong
            data[place] ^= 1
        path.write_bytes(data)


@pytest.mark.parametrize("how", ["cut off", "one bit"])
def test_a_damaged_manifest_is_named(tmp_path: Path, how: str) -> None:
    state = lived(tmp_path / "state")
    newest = max((state / "commits").iterdir())
    whole = newest.read_bytes()
    _damage(newest, how)
    assert str(newest) in refusal(lambda: go_on(state), "damaged").message
    newest.write_bytes(whole)
    assert go_on(state).rows("q") == as_rows(oracle(SUMS))


def test_a_manifest_of_a_later_version_is_not_guessed_at(tmp_path: Path) -> None:
    state = lived(tmp_path / "state")
    newest = max((state / "commits").iterdir())
    body = json.loads(newest.read_text())["body"]
    text = json.dumps(body, sort_keys=True, separators=(",", ":")).encode()
    checksum = blake2b(b"99\n" + text, digest_size=16).hexdigest().encode()
    newest.write_bytes(b'{"format":99,"checksum":"%s","body":%s}\n' % (checksum, text))
    error = refusal(lambda: go_on(state), "format-too-new")
    assert "format 99" in error.message
    assert "run the version of Windrow that wrote it" in str(error.hint)


def test_a_directory_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "to_mother.txt").write_text("dear")
    error = refusal(lambda: Life(tmp_path / "letters"), "foreign-directory")
    assert "to_mother.txt" in error.message
    assert [path.name for path in (tmp_path / "letters").iterdir()] == ["to_mother.txt"]


# ------------------------------------------------------------ other declarations


def test_a_query_with_another_text_is_refused_under_its_name(tmp_path: Path) -> None:
    state = lived(tmp_path / "state")
    other = SUMS.replace("SLIDE 10", "SLIDE 20")
    error = refusal(lambda: go_on(state, query=other), "query-changed")
    assert "SLIDE 10" in error.message
    assert "SLIDE 20" in error.message
    assert "DROP QUERY q" in str(error.hint)
    with Life(state) as w:  # the way out
        w.drop("q")
        w.sql(STREAM)
        w.query("q", other)


def test_a_query_written_in_another_way_is_the_same_query(tmp_path: Path) -> None:
    state = lived(tmp_path / "state")
    spaced = SUMS.replace(" FROM ", "\n  from ").replace("SELECT", "select")
    assert go_on(state, query=spaced).rows("q") == as_rows(oracle(SUMS))


def test_a_user_aggregate_with_other_code_is_another_query(tmp_path: Path, own_names: None) -> None:
    text = "SELECT k, weighted(v) AS w FROM s [RANGE 20 SLIDE 10] GROUP BY k"
    define(1)
    state = lived(tmp_path / "state", text)
    define(2)
    error = refusal(lambda: go_on(state, query=text), "query-changed")
    assert "`q`" in error.message
    define(1)
    go_on(state, query=text).close()


@pytest.fixture
def own_names() -> Iterator[None]:
    yield
    for name in user.names():
        user.forget(name)


def define(weight: int) -> None:
    wr.aggregate(
        name="weighted",
        returns="BIGINT",
        takes="BIGINT",
        init=lambda: 0,
        step=lambda state, v: state + weight * v,
        merge=lambda a, b: a + b,
        final=lambda state: state,
    )


@pytest.mark.parametrize(
    ("before", "after"), [(" FORMAT 'epoch_s'", " FORMAT 'epoch_ms'"), (" FORMAT 'epoch_s'", "")]
)
def test_times_of_another_unit_are_refused(before: str, after: str) -> None:
    for old, new in ((before, after), (after, before)):
        first, second = (declare_stream("s", f"ts TIMESTAMP{form}", "WATTR ts") for form in (old, new))
        stored = StreamState.from_json(StreamRecord.new(first).to_state().to_json())
        assert StreamRecord.from_state(first, stored, "it").stream.forms == first.forms
        with pytest.raises(StateError, match=r"its forms of columns \(FORMAT\) changed"):
            StreamRecord.from_state(second, stored, "it")


def test_a_stream_declared_otherwise_is_refused(tmp_path: Path) -> None:
    state = lived(tmp_path / "state")
    for declared, what in (
        (STREAM.replace("v BIGINT", "v DOUBLE"), "columns"),
        (STREAM.replace("SLACK 3", "SLACK 4"), "policy (SLACK, ORDERED, PUNCTUATED)"),
        (f"{STREAM} LATE KEEP", "word for late rows (LATE)"),
    ):
        error = refusal(lambda declared=declared: go_on(state, stream=declared), "stream-changed")
        assert f"its {what} changed" in error.message
        assert str(state) in error.message
        assert "declare it as before" in str(error.hint)
    assert go_on(state).rows("q") == as_rows(oracle(SUMS))


# ------------------------------------------------------------ the end


def test_a_sealed_stream_takes_no_more_rows(tmp_path: Path) -> None:
    with Life(tmp_path / "state") as w:
        w.sql(STREAM)
        w.query("q", SUMS)
        w.push(*BATCHES[0])
        w.end()
    with Life(tmp_path / "state") as w:
        w.sql(STREAM)
        w.query("q", SUMS)
        error = refusal(lambda: w.push(*BATCHES[1]), "sealed")
        assert isinstance(error, DataError)
        assert "`s` is sealed" in error.message
        assert "new state directory" in str(error.hint)


def test_declarations_over_which_nothing_was_read_may_be_mended(tmp_path: Path) -> None:
    """A first run that ends at a mistake in its script does not stand in the way of the second."""
    w = Life(tmp_path / "state")
    w.sql(STREAM.replace("SLACK 3", "SLACK 4"))
    w.query("q", SUMS.replace("SUM", "MAX"))
    w.query("other", SUMS)
    w.engine.epoch([])
    assert set(w.engine.last.queries) == {"q", "other"}
    w.vanish()
    assert go_on(tmp_path / "state").rows("q") == as_rows(oracle(SUMS))
