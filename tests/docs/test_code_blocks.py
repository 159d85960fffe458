"""Every fenced code block of README.md, CONTRIBUTING.md and docs/ is run, or is listed here as not run.

What happens to a block depends on its language, the word after the three backticks:

    python      All blocks of a page are run in order, in one namespace, in a working directory that has
                nothing but `examples/`.
                A block with `>>>` is run as a doctest in the same namespace: its output has to match.
    sql         All statements of a page are compiled in order, in one catalog, and every query is run on the
                oracle over a few sample rows.
    console     A line `$ windrow ...` is run; the lines below it, up to the next `$ `, are its exact output
                (both streams, `...` stands for anything). Any other line after `$ ` must begin with a word
                of `SHOWN_ONLY`; it is not run, nor is its output compared.
    bash, sh    The same as console.
    text, ...   The languages of `NOT_RUN`, and blocks without a language, are pictures for the reader.

Any other language fails the test: an example nobody runs has to be declared as such, here.
"""

from __future__ import annotations

import doctest
import io
import re
import shlex
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.sample_rows import run_on_samples

from windrow.cli.main import main
from windrow.language.binder.bound_statements import ExplainQuery, RegisterQuery, RunOnce
from windrow.language.catalog import Catalog
from windrow.language.compile import compile_script
from windrow.spark.sources import infer_columns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).parents[2]
PAGES = [
    *(page for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md") if page.exists()),
    *sorted((ROOT / "docs").rglob("*.md")),
]

#: languages of blocks that are only to be read
NOT_RUN = {"", "text", "mermaid", "toml", "yaml", "json", "diff"}
#: first words of shell lines that are only to be read: they install, build, or act on the reader's own files
SHOWN_ONLY = {"make", "git", "pip", "cd", "export", "python", "python3", ".venv/bin/python"}

_FENCE = re.compile(r"^(?P<indent> *)(?P<ticks>`{3,}|~{3,})(?P<language>[^\s`{]*).*$")
_DOCTEST_FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclass(frozen=True)
class Block:
    """One fenced block: `line` is where its text begins in the page."""

    page: Path
    line: int
    language: str
    text: str

    @property
    def place(self) -> str:
        return f"{self.page.name}:{self.line}"


def blocks_of(page: Path) -> Iterator[Block]:
    """The fenced blocks of a page, in order, without their indentation."""
    lines = iter(enumerate(page.read_text(encoding="utf-8").splitlines(), start=1))
    for number, line in lines:
        opening = _FENCE.match(line)
        if opening is None:
            continue
        body = []
        for _, inner in lines:
            if inner.strip().startswith(opening["ticks"]) and not inner.strip().strip("`~"):
                break
            body.append(inner.removeprefix(opening["indent"]))
        else:
            pytest.fail(f"{page.name}:{number}: the block is never closed")
        yield Block(page, number + 1, opening["language"].lower(), "\n".join(body) + "\n")


# ------------------------------------------------------------------ one runner per language


def run_python(block: Block, namespace: dict[str, Any]) -> None:
    """Execute the block, or play it as a doctest, in the namespace of its page."""
    if re.search(r"^>>> ", block.text, re.MULTILINE):
        _run_doctest(block, namespace)
    else:
        # Blank lines in front make the line numbers of a traceback those of the page.
        source = "\n" * (block.line - 1) + block.text
        exec(compile(source, str(block.page), "exec"), namespace)


def _run_doctest(block: Block, namespace: dict[str, Any]) -> None:
    test = doctest.DocTestParser().get_doctest(
        block.text, {}, block.place, str(block.page), lineno=block.line - 1
    )
    test.globs = namespace  # the parser would copy it, and later blocks would not see what this one defines
    report = io.StringIO()
    runner = doctest.DocTestRunner(optionflags=_DOCTEST_FLAGS)
    runner.run(test, out=report.write, clear_globs=False)
    assert runner.failures == 0, report.getvalue()


def run_sql(block: Block, namespace: dict[str, Any]) -> None:
    """Compile the statements in the page's catalog, and run the queries."""
    catalog = namespace.setdefault("__catalog__", Catalog(inference=infer_columns))
    for statement in compile_script(block.text, catalog):
        if isinstance(statement, RegisterQuery):
            run_on_samples(statement.query.plan).take()
        elif isinstance(statement, RunOnce | ExplainQuery):
            run_on_samples(statement.plan).take()


def run_shell(block: Block, namespace: dict[str, Any]) -> None:
    """Run the `windrow` lines of a shell session and compare what they print."""
    for number, command, expected in _shell_steps(block.text):
        place = f"{block.page.name}:{block.line + number}"
        words = shlex.split(command, comments=True)
        if words[:1] == ["windrow"]:
            printed = _output_of(words[1:])
            same = doctest.OutputChecker().check_output(expected, printed, doctest.ELLIPSIS)
            assert same, f"{place}: $ {command}\n--- expected\n{expected}--- printed\n{printed}"
        else:
            assert not words or words[0] in SHOWN_ONLY, (
                f"{place}: `{words[0]}` is neither run nor in SHOWN_ONLY"
            )


def _shell_steps(text: str) -> Iterator[tuple[int, str, str]]:
    """Every `$ ` command of a session, with its line and the output shown under it.

    >>> list(_shell_steps("$ windrow --version\\nwindrow 0.1.0\\n$ make test\\n"))
    [(0, 'windrow --version', 'windrow 0.1.0\\n'), (2, 'make test', '')]
    """
    for step in re.finditer(r"^\$ (.*(?:\\\n.*)*)\n((?:(?!\$ ).*\n)*)", text, re.MULTILINE):
        yield text.count("\n", 0, step.start()), step[1].replace("\\\n", " "), step[2]


def _output_of(arguments: list[str]) -> str:
    printed = io.StringIO()
    with redirect_stdout(printed), redirect_stderr(printed), pytest.raises(SystemExit):
        main(arguments)
    return printed.getvalue()


RUNNERS: dict[str, Callable[[Block, dict[str, Any]], None]] = {
    "python": run_python,
    "sql": run_sql,
    "console": run_shell,
    "bash": run_shell,
    "sh": run_shell,
}


# ------------------------------------------------------------------ the tests


def _starts_an_engine(page: Path) -> bool:
    """Whether blocks of a page run an engine on Spark."""
    return bool(re.search(r"wr\.connect\(|^\$ windrow (run|demo|shell)", page.read_text(), re.MULTILINE))


def _pages(*, with_engine: bool) -> list[Any]:
    chosen = [page for page in PAGES if _starts_an_engine(page) is with_engine]
    return [pytest.param(page, id=str(page.relative_to(ROOT))) for page in chosen]


@pytest.mark.parametrize("page", _pages(with_engine=False))
def test_the_code_of_a_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _run(page, tmp_path, monkeypatch)


@pytest.mark.part(5)
@pytest.mark.jvm
@pytest.mark.parametrize("page", _pages(with_engine=True))
def test_the_code_of_a_page_runs_on_spark(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _run(page, tmp_path, monkeypatch)


def _run(page: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    Path("examples").symlink_to(ROOT / "examples")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")
    namespace: dict[str, Any] = {"__name__": "__page__"}
    for block in blocks_of(page):
        if block.language in NOT_RUN:
            continue
        runner = RUNNERS.get(block.language)
        assert runner is not None, (
            f"{block.place}: no runner for `{block.language}`; see {Path(__file__).name}"
        )
        try:
            runner(block, namespace)
        except AssertionError:
            raise
        except Exception as problem:
            raise AssertionError(f"{block.place}: {type(problem).__name__}: {problem}") from problem


def _page(tmp_path: Path, text: str) -> Path:
    page = tmp_path / "page.md"
    page.write_text(text)
    return page


def test_blocks_are_found_with_line_and_language(tmp_path: Path) -> None:
    text = (
        'prose\n```python title="x"\na = 1\n```\n- item\n\n    ````text\n    ```\n    ````\n```\nplain\n```\n'
    )
    found = [(block.line, block.language, block.text) for block in blocks_of(_page(tmp_path, text))]
    assert found == [(3, "python", "a = 1\n"), (8, "text", "```\n"), (11, "", "plain\n")]


def test_python_blocks_share_a_namespace(tmp_path: Path) -> None:
    namespace: dict[str, Any] = {}
    page = _page(
        tmp_path, "```python\na = 1\n```\n```python\n>>> b = a + 1\n>>> b\n2\n```\n```python\nc = b\n```\n"
    )
    for block in blocks_of(page):
        run_python(block, namespace)
    assert namespace["c"] == 2


def test_what_is_wrong_is_noticed() -> None:
    block = Block(ROOT / "README.md", 1, "python", ">>> 1 + 1\n3\n")
    with pytest.raises(AssertionError, match="Expected"):
        run_python(block, {})
    with pytest.raises(AssertionError, match="expected"):
        run_shell(Block(ROOT / "README.md", 1, "console", "$ windrow --version\nnonsense\n"), {})
    with pytest.raises(AssertionError, match="SHOWN_ONLY"):
        run_shell(Block(ROOT / "README.md", 1, "console", "$ rm -rf /\n"), {})
