"""Readers in many threads while the window slides: every answer is that of the commit it names.

Periodic readers ask again as soon as they have their answer; one-time queries come once a second and are more
urgent. `WINDROW_READS` is how many periodic answers are compared, `WINDROW_READERS` how many ask for them;
10 000 answers for 40 readers take some minutes.
"""

from __future__ import annotations

import os
import threading
from collections import Counter, deque
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from hypothesis import given, strategies as st
from tests.support.history import rows_of
from tests.support.life import Life

from benchmarks.theory.isolation.policies import FIXED_ORDER, TIME_TO_UPDATE
from windrow.archive.snapshot import SNAPSHOT, UNDOING
from windrow.engine.adhoc.access_paths import SubWindow
from windrow.engine.adhoc.select import PATIENCE, Asker, Read, Reader, SelectWatch, SubWindowCache, Turns
from windrow.errors import QueryError
from windrow.language.compile import compile_once
from windrow.state.manifest import Manifest

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from windrow.archive.snapshot import IsolationPolicy
    from windrow.language.binder.once import Once

READS = int(os.environ.get("WINDROW_READS", "200"))
READERS = int(os.environ.get("WINDROW_READERS", "4"))
RANGE, STEP = 60, 2
QUERY = f"SELECT COUNT(*) AS n, SUM(v) AS total, MIN(t) AS first, MAX(t) AS last FROM s [RANGE {RANGE}]"


class Sliding:
    """A window that slides as fast as it can, and what it held at each commit."""

    def __init__(self, folder: Path) -> None:
        self.w = Life(folder)
        self.w.sql("CREATE STREAM s (k BIGINT, v BIGINT, t BIGINT) WATTR t SLACK 3 KEEP 70")
        #: (row's t, v) of all rows so far, the promise and the rows that counted at each commit
        self.rows: deque[tuple[int, int]] = deque(maxlen=400)
        self.held: dict[int, list[tuple[int, ...]]] = {}
        self.stop = threading.Event()
        self.turn = 0
        self.push()

    def push(self) -> None:
        batch = [(t % 3, t % 7, t) for t in range(self.turn * STEP, self.turn * STEP + 3)]
        self.turn += 1
        self.rows.extend((t, v) for _, v, t in batch)
        at = max(t for t, _ in self.rows) - 3 - 1
        inside = [(t, v) for t, v in self.rows if at - RANGE < t <= at]
        # a row is late if it comes below what was promised before; here none is
        self.held[self.w.engine.last.number + 1] = (
            [(len(inside), sum(v for _, v in inside), min(inside)[0], max(inside)[0])] if inside else []
        )
        self.w.push(*batch)

    def run(self) -> None:
        while not self.stop.wait(0.01):
            self.push()


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.parametrize("isolation", ["LATEST", "WINDOW"])
def test_every_read_is_the_window_of_the_commit_it_names(tmp_path: Path, isolation: str) -> None:
    sliding = Sliding(tmp_path)
    log = sliding.w.engine.log
    once = compile_once(f"{QUERY} WITH ISOLATION {isolation}", sliding.w._catalog)
    asker = Asker(log)
    urgent = compile_once(f"{QUERY} WITH ISOLATION {isolation} PRIORITY 5", sliding.w._catalog)
    found: list[tuple[int, int, int, list[Any]]] = []
    failures: list[BaseException] = []
    each = READS // READERS // 2

    def ask(reader: int, query: Once) -> None:
        before = log.last.number
        table = asker.ask(query, {})
        about = {key.decode(): value.decode() for key, value in table.schema.metadata.items()}
        found.append((reader, before, int(about["windrow.commit"]), rows_of(table)))

    def read(reader: int) -> None:
        try:
            for _ in range(each):
                ask(reader, once)
        except BaseException as error:  # noqa: BLE001  raised again below
            failures.append(error)

    def read_now_and_then() -> None:
        try:
            ask(READERS, urgent)
            while not sliding.stop.wait(1.0):
                ask(READERS, urgent)
        except BaseException as error:  # noqa: BLE001  raised again below
            failures.append(error)

    others = [threading.Thread(target=sliding.run), threading.Thread(target=read_now_and_then)]
    readers = [threading.Thread(target=read, args=(number,)) for number in range(READERS)]
    for thread in (*others, *readers):
        thread.start()
    for thread in readers:
        thread.join()
    sliding.stop.set()
    for thread in others:
        thread.join()
    sliding.w.close()
    assert not failures, failures[0]
    counts = Counter(reader for reader, *_ in found)
    assert [counts[reader] for reader in range(READERS)] == [each] * READERS
    assert counts[READERS], "one-time queries were answered too"
    last: dict[int, int] = {}
    for reader, before, commit, rows in found:
        assert rows == sliding.held[commit], commit
        assert commit >= max(before, last.get(reader, 0))
        last[reader] = commit
    assert len({commit for _, _, commit, _ in found}) > 1, "the window stood still"


