"""What stands between a run and the person who watches it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, Self

if TYPE_CHECKING:
    from windrow.cli.snapshots import RunSnapshot
    from windrow.errors import WindrowError


class View(Protocol):
    """Shows a run while it goes on. All methods are called by one thread."""

    def show(self, snapshot: RunSnapshot, seconds: float) -> None:
        """The newest snapshot, `seconds` after the start. Called several times a second."""

    def tell(self, problem: WindrowError) -> None:
        """Something failed and the run goes on."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...
