"""What the server tells through `logging`: lines for people, or one JSON object on each line."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any

from windrow.redaction import redacted

#: what every record has; all else was given to it
_PLAIN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "color_message"}


def set_up(form: str = "text", level: str = "INFO") -> None:
    """Log to standard error from now on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonForm() if form == "json" else TextForm())
    for name in ("windrow", "uvicorn"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level.upper())
    logging.getLogger("uvicorn.access").setLevel(logging.WARNING)


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
        more = "  ".join(f"{name}={_on_one_line(str(value))}" for name, value in _given(record).items())
        text = f"{at} {record.levelname.lower():<7} {_on_one_line(redacted(record.getMessage()))}"
        text = f"{text}  {more}" if more else text
        return f"{text}\n{redacted(self.formatException(record.exc_info))}" if record.exc_info else text


def _on_one_line(text: str) -> str:
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
