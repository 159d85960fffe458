"""Paths into JSON, as `$.store.books[0]['first title']`.

>>> parse_path("$.a[0]['b c']")
('a', 0, 'b c')
>>> parse_path("$.a[*]")
Traceback (most recent call last):
windrow.errors.QueryError: no path `$.a[*]` (a path is $ and then .name, ['name'] or [0])
"""

from __future__ import annotations

import re
from functools import cache

from windrow.errors import QueryError

_STEP = re.compile(r"\.([^.\['\]*]+)|\[(\d{1,9})\]|\['([^'?]+)'\]")


@cache
def parse_path(path: str) -> tuple[str | int, ...]:
    """The steps of a path: names and places."""
    steps: list[str | int] = []
    at = 1
    while path[:1] == "$" and (match := _STEP.match(path, at)):
        steps.append(match[1] or match[3] or int(match[2]))
        at = match.end()
    if path[:1] != "$" or at != len(path):
        raise QueryError(
            f"no path `{path}`", code="bad-path", hint="a path is $ and then .name, ['name'] or [0]"
        )
    return tuple(steps)
