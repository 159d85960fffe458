"""Where the answers of a standing query go, and the late rows of a stream.

`open_sink` finds the sink for the text after INTO or LATE TO, `check_sink` says what it guarantees without
touching it. A sink is given deliveries (`delivery`): the rows of one commit, perhaps twice.
"""

from __future__ import annotations

from windrow.errors import QueryError, WindrowError, nearest
from windrow.sinks.console import ConsoleSink
from windrow.sinks.delivery import Delivery, Hook, Opening, Sink, SinkUrl, UrlSink, no_hook, sink_failed
from windrow.sinks.delta import DeltaSink
from windrow.sinks.files import FilesSink
from windrow.sinks.kafka import KafkaSink
from windrow.sinks.memory import Callback, MemorySink

SCHEMES: dict[str, type[UrlSink]] = {
    "console": ConsoleSink,
    "delta": DeltaSink,
    "files": FilesSink,
    "kafka": KafkaSink,
    "memory": MemorySink,
}


def check_sink(url: str) -> str:
    """What the sink guarantees; a QueryError if the text names none. Touches nothing outside of the text.

    >>> check_sink("memory:")
    'exactly once while this process runs: kept in its memory, and lost with it'
    >>> check_sink("file:///data/out")
    Traceback (most recent call last):
        ...
    windrow.errors.QueryError: no sink is called `file:` (did you mean `files`?)
    """
    parsed = SinkUrl.parse(url)
    kind = _kind(parsed)
    kind.of(parsed)
    return kind.guarantee


def open_sink(url: str, query: str, *, hook: Hook = no_hook, state: str = "") -> Sink:
    """The sink for the answers of a query.

    `hook` is called before rows are written, when they are, and when they can be seen. `state` names the
    state directory the commits are counted in: a sink that knows commits by their numbers takes those of
    another state for new ones.
    """
    parsed = SinkUrl.parse(url)
    opened = _kind(parsed).of(parsed)
    try:
        return opened(Opening(query, hook, state))
    except WindrowError:
        raise
    except Exception as error:
        raise sink_failed(query, error) from error


def _kind(url: SinkUrl) -> type[UrlSink]:
    kind = SCHEMES.get(url.scheme)
    if kind is None:
        hint = nearest(url.scheme, SCHEMES)
        raise QueryError(f"no sink is called `{url.scheme}:`", code="unknown-sink", hint=hint)
    return kind


__all__ = ["Callback", "Delivery", "Hook", "MemorySink", "Sink", "check_sink", "open_sink"]
