"""A file that was read is known by what it is, not by what it is called."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from windrow.session import Windrow

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

COUNT = "SELECT COUNT(*) AS n FROM s [RANGE 1000 SLIDE 1000]"


def connected(spark: SparkSession, folder: Path) -> Windrow:
    """Rows that come again would not be late: they would be counted again."""
    w = Windrow(spark, folder / "state")
    source = f"files://{folder}/in/*.json"
    w.sql(f"CREATE STREAM s (k BIGINT, t BIGINT) WATTR t SLACK 5000 FROM '{source}'")
    w.query("count", COUNT)
    return w


@pytest.mark.parametrize("renamed", ["000.json", "zzz.json"])
@pytest.mark.parametrize("restarts", [False, True])
def test_a_file_renamed_after_it_was_read_is_not_read_again(
    tmp_path: Path, spark: SparkSession, renamed: str, restarts: bool
) -> None:
    """As `logrotate` does it, in a run that goes on and across a restart."""
    (tmp_path / "in").mkdir()
    read = tmp_path / "in" / "log.json"
    read.write_text('{"k": 1, "t": 1}\n{"k": 2, "t": 2}\n')
    w = connected(spark, tmp_path)
    w.run(once=True)
    before = read.stat()
    read.rename(tmp_path / "in" / renamed)
    os.utime(tmp_path / "in" / renamed, ns=(before.st_atime_ns, before.st_mtime_ns))
    (tmp_path / "in" / "next.json").write_text('{"k": 3, "t": 3}\n')
    if restarts:
        w.close()
        w = connected(spark, tmp_path)
    with w:
        w.run(once=True, flush=True)
        assert w.queries["count"].results()["n"].to_pylist() == [3]
