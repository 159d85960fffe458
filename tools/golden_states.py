"""Golden state directories, one per family of operators: an engine wrote them once, later ones read them.

Each family is a few queries that ran over the same rows up to a point. `tests/physical/test_golden_states.py`
unpacks the state, lets the queries go on, and holds their answers against the oracle.

A state of another format number is refused by name, so a new number (`windrow.state.manifest.FORMAT`) needs
new directories, and nothing else does:

    python -m tools.golden_states
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from unittest.mock import patch
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from windrow.engine.engine import Arrival, Engine
from windrow.engine.explain import declared
from windrow.engine.tables import TableUpdate
from windrow.execution.local import HereJobs
from windrow.kernels.columnar.columns import frame_of, published, rows_schema
from windrow.language.catalog import StandingQuery
from windrow.language.compile import compile_query
from windrow.physical.planner import SHARED
from windrow.sinks import Callback
from windrow.state.log import CommitLog, Owner
from windrow.state.manifest import Manifest
from windrow.state.names import owner_name
from windrow.state.store import LocalStore

if TYPE_CHECKING:
    import pyarrow as pa

    from windrow.algebra.plan import Emit

    Row = tuple[Any, ...]

FOLDER = Path(__file__).parents[1] / "tests" / "physical" / "golden_states"
STREAMS = dict.fromkeys(
    ("a", "b", "c"), ("k BIGINT, v BIGINT, x DOUBLE, name STRING, ts BIGINT", "WATTR ts SLACK 2")
)
TABLES = {
    "t": ("k BIGINT, about STRING", "RELATION KEY (k)"),
    "n": ("k BIGINT, about STRING", "NRR KEY (k)"),
}
ABSENT = "NOT EXISTS (SELECT * FROM b [RANGE 7] WHERE b.k = a.k)"
#: the queries of each family, by their names
FAMILIES: dict[str, dict[str, str]] = {
    "windows": {
        "q1": "SELECT k, v FROM a [RANGE 8] WHERE v > 0",
        "q2": "SELECT k, v FROM b [ROWS 3]",
        "q3": "SELECT k, v FROM b [ROWS 2 PARTITION BY k]",
        "q4": "SELECT k, v FROM c [SESSION 3 PARTITION BY k]",
        "q5": "SELECT RSTREAM(k, v) FROM c [RANGE 8 SLIDE 4]",
        "q6": "SELECT RSTREAM(k, name) FROM c [RANGE 8]",
        "q7": "SELECT k, v FROM a [RANGE 6 SLIDE 1 ROW SATTR rank(ts)]",
    },
    "extents": {
        "q1": "SELECT RSTREAM(k, v) FROM a [ROWS 4 SLIDE 2 ROWS]",
        "q2": "SELECT k, COUNT(*) AS n FROM a [SESSION 3 PARTITION BY k] GROUP BY k",
        "q3": "SELECT k, v, window_end AS e FROM a [RANGE 4 SLIDE 2]",
    },
    "distinct": {
        "q1": "SELECT DISTINCT k FROM a [RANGE 8]",
        "q2": "SELECT DISTINCT k FROM b [ROWS 5]",
        "q3": "SELECT DISTINCT name FROM c [UNBOUNDED]",
    },
    "joins": {
        "q1": "SELECT a.v, b.v AS w FROM a [RANGE 8] JOIN b [RANGE 9] ON a.k = b.k",
        "q2": "SELECT a.v, c.name FROM a [RANGE 8], b [RANGE 5], c [RANGE 8] WHERE a.k = b.k AND b.k = c.k",
        "q3": "SELECT a.v, b.v AS w FROM a [RANGE 6], b [RANGE 6] WHERE a.v < b.v AND a.k > b.k",
        "q4": "SELECT DISTINCT a.v, b.v AS w FROM a [ROWS 4], b [RANGE 6] WHERE a.k = b.k",
        "q5": "SELECT a.v, b.v AS w FROM a [RANGE 8 SLIDE 4], b [RANGE 8 SLIDE 4] WHERE a.k = b.k",
    },
    "negation": {
        "q1": f"SELECT a.k, c.v FROM a [RANGE 9], c [RANGE 9] WHERE a.k = c.k AND {ABSENT}",
        "q2": "SELECT k FROM a [RANGE 8] WHERE EXISTS (SELECT * FROM b [RANGE 3] WHERE b.k = a.k)",
        "q3": "SELECT k FROM a [RANGE 8] WHERE EXISTS (SELECT * FROM b [RANGE 3] WHERE b.v < a.v)",
        "q4": "SELECT k FROM a [RANGE 8] EXCEPT ALL SELECT k FROM b [RANGE 6]",
        "q5": "SELECT a.k, b.v FROM a [RANGE 8] LEFT JOIN b [RANGE 6] ON a.k = b.k",
    },
    "tables": {
        "q1": "SELECT a.k, about FROM a [RANGE 8] JOIN t ON a.k = t.k",
        "q2": "SELECT a.k, about FROM a [RANGE 8] JOIN n ON a.k = n.k",
    },
    "groups": {
        "q1": "SELECT k, SUM(v) AS s, MAX(v) AS m FROM a [RANGE 8] GROUP BY k",
        "q2": "SELECT k, FIRST(v) AS f, LAST(v) AS l FROM a [RANGE 8] GROUP BY k",
        "q3": "SELECT k, MEDIAN(v) AS m FROM b [RANGE 8] GROUP BY k",
        "q4": "SELECT k, COUNT(*) AS n, MAX(v) AS m FROM b [ROWS 5] GROUP BY k",
        "q5": "SELECT k, SUM(v) AS s FROM c [RANGE 6 SLIDE 1 ROW SATTR rank(ts)] GROUP BY k",
        "q6": "SELECT SUM(v) AS s FROM c [ROWS 4 SLIDE 2 ROWS]",
        "q7": "SELECT MAX(v) AS m FROM c [RANGE 8]",
        "q8": "SELECT COUNT(DISTINCT v) AS n FROM c [RANGE 8]",
        "q9": "SELECT MIN(a.v) AS m FROM a [RANGE 8], b [RANGE 8] WHERE a.k = b.k",
        "q10": "SELECT COUNT(*) AS n FROM a [RANGE 8], b [RANGE 8] WHERE a.k = b.k",
        "q11": "SELECT MEDIAN(v) AS m FROM c [ROWS 4 SLIDE 2 ROWS]",
        "q12": "SELECT MAX_BY(a.v, b.v) AS m FROM a [RANGE 8], b [RANGE 8] WHERE a.k = b.k",
    },
    "orders": {
        "q1": "SELECT k, v FROM a [RANGE 8 SLIDE 2] ORDER BY v LIMIT 2",
        "q2": (
            "SELECT k, v, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v) AS r FROM b [RANGE 8] QUALIFY r <= 2"
        ),
    },
    "frames": {
        "q1": "SELECT k, v, SUM(v) OVER (PARTITION BY k ORDER BY ts RANGE 4 PRECEDING) AS s FROM a",
        "q2": (
            "SELECT k, LAG(name) OVER (ORDER BY ts) AS n, MEDIAN(v) OVER (ORDER BY ts ROWS 3 PRECEDING) AS m"
            " FROM b"
        ),
        "q3": (
            "SELECT MAX(v) OVER (PARTITION BY k ORDER BY ts) AS m, COUNT(DISTINCT v) OVER (ORDER BY ts) AS n"
            " FROM c"
        ),
    },
    "panes": {
        "q1": "SELECT k, SUM(v) AS s, AVG(x) AS m FROM a [RANGE 8 SLIDE 4] WHERE v > 0 GROUP BY k",
        "q2": "SELECT k, MAX(v) AS s FROM b [RANGE 40 SLIDE 1] GROUP BY k",
        "q3": "SELECT k, MEDIAN(v) AS m FROM b [RANGE 8 SLIDE 3] GROUP BY k",
        "q4": "SELECT k, MAX(name) AS m FROM c [LANDMARK SLIDE 4] GROUP BY k",
        "q5": (
            "SELECT MAX(n) AS most FROM (SELECT k, COUNT(*) AS n FROM a [RANGE 4 SLIDE 4] GROUP BY k)"
            " [RANGE 8 SLIDE 4]"
        ),
    },
    "sketches": {
        "q1": "SELECT k, APPROX_COUNT_DISTINCT(v) AS n FROM a [RANGE 8 SLIDE 4] GROUP BY k",
        "q2": "SELECT APPROX_QUANTILE(v, 0.5) AS q FROM b [RANGE 8 SLIDE 2]",
        "q3": "SELECT APPROX_TOP_K(name, 2) AS t FROM c [RANGE 8 SLIDE 4]",
        "q4": "SELECT APPROX_COUNT_DISTINCT(name) AS n FROM c [RANGE 8]",
    },
    "shared-intervals": {
        "hour": "SELECT k, MAX(v) AS top, AVG(v) AS m FROM a [RANGE 8 SLIDE 2] GROUP BY k",
        "day": "SELECT k, MAX(v) AS top FROM a [RANGE 12 SLIDE 4] GROUP BY k",
        "some": "SELECT k, COUNT(*) AS n FROM a [RANGE 12 SLIDE 4] WHERE v > 1 GROUP BY k",
        "middle": "SELECT MEDIAN(v) AS m FROM a [RANGE 12 SLIDE 4]",
    },
    "common-subplans": {
        "one": "SELECT a.k, SUM(b.v) AS s FROM a [RANGE 8], b [RANGE 8] WHERE a.k = b.k GROUP BY a.k",
        "two": "SELECT a.k, MAX(b.v) AS m FROM a [RANGE 8], b [RANGE 8] WHERE a.k = b.k GROUP BY a.k",
        "three": "SELECT a.v, b.v AS w FROM a [RANGE 6], b [RANGE 6] WHERE a.k = b.k",
    },
    "unions": {
        "q1": "SELECT k FROM a [RANGE 8] UNION ALL SELECT k FROM b [RANGE 8]",
        "q2": "SELECT k FROM (SELECT k FROM a [RANGE 8] UNION ALL SELECT k FROM b [RANGE 8]) u",
        "q3": ("SELECT ISTREAM(k) FROM a [RANGE 8] UNION ALL SELECT ISTREAM(k) FROM b [ROWS 2]"),
    },
    "outliving": {
        "q1": "SELECT a.v, b.v AS w FROM a [RANGE 4 INTERNAL], b [RANGE 4 INTERNAL] WHERE a.k = b.k",
        "q2": "SELECT a.v, b.v AS w FROM a [RANGE 4 INTERNAL], b [ROWS 3] WHERE a.k = b.k",
        "q3": "SELECT k, COUNT(*) AS n FROM a [RANGE 4 INTERNAL] GROUP BY k",
        "q4": "SELECT ISTREAM_RESTORE(k) FROM a [RANGE 4 SLIDE 10]",
        "q5": "SELECT ISTREAM_RESTORE(DISTINCT k) FROM a [RANGE 4 SLIDE 10]",
        "q6": "SELECT RSTREAM_RESTORE(k) FROM a [RANGE 4 SLIDE 10]",
    },
}
#: those whose queries share what they keep
SHARING = ("shared-intervals", "common-subplans")


class Life:
    """An engine over a state directory; `answers` are those that came in this life, by the query."""

    def __init__(self, folder: Path, queries: Mapping[str, str], *, shares: bool = False) -> None:
        catalog = declared(STREAMS, TABLES)
        self.plans: dict[str, Emit] = {name: compile_query(text, catalog) for name, text in queries.items()}
        log = CommitLog.open(LocalStore(folder))
        self.engine = Engine(HereJobs(), log, shards=2, now=lambda: 0, shares=shares)
        for stream in catalog.streams.values():
            self.engine.add_stream(stream)
        for table in catalog.tables.values():
            self.engine.add_table(table)
        self.answers: dict[str, Counter[Row]] = {name: Counter() for name in queries}
        for name, plan in self.plans.items():
            self.engine.add_query(StandingQuery(name, plan), Callback(name, partial(self._answered, name)))
        self.engine.commit()

    def _answered(self, name: str, table: pa.Table, _: int) -> None:
        self.answers[name].update(_plain(row) for row in table.to_pylist())

    def first(self) -> None:
        """What was before the state was kept."""
        for name, rows in TABLE_ROWS.items():
            self.engine.change([TableUpdate(name, rows, [], 0)])
        self.push(0)

    def push(self, begin: int) -> None:
        """Some rows of each stream."""
        for name in STREAMS:
            schema = self.engine.streams[name].stream.schema
            table = published(frame_of(schema, rows_of(name, begin)).to_arrow(), rows_schema(schema))
            self.engine.epoch([Arrival(name, table)])

    def end(self) -> None:
        """The end of all inputs."""
        self.engine.epoch(seals=[*STREAMS, *TABLES])


TABLE_ROWS: dict[str, list[Row]] = {"t": [(0, "zero"), (1, "one")], "n": [(1, "one"), (2, "two")]}


def _plain(value: Any) -> Any:
    """A row, an array or a struct as a tuple."""
    if isinstance(value, dict):
        return tuple(map(_plain, value.values()))
    return tuple(map(_plain, value)) if isinstance(value, list) else value


def rows_of(stream: str, begin: int) -> list[Row]:
    """Rows that often meet, and whose windows reach from one life into the next."""
    shift = ord(stream) - ord("a")
    return [
        ((n + shift) % 4, (n * 3 + shift) % 5, (n + shift) / 4, f"n{(n * 2 + shift) % 3}", begin + n)
        for n in range(ROWS)
    ]


ROWS = 6


def kept(folder: Path) -> Iterator[tuple[str, bytes]]:
    """The files of a state directory that its last commit needs."""
    store = LocalStore(folder)
    last = max(name for name in store.list("commits"))
    manifest = Manifest.decode(store.read(last), last)
    owner = (owner_name(manifest.owner, end) for end in ("json", "released"))
    for name in (last, *owner, *sorted(manifest.files)):
        yield name, store.read(name)


def write(family: str, target: Path) -> None:
    """Let the queries of a family run, and keep the state they leave."""
    somebody = Owner(0, 1, "localhost", "2026-01-01 00:00:00+00:00")
    with (
        TemporaryDirectory() as folder,
        patch.object(Owner, "this_process", lambda *_, **__: somebody),
    ):
        life = Life(Path(folder), FAMILIES[family], shares=family in SHARING)
        life.first()
        life.engine.close()
        with ZipFile(target, "w", ZIP_DEFLATED) as packed:
            for name, data in kept(Path(folder)):
                packed.writestr(ZipInfo(name), data, ZIP_DEFLATED)


def recorded(manifest: Manifest) -> set[str]:
    """The durable names of all operators in a manifest."""
    alone = [query for query in manifest.queries.values() if "shares" not in query.options]
    found = {kind for query in alone for kind, _ in query.options["plan"]["operators"].values()}
    return found | ({SHARED} if manifest.decisions.get("synopses", {}).get("kept") else set())


def main() -> None:
    """Write all of them anew."""
    FOLDER.mkdir(exist_ok=True)
    for old in FOLDER.glob("*.zip"):
        old.unlink()
    for family in FAMILIES:
        write(family, FOLDER / f"{family}.zip")


if __name__ == "__main__":
    main()
