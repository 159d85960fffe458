"""A stream of small files read by Spark, one file per batch, with its answers in a `files:` sink."""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
from tests.engine.world import BATCHES, COLUMNS, OPTIONS, SCHEMA, SUMS, oracle, rows_of

from windrow.session import Windrow

if TYPE_CHECKING:
    from pathlib import Path


class Files:
    """`folder/in` has a file for each batch, `folder/now` has everything a process leaves."""

    def __init__(self, folder: Path, batches: Any = BATCHES, url: str = "") -> None:
        self.folder, self.batches, self.url = folder, batches, url
        (folder / "in").mkdir(parents=True)
        (folder / "now").mkdir()
        for number in range(len(batches)):
            self.write(number)

    def path(self, number: int) -> Path:
        return self.folder / "in" / f"{number:03d}.json"

    def write(self, number: int, extra: str = "") -> None:
        """The file of a batch, a second younger than the one before."""
        rows = [dict(zip(SCHEMA.names, row, strict=True)) for row in self.batches[number]]
        self.path(number).write_text("".join(json.dumps(row) + "\n" for row in rows) + extra)
        os.utime(self.path(number), (1_700_000_000 + number, 1_700_000_000 + number))

    def declare(self, w: Windrow) -> None:
        source = f"files://{self.folder}/in/*.json?files_per_batch=1{self.url}"
        w.sql(f"CREATE STREAM s ({COLUMNS}) {OPTIONS} FROM '{source}'")
        w.sql(f"CREATE QUERY sums AS {SUMS} INTO 'files://{self.folder}/now/out'")

    def connect(self, spark: Any) -> Windrow:
        w = Windrow(spark, self.folder / "now" / "state")
        self.declare(w)
        return w

    def run(self, spark: Any, *, flush: bool = True) -> None:
        """Consume what is there. An error ends it as it would end a process, but in order."""
        with self.connect(spark) as w:
            w.run(once=True, flush=flush)

    def copy(self) -> None:
        shutil.copytree(self.folder / "now", self.folder / "then")

    def go_back(self) -> None:
        shutil.rmtree(self.folder / "now")
        (self.folder / "then").rename(self.folder / "now")

    @property
    def answers(self) -> Counter[Any]:
        files = (self.folder / "now" / "out").glob("sums-*.parquet")
        return Counter(row for path in files for row in rows_of(pq.read_table(path)))

    def check(self) -> None:
        """The sink has what the oracle says, each row once."""
        assert self.answers == oracle(SUMS, self.batches)
