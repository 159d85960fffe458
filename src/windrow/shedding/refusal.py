"""Why something cannot be shed: a short code for programs, a sentence for people."""

from __future__ import annotations


class CannotShed(Exception):  # noqa: N818  it is an answer, not a failure
    """No windows of this query, or of these queries together, may be dropped."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason
