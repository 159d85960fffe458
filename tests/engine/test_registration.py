"""What is checked is what is registered: whatever `windrow check` passes an engine takes, and whatever an
engine refuses `windrow check` refuses with the same error. Oracle: an engine without a JVM, asked by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings, strategies as st
from tests.language.corpus import queries
from tests.language.paper_queries import PAPER_QUERIES, PaperQuery
from tests.support.life import Life
from tests.support.plans import plans
from tests.support.snapshots import Pair, read_pairs

from windrow.cli.declarations import Declarations
from windrow.errors import QueryError, WindrowError
from windrow.language.printer import print_query
from windrow.spark.sources import Bounded
from windrow.spark.sources.streaming_frame import StreamingFrame

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from windrow.algebra.plan import Emit

_LANGUAGE = Path(__file__).parents[1] / "language"
MARKET = (_LANGUAGE / "market.sql").read_text()
#: the streams and tables of random plans
RANDOM = """
CREATE STREAM s1 (k BIGINT, v BIGINT, e BIGINT, ts BIGINT) WATTR ts ORDERED;
CREATE STREAM s2 (k BIGINT, v BIGINT, e BIGINT, ts BIGINT) WATTR ts ORDERED;
CREATE TABLE nrr (k BIGINT, v BIGINT) NRR;
CREATE TABLE relation (k BIGINT, v BIGINT) RELATION;
"""
#: what can follow a query
TAILS = (" INTO 'memory:'", " INTO 'nowhere:'", " PRIORITY 3", " MAX GAP 3", " EVERY 5", " EVERY 5 SECONDS")
Refused = tuple[type[WindrowError], str | None, str, str | None]


@dataclass(frozen=True)
class Both:
    """Statements as they are checked, and an engine that takes them."""

    checked: Declarations
    run: Life

    def declare(self, text: str) -> Refused | None:
        """Why both refuse a script; None if both take it."""
        checked, taken = refusal(lambda: self.checked.sql(text)), refusal(lambda: self.run.declare(text))
        assert checked == taken
        return taken

    def passes(self, query: str) -> bool:
        """Whether both take a query, which is gone afterwards; it then also begins."""
        if self.declare(f"CREATE QUERY tried AS {query}") is not None:
            return False
        self.run.engine.epoch()
        assert not self.run.problems
        assert self.declare("DROP QUERY tried") is None
        return True


def refusal(action: Callable[[], object]) -> Refused | None:
    """What is said of a script, but for the place in it."""
    try:
        action()
    except WindrowError as error:
        return type(error), error.code, error.message, error.hint
    return None


def both(folder: Path, script: str) -> Iterator[Both]:
    with Life(folder / "state") as run:
        found = Both(Declarations(), run)
        assert found.declare(script) is None
        yield found


@pytest.fixture(scope="module")
def market(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    yield from both(tmp_path_factory.mktemp("market"), MARKET)


@pytest.fixture(scope="module")
def streams(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    yield from both(tmp_path_factory.mktemp("streams"), RANDOM)


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Both]:
    yield from both(tmp_path, "")


@pytest.mark.part(6)
@pytest.mark.parametrize(("number", "query"), [*enumerate(queries())])
def test_queries_of_the_corpus(market: Both, number: int, query: str) -> None:
    """Each as it is, and with something that can follow it, which may be refused."""
    assert market.passes(query)
    market.passes(query + TAILS[number % len(TAILS)])


@pytest.mark.part(6)
@pytest.mark.parametrize("query", PAPER_QUERIES, ids=lambda query: query.name)
def test_queries_of_the_papers(empty: Both, query: PaperQuery) -> None:
    for name, columns in query.streams.items():
        wattr = "timestamp" if "timestamp TIMESTAMP" in columns else "ts"
        assert empty.declare(f"CREATE STREAM {name} ({columns}) WATTR {wattr} ORDERED") is None
    for name, table in query.tables.items():
        columns, kind = (table, "NRR") if isinstance(table, str) else table
        assert empty.declare(f"CREATE TABLE {name} ({columns}) {kind}") is None
    assert empty.passes(query.sql)


@pytest.mark.parametrize("pair", read_pairs(_LANGUAGE / "bind_errors.txt", str), ids=lambda pair: pair.title)
def test_scripts_that_mean_nothing(market: Both, pair: Pair) -> None:
    is_query = pair.text.lstrip().upper().startswith("SELECT")
    assert not market.passes(pair.text) if is_query else market.declare(pair.text) is not None


def printed(plan: Emit) -> str | None:
    """The text of a plan; None where the language has none."""
    try:
        return print_query(plan)
    except QueryError:
        return None


@settings(max_examples=60)
@pytest.mark.deep
@given(text=plans().map(printed).filter(bool), tail=st.sampled_from(["", *TAILS]))
def test_texts_of_random_plans_are_checked_as_they_would_be_registered(
    streams: Both, text: str, tail: str
) -> None:
    streams.passes(f"{text}{tail}")


_FAIL = "t1.item + t2.item > 0 AND t1.price + t2.price > 0 AND t1.item * t2.price > 0"


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT t1.item FROM bids [RANGE 5 MIN] t1, asks [RANGE 5 MIN] t2 WHERE {_FAIL}",
        f"SELECT t1.item FROM bids [RANGE 5 MIN] t1, asks [RANGE 5 MIN] t2 WHERE {_FAIL} AND t1.item = 1",
        f"SELECT t1.item FROM bids [ROWS 5] t1, asks [ROWS 5] t2 WHERE t1.item = t2.item AND {_FAIL}",
        f"SELECT item FROM bids [NOW] t1 WHERE EXISTS (SELECT 1 FROM asks [NOW] t2 WHERE {_FAIL})",
        f"SELECT item FROM bids [NOW] t1 WHERE NOT EXISTS (SELECT 1 FROM asks [NOW] t2 WHERE {_FAIL})",
        f"SELECT COUNT(*) FROM bids [ROWS 9] t1, asks [RANGE 5 MIN SLIDE 1 MIN] t2 WHERE {_FAIL} AND qty > 1",
    ],
)
def test_conditions_of_which_the_first_can_fail(market: Both, query: str) -> None:
    assert market.passes(query)


@pytest.mark.parametrize(
    ("script", "code"),
    [
        (
            "CREATE STREAM s (a INT, ts TIMESTAMP) WATTR ts ORDERED FROM 'generator:trafic'",
            "unknown-generator",
        ),
        ("CREATE STREAM s (a INT, ts TIMESTAMP) WATTR ts LATE TO 'nowhere:'", "unknown-sink"),
        ("CREATE TABLE t (a INT) NRR FROM 'generator:traffic'", "bad-source"),
        (
            "CREATE STREAM s (a BIGINT, ts TIMESTAMP) WATTR ts ORDERED;"
            " CREATE STREAM n (a BIGINT, i BIGINT) WATTR i ORDERED; CREATE TABLE t (a BIGINT) NRR;"
            " CREATE QUERY p AS SELECT s.a FROM s [NOW], t WHERE s.a = t.a;"
            " CREATE QUERY q AS SELECT n.a FROM n [NOW], t WHERE n.a = t.a",
            "mixed-domains",
        ),
        (
            "CREATE STREAM s (a BIGINT, ts TIMESTAMP) WATTR ts ORDERED;"
            " CREATE QUERY q AS SELECT COUNT(*) FROM s [RANGE 5 SECONDS] x,"
            " s [RANGE 5 SECONDS] y WHERE x.a = y.a EVERY 10 SECONDS",
            "bad-every",
        ),
    ],
)
def test_what_only_an_engine_refuses(empty: Both, script: str, code: str) -> None:
    refused = empty.declare(script)
    assert refused is not None
    assert refused[1] == code


def test_what_is_checked_is_built(tmp_path: Path) -> None:
    """By a program or a server, without being registered: what a period is asked of has one."""
    join = "SELECT COUNT(*) FROM s [RANGE 5 SECONDS{0}] x, s [RANGE 5 SECONDS{0}] y WHERE x.a = y.a"
    with Life(tmp_path / "state") as w:
        w.sql("CREATE STREAM s (a BIGINT, ts TIMESTAMP) WATTR ts ORDERED")
        refused = f"CREATE QUERY q AS {join.format('')} EVERY 10 SECONDS"
        for way in (w.check, w.sql):
            with pytest.raises(QueryError, match="not about one window of time each"):
                way(refused)
        slides = join.format(" SLIDE 5 SECONDS")
        ((_, planned),) = w.check(f"CREATE QUERY q AS {slides} EVERY 10 SECONDS")
        assert planned is not None
        assert "q" not in w.queries


LIVE = ("files:///data/*.csv", "generator:traffic?rate=10", "kafka://host:9092/topic")
ENDING = ("files:///data/*.csv?bounded=true", "generator:traffic?rows=100")
_SEQ = "CREATE STREAM s (segment BIGINT, sensor BIGINT, ts TIMESTAMP) WATTR ts ORDERED"


@pytest.mark.parametrize("source", LIVE)
@pytest.mark.parametrize(
    "query",
    [
        "SELECT COUNT(*) FROM s [RANGE 10 SLIDE 5 WATTR sensor]",
        "SELECT segment FROM s [ROWS 10 WATTR sensor]",
        "SELECT COUNT(*) FROM s [RANGE 10 RATTR sensor SLIDE 2 ROWS SATTR rank(sensor)]",
        "SELECT x.ts FROM s [RANGE 9 WATTR sensor] x, s [LANDMARK WATTR row_num] y WHERE x.ts = y.ts",
        "SELECT ISTREAM(n) FROM (SELECT COUNT(*) AS n FROM s [RANGE 9 SLIDE 3 WATTR sensor]) [RANGE 6]",
        "SELECT ts FROM (SELECT ISTREAM(ts) FROM s [NOW WATTR sensor] UNION ALL SELECT ISTREAM(ts)"
        " FROM s [LANDMARK WATTR row_num]) [ROWS 4]",
    ],
)
def test_a_query_that_would_be_silent_for_ever_is_refused(empty: Both, source: str, query: str) -> None:
    assert empty.declare(f"{_SEQ} FROM '{source}'") is None
    refused = empty.declare(f"CREATE QUERY q AS {query}")
    assert refused is not None
    assert refused[1] == "no-progress"
    assert "window on `sensor`" in refused[2]
    assert "ALSO sensor ORDERED" in str(refused[3])
    assert empty.declare(f"{_SEQ.replace(' s ', ' s2 ')} ALSO sensor ORDERED FROM '{source}'") is None
    assert empty.declare(f"CREATE QUERY q AS {query.replace('FROM s ', 'FROM s2 ')}") is None  # the way out


@pytest.mark.parametrize(
    "query",
    [
        "SELECT COUNT(*) FROM s [RANGE 10 SECONDS SLIDE 5 SECONDS WATTR ts]",
        "SELECT COUNT(*) FROM s [RANGE 10 SECONDS SLIDE 5 SECONDS WATTR arrival_ts]",
        "SELECT COUNT(*) FROM s [LANDMARK SLIDE 5 WATTR row_num]",
        "SELECT segment FROM s [ROWS 10 WATTR row_num]",
    ],
)
def test_attributes_that_say_how_far_they_are(empty: Both, query: str) -> None:
    assert empty.declare(f"{_SEQ} FROM '{LIVE[0]}'; CREATE QUERY q AS {query}") is None


@pytest.mark.parametrize("source", [f" FROM '{url}'" for url in ENDING] + [""])
def test_an_end_is_progress_enough(empty: Both, source: str) -> None:
    """As is a source that nobody knows yet."""
    query = "CREATE QUERY q AS SELECT COUNT(*) FROM s [RANGE 10 SLIDE 5 WATTR sensor]"
    assert empty.declare(f"{_SEQ.replace('ORDERED', '')}{source}; {query}") is None


@pytest.mark.parametrize("source", LIVE)
def test_a_stream_that_never_says_how_far_it_is_is_refused(empty: Both, source: str) -> None:
    refused = empty.declare(f"{_SEQ.replace('ORDERED', '')} FROM '{source}'")
    assert refused is not None
    assert refused[1] == "no-progress"


def test_a_source_that_comes_later_is_looked_at_then(empty: Both) -> None:
    frame: Any = None
    assert empty.declare(f"{_SEQ}; CREATE QUERY q AS SELECT segment FROM s [NOW WATTR sensor]") is None
    engine = empty.run.engine
    with pytest.raises(QueryError, match="could never be answered"):
        engine.read_from("s", StreamingFrame(frame, "a frame"))
    assert engine.streams["s"].source is None
    engine.read_from("s", Bounded(frame, "a table"))


def test_what_was_refused_is_not_declared(empty: Both) -> None:
    stream = "CREATE STREAM s (a INT, ts TIMESTAMP) WATTR ts ORDERED;"
    query = "CREATE QUERY q AS SELECT a FROM s [NOW]"
    assert empty.declare(f"{stream} {query} EVERY 5 SECONDS") is not None
    assert empty.declare(f"{stream} {query} INTO 'nowhere:'") is not None
    again = f"{stream} CREATE ARCHIVE old ON s KEY a KEEP 1 HOUR; {query}"
    assert empty.declare(again) is None
    assert empty.declare("DROP QUERY q; DROP ARCHIVE old; DROP STREAM s;" + again) is None
