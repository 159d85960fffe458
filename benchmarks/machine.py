"""What it ran on, as far as it explains the figures."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version


def machine() -> dict[str, str]:
    """Cores, memory, system, and versions."""
    from windrow.spark.java import find_java

    return {
        "cores": str(os.cpu_count()),
        "memory": _memory(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "java": ".".join(map(str, find_java().version)),
        **{name: version(name) for name in ("windrow", "pyspark", "pyarrow", "polars")},
    }


def _memory() -> str:
    try:
        pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return "unknown"
    return f"{pages / 2**30:.0f} GiB"
