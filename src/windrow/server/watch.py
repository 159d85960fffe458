"""What is seen of an engine after its epochs: rates, lags, queries, costs; as plain JSON values.

Figures are taken by a thread of the server, at most a few times a second, never by the thread that makes
epochs. The last ones are kept for the lines that the page begins with.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from threading import Lock
from typing import Any, TypeVar

from windrow.algebra import ColumnRef, Emit, Window
from windrow.algebra.explain.operators import Spelling, call_text, operator_text, quantity, window_text
from windrow.algebra.operators import Aggregate, Except, Exists, Filter, Join, Limit, Project, TableJoin
from windrow.engine import explain, statistics
from windrow.engine.views import Query, StreamView
from windrow.errors import QueryError, WindrowError
from windrow.redaction import redacted
from windrow.session import Windrow
from windrow.shedding import agreement, rules
from windrow.windows import Instant, RangeWindow

#: rows per second are those of the last seconds
_MEASURED_OVER = 5.0
#: so many looks are kept for a stream's line, and this many seconds lie between two
KEPT_LOOKS, EVERY = 240, 1.0
#: so many epochs are told with each look
TOLD_EPOCHS = 30
_TIMES = ("TIMESTAMP", "DATE")
#: so often something is read again that has changed meanwhile
_TRIES = 5
_Found = TypeVar("_Found")
_View = TypeVar("_View")


def plain(tick: Instant | None) -> int | str | None:
    """An instant for JSON: infinities have names.

    >>> plain(5), plain(-math.inf), plain(math.inf), plain(None)
    (5, '-inf', 'inf', None)
    """
    if tick is None:
        return None
    if math.isinf(tick):
        return "inf" if tick > 0 else "-inf"
    return int(tick)


def problem(error: WindrowError) -> dict[str, Any]:
    span: dict[str, int] | None = None
    if error.span is not None and error.text is not None:
        start = min(max(error.span.start, 0), len(error.text))
        line_start = error.text.rfind("\n", 0, start) + 1
        line = error.text.count("\n", 0, start) + 1
        span = {"start": start, "end": error.span.end, "line": line, "column": start - line_start + 1}
    return {"code": error.code, "message": error.message, "span": span, "hint": error.hint}


@dataclass
class Meter:
    """A rate over the last seconds.

    >>> meter = Meter()
    >>> meter.rate(0, 0.0), meter.rate(100, 1.0), meter.rate(100, 4.0), meter.rate(100, 9.0)
    (0.0, 100.0, 25.0, 0.0)
    """

    _seen: deque[tuple[float, int]] = field(default_factory=deque)

    def rate(self, total: int, now: float) -> float:
        while len(self._seen) > 1 and self._seen[1][0] <= now - _MEASURED_OVER:
            self._seen.popleft()
        self._seen.append((now, total))
        began, before = self._seen[0]
        return (total - before) / (now - began) if now > began else 0.0


def steady(read: Callable[[], _Found]) -> _Found:
    """What `read` finds. Queries and streams come and go in other threads: if one does while it reads, again.

    >>> steady(lambda: 7)
    7
    """
    for _ in range(_TRIES):
        try:
            return read()
        except (KeyError, RuntimeError):
            time.sleep(0.01)
    return read()


class Watch:
    """Looks at an engine. `look` may be called from any thread; `newest` is the last look."""

    def __init__(self, windrow: Windrow) -> None:
        self._windrow = windrow
        self._lock = Lock()
        self._meters: dict[str, Meter] = {}
        self._lines: dict[str, deque[dict[str, Any]]] = {}
        self._facts: dict[str, dict[str, Any]] = {}
        self._kept_at = -math.inf
        self._told = 0
        self._commit_seen: deque[tuple[int, float]] = deque(maxlen=4096)
        #: called with each epoch, once, in order
        self.on_epoch: Callable[[statistics.EpochTimes], None] = lambda epoch: None
        self.newest: dict[str, Any] = {}
        self.look()

    def look(self) -> dict[str, Any]:
        with self._lock:
            now, commit = time.monotonic(), self._windrow.commit
            if not self._commit_seen or self._commit_seen[-1][0] != commit:
                self._commit_seen.append((commit, now))
            streams = steady(lambda: self._each(self._windrow.streams, lambda view: self._stream(view, now)))
            queries = steady(lambda: self._each(self._windrow.queries, self._query))
            self.newest = {
                "commit": commit,
                "time": time.time(),
                "is_running": self._windrow.is_running,
                "streams": streams,
                "queries": queries,
                "epochs": self._newest_epochs(),
                "problems": [problem(each) for each in self._windrow.problems],
            }
            if now - self._kept_at >= EVERY:
                self._kept_at = now
                self._keep(streams)
            return self.newest

    def _each(
        self, views: Mapping[str, _View], read: Callable[[_View], dict[str, Any]]
    ) -> list[dict[str, Any]]:
        """What is seen of each, but for those that are dropped in this moment."""
        found = []
        for view in views.values():
            with suppress(QueryError):
                found.append(read(view))
        return found

    def history(self) -> dict[str, Any]:
        """What the page begins with: lines of the streams, and the last epochs."""
        with self._lock:
            lines = {name: list(line) for name, line in self._lines.items()}
            epochs = list(map(_epoch, self._windrow.epochs[-KEPT_LOOKS:]))
        return {"lines": lines, "epochs": epochs}

    def age(self, commit: int | None) -> float:
        """How many seconds ago a commit was first seen; of one before this process, since that began."""
        if commit is None:
            return 0.0
        with self._lock:
            seen = next((at for number, at in self._commit_seen if number >= commit), None)
        return 0.0 if seen is None else time.monotonic() - seen

    def _newest_epochs(self) -> list[dict[str, Any]]:
        """The last ones, of which a reader may have seen some; each is told to `on_epoch` once."""
        epochs = self._windrow.epochs
        for each in epochs:
            if each.number > self._told:
                self._told = each.number
                self.on_epoch(each)
        return list(map(_epoch, epochs[-TOLD_EPOCHS:]))

    def _keep(self, streams: Iterable[dict[str, Any]]) -> None:
        at = round(time.time(), 3)
        for stream in streams:
            line = self._lines.setdefault(stream["name"], deque(maxlen=KEPT_LOOKS))
            kept = {key: stream[key] for key in ("rate", "lag", "late", "shed")}
            line.append({"time": at, **kept})
        for gone in self._lines.keys() - {stream["name"] for stream in streams}:
            del self._lines[gone], self._meters[gone]

    def _stream(self, view: StreamView, now: float) -> dict[str, Any]:
        progress, columns = view.progress, view.columns
        rows = progress.accepted + progress.late
        rate = self._meters.setdefault(view.name, Meter()).rate(rows, now)
        lag = None
        if progress.greatest is not None and not math.isinf(progress.progress):
            lag = max(0, int(progress.greatest - progress.progress))
        declared = view.declared
        return {
            "name": view.name,
            "columns": columns,
            "wattr": view.wattr,
            "is_time": columns.get(view.wattr, "TIMESTAMP") in _TIMES,
            "late_policy": declared.late.value,
            "sheddable": declared.sheddable,
            "keeps": declared.keep is not None,
            "source": redacted(declared.source) if declared.source else None,
            "rows": rows,
            "accepted": progress.accepted,
            "late": progress.late,
            "shed": progress.shed,
            "malformed": progress.malformed,
            "rate": round(rate, 2),
            "watermark": plain(progress.progress),
            "greatest": progress.greatest,
            "lag": lag,
            "sealed": progress.sealed,
        }

    def _query(self, query: Query) -> dict[str, Any]:
        progress, standing = query.progress, query.standing
        return {
            "name": query.name,
            "id": query.id,
            "sql": query.text,
            "sink": redacted(query.sink) if query.sink else None,
            "status": progress.status,
            "error": progress.error,
            "clock": plain(progress.clock),
            "rows": progress.rows,
            "complete_from": progress.complete_from,
            "shares": progress.shares,
            "shared_with": query.shared_with,
            "cost": round(progress.cost, 4),
            "missing": progress.missing,
            "losing": query.losing,
            "max_gap": standing.max_gap,
            "priority": standing.priority,
            "every": progress.period,
            "reads": query.reads,
            **self._facts_of(query),
        }

    def _facts_of(self, query: Query) -> dict[str, Any]:
        """What does not change as long as the query is there."""
        if query.id not in self._facts:
            known = set(self._windrow.queries)
            self._facts = {key: each for key, each in self._facts.items() if each["name"] in known}
            emit, columns = query.standing.plan, query.columns
            plan = explain.explain_plan(emit).plan
            self._facts[query.id] = {
                "name": query.name,
                "pattern": plan.pattern.name if plan.pattern is not None else None,
                "columns": [{"name": each.name, "type": str(each.type)} for each in columns],
                "is_time": str(columns.field("at").type).startswith("timestamp"),
                "keys": _keys(emit) if emit.is_by_extent else None,
                "summary": _summary(emit),
                "windows": _windows(emit),
                "slide": _slide(emit),
            }
        return self._facts[query.id]


def _keys(emit: Emit) -> list[str] | None:
    """The columns that tell groups apart, if there is one answer for each group and instant."""
    node, given = emit.input, {name: name for name in emit.schema.names}
    while not isinstance(node, Aggregate):
        if isinstance(node, Project):
            named = {name: value.name for name, value in node.outputs if isinstance(value, ColumnRef)}
            given = {name: named[below] for name, below in given.items() if below in named}
        elif not isinstance(node, Filter | Limit):
            return None
        node = node.children[0]
    keys = {name for name, _ in node.keys}
    return [name for name, below in given.items() if below in keys]


def _windows(emit: Emit) -> list[dict[str, Any]]:
    """The windows on streams whose rows stay for a fixed time, for pictures of what they hold."""
    found = []
    for node in emit.walk():
        if isinstance(node, Window) and isinstance(node.spec, RangeWindow) and node.streams:
            stream, spec = node.streams[0], node.spec
            if (spec.wattr or stream.wattr) == stream.wattr:
                text = window_text(node, Spelling())
                sizes = {"range": spec.range, "slide": spec.slide, "origin": spec.origin}
                found.append({"stream": stream.name, "text": text, **sizes})
    return found


def _slide(emit: Emit) -> int | None:
    """From one answer to the next, where windows of a fixed length may be left out."""
    try:
        return agreement.final_grid(emit).period
    except rules.CannotShed:
        return None


def _summary(emit: Emit) -> str:
    """A query in one line: what is computed, and over which windows."""
    spelling, nodes = Spelling.of(emit), [node for node in emit.walk() if not isinstance(node, Emit)]
    what = next((_computed(node, spelling) for node in nodes if isinstance(node, Aggregate)), None)
    if what is None:
        told = next(
            (node for node in nodes if isinstance(node, Join | TableJoin | Exists | Except)), nodes[0]
        )
        what = operator_text(told, spelling)
    windows = (_bracket(leaf, spelling) for leaf in emit.leaves)
    return f"{what} · {' and '.join(dict.fromkeys(windows))}"


def _computed(node: Aggregate, spelling: Spelling) -> str:
    calls = ", ".join(call_text(call, spelling) for _, call in node.aggregates) or "groups"
    keys = ", ".join(spelling.sql(value) for _, value in node.keys)
    return f"{calls} by {keys}" if keys else calls


def _bracket(leaf: Window, spelling: Spelling) -> str:
    """A window in words, if it is one that most have."""
    spec = leaf.spec
    if not isinstance(spec, RangeWindow):
        return window_text(leaf, spelling).rpartition(" [")[2].removesuffix("]")
    past = quantity(spec.range, leaf.domain).lower()
    return f"past {past} every {quantity(spec.slide, leaf.domain).lower()}" if spec.slide else f"past {past}"


def _epoch(times: statistics.EpochTimes) -> dict[str, Any]:
    return {
        key: round(value, 5) if isinstance(value, float) else value for key, value in asdict(times).items()
    }
