"""The language server: an editor's session, message by message."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from windrow.cli.lsp import LanguageServer
from windrow.language import editor

URI = "file:///q.cql"
TEXT = """\
CREATE STREAM bids (item BIGINT, price DOUBLE, ts TIMESTAMP) WATTR ts SLACK 5 SECONDS FROM 'push:';
SELECT item, '𝄞' AS clef, prise FROM bids [RANGE 5 MINUTES];
"""


def _written(*messages: dict[str, Any]) -> bytes:
    bodies = [json.dumps({"jsonrpc": "2.0", **each}).encode() for each in messages]
    return b"".join(b"Content-Length: %d\r\n\r\n%s" % (len(body), body) for body in bodies)


def _read(data: bytes) -> list[dict[str, Any]]:
    found, stream = [], io.BytesIO(data)
    while head := stream.readline():
        stream.readline()
        found.append(json.loads(stream.read(int(head.split(b":")[1]))))
    return found


def _session(*messages: dict[str, Any]) -> tuple[int, list[dict[str, Any]]]:
    target = io.BytesIO()
    code = LanguageServer(io.BytesIO(_written(*messages)), target).run()
    return code, _read(target.getvalue())


def _opened(text: str) -> dict[str, Any]:
    document = {"uri": URI, "languageId": "windrow", "version": 1, "text": text}
    return {"method": "textDocument/didOpen", "params": {"textDocument": document}}


def _asked(method: str, line: int, character: int) -> dict[str, Any]:
    where = {"textDocument": {"uri": URI}, "position": {"line": line, "character": character}}
    return {"id": 7, "method": f"textDocument/{method}", "params": where}


def test_errors_stand_where_they_are_in_units_of_utf_16() -> None:
    _, (told,) = _session(_opened(TEXT))
    (found,) = told["params"]["diagnostics"]
    assert found["code"] == "unknown-column"
    assert "did you mean `price`?" in found["message"]
    begin = TEXT.split("\n")[1].index("prise") + 1  # the clef is two units
    assert found["range"] == {
        "start": {"line": 1, "character": begin},
        "end": {"line": 1, "character": begin + 5},
    }


def test_warnings_stand_at_the_first_line_of_their_query() -> None:
    stream = "CREATE STREAM s (k INT, ts TIMESTAMP) WATTR ts SLACK 5 SECONDS;\n"
    _, (told,) = _session(_opened(stream + "CREATE QUERY q AS\nSELECT k, COUNT(*) FROM s GROUP BY k;\n"))
    (found,) = told["params"]["diagnostics"]
    assert (found["code"], found["severity"]) == ("unbounded-group", 2)
    assert found["range"] == {"start": {"line": 1, "character": 0}, "end": {"line": 1, "character": 17}}


def test_a_change_is_looked_at_and_a_closed_text_has_no_errors() -> None:
    changed = {"textDocument": {"uri": URI}, "contentChanges": [{"text": TEXT.replace("prise", "price")}]}
    _, told = _session(
        _opened(TEXT),
        {"method": "textDocument/didChange", "params": changed},
        {"method": "textDocument/didClose", "params": {"textDocument": {"uri": URI}}},
    )
    assert [len(each["params"]["diagnostics"]) for each in told] == [1, 0, 0]


def test_words_are_completed_and_explained() -> None:
    line = TEXT.split("\n")[1]
    _, (_, completed, hovered) = _session(
        _opened(TEXT),
        _asked("completion", 1, line.index("prise") + 1 + 2),
        _asked("hover", 1, line.index("RANGE") + 2),
    )
    first = completed["result"][0]
    assert (first["label"], first["detail"]) == ("price", "DOUBLE of bids")
    assert first["textEdit"]["range"]["start"] == {"line": 1, "character": line.index("prise") + 1}
    assert hovered["result"]["contents"]["value"].startswith("WKS: ")


def test_it_begins_and_ends_as_the_protocol_says() -> None:
    begin = {"id": 1, "method": "initialize", "params": {}}
    code, (answer, ended) = _session(begin, {"id": 2, "method": "shutdown"}, {"method": "exit"})
    assert answer["result"]["capabilities"]["hoverProvider"] is True
    assert (code, ended["result"]) == (0, None)
    assert _session(begin)[0] == 1


def test_what_it_does_not_know_and_what_is_no_json_is_told() -> None:
    unknown = {"id": 3, "method": "workspace/symbol", "params": {}}
    assert _session(unknown)[1][0]["error"]["code"] == -32601
    target = io.BytesIO()
    LanguageServer(io.BytesIO(b"Content-Length: 3\r\n\r\n{{{" + _written(unknown)), target).run()
    assert [each["error"]["code"] for each in _read(target.getvalue())] == [-32700, -32601]


def test_it_is_a_command() -> None:
    told = _written({"id": 1, "method": "initialize"}, {"id": 2, "method": "shutdown"}, {"method": "exit"})
    done = subprocess.run(
        [sys.executable, "-m", "windrow", "lsp"], input=told, capture_output=True, check=True, timeout=120
    )
    assert [each["id"] for each in _read(done.stdout)] == [1, 2]


def test_the_grammar_knows_the_words_that_are_completed() -> None:
    grammar = json.loads((Path(__file__).parents[2] / "examples/editor/windrow.tmLanguage.json").read_text())
    parts = [*grammar["repository"]["words"]["patterns"], *grammar["repository"]["window"]["patterns"]]
    known = [
        re.compile(each["match"].replace("(?i)", ""), re.IGNORECASE) for each in parts if "match" in each
    ]
    lists = editor._CLAUSES, editor._WINDOW, editor._UNITS, editor._DECLARED
    words = " ".join((*editor._STATEMENTS, *lists)).split()
    called = {"UNNEST", "CAST"}  # these are written as functions are
    assert [word for word in words if word not in called and not any(e.fullmatch(word) for e in known)] == []
