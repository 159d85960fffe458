"""A market of streams and tables (`market.sql`), and queries about it that use every part of the language."""

from __future__ import annotations

from pathlib import Path

from windrow.language.compile import Catalog, compile_script

_HERE = Path(__file__).parent


def market() -> Catalog:
    """The market, declared."""
    catalog = Catalog()
    compile_script((_HERE / "market.sql").read_text(), catalog)
    return catalog


def queries() -> list[str]:
    """The queries of `queries.sql`, one by one."""
    return [query.strip() for query in (_HERE / "queries.sql").read_text().split(";") if query.strip()]
