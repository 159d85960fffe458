"""/metrics: what an engine does, in the text format of Prometheus.

Counters are those of the engine, which outlive the process; histograms are of this process.
"""

from __future__ import annotations

import logging
import threading
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock
from typing import Self

from windrow.engine.statistics import EpochTimes
from windrow.errors import StateError
from windrow.server.watch import Watch
from windrow.session import Windrow

_log = logging.getLogger("windrow.server")
#: seconds
_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_STATUSES = ("running", "suspended", "failed", "stopped")
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@dataclass
class TimeHistogram:
    """How often something took how long.

    >>> histogram = TimeHistogram()
    >>> histogram.add(0.03)
    >>> list(histogram.samples())[3:5], histogram.sum, histogram.count
    ([('0.05', 1), ('0.1', 1)], 0.03, 1)
    """

    counts: list[int] = field(default_factory=lambda: [0] * (len(_BUCKETS) + 1))
    sum: float = 0.0

    def add(self, seconds: float) -> None:
        """One more."""
        self.counts[bisect_left(_BUCKETS, seconds)] += 1
        self.sum += seconds

    @property
    def count(self) -> int:
        """How many."""
        return sum(self.counts)

    def samples(self) -> Iterable[tuple[str, int]]:
        """How many took at most so long, by bound."""
        total = 0
        for bound, count in zip((*map(str, _BUCKETS), "+Inf"), self.counts, strict=True):
            total += count
            yield bound, total


class Metrics:
    """Collects while the engine runs; `text` is what a scrape gets."""

    def __init__(
        self, windrow: Windrow, watch: Watch, clients: Callable[[], Clients] = lambda: Clients()
    ) -> None:
        self._windrow, self._watch, self._clients = windrow, watch, clients
        self._lock = Lock()
        self._parts = {name: TimeHistogram() for name in ("read", "close", "commit", "deliver")}
        self._epochs = TimeHistogram()
        self._backlog = 0
        watch.on_epoch = self.add

    def add(self, epoch: EpochTimes) -> None:
        """One more epoch."""
        with self._lock:
            parts = (epoch.read, epoch.close, epoch.commit_seconds, epoch.deliver)
            for histogram, seconds in zip(self._parts.values(), parts, strict=True):
                histogram.add(max(0.0, seconds))
            self._epochs.add(epoch.seconds)
            self._backlog = epoch.backlog
        told = {"commit": epoch.commit, "rows": epoch.rows, "seconds": round(epoch.seconds, 4)}
        _log.debug("epoch", extra=told)

    def text(self) -> str:
        """All of it."""
        look, held, page = self._watch.look(), self._windrow.footprint, _Page()
        page.add("windrow_commit", "counter", "The number of the last commit.", [({}, look["commit"])])
        running = 1 if look["is_running"] else 0
        page.add("windrow_running", "gauge", "1 if a run is under way.", [({}, running)])
        self._streams(page, look["streams"])
        self._queries(page, look["queries"])
        with self._lock:
            labelled = [({"part": name}, each) for name, each in self._parts.items()]
            page.histogram(
                "windrow_epoch_part_seconds",
                "What the parts of an epoch took: reading new rows, closing"
                " windows, committing, delivering answers.",
                labelled,
            )
            page.histogram("windrow_epoch_seconds", "What epochs took.", [({}, self._epochs)])
            backlog = self._backlog
        page.add("windrow_backlog_rows", "gauge", "Rows that wait in sources that tell.", [({}, backlog)])
        page.add("windrow_state_bytes", "gauge", "What the state holds.", [({}, held.state_bytes)])
        page.add("windrow_state_files", "gauge", "Files of the state.", [({}, held.files)])
        page.add(
            "windrow_outbox_bytes", "gauge", "Answers that sinks do not have yet.", [({}, held.outbox_bytes)]
        )
        age = self._watch.age(held.outbox_since)
        page.add("windrow_outbox_age_seconds", "gauge", "How long the oldest of them waits.", [({}, age)])
        failing = sum(each["code"].startswith("sink") for each in look["problems"])
        page.add("windrow_sink_failures", "gauge", "Sinks that fail at present.", [({}, failing)])
        _add_clients(page, self._clients())
        return page.text

    def _streams(self, page: _Page, streams: list[dict[str, object]]) -> None:
        def each(key: str, scale: float = 1.0) -> list[tuple[Mapping[str, str], float]]:
            return [
                ({"stream": str(one["name"])}, float(value) * scale)
                for one in streams
                if isinstance(value := one[key], int | float)
            ]

        timed = [one for one in streams if one["is_time"]]
        page.add("windrow_rows_total", "counter", "Rows that came, late ones included.", each("rows"))
        page.add("windrow_late_rows_total", "counter", "Late rows.", each("late"))
        page.add("windrow_shed_rows_total", "counter", "Rows dropped under overload.", each("shed"))
        page.add(
            "windrow_malformed_rows_total",
            "counter",
            "Rows of sources that could not be read, and were left out.",
            each("malformed"),
        )
        page.add("windrow_rows_per_second", "gauge", "The rate of the last seconds.", each("rate"))
        streams = timed
        page.add(
            "windrow_watermark_lag_seconds",
            "gauge",
            "From the watermark to the newest row, in the stream's own time.",
            each("lag", 1e-6),
        )
        page.add(
            "windrow_watermark_seconds",
            "gauge",
            "The watermark, in seconds since 1970.",
            each("watermark", 1e-6),
        )

    def _queries(self, page: _Page, queries: list[dict[str, object]]) -> None:
        counts = dict.fromkeys(_STATUSES, 0)
        for one in queries:
            counts[str(one["status"])] = counts.get(str(one["status"]), 0) + 1
        page.add(
            "windrow_queries", "gauge", "Standing queries.", [({"status": k}, v) for k, v in counts.items()]
        )
        rows = [({"query": str(one["name"])}, float(str(one["rows"]))) for one in queries]
        page.add("windrow_answers_total", "counter", "Rows that queries answered.", rows)
        missing = [({"query": str(one["name"])}, float(str(one["missing"]))) for one in queries]
        page.add("windrow_missing_windows", "gauge", "Windows left out, as far as remembered.", missing)


