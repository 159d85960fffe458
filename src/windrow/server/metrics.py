"""/metrics: what an engine does, in the text format of Prometheus.

Counters are those of the engine, which outlive the process; histograms are of this process.
"""

from __future__ import annotations

import logging
import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import accumulate
from threading import Lock
from typing import Any, TypeAlias

from windrow.engine.statistics import EpochTimes
from windrow.errors import StateError
from windrow.server.watch import Watch
from windrow.session import Windrow

_log = logging.getLogger("windrow.server")
#: seconds
_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_STATUSES = ("running", "suspended", "failed", "stopped")
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

#: every metric: its kind, what its samples are told apart by, and what it tells
METRICS = {
    "windrow_commit": ("counter", "", "The number of the last commit."),
    "windrow_running": ("gauge", "", "1 if a run is under way."),
    "windrow_rows_total": ("counter", "stream", "Rows that came, late ones included."),
    "windrow_late_rows_total": ("counter", "stream", "Late rows."),
    "windrow_shed_rows_total": ("counter", "stream", "Rows dropped under overload."),
    "windrow_malformed_rows_total": (
        "counter",
        "stream",
        "Rows of sources that could not be read, and were left out.",
    ),
    "windrow_rows_per_second": ("gauge", "stream", "The rate of the last seconds."),
    "windrow_watermark_lag_seconds": (
        "gauge",
        "stream",
        "From the watermark to the newest row, in the stream's own time.",
    ),
    "windrow_watermark_seconds": ("gauge", "stream", "The watermark, in seconds since 1970."),
    "windrow_queries": ("gauge", "status", "Standing queries."),
    "windrow_answers_total": ("counter", "query", "Rows that queries answered."),
    "windrow_missing_windows": ("gauge", "query", "Windows left out, as far as remembered."),
    "windrow_epoch_part_seconds": (
        "histogram",
        "part",
        "What the parts of an epoch took: reading new rows, closing windows, committing, delivering answers.",
    ),
    "windrow_epoch_seconds": ("histogram", "", "What epochs took."),
    "windrow_backlog_rows": ("gauge", "", "Rows that wait in sources that tell."),
    "windrow_state_bytes": ("gauge", "", "What the state holds."),
    "windrow_state_files": ("gauge", "", "Files of the state."),
    "windrow_outbox_bytes": ("gauge", "", "Answers that sinks do not have yet."),
    "windrow_outbox_age_seconds": ("gauge", "", "How long the oldest of them waits."),
    "windrow_sink_failures": ("gauge", "", "Sinks that fail at present."),
    "windrow_selects_total": ("counter", "outcome", "SELECTs that were asked once."),
    "windrow_pushes_total": ("counter", "outcome", "Bodies of rows that were pushed."),
    "windrow_clients": ("gauge", "", "Clients that follow answers."),
}


@dataclass
class TimeHistogram:
    """How often something took how long.

    >>> histogram = TimeHistogram()
    >>> histogram.add(0.03)
    >>> list(histogram.lines("seconds", {}))[3:5], histogram.sum
    (['seconds_bucket{le="0.05"} 1', 'seconds_bucket{le="0.1"} 1'], 0.03)
    """

    counts: list[int] = field(default_factory=lambda: [0] * (len(_BUCKETS) + 1))
    sum: float = 0.0

    def add(self, seconds: float) -> None:
        self.counts[bisect_left(_BUCKETS, seconds)] += 1
        self.sum += seconds

    def lines(self, name: str, labels: Mapping[str, str]) -> Iterator[str]:
        """How many took at most so long, by bound; the time of all, and how many there are."""
        for bound, count in zip((*map(str, _BUCKETS), "+Inf"), accumulate(self.counts), strict=True):
            yield f"{name}_bucket{_labels({**labels, 'le': bound})} {count}"
        yield f"{name}_sum{_labels(labels)} {_number(self.sum)}"
        yield f"{name}_count{_labels(labels)} {sum(self.counts)}"


#: what a metric is at present: one value, or several by their label
Figure: TypeAlias = float | TimeHistogram | Mapping[str, float] | Mapping[str, TimeHistogram]


