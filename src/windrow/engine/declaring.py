"""Streams from Python: the words of CREATE STREAM as arguments.

>>> options(wattr="ts", slack="5 seconds", late="keep")
'WATTR `ts` SLACK 5 SECONDS LATE KEEP'
>>> options(wattr="ts", ordered_per="bidder", idle="30 seconds")
'WATTR `ts` ORDERED PER `bidder` IDLE 30 SECONDS'
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from windrow.errors import QueryError
from windrow.language.compile import declare_stream

if TYPE_CHECKING:
    from windrow.algebra.catalog import Stream
    from windrow.algebra.schema import Schema


def options(
    *,
    wattr: str | None = None,
    slack: str | None = None,
    ordered: bool = False,
    ordered_per: str | None = None,
    idle: str | None = None,
    punctuated_by: str | None = None,
    per: str | None = None,
    when: str | None = None,
    late: str | None = None,
    sheddable: bool = False,
) -> str:
    """The options of CREATE STREAM as text."""
    words: list[str] = []
    if wattr is not None:
        words.append(f"WATTR {_quoted(wattr)}")
    chosen = {"slack": slack, "ordered": ordered, "ordered_per": ordered_per, "punctuated_by": punctuated_by}
    given = [name for name, value in chosen.items() if value]
    if len(given) > 1:
        raise QueryError(
            f"`{given[0]}` and `{given[1]}` both say how far a stream is",
            code="bad-options",
            hint="give one of them",
        )
    words += [f"SLACK {slack.upper()}"] if slack else []
    words += ["ORDERED"] if ordered else []
    words += [f"ORDERED PER {_quoted(ordered_per)}"] if ordered_per else []
    words += [f"IDLE {idle.upper()}"] if idle else []
    words += [f"PUNCTUATED BY {punctuated_by}"] if punctuated_by else []
    words += [f"PER {_quoted(per)}"] if per else []
    words += [f"WHEN {when}"] if when else []
    words += [_late(late)] if late else []
    words += ["SHEDDABLE"] if sheddable else []
    return " ".join(words)


def declared_stream(name: str, schema: Schema, text: str) -> Stream:
    """The declaration of a stream with these columns and options."""
    columns = ", ".join(f"{_quoted(field.name)} {field.type}" for field in schema)
    return declare_stream(name, columns, text)


def _late(late: str) -> str:
    if late.lower() in ("drop", "keep"):
        return f"LATE {late.upper()}"
    return f"LATE TO '{late}'"


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
