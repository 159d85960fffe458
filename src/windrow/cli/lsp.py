"""`windrow lsp`: a language server on standard input and output, for editors that speak its protocol.

It compiles what stands in the editor, as `windrow check` does; it needs no Spark and reads no data. Streams
without columns, which are to be inferred from their source, are the only ones whose names it cannot know.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import version
from typing import Any, BinaryIO

from windrow.errors import Span
from windrow.language import catalog, editor

#: how the protocol calls kinds: numbers of CompletionItemKind
_KINDS = {"column": 5, "function": 3, "aggregate": 3, "keyword": 14, "window": 15}
_TABLE = 7
#: of DiagnosticSeverity
_ERROR, _WARNING = 1, 2
#: of JSON-RPC
_NO_METHOD, _NO_JSON = -32601, -32700
_MOST_BYTES = 16 << 20


def lsp() -> None:
    """Be a language server for editors: errors, completion, meanings."""
    sys.exit(LanguageServer(sys.stdin.buffer, sys.stdout.buffer).run())


class LanguageServer:
    """The texts that are open, and what is told about them."""

    def __init__(self, source: BinaryIO, target: BinaryIO) -> None:
        self._source, self._target = source, target
        self._texts: dict[str, str] = {}
        self._is_over = False

    def run(self) -> int:
        """Until `exit`, or the end of the input: 0 if `shutdown` came before."""
        for message in self._messages():
            method, params = message.get("method"), message.get("params") or {}
            if method == "exit":
                break
            if "id" in message and method is not None:
                self._answer(message["id"], method, params)
            elif method is not None:
                self._note(method, params)
        return 0 if self._is_over else 1

    # ------------------------------------------------------------ requests

    def _answer(self, number: object, method: str, params: dict[str, Any]) -> None:
        self._is_over = self._is_over or method == "shutdown"
        requests: dict[str, Callable[[dict[str, Any]], Any]] = {
            "initialize": self._initialize,
            "shutdown": lambda params: None,
            "textDocument/completion": self._completion,
            "textDocument/hover": self._hover,
        }
        if method in requests:
            self._send({"id": number, "result": requests[method](params)})
        else:
            error = {"code": _NO_METHOD, "message": f"there is no {method} here"}
            self._send({"id": number, "error": error})

    def _initialize(self, params: dict[str, Any]) -> dict[str, Any]:
        return {
            "capabilities": {
                "textDocumentSync": 1,  # the whole text with each change
                "completionProvider": {"triggerCharacters": ["[", ".", "("]},
                "hoverProvider": True,
            },
            "serverInfo": {"name": "windrow", "version": version("windrow")},
        }

    def _completion(self, params: dict[str, Any]) -> list[dict[str, Any]]:
        text, offset = self._place(params)
        start, found = editor.suggestions(text, offset, catalog.Catalog())
        spot = _range(text, Span(start, offset))
        return [
            {
                "label": each.text,
                "kind": _KINDS.get(each.kind, _TABLE),
                "detail": each.detail,
                "sortText": f"{place:03}",
                "textEdit": {"range": spot, "newText": each.text},
            }
            for place, each in enumerate(found)
        ]

    def _hover(self, params: dict[str, Any]) -> dict[str, Any] | None:
        text, offset = self._place(params)
        found = editor.meaning(text, offset, catalog.Catalog())
        if found is None:
            return None
        span, told = found
        return {"contents": {"kind": "plaintext", "value": told}, "range": _range(text, span)}

    def _place(self, params: dict[str, Any]) -> tuple[str, int]:
        text = self._texts.get(params["textDocument"]["uri"], "")
        return text, offset_of(text, params["position"]["line"], params["position"]["character"])

    # ------------------------------------------------------------ notifications

    def _note(self, method: str, params: dict[str, Any]) -> None:
        uri = params.get("textDocument", {}).get("uri", "")
        if method == "textDocument/didOpen":
            self._take(uri, params["textDocument"]["text"])
        elif method == "textDocument/didChange" and params["contentChanges"]:
            self._take(uri, params["contentChanges"][-1]["text"])
        elif method == "textDocument/didClose":
            self._texts.pop(uri, None)
            self._tell(uri, [])

    def _take(self, uri: str, text: str) -> None:
        self._texts[uri] = text
        found = []
        for each in editor.remarks(text, catalog.Catalog()):
            place, severity = _range(text, each.span), _ERROR if each.is_error else _WARNING
            told = each.message + (f" ({each.hint})" if each.hint else "")
            about = {"code": each.code, "source": "windrow", "message": told}
            found.append({"range": place, "severity": severity, **about})
        self._tell(uri, found)

    def _tell(self, uri: str, found: list[dict[str, Any]]) -> None:
        params = {"uri": uri, "diagnostics": found}
        self._send({"method": "textDocument/publishDiagnostics", "params": params})

    # ------------------------------------------------------------ the wire

    def _messages(self) -> Iterator[dict[str, Any]]:
        while (size := self._size()) is not None:
            try:
                found = json.loads(self._source.read(size))
            except ValueError:
                self._send({"id": None, "error": {"code": _NO_JSON, "message": "that is no JSON"}})
                continue
            if isinstance(found, dict):
                yield found

    def _size(self) -> int | None:
        """The length of the next message, from its headers; None at the end."""
        size = None
        while line := self._source.readline(1 << 16):
            name, _, value = line.decode("ascii", "replace").partition(":")
            if name.strip().lower() == "content-length" and value.strip().isdigit():
                size = int(value)
            if not line.strip() and size is not None:
                return size if size <= _MOST_BYTES else None
        return None

    def _send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self._target.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self._target.flush()


def offset_of(text: str, line: int, character: int) -> int:
    r"""A place of the protocol, whose characters are units of UTF-16, as an offset.

    >>> offset_of("a\n𝄞bc", 1, 3), offset_of("a", 7, 7)
    (4, 1)
    """
    lines = text.split("\n")
    if line >= len(lines):
        return len(text)
    before = sum(len(each) + 1 for each in lines[:line])
    units = lines[line].encode("utf-16-le", "surrogatepass")[: 2 * character]
    return before + len(units.decode("utf-16-le", "ignore"))


def _range(text: str, span: Span) -> dict[str, dict[str, int]]:
    return {"start": _position(text, span.start), "end": _position(text, min(span.end, len(text)))}


def _position(text: str, offset: int) -> dict[str, int]:
    start = text.rfind("\n", 0, offset) + 1
    units = len(text[start:offset].encode("utf-16-le", "surrogatepass")) // 2
    return {"line": text.count("\n", 0, offset), "character": units}