class Metrics:
    """Collects while the engine runs; `text` is what a scrape gets, `clients` the figures of a server."""

    def __init__(
        self, windrow: Windrow, watch: Watch, clients: Callable[[], dict[str, Figure]] = dict
    ) -> None:
        self._windrow, self._watch, self._clients = windrow, watch, clients
        self._lock = Lock()
        self._parts = {name: TimeHistogram() for name in ("read", "close", "commit", "deliver")}
        self._epochs = TimeHistogram()
        self._backlog = 0
        watch.on_epoch = self.add

    def add(self, epoch: EpochTimes) -> None:
        with self._lock:
            parts = (epoch.read, epoch.close, epoch.commit_seconds, epoch.deliver)
            for histogram, seconds in zip(self._parts.values(), parts, strict=True):
                histogram.add(max(0.0, seconds))
            self._epochs.add(epoch.seconds)
            self._backlog = epoch.backlog
        told = {"commit": epoch.commit, "rows": epoch.rows, "seconds": round(epoch.seconds, 4)}
        _log.debug("epoch", extra=told)

    def text(self) -> str:
        look, held = self._watch.look(), self._windrow.footprint
        figures: dict[str, Figure] = {
            "windrow_commit": look["commit"],
            "windrow_running": int(look["is_running"]),
            **_of_streams(look["streams"]),
            **_of_queries(look["queries"]),
            "windrow_epoch_part_seconds": self._parts,
            "windrow_epoch_seconds": self._epochs,
            "windrow_backlog_rows": self._backlog,
            "windrow_state_bytes": held.state_bytes,
            "windrow_state_files": held.files,
            "windrow_outbox_bytes": held.outbox_bytes,
            "windrow_outbox_age_seconds": self._watch.age(held.outbox_since),
            "windrow_sink_failures": sum(each["code"].startswith("sink") for each in look["problems"]),
            **self._clients(),
        }
        with self._lock:
            return "".join(f"{line}\n" for name, figure in figures.items() for line in _lines(name, figure))


def _of_streams(streams: list[dict[str, Any]]) -> dict[str, Figure]:
    timed = [each for each in streams if each["is_time"]]

    def told(key: str, some: list[dict[str, Any]] = streams, scale: float = 1.0) -> dict[str, float]:
        """Those that are numbers: an end or a beginning is none."""
        return {each["name"]: each[key] * scale for each in some if isinstance(each[key], int | float)}

    return {
        "windrow_rows_total": told("rows"),
        "windrow_late_rows_total": told("late"),
        "windrow_shed_rows_total": told("shed"),
        "windrow_malformed_rows_total": told("malformed"),
        "windrow_rows_per_second": told("rate"),
        "windrow_watermark_lag_seconds": told("lag", timed, 1e-6),
        "windrow_watermark_seconds": told("watermark", timed, 1e-6),
    }


def _of_queries(queries: list[dict[str, Any]]) -> dict[str, Figure]:
    counts = Counter(each["status"] for each in queries)
    return {
        "windrow_queries": dict.fromkeys(_STATUSES, 0) | counts,
        "windrow_answers_total": {each["name"]: each["rows"] for each in queries},
        "windrow_missing_windows": {each["name"]: each["missing"] for each in queries},
    }


def figures_of_clients(counts: Mapping[str, int], following: int) -> dict[str, Figure]:
    """What was done over HTTP since the process runs."""
    selects = {"done": "select", "refused": "select_refused", "failed": "select_failed"}
    pushes = {"done": "push", "refused": "push_refused"}
    return {
        "windrow_selects_total": {name: counts[key] for name, key in selects.items()},
        "windrow_pushes_total": {name: counts[key] for name, key in pushes.items()},
        "windrow_clients": following,
    }


def _lines(name: str, figure: Figure) -> Iterator[str]:
    kind, label, about = METRICS[name]
    yield from (f"# HELP {name} {about}", f"# TYPE {name} {kind}")
    for of, value in figure.items() if isinstance(figure, Mapping) else [("", figure)]:
        labels = {label: of} if label else {}
        if isinstance(value, TimeHistogram):
            yield from value.lines(name, labels)
        else:
            yield f"{name}{_labels(labels)} {_number(value)}"


def _labels(labels: Mapping[str, str]) -> str:
    r"""
    >>> _labels({"query": 'a"b\n'}), _labels({})
    ('{query="a\\"b\\n"}', '')
    """
    escaped = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
    told = ",".join(f'{name}="{value.translate(escaped)}"' for name, value in labels.items())
    return f"{{{told}}}" if told else ""


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(float(value))


@contextmanager
def scraped(windrow: Windrow, host: str, port: int) -> Iterator[str]:
    """Metrics of an engine that a command runs, to the end of the block: their URL.

    Only figures are told, and nothing can be done; who may reach the port is decided by its host.
    """
    metrics = Metrics(windrow, Watch(windrow))

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path.partition("?")[0] != "/metrics":
                self.send_error(404, "only /metrics is here")
                return
            body = metrics.text().encode()
            self.send_response(200)
            self.send_header("Content-Type", CONTENT_TYPE)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """A scrape is no news."""

    try:
        server = ThreadingHTTPServer((host, port), Handler)
    except OSError as error:
        raise StateError(
            f"cannot listen on {host}, port {port}: {error.strerror or error}",
            code="no-port",
            hint="another program may listen there: choose another port with --metrics",
        ) from error
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, name="windrow metrics", daemon=True)
    thread.start()
    try:
        yield "http://{}:{}/metrics".format(*server.server_address[:2])
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
