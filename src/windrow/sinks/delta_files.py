"""The files under a Delta table: the library writes them, but does not see them onto the disk."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from windrow.errors import SinkError
from windrow.sinks.durable import sync

if TYPE_CHECKING:
    from pathlib import Path

LOG = "_delta_log"


def refuse_foreign(table: Path) -> None:
    """A directory that holds other things is never made a table by mistake."""
    if (table / LOG).is_dir() or not table.is_dir():
        return
    for path in table.iterdir():
        # An interrupted first write leaves parts of a table that never was.
        if path.name != LOG and not (path.name.startswith("part-") and path.suffix == ".parquet"):
            raise SinkError(
                f"{table} is not a Delta table: it holds `{path.name}`",
                code="place-taken",
                hint="give a directory that is empty or does not exist yet",
            )


def sync_versions(table: Path, first: int, last: int) -> None:
    """Put the versions from `first` to `last` on the disk: what they added, then what says so."""
    for version in range(first, last + 1):
        _sync_version(table, version)
    _sync_directories(table)


def sync_transaction(table: Path, last: int, application: str, number: int) -> None:
    """Put the version with this transaction on the disk, and those after it."""
    for version in range(last, -1, -1):
        actions = _sync_version(table, version)
        made = [action["txn"] for action in actions if "txn" in action]
        if not actions or any((it["appId"], it["version"]) == (application, number) for it in made):
            break
    _sync_directories(table)


def _sync_version(table: Path, version: int) -> list[dict[str, Any]]:
    """The actions of a version that is now durable; none if its entry was cleaned up after a checkpoint."""
    entry = table / LOG / f"{version:020d}.json"
    if not entry.exists():
        return []
    # bytes: a value may have line separators of Unicode in it, at which `splitlines()` would cut
    actions = [json.loads(line) for line in entry.read_bytes().split(b"\n") if line.strip()]
    for action in actions:
        path = table / unquote(action["add"]["path"]) if "add" in action else None
        if path is not None and path.exists():  # else it was compacted since
            sync(path)
    sync(entry)
    return actions


def _sync_directories(table: Path) -> None:
    sync(table / LOG)
    sync(table)