class Slots:
    """A window of n sub-windows that slides by one after so many reads: commits, without an engine."""

    def __init__(self, size: int, every: int, slides: Sequence[int] = ()) -> None:
        self.size, self.every, self.done = size, every, 0
        self.number = size
        #: how far the window slides after each of the first reads
        self.slides = list(slides)

    @property
    def last(self) -> Any:
        return Manifest(self.number)

    def parts(self, manifest: Manifest) -> list[SubWindow]:
        versions = range(manifest.number - self.size + 1, manifest.number + 1)
        return [SubWindow(f"{version:05d}", version, 1, self.fetch) for version in versions]

    def fetch(self) -> pl.DataFrame:
        self.done += 1
        if self.slides:
            self.number += self.slides.pop(0)
        elif self.every and self.done % self.every == 0:
            self.number += 1
        return pl.DataFrame({"x": [1]})


def _read(policy: Any, size: int, every: int, slides: Sequence[int] = ()) -> tuple[Read, Slots]:
    slots = Slots(size, every, slides)
    reader = Reader(slots, Turns(), SubWindowCache(most=0))  # type: ignore[arg-type]
    return reader.read(slots.parts, policy, SelectWatch()), slots


@pytest.mark.parametrize(
    ("policy", "every"), [(UNDOING, 2), (UNDOING, 3), (UNDOING, 5), (TIME_TO_UPDATE, 3), (TIME_TO_UPDATE, 5)]
)
def test_the_latest_window_is_read_though_it_slides_meanwhile(policy: Any, every: int) -> None:
    done, slots = _read(policy, 8, every)
    newest = slots.number
    assert sorted(done.frames) == [f"{version:05d}" for version in range(newest - 7, newest + 1)]


@given(
    st.sampled_from([SNAPSHOT, FIXED_ORDER, TIME_TO_UPDATE, UNDOING]),
    st.integers(1, 7),
    st.lists(st.integers(0, 3), max_size=30),
)
def test_whatever_slides_in_between_a_read_is_of_one_window(
    policy: IsolationPolicy, size: int, slides: list[int]
) -> None:
    done, slots = _read(policy, size, 0, slides)
    commit = done.manifest.number
    assert sorted(done.frames) == [f"{version:05d}" for version in range(commit - size + 1, commit + 1)]
    assert commit == (size if policy is SNAPSHOT else slots.number)
    assert not (done.restarts and policy in (SNAPSHOT, UNDOING))


def test_who_reads_the_youngest_first_begins_anew_less_often() -> None:
    """By time to update, what expires next is read last; in the order of slots it is often read first."""
    anew: Counter[str] = Counter()
    for every in range(1, 12):
        for policy in (TIME_TO_UPDATE, FIXED_ORDER):
            try:
                anew[policy.name] += _read(policy, 9, every)[0].restarts
            except QueryError as error:
                assert error.code == "too-fast"  # noqa: PT017  some orders never come to an end
                anew[policy.name] += PATIENCE
        assert anew["TTU"] <= anew["LWS"], every
    assert anew["TTU"] < anew["LWS"]


def test_a_snapshot_reads_each_part_once() -> None:
    done, slots = _read(SNAPSHOT, 8, 2)
    assert done.reads == 8
    assert not done.restarts
    assert done.manifest.number == 8 < slots.number
