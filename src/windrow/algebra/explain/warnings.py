"""Warnings: what is legal and rarely meant, told by `windrow check`, EXPLAIN, the shell and `w.warnings`.

A query is looked at as it is written; a stream as it was seen while it runs.

>>> from windrow.engine.explain import declared
>>> from windrow.language.compile import compile_query
>>> catalog = declared({"s": ("k BIGINT, ts TIMESTAMP", "WATTR ts ORDERED")}, {})
>>> for found in query_warnings(compile_query("SELECT k, COUNT(*) FROM s GROUP BY k", catalog)):
...     print(found.render())
warning[unbounded-group]: every k that ever came is kept: rows of s never expire
  = write a window, as in `s [RANGE 1 HOUR]`
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import gcd

from windrow.algebra.catalog import Stream
from windrow.algebra.explain.operators import quantity
from windrow.algebra.operators import Aggregate, Distinct, Except, Exists, Join
from windrow.algebra.plan import Emit, Plan, Scan, Window
from windrow.errors import folded
from windrow.windows import domain, landmark, progress, ranges, session

#: microseconds of silence after which a source that others wait for is told
SILENCE = 60_000_000


@dataclass(frozen=True)
class Warned:
    """Something to look at, by its code, with the way out. `about` is the query or stream it is about."""

    code: str
    message: str
    hint: str
    about: str = ""

    def render(self) -> str:
        """As errors are written."""
        of = f" {self.about}:" if self.about else ""
        return "\n".join([folded(f"warning[{self.code}]:{of} {self.message}"), folded(f"  = {self.hint}")])


def query_warnings(emit: Emit, name: str = "") -> tuple[Warned, ...]:
    """What is rarely meant in a query, nested ones included; each once."""
    found = [each for node in emit.walk() for each in _of_node(node)]
    return tuple(dict.fromkeys(Warned(*each, name) for each in found))


def _of_node(node: Plan) -> Iterator[tuple[str, str, str]]:
    match node:
        case Aggregate():
            yield from _unbounded_groups(node)
            yield from _odd_slides(node)
            yield from _one_session(node)
        case Distinct():
            for leaf in _for_ever(node):
                yield (
                    "unbounded-distinct",
                    f"every different row that ever came is kept: rows of {_source(leaf)} never expire",
                    _bounded(leaf),
                )
        case Join() | Exists() | Except():
            for leaf in _for_ever(node):
                yield (
                    "unbounded-join",
                    f"every row of {_source(leaf)} is kept for ever, to meet rows of the other side",
                    _bounded(leaf),
                )


def _unbounded_groups(node: Aggregate) -> Iterator[tuple[str, str, str]]:
    below = (each for each in node.own_nodes if each is not node)
    if not node.keys or any(isinstance(each, Aggregate | Join) for each in below):
        return
    for leaf in _for_ever(node):
        if isinstance(leaf.spec, ranges.UnboundedWindow):
            names = ", ".join(_plain(name) for name, _ in node.keys)
            yield (
                "unbounded-group",
                f"every {names} that ever came is kept: rows of {_source(leaf)} never expire",
                _bounded(leaf),
            )


def _odd_slides(node: Aggregate) -> Iterator[tuple[str, str, str]]:
    for leaf in node.leaves:
        spec = leaf.spec
        if not isinstance(spec, ranges.RangeWindow) or spec.slide is None or spec.range % spec.slide == 0:
            continue
        if spec.slide > spec.range:
            continue
        pane, longer = gcd(spec.range, spec.slide), -(-spec.range // spec.slide)
        whole, step = quantity(spec.range, leaf.domain), quantity(spec.slide, leaf.domain)
        yield (
            "odd-slide",
            f"SLIDE {step} does not divide RANGE {whole}: each window is put together from"
            f" {spec.range // pane} panes of {quantity(pane, leaf.domain)} instead of {longer}",
            f"write RANGE {quantity(longer * spec.slide, leaf.domain)}, or a SLIDE that divides RANGE",
        )


def _one_session(node: Aggregate) -> Iterator[tuple[str, str, str]]:
    for leaf in node.leaves:
        if isinstance(leaf.spec, session.SessionWindow) and not leaf.spec.partition_by and node.keys:
            yield (
                "endless-session",
                f"rows of all groups belong to one session, which ends only when nothing comes for"
                f" {quantity(leaf.spec.gap, leaf.domain)}: it may never close",
                f"write PARTITION BY {_plain(node.keys[0][0])} in the window",
            )


def _for_ever(node: Plan) -> Iterator[Window]:
    """The windows below, of streams that do not end, from which rows never leave."""
    for leaf in node.leaves:
        spec, stream = leaf.spec, _stream(leaf)
        forever = isinstance(spec, ranges.UnboundedWindow) or (
            isinstance(spec, landmark.LandmarkWindow) and spec.until is None
        )
        if forever and stream is not None and not isinstance(stream.progress.policy, progress.NoPolicy):
            yield leaf


def _plain(name: str) -> str:
    """A column as people write it: without the stream it is of."""
    return name.rpartition(".")[2]


def _stream(leaf: Window) -> Stream | None:
    return leaf.input.stream if isinstance(leaf.input, Scan) else None


def _source(leaf: Window) -> str:
    found = _stream(leaf)
    return found.name if found is not None else "a nested query"


def _bounded(leaf: Window) -> str:
    length = "RANGE 1 HOUR" if leaf.domain is domain.Domain.TIME else "RANGE 1000"
    return f"write a window, as in `{_source(leaf)} [{length}]`"


def stream_warnings(stream: Stream, accepted: int, late: int, known: progress.Progress) -> tuple[Warned, ...]:
    """What the rows of a stream have shown of its declaration."""
    return (*_slack(stream, accepted, late), *_idle(stream, known))


def _slack(stream: Stream, accepted: int, late: int) -> Iterator[Warned]:
    rule = stream.progress.policy
    if late and isinstance(rule, progress.Slack):
        written = f"SLACK {quantity(rule.ticks, stream.domain)}" if rule.ticks else "ORDERED"
        share = 100 * late / (accepted + late)
        yield Warned(
            "small-slack",
            f"{late} of {accepted + late} rows ({share:.2g} %) came later than {written} allows for",
            "declare a longer SLACK"
            + ("" if stream.late_sink else ", or LATE TO a sink to see which they are"),
            stream.name,
        )


def _idle(stream: Stream, known: progress.Progress) -> Iterator[Warned]:
    rule = stream.progress.policy
    heard = {source: seen.at for source, seen in known.sources.items() if seen.at is not None}
    if not isinstance(rule, progress.OrderedPer) or rule.idle is not None or len(heard) < 2:
        return
    last = min(known.sources, key=lambda source: known.sources[source].progress)
    silent = max(heard.values()) - heard.get(last, 0)
    if last in heard and silent >= SILENCE:
        yield Warned(
            "idle-source",
            f"the watermark waits for {stream.progress.per} {last}, of which nothing was heard for"
            f" {quantity(silent // 1_000_000 * 1_000_000, domain.Domain.TIME)}",
            f"declare ORDERED PER {stream.progress.per} IDLE 1 MINUTE",
            stream.name,
        )
