"""The scheduler: every history it makes is on its level, updates never wait, and by time to update nobody
does better."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache, partial
from itertools import product

import pytest
from hypothesis import given, strategies as st

from benchmarks.theory.isolation.attempt import Query
from benchmarks.theory.isolation.history import History
from benchmarks.theory.isolation.levels import is_latest_window_serialisable, is_window_serialisable
from benchmarks.theory.isolation.operations import Abort, Commit, Operation, Pass, Read, Unread, Write
from benchmarks.theory.isolation.policies import FIXED_ORDER, SERIAL, TIME_TO_UPDATE
from benchmarks.theory.isolation.scheduler import Scheduler
from windrow.archive.snapshot import (
    LATEST,
    SNAPSHOT,
    UNDOING,
    WINDOW,
    IsolationPolicy,
    oldest_first,
    youngest_first,
)

POLICIES = (SERIAL, SNAPSHOT, FIXED_ORDER, TIME_TO_UPDATE, UNDOING)


def by_luck(seed: int, wanted: Sequence[int], subwindows: int) -> int:
    """An order without rhyme or reason, but the same every time."""
    return min(wanted, key=lambda version: hash((seed, version, len(wanted))))


@st.composite
def runs(draw: st.DrawFn, policy: IsolationPolicy) -> Scheduler:
    """A scheduler after queries of any length and priority, and updates, in any order."""
    subwindows = draw(st.integers(1, 5))
    scheduler = Scheduler(subwindows, policy)
    turns = draw(st.lists(st.sampled_from(["step", "step", "step", "slide", "submit"]), max_size=60))
    for number, turn in enumerate(turns):
        if turn == "submit":
            length, priority = draw(st.integers(1, subwindows)), draw(st.integers(0, 2))
            scheduler.submit(Query(f"Q{number}", length, priority))
        else:
            getattr(scheduler, turn)()
    return scheduler


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
@given(data=st.data())
def test_every_answer_is_on_the_level_of_the_policy(policy: IsolationPolicy, data: st.DataObject) -> None:
    history = data.draw(runs(policy)).history
    test = is_latest_window_serialisable if policy.level is LATEST else is_window_serialisable
    assert test(history)
    assert all(answer.is_whole for answer in history.answers)


@given(seed=st.integers(0, 1000), data=st.data())
def test_theorem_7_3_whatever_the_order_of_reading(seed: int, data: st.DataObject) -> None:
    history = data.draw(runs(IsolationPolicy("luck", LATEST, partial(by_luck, seed)))).history
    assert is_latest_window_serialisable(history)


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
@given(data=st.data())
def test_queries_read_as_many_sub_windows_as_they_asked_for(
    policy: IsolationPolicy, data: st.DataObject
) -> None:
    lengths: dict[str, int] = {}

    class Noting(Scheduler):
        def submit(self, query: Query) -> None:
            super().submit(query)
            lengths[query.name] = query.length

    scheduler = Noting(4, policy)
    for number, turn in enumerate(data.draw(st.lists(st.sampled_from("rrrwq"), max_size=40))):
        if turn == "q":
            scheduler.submit(Query(f"Q{number}", data.draw(st.integers(1, 4))))
        else:
            scheduler.step() if turn == "r" else scheduler.slide()
    for answer in scheduler.history.answers:
        assert len(answer.versions) == lengths[answer.query]


@pytest.mark.parametrize("policy", [each for each in POLICIES if each is not SERIAL], ids=lambda p: p.name)
def test_an_update_never_waits(policy: IsolationPolicy) -> None:
    scheduler = Scheduler(3, policy)
    scheduler.submit(Query("Q1", 3))
    scheduler.step()
    for update in range(3, 12):
        assert scheduler.slide()[:2] == (Write(update, update % 3), Commit(update))
    assert scheduler.delayed == 0


def test_one_after_the_other_means_that_updates_wait() -> None:
    scheduler = Scheduler(2, SERIAL)
    scheduler.submit(Query("Q1", 2))
    assert scheduler.slide() == (Write(2, 0), Commit(2))  # it has not begun
    scheduler.step()
    assert scheduler.slide() == scheduler.slide() == ()
    scheduler.submit(Query("Q2", 2, priority=9))
    assert " ".join(map(str, scheduler.step())) == "rQ1[1] cQ1 w3[1] c3 w4[0] c4"
    assert scheduler.delayed == 0


def test_history_e_and_why_history_f_fails() -> None:
    def life(policy: IsolationPolicy) -> str:
        scheduler = Scheduler(5, policy)
        scheduler.submit(Query("Q1", 5))
        for turn in "rwrrrwr":
            scheduler.step() if turn == "r" else scheduler.slide()
        return str(scheduler.history)

    assert life(TIME_TO_UPDATE) == "rQ1[4] w5[0] c5 rQ1[0] rQ1[3] rQ1[2] w6[1] c6 rQ1[1] cQ1"
    assert life(FIXED_ORDER).startswith("rQ1[0] w5[0] c5 aQ1 rQ1[0]")


def test_an_important_query_overtakes() -> None:
    scheduler = Scheduler(2)
    scheduler.submit(Query("Q1", 2))
    scheduler.submit(Query("Q2", 2))
    scheduler.step()
    scheduler.submit(Query("Q3", 1, priority=1))
    done = [each for _ in range(4) for each in scheduler.step()]
    assert [str(each) for each in done] == ["rQ3[1]", "cQ3", "rQ1[0]", "cQ1", "rQ2[1]", "rQ2[0]", "cQ2"]


def test_a_short_query_is_aborted_by_what_expires_from_its_own_window() -> None:
    """Of four sub-windows it wants two: update 4 overwrites slot 0, which it never reads, but expires 2."""
    scheduler = Scheduler(4, IsolationPolicy("oldest", LATEST, oldest_first))
    scheduler.submit(Query("Q1", 2))
    assert scheduler.step() == (Read("Q1", 2),)
    assert scheduler.slide() == (Write(4, 0), Commit(4), Abort("Q1"))
    assert [str(each) for _ in range(2) for each in scheduler.step()] == ["rQ1[3]", "rQ1[0]", "cQ1"]


def test_a_snapshot_hides_updates_until_what_it_wants_is_overwritten() -> None:
    scheduler = Scheduler(3, SNAPSHOT)
    scheduler.submit(Query("Q1", 3))
    scheduler.step()
    assert Abort("Q1") not in scheduler.slide()
    assert Abort("Q1") in scheduler.slide()


def test_expired_sub_windows_are_kept_only_for_those_who_take_them_back() -> None:
    scheduler = Scheduler(2, UNDOING)
    scheduler.submit(Query("Q1", 2))
    scheduler.step()
    scheduler.slide()
    assert scheduler.kept == frozenset()
    scheduler.slide()
    assert scheduler.kept == {1}
    assert scheduler.step() == (Unread("Q1", 1),)
    assert scheduler.kept == frozenset()


@pytest.mark.parametrize("length", [0, 4])
def test_windows_that_are_not_there_are_refused(length: int) -> None:
    with pytest.raises(ValueError, match="of 3 sub-windows"):
        Scheduler(3).submit(Query("Q1", length))


def test_names_are_of_one_query_at_a_time() -> None:
    scheduler = Scheduler(3)
    scheduler.submit(Query("Q1", 3))
    with pytest.raises(ValueError, match="running already"):
        scheduler.submit(Query("Q1", 1))


def test_policies_that_mean_nothing_are_refused() -> None:
    with pytest.raises(ValueError, match="nothing to undo"):
        IsolationPolicy("p", WINDOW, oldest_first, undo=True)
    with pytest.raises(ValueError, match="only the latest"):
        Scheduler(3, SNAPSHOT, has_scattered_inserts=True)


# Theorem 7.4, over all interleavings and all orders there are.


def ends(wanted: frozenset[int], read: frozenset[int], target: int, turns: str) -> Iterator[str]:
    """How an attempt can end, over every choice of what to read next: c(ommit), a(bort), or - (neither)."""
    if not wanted:
        yield "c"
    elif not turns:
        yield "-"
    elif turns[0] == "w":
        length = len(wanted) + len(read)
        expired = target + 1 - length
        if expired in read:
            yield "a"
        else:
            yield from ends((wanted - {expired}) | {target + 1}, read, target + 1, turns[1:])
    else:
        for version in wanted:
            yield from ends(wanted - {version}, read | {version}, target, turns[1:])


@cache
def is_abort_certain(length: int, subwindows: int, turns: str) -> bool:
    last = subwindows - 1
    wanted = frozenset(range(last - length + 1, last + 1))
    return set(ends(wanted, frozenset(), last, turns)) == {"a"}


def first_attempt(policy: IsolationPolicy, length: int, subwindows: int, turns: str) -> Operation | None:
    scheduler = Scheduler(subwindows, policy)
    scheduler.submit(Query("Q1", length))
    for turn in turns:
        for each in scheduler.step() if turn == "r" else scheduler.slide():
            if each in (Abort("Q1"), Commit("Q1")):
                return each
    return None


@pytest.mark.parametrize("subwindows", [1, 2, 3, 4])
def test_theorem_7_4_by_time_to_update_an_attempt_fails_only_if_every_order_fails(subwindows: int) -> None:
    aborted = 0
    for length in range(1, subwindows + 1):
        for turns in map("".join, product("rw", repeat=7)):
            ended = first_attempt(TIME_TO_UPDATE, length, subwindows, turns)
            assert (ended == Abort("Q1")) == is_abort_certain(length, subwindows, turns), (length, turns)
            aborted += ended == Abort("Q1")
    assert aborted > 0 or subwindows == 1


def test_theorem_7_4_is_about_attempts_not_about_all_that_follows() -> None:
    """Who fails early begins anew early: over several attempts a bad order can, by luck, fail less often."""

    def aborts(policy: IsolationPolicy) -> int:
        scheduler = Scheduler(3, policy)
        scheduler.submit(Query("Q1", 3))
        for turn in "rwrwwrrwww":
            scheduler.step() if turn == "r" else scheduler.slide()
        return sum(isinstance(each, Abort) for each in scheduler.history.operations)

    def unlucky_once(wanted: Sequence[int], subwindows: int) -> int:
        return (oldest_first if min(wanted) == 0 else youngest_first)(wanted, subwindows)

    assert (aborts(TIME_TO_UPDATE), aborts(IsolationPolicy("once", LATEST, unlucky_once))) == (2, 1)


def fewest_undone(
    read: frozenset[int], undo: int, target: int, length: int, turns: str, undone: int = 0
) -> tuple[bool, int]:
    """The best any order can do: (not committed, sub-windows taken back by then), the least."""
    wanted = [v for v in range(target - length + 1, target + 1) if v not in read]
    if not wanted and not undo:
        return (False, undone)
    if not turns:
        return (True, 0)
    if turns[0] == "w":
        expired = target + 1 - length
        hit = expired in read
        return fewest_undone(read - {expired}, undo + hit, target + 1, length, turns[1:], undone)
    if undo:
        return fewest_undone(read, undo - 1, target, length, turns[1:], undone + 1)
    return min(fewest_undone(read | {v}, 0, target, length, turns[1:], undone) for v in wanted)


@pytest.mark.parametrize("subwindows", [2, 3])
def test_by_time_to_update_the_fewest_sub_windows_are_taken_back(subwindows: int) -> None:
    """No order commits earlier, and none that commits by then takes back less."""
    for length in range(1, subwindows + 1):
        for turns in map("".join, product("rw", repeat=8)):
            scheduler = Scheduler(subwindows, UNDOING)
            scheduler.submit(Query("Q1", length))
            for turn in turns:
                scheduler.step() if turn == "r" else scheduler.slide()
            done = scheduler.history.operations
            undone = sum(isinstance(each, Unread) for each in done)
            best = fewest_undone(frozenset(), 0, subwindows - 1, length, turns)
            assert ((False, undone) if Commit("Q1") in done else (True, 0)) == best, (length, turns)


# Data: what the operations do to rows.


class Rows:
    """A window with rows in it, and queries that gather what they are told to read."""

    def __init__(self, subwindows: int, scheduler: Scheduler) -> None:
        self.subwindows, self.scheduler = subwindows, scheduler
        self.slots: dict[int, Counter[int]] = {slot: Counter({slot: 1}) for slot in range(subwindows)}
        self.expired: dict[int, Counter[int]] = {}
        self.inserted: dict[int, Counter[int]] = {}
        self.gathered: dict[str, Counter[int]] = {}
        self.next_row = 100

    def carry_out(self, operations: Sequence[Operation]) -> list[Counter[int]]:
        """Do as told; gives the answers."""
        answers = []
        for each in operations:
            match each:
                case Write(update, slot):
                    self._slide(update, slot)
                case Read(query, slot):
                    self.gathered.setdefault(query, Counter()).update(self.slots[slot])
                case Unread(query, slot):
                    self.gathered[query].subtract(self._expired_for(query, slot))
                case Pass(query, slot, _):
                    self.gathered[query].update(self.inserted[slot])
                case Abort(query):
                    self.gathered.pop(query, None)
                case Commit(str() as query):
                    answers.append(+self.gathered.pop(query))
                case Commit():
                    pass
        return answers

    def _expired_for(self, query: str, slot: int) -> Counter[int]:
        """The kept copy of the slot that the query has read: it has its rows, all of them."""
        mine = +self.gathered[query]
        copies = [old for version, old in self.expired.items() if version % self.subwindows == slot]
        return next(old for old in copies if old <= mine and old)

    def _slide(self, update: int, slot: int) -> None:
        self.expired[update - self.subwindows] = self.slots[slot]
        self.slots[slot] = Counter()
        targets = range(self.subwindows) if self.scheduler.has_scattered_inserts else [slot]
        self.inserted = {}
        for target in targets:
            self.next_row += 1
            self.inserted[target] = Counter({self.next_row: 1})
            self.slots[target] = self.slots[target] + self.inserted[target]

    @property
    def live(self) -> Counter[int]:
        return sum(self.slots.values(), Counter())


@pytest.mark.parametrize("scattered", [False, True])
@pytest.mark.parametrize("policy", [SERIAL, FIXED_ORDER, TIME_TO_UPDATE, UNDOING], ids=lambda p: p.name)
@given(turns=st.text("rrrwq", max_size=60), subwindows=st.integers(1, 4))
def test_answers_are_the_rows_that_are_live_at_the_commit(
    policy: IsolationPolicy, scattered: bool, turns: str, subwindows: int
) -> None:
    """With rows inserted into one slot (WKS) and into all (WK, section 7.4.3)."""
    scheduler = Scheduler(subwindows, policy, has_scattered_inserts=scattered)
    window = Rows(subwindows, scheduler)
    for number, turn in enumerate(turns):
        if turn == "q":
            scheduler.submit(Query(f"Q{number}", subwindows, priority=number % 2))
            continue
        operations = scheduler.step() if turn == "r" else scheduler.slide()
        committed = [at for at, each in enumerate(operations) if isinstance(each, Commit) and turn == "r"]
        upto = committed[0] + 1 if committed else len(operations)
        for answer in window.carry_out(operations[:upto]):
            assert answer == window.live
        window.carry_out(operations[upto:])


def test_shorter_windows_of_results_by_expiry_are_refused() -> None:
    with pytest.raises(ValueError, match="shorter windows"):
        Scheduler(3, has_scattered_inserts=True).submit(Query("Q1", 2))


def test_a_history_of_a_run_can_be_written_and_read() -> None:
    scheduler = Scheduler(3, UNDOING)
    scheduler.submit(Query("Q1", 3))
    for turn in "rwwwrrrrr":
        scheduler.step() if turn == "r" else scheduler.slide()
    assert History.parse(str(scheduler.history), 3) == scheduler.history
    assert "uQ1" in str(scheduler.history)
