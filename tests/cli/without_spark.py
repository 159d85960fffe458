"""The command line with an engine that needs no Spark: files are read here. For tests of what is shown.

python -m tests.cli.without_spark run examples/orders.cql --flush
"""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
from tests.support.life import Life

from windrow import session as connection
from windrow.algebra.catalog import Stream
from windrow.algebra.types import Kind
from windrow.cli import run as running
from windrow.cli.main import main
from windrow.kernels.columnar.columns import rows_schema
from windrow.spark import session
from windrow.spark.sources import Bounded


class Here(Life):
    """An engine as `windrow run` makes it."""

    def __init__(self, _: object, state: Path, **how: object) -> None:
        super().__init__(state)


def read_file(_: object, stream: Stream) -> Bounded:
    """A file of JSON lines, as one batch."""
    path = Path(str(stream.source).removeprefix("files://"))
    found = [json.loads(line) for line in path.read_text().splitlines()]
    kinds = {field.name: field.type.kind for field in stream.schema}
    rows = [{name: _value(row[name], kind) for name, kind in kinds.items()} for row in found]
    frame: Any = pa.Table.from_pylist(rows, schema=rows_schema(stream.schema))
    return Bounded(frame, str(path))


def _value(found: Any, kind: Kind) -> Any:
    if kind is Kind.TIMESTAMP:
        return datetime.fromisoformat(found).replace(tzinfo=UTC)
    return Decimal(str(found)) if kind is Kind.DECIMAL else found


if __name__ == "__main__":
    connection.Windrow = Here  # type: ignore[assignment, misc]
    connection.open_url = read_file
    running._quiet = lambda engine: None
    session.warm = lambda spark: None  # type: ignore[assignment, return-value]
    main(sys.argv[1:])
