"""Where the answers of a standing query go, and the late rows of a stream.

`open_sink` finds the sink for the text after INTO or LATE TO, `check_sink` says what it guarantees without
touching it. A sink is given deliveries (`delivery`): the rows of one commit, perhaps twice.
"""

from windrow.sinks.callback import Callback
from windrow.sinks.delivery import Delivery, Hook, Sink
from windrow.sinks.memory import MemorySink
from windrow.sinks.registry import check_sink, open_sink

__all__ = ["Callback", "Delivery", "Hook", "MemorySink", "Sink", "check_sink", "open_sink"]
