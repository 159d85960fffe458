"""One SELECT, from the question to the answer.

Everything about a commit is in its manifest, so a question needs no lock of the engine: it holds a commit, so
that no file it may read is removed, reads the parts of what is kept that it needs, and is evaluated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from windrow.engine.adhoc.limits import Watch
from windrow.engine.adhoc.question import Answer, Question
from windrow.engine.adhoc.queue import Turns
from windrow.engine.adhoc.scan import POLICIES, Memory, Reader
from windrow.errors import QueryError
from windrow.language.once import LATEST, Once

if TYPE_CHECKING:
    import pyarrow as pa

    from windrow.archive.isolation import Policy
    from windrow.engine.adhoc.synopses import Standing
    from windrow.engine.archives.manager import Archiving
    from windrow.language.catalog import StandingQuery
    from windrow.state.log import CommitLog

#: what an answer tells of itself, in the metadata of its schema
COMMIT, INSTANT, ISOLATION = "windrow.commit", "windrow.at", "windrow.isolation"
#: evaluates a question elsewhere, or says that it will not
Elsewhere = Callable[[Question, Watch, "Policy"], Answer | None]


@dataclass
class Asker:
    """Answers questions about one state directory, from any thread."""

    log: CommitLog
    turns: Turns = field(default_factory=Turns)
    memory: Memory = field(default_factory=Memory)
    #: where there is more to read than one process should hold
    elsewhere: Elsewhere | None = None
    archives: Archiving | None = None
    #: what each standing query asks of its stream, if it shares that with others
    standing: Standing | None = None

    def ask(
        self,
        once: Once,
        queries: Mapping[str, StandingQuery],
        isolation: str | None = None,
        watch: Watch | None = None,
        policy: Policy | None = None,
    ) -> pa.Table:
        """The answer as a table; its metadata says which commit and instant it is about."""
        level = _level(once.isolation or isolation or LATEST)
        watch = watch or Watch()
        question = Question(once, queries, self.log, self.archives, self.standing, level)
        chosen = policy or POLICIES[level]
        with self.log.reader():
            answer = self.elsewhere(question, watch, chosen) if self.elsewhere is not None else None
            if answer is None:
                reader = Reader(self.log, self.turns, self.memory)
                read = reader.read(lambda m: question.at(m).parts, chosen, watch, once.priority)
                with self.turns.turn(once.priority, watch.check):
                    answer = question.at(read.manifest).answer(read.frames)
        watch.check()
        table = question.published(answer)
        watch.has_answer(table.num_rows, table.nbytes)
        about = {COMMIT: str(answer.commit), ISOLATION: level}
        about |= {} if answer.at is None else {INSTANT: str(answer.at)}
        return table.replace_schema_metadata(about)

    def ways(self, once: Once, queries: Mapping[str, StandingQuery]) -> list[str]:
        """Where a SELECT would read from, one line for each."""
        level = _level(once.isolation or LATEST)
        question = Question(once, queries, self.log, self.archives, self.standing, level)
        with self.log.reader() as manifest:
            return question.at(manifest).described


def _level(isolation: str) -> str:
    level = isolation.upper()
    if level not in POLICIES:
        raise QueryError(
            f"no isolation level `{isolation}`", code="bad-value", hint="LATEST (the default) or WINDOW"
        )
    return level