@dataclass(frozen=True)
class Clients:
    """What was done over HTTP since the process runs; nothing, where there is no server."""

    counts: Mapping[str, int] | None = None
    following: int = 0


def _add_clients(page: _Page, clients: Clients) -> None:
    counts = clients.counts
    if counts is None:
        return
    asked = {"done": "select", "refused": "select_refused", "failed": "select_failed"}
    page.add(
        "windrow_selects_total",
        "counter",
        "SELECTs that were asked once.",
        [({"outcome": name}, counts[key]) for name, key in asked.items()],
    )
    pushed = {"done": "push", "refused": "push_refused"}
    page.add(
        "windrow_pushes_total",
        "counter",
        "Bodies of rows that were pushed.",
        [({"outcome": name}, counts[key]) for name, key in pushed.items()],
    )
    page.add("windrow_clients", "gauge", "Clients that follow answers.", [({}, clients.following)])


class _Page:
    """Lines of a scrape."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    @property
    def text(self) -> str:
        return "\n".join([*self._lines, ""])

    def add(
        self, name: str, kind: str, help_: str, samples: Iterable[tuple[Mapping[str, str], float]]
    ) -> None:
        self._lines += [f"# HELP {name} {help_}", f"# TYPE {name} {kind}"]
        self._lines += [f"{name}{_labels(labels)} {_number(value)}" for labels, value in samples]

    def histogram(
        self, name: str, help_: str, samples: Iterable[tuple[Mapping[str, str], TimeHistogram]]
    ) -> None:
        self._lines += [f"# HELP {name} {help_}", f"# TYPE {name} histogram"]
        for labels, histogram in samples:
            for bound, count in histogram.samples():
                self._lines.append(f"{name}_bucket{_labels({**labels, 'le': bound})} {count}")
            self._lines.append(f"{name}_sum{_labels(labels)} {_number(histogram.sum)}")
            self._lines.append(f"{name}_count{_labels(labels)} {histogram.count}")


def _labels(labels: Mapping[str, str]) -> str:
    r"""
    >>> _labels({"query": 'a"b\n'}), _labels({})
    ('{query="a\\"b\\n"}', '')
    """
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(float(value))


# ------------------------------------------------------------ metrics without the server
#
# /metrics without the server: an engine that a command runs, for Prometheus, on a port of its own.
#
# Only figures are told, and nothing can be done; who may reach the port is decided by its host, loopback if
# nobody says otherwise.


class Scraped:
    """A server in a thread, as a context."""

    def __init__(self, windrow: Windrow, host: str, port: int) -> None:
        self._metrics = Metrics(windrow, Watch(windrow))
        try:
            self._server = ThreadingHTTPServer((host, port), _handler(self._metrics))
        except OSError as error:
            raise StateError(
                f"cannot listen on {host}, port {port}: {error.strerror or error}",
                code="no-port",
                hint="another program may listen there: choose another port with --metrics",
            ) from error
        self._server.daemon_threads = True
        self._thread = threading.Thread(
            target=self._server.serve_forever, name="windrow metrics", daemon=True
        )

    @property
    def url(self) -> str:
        """Where it is scraped."""
        host, port = self._server.server_address[:2]
        return f"http://{host!s}:{port}/metrics"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def _handler(metrics: Metrics) -> type[BaseHTTPRequestHandler]:
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

    return Handler
