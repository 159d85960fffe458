"""The table of errors by code in the documentation, read from the places in the package that raise them.

>>> expression = ast.parse("f'no column `{name}` in {place.text!r}'", mode="eval").body
>>> _text(expression)
'no column `…` in …'
"""

from __future__ import annotations

import ast
import copy
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import windrow
from windrow import errors

PACKAGE = Path(windrow.__file__).parent
KINDS = {
    name: kind
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, errors.WindrowError)
}


def errors_markdown() -> str:
    """A row for each code: what raises it, what one of its messages says, and the way out."""
    found: dict[str, list[tuple[str, str, str]]] = defaultdict(list)
    for file in sorted(PACKAGE.rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        if "Error(" in text or "code=" in text or "refuse(" in text:
            for code, *about in _raised(ast.parse(text)):
                found[code].append((about[0], about[1], about[2]))
    rows = ["| code | error | for example | way out |", "|---|---|---|---|"]
    for code, places in sorted(found.items()):
        # the place that says most
        kind, message, hint = max(places, key=lambda place: (place[0] in KINDS, bool(place[2]), place[1]))
        rows.append(f"| `{code}` | {kind if kind in KINDS else ''} | {_cell(message)} | {_cell(hint)} |")
    return "\n".join(rows)


def _raised(tree: ast.Module) -> Iterator[tuple[str, str, str, str]]:
    """Code, class, message and hint of every error that a module makes with a code of its own."""
    makers = dict(_makers(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in makers:
            node = _made(node, makers[node.func.id])
        if not isinstance(node, ast.Call) or not node.args:
            continue
        given = {word.arg: word.value for word in node.keywords}
        name = _called(node)
        if name in ("refuse", "mistake") and len(node.args) >= 3:  # of the language: a place comes first
            _, *told = node.args
            name, node.args = "QueryError", told
            given |= dict(zip(("code", "hint"), told[1:], strict=False))
        code = given.get("code")
        if isinstance(code, ast.Constant) and isinstance(code.value, str):
            yield code.value, name, _text(node.args[0]), _text(given.get("hint"))
        elif name in KINDS and "code" not in given:
            yield KINDS[name].default_code, name, _text(node.args[0]), _text(given.get("hint"))


def _called(call: ast.Call) -> str:
    """The name of a function or class, wherever it is taken from."""
    return str(getattr(call.func, "id", getattr(call.func, "attr", "")))


def _makers(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef]]:
    """Functions of a module that only make an error, out of what they are given."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and isinstance(node.body[-1], ast.Return):
            made = node.body[-1].value
            if isinstance(made, ast.Call) and isinstance(made.func, ast.Name) and made.func.id in KINDS:
                yield node.name, node


def _made(call: ast.Call, maker: ast.FunctionDef) -> ast.Call:
    """The error that a call of a maker makes, as if it stood there."""
    names = [each.arg for each in maker.args.args]
    defaults = dict(zip(reversed(names), reversed(maker.args.defaults), strict=False))
    given = defaults | dict(zip(names, call.args, strict=False))
    given |= {word.arg: word.value for word in call.keywords if word.arg}
    made = copy.deepcopy(maker.body[-1].value)  # type: ignore[attr-defined]
    assert isinstance(made, ast.Call)

    def put(node: ast.expr) -> ast.expr:
        return given.get(node.id, node) if isinstance(node, ast.Name) else node

    made.args = [put(each) for each in made.args]
    for word in made.keywords:
        word.value = put(word.value)
    return made


def _text(node: ast.expr | None) -> str:
    """A message as it is written, with … for what is put into it."""
    match node:
        case ast.Constant(value=str() as text):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(part.value if isinstance(part, ast.Constant) else "…" for part in parts)  # type: ignore[misc]
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return (_text(left) or "…") + (_text(right) or "…")
        case ast.Call(func=ast.Name(id="to_install"), args=[ast.Constant(value=str() as extra)]):
            return f"pip install 'windrow[{extra}]'"
        case ast.IfExp(body=body):
            return _text(body)
    return ""


def _cell(text: str) -> str:
    text = text.partition("\n")[0]
    return text.replace("|", "\\|").replace("<", "&lt;").replace("$", "\\$")
