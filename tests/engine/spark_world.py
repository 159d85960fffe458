"""A stream of small files read by Spark, one file per batch, with its answers in a `files:` sink."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from tests.support.history import BATCHES, COLUMNS, OPTIONS, SCHEMA, SUMS
from tests.support.world import World

from windrow.session import Windrow

if TYPE_CHECKING:
    from pathlib import Path


class Files(World):
    """`folder/in` has a file for each batch, `folder/now` has everything a process leaves."""

    def __init__(self, folder: Path, batches: Any = BATCHES, url: str = "") -> None:
        super().__init__(folder, {"sums": SUMS}, script=batches, sink="files")
        self.url = url
        (folder / "in").mkdir(parents=True)
        (folder / "now").mkdir()
        for number in range(len(batches)):
            self.write(number)

    def path(self, number: int) -> Path:
        return self.folder / "in" / f"{number:03d}.json"

    def write(self, number: int, extra: str = "") -> None:
        """The file of a batch, a second younger than the one before."""
        rows = [dict(zip(SCHEMA.names, row, strict=True)) for row in self.script[number]]
        self.path(number).write_text("".join(json.dumps(row) + "\n" for row in rows) + extra)
        os.utime(self.path(number), (1_700_000_000 + number, 1_700_000_000 + number))

    def declare(self, w: Windrow) -> None:
        source = f"files://{self.folder}/in/*.json?files_per_batch=1{self.url}"
        w.sql(f"CREATE STREAM s ({COLUMNS}) {OPTIONS} FROM '{source}'")
        w.sql(f"CREATE QUERY sums AS {SUMS} INTO 'files://{self.folder}/now/sums'")

    def connect(self, spark: Any) -> Windrow:
        w = Windrow(spark, self.state)
        self.declare(w)
        return w

    def run(self, spark: Any, *, flush: bool = True) -> None:
        """Consume what is there. An error ends it as it would end a process, but in order."""
        with self.connect(spark) as w:
            w.run(once=True, flush=flush)
