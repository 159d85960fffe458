"""What can be done over HTTP, one method for each: no word of HTTP in here.

Statements are made one at a time. Everything that takes long is called from a thread of its own.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from threading import Lock
from typing import Any, TypeVar

import pyarrow as pa

from windrow.algebra.explain import Explanation, as_dict, render
from windrow.algebra.functions.sql_text import backquoted
from windrow.engine.adhoc.select import Asked
from windrow.engine.engine import why_ended
from windrow.engine.views import Query, StreamView
from windrow.errors import QueryError, WindrowError
from windrow.language import compile, editor
from windrow.language.binder import bound_statements
from windrow.language.binder.once import Once
from windrow.redaction import redacted
from windrow.server import answers, formats
from windrow.server.watch import Watch, plain, steady
from windrow.session import Windrow
from windrow.state.names import STATEMENTS

_log = logging.getLogger("windrow.server")

#: seconds before a failed run is tried again: at first, and at most
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
#: a run this long was a good one: the next failure is the first again
_GOOD = 120.0


class Runner:
    """Runs an engine until `close`. `status` is idle, running, ended (with its inputs) or failed.

    A run is begun when there is something to read, and anew when streams come or go. One that fails for a
    reason outside (a broker that is away, a full disk) is tried again, after growing pauses; one that fails
    because of rows or a query waits for a statement that changes something.
    """

    def __init__(
        self, windrow: Windrow, trigger: str = "1 second", watch: Callable[[], None] = lambda: None
    ) -> None:
        self._windrow, self._trigger, self._watch = windrow, trigger, watch
        self._changed = threading.Event()
        self._closing = threading.Event()
        self._again = False
        self.status = "idle"
        self.error: WindrowError | None = None
        self._thread = threading.Thread(target=self._live, name="windrow epochs", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def changed(self, *, streams: bool) -> None:
        """Something was registered or dropped; if `streams` were, the run is begun anew with them."""
        self._changed.set()
        if streams and self.status == "running":
            self._again = True
            self._windrow.stop()

    def close(self, timeout: float = 60.0) -> None:
        self._closing.set()
        self._changed.set()
        self._windrow.stop()
        if self._thread.is_alive():
            self._thread.join(timeout)

    def _live(self) -> None:
        pause = FIRST_PAUSE
        while not self._closing.is_set():
            self._changed.clear()
            if not self._windrow.streams:
                self._changed.wait()
                continue
            began = time.monotonic()
            failure = self._run()
            self._watch()
            if self._closing.is_set() or (self._again and failure is None):
                self._again = False
                continue
            pause = FIRST_PAUSE if time.monotonic() - began > _GOOD else pause
            if failure is not None and failure.exit_code != 1:
                self._changed.wait(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
            else:
                self._changed.wait()

    def _run(self) -> WindrowError | None:
        """One run; why it has ended, if not by itself or because somebody wanted it."""
        self.status, self.error = "running", None
        _log.info("running", extra={"commit": self._windrow.commit})
        raised: WindrowError | None = None
        try:
            self._windrow.run(self._trigger, watch=self._watch)
        except Exception as error:  # noqa: BLE001  whatever it is, the server goes on and tells it
            raised = why_ended(error)
        # what a run raises at its end is told by queries and sinks; all else, that it did not even begin
        told = [each.render() for each in self._windrow.problems]
        refused = raised if raised is not None and raised.render() not in told else None
        failure = self._windrow.exception or refused
        if failure is None:
            self.status = "ended"
            return None
        self.status, self.error = "failed", failure
        _log.error("the run has ended: %s", failure.message, extra={"code": failure.code})
        return failure


_View = TypeVar("_View")
_audit = logging.getLogger("windrow.audit")
#: how a statement that was done is told from one that failed, which has the code of its error
_DONE = "done"
#: so much of a statement stands in an audit line
_SHOWN = 2000
#: so long a picture of recent rows is good for others who want the same
_PICTURE_SECONDS = 1.0
#: some of the kept rows may go while one looks at them
_KEPT_SHARE = 0.98


@dataclass(frozen=True)
class ClientLimits:
    """What one client, and all of them, may take."""

    #: of a SELECT: seconds, rows and bytes; how many run at once, and how many wait
    select_seconds: float = 30.0
    select_rows: int = 100_000
    select_bytes: int = 256 << 20
    selects_at_once: int = 1
    selects_waiting: int = 16
    #: texts that wait to be explained or completed, one at a time
    texts_waiting: int = 64
    #: of a body: bytes of statements, and of rows
    statement_bytes: int = 1 << 20
    push_bytes: int = 32 << 20
    #: seconds until a push is in a commit, or is said to be too much
    push_seconds: float = 30.0
    #: clients that follow answers at once; seconds in which one takes what was sent
    followers: int = 1000
    follower_seconds: float = 30.0
    #: rows on a page of answers
    page_rows: int = 10_000


@dataclass(frozen=True)
class Caller:
    role: str = "write"
    address: str = "-"


class Service:
    """An engine and its log of answers, for many callers."""

    def __init__(
        self,
        windrow: Windrow,
        limits: ClientLimits | None = None,
        trigger: str = "1 second",
        script: str = "",
        *,
        needs_sources: bool = True,
    ) -> None:
        self.windrow, self.limits = windrow, limits or ClientLimits()
        #: whether streams have to say where their rows come from; without that, nothing could run
        self._needs_sources = needs_sources
        self.answers = answers.AnswerLog(windrow.folder / "answers" / "answers.db")
        windrow.default_sink = lambda query: answers.LoggedSink(self.answers)
        windrow.beside_sink = lambda query, sink: answers.LoggedSink(self.answers, sink)
        windrow.flushes.append(self.answers.flush)
        self._statements, self._pictures = Lock(), Lock()
        self._recent: dict[tuple[str, int, int, str | None], tuple[float, dict[str, Any]]] = {}
        #: called after each epoch and each statement, from any thread
        self.listeners: list[Any] = []
        self.runner = Runner(windrow, trigger, self._tell)
        if script:
            self._check_sources(script, [statement for statement, _ in windrow.check(script)])
            windrow.declare(script)
        self._declare_remembered()
        self._keep_answers()
        self.watch = Watch(windrow)
        #: how often what was done over HTTP since this process runs, for metrics
        self.counts = Counter[str]()

    def start(self) -> None:
        self.runner.start()

    def close(self) -> None:
        self.runner.close()
        try:
            self.windrow.close()
        finally:
            self.answers.close()

    def _tell(self) -> None:
        for listener in list(self.listeners):
            listener()

    # ------------------------------------------------------------ statements

    def statements(self, text: str, caller: Caller) -> list[Any]:
        """Do what statements say. Gives what they show; a SELECT is given as it is, for `ask`."""
        began, outcome = time.perf_counter(), _DONE
        try:
            with self._statements:
                bound = [statement for statement, _ in self.windrow.check(text)]
                self._check_sources(text, bound)
                before = self._inputs()
                shown = self.windrow.declare(text)
                self._remember(text, bound)
                self._keep_answers()
            self.runner.changed(streams=self._inputs() != before)
            self._tell()
            return shown
        except WindrowError as error:
            outcome = error.located(text).code
            raise
        finally:
            self._write_audit("statement", text, caller, began, outcome)

    def _check_sources(self, text: str, bound: Sequence[bound_statements.BoundStatement]) -> None:
        """Refuse a stream without a source: a run would end with it, and all others too."""
        for statement, written in zip(bound, compile.parse_script(text), strict=True):
            match statement:
                case bound_statements.DeclareStream(stream) if stream.source is None and self._needs_sources:
                    raise QueryError(
                        f"stream `{stream.name}` has no source",
                        code="no-source",
                        span=written.span,
                        hint="declare it with FROM '…': files, a generator, Kafka; see docs/sources.md",
                    ).located(text)

    def _inputs(self) -> tuple[list[str], list[str]]:
        return list(self.windrow.streams), list(self.windrow.tables)

    def _remember(self, text: str, bound: Sequence[bound_statements.BoundStatement]) -> None:
        """For the next start."""
        made: list[tuple[str, str, str]] = []
        dropped: list[tuple[str, str]] = []
        for statement, written in zip(bound, compile.parse_script(text), strict=True):
            source = text[written.span.start : written.span.end]
            match statement:
                case bound_statements.DeclareStream(stream):
                    made.append(("STREAM", stream.name, source))
                case bound_statements.DeclareTable(table):
                    made.append(("TABLE", table.name, source))
                case bound_statements.RegisterQuery(query):
                    made.append(("QUERY", query.name, source))
                case bound_statements.DeclareArchive(archive):
                    made.append(("ARCHIVE", archive.name, source))
                case bound_statements.Dropped(kind, name):
                    made = [each for each in made if each[:2] != (kind, name)]
                    dropped.append((kind, name))
        if made or dropped:
            self.answers.remember(made, dropped)
            if self.windrow.store.lease is not None:  # another machine may go on, and has no log of answers
                self.windrow.store.put(STATEMENTS, json.dumps(self.answers.remembered()).encode())

    def _declare_remembered(self) -> None:
        """Make again what came over HTTP and the script does not say."""
        kinds: dict[str, Iterable[str]] = {
            "STREAM": self.windrow.streams,
            "TABLE": self.windrow.tables,
            "QUERY": self.windrow.queries,
            "ARCHIVE": self.windrow.archives,
        }
        store = self.windrow.store
        if store.lease is not None and store.size(STATEMENTS) is not None:
            self.answers.remember([tuple(each) for each in json.loads(store.read(STATEMENTS))], ())
        for kind, name, text in self.answers.remembered():
            if name not in kinds[kind]:
                self.windrow.declare(text)

    def _keep_answers(self) -> None:
        ids = {name: query.id for name, query in self.windrow.queries.items()}
        known = {name: (id_, int(id_.rpartition("@")[2]) - 1) for name, id_ in ids.items()}
        self.answers.keep_only(known, self.windrow.undeclared)

    def drop(self, name: str, caller: Caller) -> None:
        """Stop a query, or forget one that only the state directory still knows."""
        if name in self.windrow.undeclared:
            began = time.perf_counter()
            with self._statements:
                self.windrow.drop(name)
                self._keep_answers()
            self._write_audit("forget", f"DROP QUERY {backquoted(name)}", caller, began)
            self.runner.changed(streams=False)
            return
        self.statements(f"DROP QUERY {backquoted(self.query(name).name)}", caller)

    def _write_audit(self, what: str, text: str, caller: Caller, began: float, outcome: str = _DONE) -> None:
        _audit.info(
            what,
            extra={
                "role": caller.role,
                "client": caller.address,
                "statement": redacted(" ".join(text.split()))[:_SHOWN],
                "outcome": outcome,
                "commit": self.windrow.commit,
                "seconds": round(time.perf_counter() - began, 4),
            },
        )

    # ------------------------------------------------------------ asking

    def explain(self, text: str) -> list[dict[str, Any]]:
        """What statements mean and how they would run; none is done."""
        try:
            found = [_meaning(*each) for each in self.windrow.check(text)]
            written = compile.parse_script(text)
        except WindrowError as error:
            raise error.located(text) from None
        spans = [{"start": each.span.start, "end": each.span.end} for each in written]
        return [{**each, "span": span} for each, span in zip(found, spans, strict=True)]

    def complete(self, text: str, offset: int) -> dict[str, Any]:
        start, found = editor.suggestions(text, min(offset, len(text)), self.windrow.catalog)
        return {"start": start, "items": [asdict(each) for each in found]}

    def ask(self, query: str | Once) -> Asked:
        """Begin to answer a SELECT, within the limits."""
        limits = self.limits
        return self.windrow.ask(
            query, timeout=limits.select_seconds, max_rows=limits.select_rows, max_bytes=limits.select_bytes
        )

    def note_select(self, query: str | Once, caller: Caller, began: float, outcome: str) -> None:
        """A SELECT is over: its line in the audit, and one more in the metrics."""
        known = {"done": "select", "busy": "select_refused"}
        self.counts[known.get(outcome, "select_failed")] += 1
        self._write_audit("select", query if isinstance(query, str) else "SELECT …", caller, began, outcome)

    # ------------------------------------------------------------ looking

    def query(self, name: str) -> Query:
        return _found(self.windrow.queries, name)

    def stream(self, name: str) -> StreamView:
        return _found(self.windrow.streams, name)

    def details(self, name: str) -> dict[str, Any]:
        return steady(lambda: self._details(name))

    def _details(self, name: str) -> dict[str, Any]:
        query = self.query(name)
        explained = query.explain(analyze=True)
        looks: list[dict[str, Any]] = self.watch.look()["queries"]
        known = next((each for each in looks if each["name"] == query.name), {})
        return {
            **known,
            "columns": formats.columns_of(query.columns),
            "plan": as_dict(explained),
            "text": render(explained),
            "gaps": formats.as_json_rows(query.gaps),
            "keeps_all": query.keeps_all,
            "partners": query.partners,
            "state_bytes": self.windrow.footprint.bytes_by_owner.get(query.id, 0),
            "log_bytes": self.answers.size(query.name),
            "log_from": self.answers.gone(query.name),
            "last": str(self.answers.last(query.name)),
        }

    def page(
        self, name: str, after: answers.ReadPosition | None, before: answers.ReadPosition | None, rows: int
    ) -> tuple[Query, list[answers.Part], bool]:
        """Answers from the log, oldest first, or with `before` newest first; and whether there are more."""
        query = self.query(name)
        most = min(rows, self.limits.page_rows)
        if before is not None:
            parts = self.answers.before(query.name, before, most)
            end = answers.ReadPosition(parts[-1].commit, parts[-1].number) if parts else before
            return query, parts, bool(self.answers.before(query.name, end, 1))
        parts = self.answers.after(query.name, after or answers.ReadPosition(0), most)
        return query, parts, bool(parts and self.answers.after(query.name, parts[-1].place, 1))

    def recent(self, name: str, span: int, rows: int, column: str | None) -> dict[str, Any]:
        """A sample of a stream's rows below its watermark, for a picture: how many, and some of them.

        Those who look at the same picture at the same time get the same one, made once; two are never made at
        once.
        """
        view = self.stream(name)
        key = view.name, span, rows, column
        with self._pictures:
            made, found = self._recent.get(key, (-_PICTURE_SECONDS, {}))
            if time.monotonic() - made < _PICTURE_SECONDS:
                return found
            found = self._sample(view, span, rows, column)
            now = time.monotonic()
            fresh = {known: each for known, each in self._recent.items() if now - each[0] < _PICTURE_SECONDS}
            self._recent = {**fresh, key: (now, found)}
            return found

    def _sample(self, view: StreamView, span: int, rows: int, column: str | None) -> dict[str, Any]:
        """Rows of the last `span` ticks, or of as many as are kept."""
        wanted = [view.wattr]
        if column:
            known = _known(view.columns, column)
            if known is None:
                raise QueryError(f"stream `{view.name}` has no column `{column[:80]}`", code="unknown-column")
            wanted.append(known)
        columns = ", ".join(backquoted(each) for each in dict.fromkeys(wanted))
        unit = " MICROSECONDS" if view.columns.get(view.wattr, "TIMESTAMP") in ("TIMESTAMP", "DATE") else ""
        kept = view.kept_for
        span = span if kept is None else max(1, min(span, int(kept * _KEPT_SHARE)))
        text = f"SELECT {columns} FROM {backquoted(view.name)} [RANGE {span}{unit}]"
        found = self.windrow.select(text, timeout=5.0, max_bytes=self.limits.select_bytes)
        step = max(1, -(-found.num_rows // rows))
        sample = found.take(pa.array(range(0, found.num_rows, step), pa.int64()))
        return {
            "stream": view.name,
            "columns": formats.columns_of(found.schema),
            "total": found.num_rows,
            "rows": formats.as_json_rows(sample),
            "watermark": plain(view.progress.progress),
            "greatest": view.progress.greatest,
        }

    # ------------------------------------------------------------ rows in, windows out

    def push(self, name: str, form: str, body: bytes, key: str | None, caller: Caller) -> dict[str, Any]:
        """Rows for a stream; on return a commit holds them."""
        view = self.stream(name)
        table = formats.read_rows(view.declared, form, body)
        commit = self.windrow.push(view.name, table, key=key, timeout=self.limits.push_seconds)
        self._tell()
        return {"stream": view.name, "rows": table.num_rows, "commit": commit}

    def quicken(self, name: str, times: float, caller: Caller) -> dict[str, Any]:
        began, view = time.perf_counter(), self.stream(name)
        rate = self.windrow.quicken(view.name, times)
        self._write_audit("rate", f"{view.name} x {times:g}", caller, began)
        return {"stream": view.name, "times": times, "rate": rate}

    def shed(self, share: float | None, caller: Caller) -> None:
        """Leave out this share of windows of all queries with MAX GAP; None: as the load demands."""
        began = time.perf_counter()
        self.windrow.shed(share)
        self._write_audit("shed", f"share {share}", caller, began)
        self._tell()


def shown_as_json(shown: Any) -> dict[str, Any]:
    if isinstance(shown, pa.Table):
        return {"columns": formats.columns_of(shown.schema), "rows": formats.as_json_rows(shown)}
    if isinstance(shown, Explanation):
        return _explained(shown)
    return {"text": str(shown)}


def _meaning(statement: bound_statements.BoundStatement, plan: Explanation | None) -> dict[str, Any]:
    """What a statement is, its plan if it has one, and why a SELECT cannot be asked once, if so."""
    said: dict[str, Any] = {} if plan is None else _explained(plan)
    match statement:
        case bound_statements.RunOnce(_, once, refusal):
            said |= {"kind": "select", "refused": refusal.message if refusal and once is None else None}
        case bound_statements.ExplainQuery():
            said |= {"kind": "explain"}
        case bound_statements.RegisterQuery(query):
            said |= {"kind": "query", "name": query.name}
        case bound_statements.DeclareStream(stream):
            said |= {"kind": "stream", "name": stream.name}
        case bound_statements.DeclareTable(table):
            said |= {"kind": "table", "name": table.name}
        case bound_statements.DeclareArchive(archive):
            said |= {"kind": "archive", "name": archive.name}
        case bound_statements.RelayArchive(name):
            said |= {"kind": "alter", "name": name}
        case bound_statements.ExplainLayout(name):
            said |= {"kind": "explain", "name": name}
        case bound_statements.Dropped(kind, name):
            said |= {"kind": "drop", "name": name, "drops": kind.lower()}
        case bound_statements.ShowAll(kind):
            said |= {"kind": "show", "shows": kind.lower()}
        case _:
            said |= {"kind": "analyze"}
    return said


def _explained(found: Explanation) -> dict[str, Any]:
    return {"text": render(found), "plan": as_dict(found)}


def _found(views: Mapping[str, _View], name: str) -> _View:
    return views[_known(views, name) or name]


def _known(names: Iterable[str], name: str) -> str | None:
    """A name as it was declared; in a request its letters may be small or capital."""
    return next((each for each in names if each.lower() == name.lower()), None)
