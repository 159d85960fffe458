"""An epoch that fails at any of its steps has not happened: everything that the engine knows is as it was.

The engine is compared as a whole, by a picture of all that can be reached from it, whatever it is called; so
what a later change adds is compared too.
"""

from __future__ import annotations

import types
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from tests.support.history import BATCHES, SUMS, rows_of, table_of
from tests.support.life import Life

from windrow.engine.engine import Arrival, Engine, WatermarkAdvance
from windrow.engine.epoch import Draft
from windrow.engine.load_shedding import Shedding
from windrow.engine.output.dispatch import Delivering
from windrow.engine.refresh_scheduler import Refreshes
from windrow.engine.sharing.arrangement import Arranging
from windrow.engine.statistics import ObservedStatistics
from windrow.errors import WindrowError
from windrow.execution.local import HereJobs
from windrow.spark.sources.source import keys_schema
from windrow.state.log import CommitLog
from windrow.state.store import _GroupedStore

SCRIPT = f"""
CREATE STREAM s (k BIGINT, v BIGINT, t BIGINT) WATTR t SLACK 3 KEEP 1000 SHEDDABLE;
CREATE STREAM p (k BIGINT, v BIGINT, t BIGINT) WATTR t ORDERED PER k IDLE 30 SECONDS;
CREATE TABLE items (k BIGINT, name STRING) NRR;
CREATE QUERY sums AS {SUMS} MAX GAP 3;
CREATE QUERY shared AS SELECT k, MAX(v) AS m FROM s [RANGE 40 SLIDE 10] GROUP BY k;
CREATE QUERY joined AS SELECT a.k, a.v, b.v AS w FROM s [RANGE 30] a, s [RANGE 25] b WHERE a.k = b.k;
CREATE QUERY joined_too AS SELECT ISTREAM(a.k, b.v) FROM s [RANGE 30] a, s [RANGE 25] b WHERE a.k = b.k;
CREATE QUERY named AS SELECT ISTREAM(s.k, name, v) FROM s [RANGE 30], items WHERE s.k = items.k;
CREATE QUERY seldom AS SELECT k, SUM(v) AS n FROM s [RANGE 20 SLIDE 10] GROUP BY k EVERY 20 AT MOST 40;
CREATE QUERY per AS SELECT COUNT(*) AS n FROM p [RANGE 20 SLIDE 10];
CREATE ARCHIVE of_s ON s KEY v PARTITIONS 2 x 2 KEEP 30
"""
#: what an epoch with rows, a promise and a seal calls, one after the other
STEPS: dict[str, tuple[Any, str]] = {
    "collecting": (Delivering, "collect"),
    "arranging": (Arranging, "arrange"),
    "drafting": (Engine, "draft"),
    "overlook": (Draft, "overlook"),
    "reading": (Engine, "_arrived"),
    "the job of rows": (HereJobs, "ingest"),
    "taking": (Draft, "take"),
    "remembering": (Draft, "remember"),
    "promising": (Draft, "promise"),
    "ticking": (Draft, "tick"),
    "sealing": (Draft, "seal"),
    "refreshing": (Draft, "refreshed"),
    "due": (Draft, "due"),
    "due together": (Draft, "shared_due"),
    "tasks": (Draft, "tasks"),
    "the job of windows": (HereJobs, "close"),
    "closing": (Draft, "close"),
    "measuring": (Draft, "measured"),
    "noting refreshes": (Refreshes, "measured"),
    "tidying": (Draft, "tidy"),
    "effort": (Draft, "effort"),
    "looking around": (Engine, "_outside"),
    "noting queries": (Arranging, "note"),
    "shedding": (Shedding, "after"),
    "observing": (ObservedStatistics, "after"),
    "deciding": (Refreshes, "decisions"),
    "settling": (_GroupedStore, "settle"),
    "manifest": (Draft, "manifest"),
    "committing": (CommitLog, "commit"),
}
#: what is nobody's state: the way out, clocks, caches of what is known anyway
_LEFT_OUT = {
    "lock",
    "log",
    "jobs",
    "now",
    "_wake",
    "epochs",
    "_numbers",
    "sink",
    "source",
    "contents",
    "flushes",
}
_LEFT_OUT |= {"_committing", "events", "_plan", "_shared_states", "_noted", "tell", "_tell", "_waiting"}


def picture(thing: Any, inside: tuple[int, ...] = ()) -> Any:
    """All that can be reached from a thing, as plain values."""
    if isinstance(thing, str | int | float | bytes | bool | type(None) | Enum | Path):
        return thing
    if id(thing) in inside:
        return "itself"
    inside = (*inside, id(thing))
    if isinstance(thing, Mapping):
        pairs = [(picture(key, inside), picture(value, inside)) for key, value in thing.items()]
        return sorted(pairs, key=repr)
    if isinstance(thing, set | frozenset):
        return sorted((picture(each, inside) for each in thing), key=repr)
    if isinstance(thing, list | tuple | deque):
        return [picture(each, inside) for each in thing]
    if isinstance(thing, pa.Table | pl.DataFrame | pl.Series | pa.Schema):
        return str(thing)
    if isinstance(thing, type | types.FunctionType | types.MethodType | types.BuiltinFunctionType):
        return getattr(thing, "__qualname__", "")
    known = {**_slots(thing), **getattr(thing, "__dict__", {})}
    if is_dataclass(thing) and thing.__dataclass_params__.frozen:  # what else it has is computed from these
        known = {each.name: getattr(thing, each.name) for each in fields(thing)}
    named = {name: each for name, each in known.items() if name not in _LEFT_OUT}
    return type(thing).__name__, {name: picture(each, inside) for name, each in named.items()}


