"""Options that `run`, `serve`, `shell` and `demo` share: which Spark, how to log, where metrics are."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from windrow.redaction import redacted
from windrow.sinks.legible import printable

if TYPE_CHECKING:
    from windrow.session import Windrow
    from windrow.spark.frames import SparkSession


#: what every record has; all else was given to it
_PLAIN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "color_message"}


def _given(record: logging.LogRecord) -> dict[str, Any]:
    return {name: value for name, value in vars(record).items() if name not in _PLAIN}


class JsonForm(logging.Formatter):
    """One object on each line; whatever it holds, it is one line.

    >>> record = logging.makeLogRecord({"name": "windrow.audit", "msg": "statement", "commit": 7})
    >>> found = json.loads(JsonForm().format(record))
    >>> found["logger"], found["message"], found["commit"]
    ('windrow.audit', 'statement', 7)
    """

    def format(self, record: logging.LogRecord) -> str:
        found = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": redacted(record.getMessage()),
            **_given(record),
        }
        if record.exc_info:
            found["traceback"] = redacted(self.formatException(record.exc_info))
        return json.dumps(found, ensure_ascii=True, default=str)


class TextForm(logging.Formatter):
    """A line for people."""

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).strftime("%H:%M:%S")
        more = "  ".join(f"{name}={printable(str(value))}" for name, value in _given(record).items())
        text = f"{at} {record.levelname.lower():<7} {printable(redacted(record.getMessage()))}"
        text = f"{text}  {more}" if more else text
        return f"{text}\n{redacted(self.formatException(record.exc_info))}" if record.exc_info else text


_LEVELS = ("debug", "info", "warning", "error")


def log_form(text: str | None) -> str | None:
    if text not in (None, "text", "json"):
        raise typer.BadParameter(f"`{text}` is neither text nor json")
    return text


def log_level(text: str | None) -> str | None:
    if text is not None and text.lower() not in _LEVELS:
        raise typer.BadParameter(f"`{text}` is none of {', '.join(_LEVELS)}")
    return text.lower() if text is not None else None


def settings_of(given: list[str] | None) -> list[str] | None:
    for each in given or ():
        name, equals, _ = each.partition("=")
        if not equals or not name.startswith("spark."):
            raise typer.BadParameter(f"`{each}` is no setting of Spark: write spark.NAME=VALUE")
    return given


def address_of(text: str | None) -> str | None:
    if text is not None and not text.rpartition(":")[2].isdecimal():
        raise typer.BadParameter(f"`{text}` is neither PORT nor HOST:PORT")
    return text


StateOption = Annotated[
    str | None,
    typer.Option(
        "--state",
        metavar="DIR|URL",
        help="Where the state is kept: a directory, s3://…, gs://…, az://…; else state/NAME of the script.",
    ),
]
MasterOption = Annotated[
    str | None, typer.Option("--master", metavar="URL", help="The master of Spark; else this machine.")
]
ConfOption = Annotated[
    list[str] | None,
    typer.Option(
        "--conf", metavar="NAME=VALUE", callback=settings_of, help="A setting of Spark; may be repeated."
    ),
]
ShardsOption = Annotated[
    int | None,
    typer.Option(
        "--shards", metavar="N", min=1, help="How many shards the state has from now on; else as it was."
    ),
]
LogOption = Annotated[
    str | None, typer.Option("--log", metavar="FORM", callback=log_form, help="How to log: text or json.")
]
LevelOption = Annotated[
    str | None,
    typer.Option(
        "--log-level", metavar="LEVEL", callback=log_level, help=f"How much to log: {', '.join(_LEVELS)}."
    ),
]
MetricsOption = Annotated[
    str | None,
    typer.Option(
        "--metrics", metavar="[HOST:]PORT", callback=address_of, help="Serve /metrics for Prometheus there."
    ),
]


@dataclass(frozen=True)
class SparkChoice:
    """The Spark to run on: a master, settings that go over Windrow's own, and the shards of the state."""

    master: str | None = None
    conf: list[str] | None = None
    #: there some seconds sooner, slower in the long run
    is_brief: bool = False
    #: None: as many as the state has, or at first as Spark has cores
    shards: int | None = None

    def starting(self) -> AbstractContextManager[Callable[[], SparkSession]]:
        """The session, made while the block loads the engine that calls for it."""
        from windrow.spark.session import starting

        settings = dict(each.split("=", 1) for each in self.conf or ())
        return starting(master=self.master, settings=settings, is_brief=self.is_brief)


@dataclass(frozen=True)
class Observability:
    """How a run is seen from outside: its log, and its metrics."""

    log: str | None = None
    level: str | None = None
    metrics: str | None = None
    #: what is logged if nobody says
    usual_level: str = field(default="warning", kw_only=True)

    def set_up(self) -> None:
        """Log to standard error from now on."""
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(JsonForm() if self.log == "json" else TextForm())
        for name in ("windrow", "uvicorn"):
            logger = logging.getLogger(name)
            logger.handlers, logger.propagate = [handler], False
            logger.setLevel((self.level or self.usual_level).upper())
        logging.getLogger("uvicorn.access").setLevel(logging.WARNING)

    @contextmanager
    def serving(self, engine: Windrow) -> Iterator[None]:
        if self.metrics is None:
            yield
            return
        from windrow.server.metrics import scraped

        host, _, port = self.metrics.rpartition(":")
        with scraped(engine, host or "127.0.0.1", int(port)) as url:
            logging.getLogger("windrow").info("metrics on %s", url)
            yield
