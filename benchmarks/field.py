"""Who takes part: everyone who is there, those who were asked for, and a sentence about the others."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from windrow.errors import WindrowError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.contestant import Contestant
    from benchmarks.setting import Setting

WINDROW, SCAN, FLINK, FLINK_SCAN, DUCKDB = "windrow", "scan", "pyflink", "pyflink scan", "duckdb (batch)"
SPARKS = ("spark rocksdb", "spark hdfs")
#: the order of columns and legends
ORDER = (WINDROW, *SPARKS, FLINK, DUCKDB, SCAN, FLINK_SCAN)
WITHOUT_FLINK = "PyFlink was left out: it takes part with `--with pyflink`, which installs it."
_WITHOUT_DUCKDB = "DuckDB was left out: it takes part where it is installed (`pip install duckdb`)."


@dataclass
class Field:
    """The contestants of a run, in the order they run in."""

    contestants: list[Contestant] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def names(self) -> list[str]:
        """In the order of the tables."""
        present = {each.name for each in self.contestants}
        return [name for name in ORDER if name in present]

    @property
    def settings(self) -> dict[str, dict[str, str]]:
        """Of everyone."""
        return {each.name: dict(each.settings) for each in self.contestants}


@contextmanager
def gathered(setting: Setting, wanted: Sequence[str] = ORDER) -> Iterator[Field]:
    """Those of these names who can take part; their processes end with the context."""
    from benchmarks.contestants.scan import Scan
    from benchmarks.contestants.spark_window import STORES, SparkWindow
    from benchmarks.contestants.windrow import Windrow

    found = Field()
    everyone: list[Contestant] = [
        Scan(setting),
        Windrow(setting),
        *(SparkWindow(setting, store) for store in STORES),
    ]
    found.contestants += [each for each in everyone if each.name in wanted]
    with ExitStack() as leaving:
        if DUCKDB in wanted:
            _add_duckdb(found, setting)
        if FLINK in wanted:
            _add_flink(found, setting, wanted, leaving)
        yield found


def _add_duckdb(found: Field, setting: Setting) -> None:
    from benchmarks.contestants.duckdb import DuckDb

    if DuckDb.is_installed():
        found.contestants.append(DuckDb(setting))
    else:
        found.notes.append(_WITHOUT_DUCKDB)


def _add_flink(found: Field, setting: Setting, wanted: Sequence[str], leaving: ExitStack) -> None:
    if FLINK not in setting.extras:
        found.notes.append(WITHOUT_FLINK)
        return
    from benchmarks.contestants.pyflink import Flink, PyFlink, PyFlinkScan

    try:
        flink = Flink(setting)
    except WindrowError as error:
        found.notes.append(f"PyFlink was left out: {error.message}.")
        return
    leaving.callback(flink.close)
    found.contestants.append(PyFlink(flink, setting))
    if FLINK_SCAN in wanted:
        found.contestants.append(PyFlinkScan(flink))