def _slots(thing: Any) -> dict[str, Any]:
    names = [name for kind in type(thing).__mro__ for name in getattr(kind, "__slots__", ())]
    return {name: getattr(thing, name) for name in names if hasattr(thing, name)}


def whole(w: Life) -> dict[str, Any]:
    """The engine as it is, by its parts; and the files of its directory."""
    parts = {
        name: picture(each, (id(w.engine),)) for name, each in vars(w.engine).items() if name not in _LEFT_OUT
    }
    store = w.engine.store
    files = {name for folder in ("chunks", "outbox", "commits") for name in store.list(folder)}
    return {**parts, "the last commit": w.engine.last, "files": sorted(files)}


def difference(one: Any, other: Any, place: str) -> str:
    """Where two pictures differ first."""
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        name = next(name for name in one if one[name] != other[name])
        return difference(one[name], other[name], f"{place}.{name}")
    if isinstance(one, list | tuple) and isinstance(other, list | tuple) and len(one) == len(other):
        number = next(number for number, each in enumerate(one) if each != other[number])
        return difference(one[number], other[number], f"{place}[{number}]")
    return f"{place}: {str(one)[:200]} became {str(other)[:200]}"


class BrokenError(WindrowError):
    """What a step of these tests fails with."""


@contextmanager
def breaking(step: str) -> Iterator[list[str]]:
    """The next call of a step does all it does, and fails; or fails before it."""
    owner, name = STEPS[step]
    real, happened = getattr(owner, name), list[str]()

    def act(*arguments: Any, **how: Any) -> Any:
        if not happened:
            happened.append(step)
            if owner is not CommitLog:
                real(*arguments, **how)
            raise BrokenError("broken")
        return real(*arguments, **how)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, name, act)
        yield happened


def live(folder: Path, around: Callable[[Life, int, Callable[[], None]], None]) -> Counter[Any]:
    """A life with everything in it, each epoch made by `around`; what was answered."""
    with Life(folder) as w:
        w.sql(SCRIPT)
        w.update("items", insert=[(1, "one"), (2, "two")])
        w.engine.limit = 1e-9
        keys = pa.table([[bytes(16)], [1], [2], [3]], schema=keys_schema())
        for number, batch in enumerate(BATCHES):
            rows = table_of(batch)
            arrivals = [Arrival("s", rows, keys=keys), Arrival("p", rows)]
            promises = [WatermarkAdvance("p", 10 * number, None)]
            w.time += 1_000_000
            seals = ["p"] if number == len(BATCHES) - 1 else []
            around(w, number, lambda: w.engine.epoch(arrivals, promises, seals, {"p": 5}))  # noqa: B023
        w.engine.epoch(seals=["s"])
        found = {(name, row) for name, query in w.queries.items() for row in rows_of(query.results())}
        return Counter(found)


def test_an_epoch_that_fails_at_any_step_leaves_everything_as_it_was(tmp_path: Path) -> None:
    left, compared = list(STEPS), list[str]()

    def failing(w: Life, number: int, epoch: Callable[[], None]) -> None:
        before = whole(w)
        for step in left[number :: len(BATCHES)]:
            with breaking(step) as happened, suppress(BrokenError):
                epoch()
            if not happened or w.engine.last != before["the last commit"]:
                return
            after = whole(w)
            changed = [name for name in before if before[name] != after[name]]
            assert not changed, (step, *(difference(before[name], after[name], name) for name in changed))
            compared.append(step)
        epoch()

    answers = live(tmp_path / "failing", failing)
    assert answers == live(tmp_path / "plain", lambda w, n, epoch: epoch())
    assert set(compared) == set(STEPS)


@pytest.mark.parametrize("step", ["manifest", "committing"])
def test_a_change_of_a_table_that_fails_leaves_everything_as_it_was(tmp_path: Path, step: str) -> None:
    with Life(tmp_path / "state") as w:
        w.sql(SCRIPT)
        w.update("items", insert=[(1, "one")])
        before = whole(w)
        for act in (
            lambda: w.update("items", insert=[(2, "two")], delete=[(1, "one")]),
            lambda: w.engine.shed(0.5),
        ):
            with breaking(step) as happened, pytest.raises(BrokenError):
                act()
            assert happened
            assert whole(w) == before
        assert rows_of(w.tables["items"].rows()) == [(1, "one")]
        w.update("items", insert=[(2, "two")], delete=[(1, "one")])
        assert rows_of(w.tables["items"].rows()) == [(2, "two")]
