"""An epoch of a ledger: where its clock goes, and who asks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from windrow.kernels.clock import Clock
    from windrow.kernels.shared.request import Asker
    from windrow.kernels.shared.shared_state import Ledger


@dataclass(frozen=True)
class Turn:
    """An epoch of a ledger. `forms` are the queries, packed, that the askers' forms are taken from."""

    ledger: Ledger
    clock: Clock
    askers: tuple[Asker, ...]
    forms: tuple[bytes, ...]
