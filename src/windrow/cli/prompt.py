"""The prompt of a shell that is typed into: several lines, completion, history and colours.

Enter ends a statement that has its semicolon, a command, or a word that needs none; else a new line begins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from prompt_toolkit import PromptSession
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.lexers import PygmentsLexer
from prompt_toolkit.output import Output
from prompt_toolkit.patch_stdout import patch_stdout
from pygments.lexers.sql import SqlLexer

from windrow.language.catalog import Catalog
from windrow.language.editor import completions, word_before
from windrow.redaction import redacted

_PROMPT, _MORE = "windrow> ", "      -> "
_HISTORY = ".windrow_history"
_SCHEMES = ("files://", "delta://")


class Typed:
    """Statements and commands as they are typed, until Ctrl-D. What others print meanwhile goes above."""

    def __init__(
        self,
        catalog: Callable[[], Catalog],
        commands: Sequence[str],
        is_ended: Callable[[str], bool],
        *,
        source: Input | None = None,
        screen: Output | None = None,
    ) -> None:
        self._session: PromptSession[str] = PromptSession(
            history=_History(str(Path.home() / _HISTORY)),
            completer=Words(catalog, commands),
            complete_while_typing=False,
            auto_suggest=AutoSuggestFromHistory(),
            lexer=PygmentsLexer(SqlLexer),
            key_bindings=_keys(is_ended),
            multiline=True,
            # a line that goes on because the terminal is narrow is no new one
            prompt_continuation=lambda width, line, breaks: " " * width if breaks else _MORE,
            input=source,
            output=screen,
        )

    def __iter__(self) -> Iterator[str]:
        while True:
            try:
                with patch_stdout(raw=True):
                    text = self._session.prompt(_PROMPT)
            except KeyboardInterrupt:  # forget what was begun
                continue
            except EOFError:
                return
            if text.strip():
                yield text.strip()


class _History(FileHistory):
    """What was typed is there again in the next shell, but for secrets; only its owner can read it."""

    def store_string(self, string: str) -> None:
        Path(str(self.filename)).touch(mode=0o600)
        super().store_string(redacted(string))


class Words(Completer):
    """Commands and their queries, files inside of a text, and what the language has at a place."""

    def __init__(self, catalog: Callable[[], Catalog], commands: Sequence[str]) -> None:
        self._catalog, self._commands = catalog, commands

    def get_completions(
        self, document: Document, complete_event: CompleteEvent | None
    ) -> Iterable[Completion]:
        before = document.text_before_cursor
        if before.lstrip().startswith((".", "\\")):
            yield from self._in_command(before.lstrip())
        elif before.count("'") % 2:
            yield from _files(before.rpartition("'")[2])
        else:
            word = word_before(document.text, document.cursor_position)
            for each in completions(document.text, document.cursor_position, self._catalog()):
                yield Completion(each.text, -len(word), display_meta=f"{each.kind} {each.detail}".strip())

    def _in_command(self, before: str) -> Iterator[Completion]:
        command, space, word = before.partition(" ")
        if not space:
            yield from (
                Completion(each, -len(command)) for each in self._commands if each.startswith(command)
            )
            return
        names = self._catalog().names if command.startswith("\\") else list(self._catalog().queries)
        yield from (Completion(name, -len(word)) for name in names if name.lower().startswith(word.lower()))


def _files(text: str) -> Iterator[Completion]:
    """Files that a text may name, behind the scheme of its URL."""
    scheme = next((each for each in _SCHEMES if text.startswith(each)), "")
    if not scheme:
        yield from (Completion(each, -len(text)) for each in _SCHEMES if text and each.startswith(text))
    folder, slash, start = text.removeprefix(scheme).rpartition("/")
    try:
        found = sorted(Path(folder + slash or ".").expanduser().iterdir())
    except OSError:
        return
    for path in found:
        if path.name.startswith(start) and (start or not path.name.startswith(".")):
            yield Completion(path.name + "/" * path.is_dir(), -len(start))


def _keys(is_ended: Callable[[str], bool]) -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter")
    def _(event: Any) -> None:
        buffer: Buffer = event.current_buffer
        if buffer.document.is_cursor_at_the_end and is_ended(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    return keys
