"""`--trigger`: how often micro-batches are taken."""

from __future__ import annotations

import re

import typer

_FORM = re.compile(r"\d+ (millisecond|second|minute|hour)s?", re.IGNORECASE)


def trigger_text(text: str) -> str:
    """The option's value, checked before anything is started.

    >>> trigger_text("1 second")
    '1 second'
    """
    if _FORM.fullmatch(text.strip()) is None:
        raise typer.BadParameter(f"`{text}` is no span of time: write a number and a unit, as in '5 seconds'")
    return text.strip()
